/* Making a collective on device buffers one of all ranks: who has what, who reaches what. */
#include "coll/claim.h"
#include "coll/device.h"
#include "core/team.h"
#include "window/device.h"

#include <hem/window.h>
#include <string.h>

/* Up to so many bytes to all ranks together go in units. */
#define UNIT_BYTES 1048576u
/* Threads of a block. Where host threads stand in for warps there are not so many. */
#define THREADS       512u
#define THREADS_FEW   64u
#define THREADS_UNITS 256u

_Static_assert(sizeof(hemi_coll_wish) <= HEMI_SAY_MAX, "fits into a step");
_Static_assert(sizeof(hemi_coll_claim) <= HEMI_SAY_MAX, "fits into a step");

static hem_status agree(const hemi_coll_device *d, hem_status status, uint64_t step) {
    return hemi_team_agree(d->op.world, HEMI_CALL_COLL_PLAN, status, step, NULL, 0, d->timeout_ns);
}

static void hear(hemi_coll_device *d, const hemi_coll_wish *said) {
    hemi_coll_wish *all = &d->all;
    if (said->fit < all->fit)
        all->fit = said->fit;
    if (said->multi < all->multi)
        all->multi = said->multi;
    if (said->blocks < all->blocks)
        all->blocks = said->blocks;
    if (said->wants > all->wants)
        all->wants = said->wants;
    all->moved |= said->moved;
    if (said->send_bytes > all->send_bytes)
        all->send_bytes = said->send_bytes;
    if (said->recv_bytes > all->recv_bytes)
        all->recv_bytes = said->recv_bytes;
    if (said->pair_bytes > all->pair_bytes)
        all->pair_bytes = said->pair_bytes;
}

/* The most ranks on one device, the same wherever it is asked. */
static uint32_t count_sharing(const hemi_coll_device *d) {
    uint32_t most = 1;
    for (uint32_t r = 0; r < d->size; r++) {
        hemi_coll_wish one;
        uint32_t count = 0;
        hemi_team_heard(d->op.world, r, &one, sizeof one);
        for (uint32_t s = 0; s < d->size; s++) {
            hemi_coll_wish other;
            hemi_team_heard(d->op.world, s, &other, sizeof other);
            count += memcmp(one.uuid, other.uuid, sizeof one.uuid) == 0;
        }
        most = count > most ? count : most;
    }
    return most;
}

/* Of the devices of all ranks in their order. */
static void hash_device(hemi_coll_device *d, const hemi_coll_wish *said) {
    for (size_t i = 0; i < sizeof said->uuid; i++)
        d->group = (d->group ^ said->uuid[i]) * 1099511628211u;
}

static uint32_t count_threads(const hemi_coll_device *d) {
    return d->device->facts.warp == 1 ? THREADS_FEW : THREADS;
}

/* With HEM_CHECK: who calls what. Otherwise it is only known that somebody calls something else. */
static hem_status compare_claims(const hemi_coll_device *d, hem_status status) {
    hem_world *world = d->op.world;
    hemi_coll_claim first, other;
    memset(&other, 0, sizeof other);
    if (status == HEM_OK)
        other = hemi_claim_of(&d->job);
    status =
        hemi_team_agree(world, HEMI_CALL_COLL_PLAN, status, 5, &other, sizeof other, d->timeout_ns);
    if (status == HEM_OK)
        hemi_team_heard(world, 0, &first, sizeof first);
    for (uint32_t r = 1; status == HEM_OK && r < d->size; r++) {
        hemi_team_heard(world, r, &other, sizeof other);
        status = hemi_claim_differs(&first, &other, r);
    }
    hemi_team_done(world);
    return status;
}

/* Step 1: all call the same, and hear how much everybody has. */
static hem_status compare(hemi_coll_device *d, hem_status status, uint64_t fingerprint) {
    hem_world *world = d->op.world;
    hemi_coll_wish mine = d->all;
    if (status == HEM_OK) {
        const hemi_device *device = d->device;
        memcpy(mine.uuid, device->facts.uuid, sizeof mine.uuid);
        mine.fit = device->module->stream->fit(device->context, HEMI_KERNEL_COLL, count_threads(d));
        d->all.fit = mine.fit;
        d->all.multi = mine.multi = device->facts.multi;
    }
    status = hemi_team_agree(world, HEMI_CALL_COLL_PLAN, status, fingerprint, &mine, sizeof mine,
                             d->timeout_ns);
    for (uint32_t r = 0; status == HEM_OK && r < d->size; r++) {
        hemi_coll_wish said;
        hemi_team_heard(world, r, &said, sizeof said);
        hear(d, &said);
        hash_device(d, &said);
        /* Extents, until what it says of this rank is known. */
        d->theirs[r].send_bytes = said.send_bytes;
        d->theirs[r].recv_bytes = said.recv_bytes;
    }
    if (status == HEM_OK)
        d->sharing = count_sharing(d);
    hemi_team_done(world);
    return status;
}

/* All blocks of all ranks on a device must be there at the same time; half of it is left to others. */
static uint32_t most_blocks(const hemi_coll_device *d) {
    uint32_t most = d->all.fit / (2 * d->sharing);
    most = most < 2 ? 2 : most;
    return most < d->all.blocks ? most : d->all.blocks;
}

/* Units of all ranks, up to which they are faster than the form for long vectors. On an H200, ranks sharing
 * it: sums up to 4 words of a rank per thread with 2 ranks, 2 with 4 and 1 with 8; copies a little more. */
static uint64_t most_units(const hemi_coll_device *d, bool combines) {
    const uint64_t most = UNIT_BYTES / 8;
    if (d->device->facts.warp == 1) /* host threads: both forms have their share of the tests */
        return most / 4;
    uint64_t worth = (combines ? 8u : 12u) * (uint64_t)most_blocks(d) * THREADS;
    return worth < most ? worth : most;
}

/* From what all have said, so that all decide alike. */
static void choose(hemi_coll_device *d) {
    const hemi_coll_wish *all = &d->all;
    uint32_t parts = 1;
    bool combines = hemi_coll_device_combines(&d->job);
    uint32_t code = combines ? hemi_coll_device_code(&d->job, &parts) : 0;
    uint64_t words = all->pair_bytes == 0 ? 1 : (all->pair_bytes + 7) / 8;
    bool fits = code == 0 || d->job.element / parts <= 8; /* a unit has 8 bytes of data */
    d->units = d->size > 1 && d->job.kind != HEM_BARRIER && all->moved == 0 && fits &&
               words <= most_units(d, combines) / d->size;
    d->args.words = words;
    d->args.turn = d->size * words;
}

static void choose_blocks(hemi_coll_device *d) {
    uint32_t most = most_blocks(d);
    uint64_t worth = d->all.wants;
    d->threads = count_threads(d);
    if (d->units && d->device->facts.warp > 1) {
        d->threads = d->args.turn > THREADS_UNITS ? THREADS : THREADS_UNITS;
        worth = (d->args.turn + d->threads - 1) / d->threads;
    }
    d->blocks = worth < most ? (uint32_t)worth : most;
}

/* Show one of the buffers to everybody, if there is one, and map everybody's. */
static hem_status show(hemi_coll_device *d, int which) {
    const hemi_device_module *module = d->device->module;
    hemi_device_memory *own = &d->own[which];
    if (d->extents[which] > 0 && module->memory->adopt(d->device->context, d->buffers[which],
                                                       d->extents[which], own) != HEM_OK)
        memset(own, 0, sizeof *own); /* then nobody reaches it */
    return hemi_device_share(d->op.world, HEMI_CALL_COLL_PLAN, HEM_OK,
                             own->address != NULL ? own : NULL, d->wants, d->maps[which],
                             d->timeout_ns);
}

static void forget(hemi_coll_device *d) {
    const hemi_device_module *module = d->device->module;
    for (int b = 0; b < HEMI_COLL_BUFFERS; b++) {
        for (uint32_t r = 0; r < d->size; r++) {
            if (r != d->rank && d->maps[b][r].address != NULL)
                module->memory->release(d->device->context, &d->maps[b][r]);
            memset(&d->maps[b][r], 0, sizeof d->maps[b][r]);
        }
        if (d->own[b].address != NULL)
            module->memory->release(d->device->context, &d->own[b]);
        memset(&d->own[b], 0, sizeof d->own[b]);
    }
}

/* Whether this rank reaches all that the ranks have. */
static bool reaches(const hemi_coll_device *d) {
    for (uint32_t r = 0; r < d->size; r++) {
        const uint64_t need[HEMI_COLL_BUFFERS] = {d->theirs[r].send_bytes, d->theirs[r].recv_bytes};
        for (int b = 0; b < HEMI_COLL_BUFFERS; b++)
            if (need[b] > 0 && (d->maps[b][r].address == NULL || d->maps[b][r].bytes < need[b]))
                return false;
    }
    return true;
}

/* What a rank says when all have tried to map. */
typedef struct reach_say {
    uint32_t direct;
} reach_say;

static hem_status agree_on_reach(hemi_coll_device *d) {
    hem_world *world = d->op.world;
    reach_say mine = {d->direct};
    hem_status status =
        hemi_team_agree(world, HEMI_CALL_COLL_PLAN, HEM_OK, 2, &mine, sizeof mine, d->timeout_ns);
    for (uint32_t r = 0; status == HEM_OK && r < d->size; r++) {
        reach_say said;
        hemi_team_heard(world, r, &said, sizeof said);
        d->direct = d->direct && said.direct != 0;
    }
    hemi_team_done(world);
    return status;
}

/* Are buffers to be used where they are? All decide alike. */
static hem_status share_buffers(hemi_coll_device *d) {
    d->direct = true;
    for (int b = 0; b < HEMI_COLL_BUFFERS && d->direct; b++) {
        hem_status status = show(d, b);
        if (status != HEM_OK && hemi_coll_device_is_final(status))
            return status;
        d->direct = status == HEM_OK; /* the same on all ranks */
    }
    d->direct = d->direct && reaches(d);
    hem_status status = agree_on_reach(d);
    if (status == HEM_OK && !d->direct)
        forget(d);
    return status;
}

static uint64_t on_line(uint64_t at, uint64_t bytes) {
    return (at + bytes + HEM_DEV_LINE - 1) / HEM_DEV_LINE * HEM_DEV_LINE;
}

/* Where everything is in the window, the same on all ranks. */
static void lay_out(hemi_coll_device *d) {
    bool staged = !d->units && !d->direct && !d->multi;
    bool aside = staged || (d->all.moved != 0 && !d->multi);
    d->spans_at = on_line(0, sizeof(hemd_coll_state));
    d->tables_at = on_line(d->spans_at, d->size * sizeof *d->spans);
    d->units_at = on_line(d->tables_at, hemi_coll_device_tables(d));
    uint64_t at = on_line(d->units_at, d->units ? 2 * d->args.turn * sizeof(hemd_unit) : 0);
    d->staged_at[HEMI_COLL_SEND] = at;
    at = on_line(at, staged ? d->all.send_bytes : 0);
    d->staged_at[HEMI_COLL_RECV] = at;
    d->bytes = on_line(at, aside ? d->all.recv_bytes : 0);
}

static hem_status make_window(hemi_coll_device *d) {
    hem_window_options options = {.struct_size = sizeof options,
                                  .bytes = d->bytes,
                                  .signals = HEMD_COLL_SAID + 1,
                                  .device_signals = HEMD_COLL_SAID,
                                  .barriers = HEMD_COLL_BLOCKS,
                                  .timeout_ns = d->timeout_ns,
                                  .kind = HEM_MEMORY_DEVICE};
    return hemi_window_create(d->op.world, HEMI_CALL_COLL_PLAN, &options, &d->window);
}

static hem_status check_span(const hemi_coll_device *d, uint32_t r) {
    const hemi_coll_span *mine = &d->spans[r];
    const hemi_coll_span *other = &d->theirs[r];
    const char *call = hemi_call_name(d->op.call);
    if (hemi_window_device_address(d->window, r) == NULL)
        return hemi_fail(HEM_ERR_UNSUPPORTED, "%s: kernels of rank %u cannot reach rank %u", call,
                         d->rank, r);
    if (mine->send_bytes != other->recv_bytes)
        return hemi_fail(HEM_ERR_MISMATCH,
                         "%s: rank %u has %llu bytes for rank %u, which expects %llu", call,
                         d->rank, (unsigned long long)mine->send_bytes, r,
                         (unsigned long long)other->recv_bytes);
    if (mine->recv_bytes != other->send_bytes)
        return hemi_fail(
            HEM_ERR_MISMATCH, "%s: rank %u has %llu bytes for rank %u, which expects %llu", call, r,
            (unsigned long long)other->send_bytes, d->rank, (unsigned long long)mine->recv_bytes);
    return HEM_OK;
}

/* What is the same between all ranks is read from each. */
static hem_status read_spans(hemi_coll_device *d) {
    hem_status status = HEM_OK;
    for (uint32_t r = 0; status == HEM_OK && r < d->size; r++) {
        status = hem_get(d->window, (int)r, d->spans_at + d->rank * sizeof *d->spans, &d->theirs[r],
                         sizeof *d->theirs);
        if (status == HEM_OK)
            status = check_span(d, r);
    }
    return status;
}

hem_status hemi_coll_device_connect(hemi_coll_device *d, hem_status status, uint64_t fingerprint) {
    if (d->root->settings.check) {
        status = compare_claims(d, status);
        if (status != HEM_OK)
            return status;
    }
    status = compare(d, status, fingerprint);
    if (status != HEM_OK)
        return status;
    choose(d);
    choose_blocks(d);
    if (!d->units)
        status = hemi_coll_device_team(d);
    if (status == HEM_OK && !d->units && !d->multi && d->job.kind != HEM_BARRIER)
        status = share_buffers(d);
    if (status != HEM_OK)
        return status;
    lay_out(d);
    status = make_window(d);
    if (status != HEM_OK)
        return status;
    status = hem_put(d->window, (int)d->rank, d->spans_at, d->spans, d->size * sizeof *d->spans);
    status = agree(d, status, 3);
    if (status != HEM_OK)
        return status;
    status = read_spans(d);
    if (status == HEM_OK)
        status = hemi_coll_device_fill(d);
    return agree(d, status, 4);
}
