/*
 * Device memory of fields that neighbours write halos into: pieces that are shown, and taken back.
 *
 * A piece is what is needed of one allocation, for all fields in it. Pieces are shown one after the
 * other, since hemi_device_share shows one at a time; ranks that have fewer show nothing then.
 *
 * Who gives an exchange up may free its fields, so it waits until no neighbour writes there any more:
 * device/kernels/halo.h says how both know.
 */
#include "core/team.h"
#include "halo/exchange/connect.h"
#include "halo/exchange/engine.h"

#include <stdlib.h>
#include <unistd.h>

/* How long one naps between looks at what a neighbour does. */
#define NAP_NS 20000u

/* What neighbours may write of a field, and the allocation that it is in. */
typedef struct shown {
    uintptr_t first;
    uintptr_t end; /* == first: nothing, or it cannot be shown */
    uint64_t allocation;
    uint64_t whole;
} shown;

bool hemi_halo_is_on_device(const hemi_halo_device *d, const hem_field *field) {
    return field->memory != NULL &&
           d->device->module->memory->kind(d->device->context, field->memory) == HEM_MEMORY_DEVICE;
}

/* Add what a receiving part touches. The order of axes, which is not known yet, does not matter. */
static hem_status add_bounds(const hem_exchange *x, const hemi_part *given, shown *span) {
    hemi_part part = *given;
    hemi_part_order(&part, part.order);
    hem_status status = hemi_part_shape(&part);
    int64_t first = 0;
    int64_t end = 0;
    if (status == HEM_OK)
        hemi_shape_bounds(part.shape, &first, &end);
    uintptr_t field = (uintptr_t)part.memory;
    if (status == HEM_OK && first >= 0 && end > 0 && hemi_halo_pays(x, part.shape)) {
        span->first = field;
        span->end = field + (uintptr_t)end > span->end ? field + (uintptr_t)end : span->end;
    }
    hemi_shape_free(part.shape);
    return status;
}

/* What neighbours may write of a field: from its address to the last halo point. */
static hem_status find_span(const hem_exchange *x, const hem_field *field, shown *span) {
    hem_status status = HEM_OK;
    for (size_t l = 0; l < x->lane_count; l++) {
        const hemi_parts *recvs = &x->lanes[l].recvs;
        if (x->lanes[l].way.peer == x->world->rank)
            continue;
        for (size_t i = 0; i < recvs->count && status == HEM_OK; i++)
            if (recvs->parts[i].field == field && recvs->parts[i].bytes > 0)
                status = add_bounds(x, &recvs->parts[i], span);
    }
    return status;
}

/* Which allocation it is in. What cannot be shown is not: that is no error. */
static void find_allocation(const hemi_halo_device *d, shown *span) {
    const hemi_device_memory_ops *ops = d->device->module->memory;
    hemi_device_memory memory = {.address = NULL};
    hemi_device_name name = {.kind = 0};
    int fd = -1;
    if (ops->adopt(d->device->context, (void *)span->first, span->end - span->first, &memory) !=
        HEM_OK) {
        span->end = span->first;
        return;
    }
    if (ops->name(d->device->context, &memory, &name, &fd) != HEM_OK)
        span->end = span->first;
    if (fd >= 0)
        close(fd);
    ops->release(d->device->context, &memory);
    span->allocation = name.address - name.offset;
    span->whole = name.whole;
}

/* Put a field into the piece of its allocation, or make one. */
static void add_piece(hemi_halo_device *d, shown *pieces, const shown *span, uint32_t *piece_p) {
    uint32_t k = 0;
    while (k < d->piece_count && (pieces[k].allocation != span->allocation ||
                                  pieces[k].whole != span->whole || span->whole == 0))
        k++;
    if (k == HEMI_HALO_PIECES)
        return;
    if (k == d->piece_count) {
        pieces[k] = *span;
        d->piece_count++;
    }
    pieces[k].first = span->first < pieces[k].first ? span->first : pieces[k].first;
    pieces[k].end = span->end > pieces[k].end ? span->end : pieces[k].end;
    *piece_p = k + 1;
}

static void set_piece(const hem_exchange *x, const hem_field *field, uint32_t piece) {
    for (size_t l = 0; l < x->lane_count; l++)
        for (size_t i = 0; i < x->lanes[l].recvs.count; i++)
            if (x->lanes[l].recvs.parts[i].field == field)
                x->lanes[l].recvs.parts[i].piece = piece;
}

/* All fields of this rank, as pieces. */
static hem_status find_pieces(hem_exchange *x) {
    hemi_halo_device *d = x->device;
    const hemi_device_memory_ops *ops = d->device->module->memory;
    shown pieces[HEMI_HALO_PIECES];
    hem_status status = HEM_OK;
    d->pieces = calloc(HEMI_HALO_PIECES, sizeof *d->pieces);
    if (d->pieces == NULL)
        return hemi_connect_no_memory();
    for (size_t b = 0; b < x->binding_count && status == HEM_OK; b++) {
        const hem_field *field = &x->bindings[b].field;
        shown span = {0};
        uint32_t piece = 0;
        if ((field->flags & HEM_FIELD_READ_ONLY) != 0 || !hemi_halo_is_on_device(d, field))
            continue;
        status = find_span(x, field, &span);
        if (status == HEM_OK && span.end > span.first)
            find_allocation(d, &span);
        if (status == HEM_OK && span.end > span.first)
            add_piece(d, pieces, &span, &piece);
        set_piece(x, field, piece);
    }
    for (uint32_t k = 0; k < d->piece_count && status == HEM_OK; k++)
        status = ops->adopt(d->device->context, (void *)pieces[k].first,
                            pieces[k].end - pieces[k].first, &d->pieces[k].mine);
    return status;
}

/* How many any rank has. */
static hem_status agree_count(hem_exchange *x, hem_status status, int64_t timeout_ns) {
    hem_world *world = x->world;
    hemi_halo_device *d = x->device;
    uint32_t most = d->piece_count;
    status = hemi_team_agree(world, HEMI_CALL_EXCHANGE_CREATE, status, 0, &d->piece_count,
                             sizeof d->piece_count, timeout_ns);
    if (status != HEM_OK)
        return status;
    for (uint32_t r = 0; r < world->size; r++) {
        uint32_t count = 0;
        hemi_team_heard(world, r, &count, sizeof count);
        if (count <= HEMI_HALO_PIECES && count > most)
            most = count;
    }
    hemi_team_done(world);
    d->piece_count = most;
    return HEM_OK;
}

static hem_status show_piece(hem_exchange *x, hemi_halo_piece *piece, int64_t timeout_ns) {
    hem_world *world = x->world;
    bool *wants = calloc(world->size, sizeof *wants);
    piece->maps = calloc(world->size, sizeof *piece->maps);
    hem_status status = wants != NULL && piece->maps != NULL ? HEM_OK : hemi_connect_no_memory();
    for (size_t l = 0; l < x->lane_count && status == HEM_OK; l++)
        wants[x->lanes[l].way.peer] = x->lanes[l].way.peer != world->rank;
    status = hemi_device_share(world, HEMI_CALL_EXCHANGE_CREATE, status,
                               piece->mine.address != NULL ? &piece->mine : NULL, wants,
                               piece->maps, timeout_ns);
    free(wants);
    return status;
}

hem_status hemi_halo_pieces_show(hem_exchange *x, int64_t timeout_ns) {
    hemi_halo_device *d = x->device;
    if (x->way == HEM_EXCHANGE_STAGED)
        return HEM_OK;
    hem_status status = agree_count(x, find_pieces(x), timeout_ns);
    for (uint32_t k = 0; k < d->piece_count && status == HEM_OK; k++)
        status = show_piece(x, &d->pieces[k], timeout_ns);
    return status;
}

/* A word of this rank's device memory. */
static uint64_t load(const hemi_halo_device *d, const uint64_t *word) {
    uint64_t value = 0;
    hem_status status =
        d->device->module->memory->copy(d->device->context, &value, word, sizeof value);
    return status == HEM_OK ? value : 0;
}

/* Whether a start of the neighbour may be writing to halos of this rank. */
static bool may_write(const hemi_halo_device *d, size_t lane) {
    if (d->engine != NULL)
        return hemi_halo_engine_may_write(d, lane);
    unsigned char *at = (unsigned char *)d->areas.address + d->reach[lane].in_at;
    const hemd_halo_area *in = (const hemd_halo_area *)(void *)at;
    uint64_t begun = load(d, &in->begun.stamp);
    return begun != 0 && load(d, &in->notes[begun % 2].note.stamp) != begun &&
           load(d, &in->gone) == 0;
}

void hemi_halo_device_drain(const hem_exchange *x) {
    const hemi_halo_device *d = x->device;
    if (d == NULL || d->words == NULL || x->world == NULL || x->world->keep_memory)
        return;
    const hemi_platform *platform = d->root->platform;
    uint64_t end = x->setup_timeout_ns < 0
                       ? UINT64_MAX
                       : platform->now(platform->ctx) + (uint64_t)x->setup_timeout_ns;
    if (d->engine != NULL)
        hemi_halo_engine_leave(d);
    hemi_fence_seq_cst(); /* pairs with that in hemd_halo_begin */
    for (size_t l = 0; l < x->lane_count; l++) {
        uint32_t peer = x->lanes[l].way.peer;
        if (peer == d->rank || (x->lanes[l].recvs.direct == 0 && d->engine == NULL))
            continue;
        /* Kernels of a process that is dead are, too; those of a thread, or of a rank that has only
         * closed the world, come to their end, as all do that were told to. */
        while ((d->root->threads ||
                hemi_liveness_may_come(&x->world->root->arena, x->world->members[peer])) &&
               may_write(d, l) && platform->now(platform->ctx) < end)
            platform->nap(platform->ctx, NAP_NS);
    }
}

void hemi_halo_pieces_free(hemi_halo_device *d, bool closed) {
    for (uint32_t k = 0; d->pieces != NULL && k < HEMI_HALO_PIECES; k++) {
        hemi_halo_piece *piece = &d->pieces[k];
        for (uint32_t r = 0; piece->maps != NULL && r < d->map_count; r++)
            if (r != d->rank)
                hemi_halo_drop(d, &piece->maps[r], closed);
        hemi_halo_drop(d, &piece->mine, closed);
        free(piece->maps);
    }
    free(d->pieces);
    d->pieces = NULL;
}
