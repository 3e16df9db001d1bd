/*
 * What copy engines copy: both sides of a part, cut where either is not contiguous, and put together
 * again where pieces of equal length lie equally far apart on both sides.
 */
#include "halo/exchange/engine.h"
#include "halo/shape_inside.h"

#include <stdlib.h>

typedef struct pile {
    hemi_device_rows *rows;
    uint32_t count;
    uint32_t room;
} pile;

static hem_status too_many(const hem_exchange *x) {
    return hemi_fail(HEM_ERR_UNSUPPORTED,
                     "hem_exchange_create: rank %u would copy more than %u sets of rows in a run: "
                     "too many for copy engines",
                     x->world->rank, HEMI_HALO_ENGINE_ROWS);
}

/* Add a row to the set if it belongs there. */
static bool join(hemi_device_rows *last, const hemi_device_rows *row) {
    /* Addresses that lie before become steps that are too large. */
    uint64_t to_step = (uintptr_t)row->to - (uintptr_t)last->to;
    uint64_t from_step = (uintptr_t)row->from - (uintptr_t)last->from;
    if (last->bytes != row->bytes)
        return false;
    if (last->rows == 1 && to_step >= row->bytes && from_step >= row->bytes &&
        to_step <= HEMI_DEVICE_STEP_MOST && from_step <= HEMI_DEVICE_STEP_MOST) {
        last->to_step = to_step;
        last->from_step = from_step;
    }
    if (last->to_step == 0 || to_step != last->rows * last->to_step ||
        from_step != last->rows * last->from_step)
        return false;
    last->rows++;
    return true;
}

/* `first`: of the sets of this part. */
static hem_status add(const hem_exchange *x, pile *p, uint32_t first, const hemi_device_rows *row) {
    if (p->count > first && join(&p->rows[p->count - 1], row))
        return HEM_OK;
    if (p->count == HEMI_HALO_ENGINE_ROWS)
        return too_many(x);
    if (p->count == p->room) {
        uint32_t room = p->room == 0 ? 64 : 2 * p->room;
        hemi_device_rows *more = realloc(p->rows, room * sizeof *more);
        if (more == NULL)
            return hemi_fail(HEM_ERR_MEMORY, "no memory for the rows of an exchange");
        p->rows = more;
        p->room = room;
    }
    p->rows[p->count++] = *row;
    return HEM_OK;
}

static uint64_t chunk_of(const hemi_part *part) {
    return part->list != NULL ? part->list->chunk : part->shape->chunk;
}

/* The longest piece that is contiguous on both sides, wherever it begins. */
static uint32_t find_unit(const hemi_part *a, const hemi_part *b) {
    uint64_t unit = chunk_of(a);
    for (uint64_t rest = chunk_of(b); rest != 0;) {
        uint64_t left = unit % rest;
        unit = rest;
        rest = left;
    }
    while (unit > UINT32_MAX) /* of a row that long any divisor will do */
        unit = unit % 2 == 0 ? unit / 2 : 1;
    return (uint32_t)unit;
}

/* Units become rows of what is contiguous, and those, when they do not grow any more, sets of rows. */
static hem_status add_pair(const hem_exchange *x, pile *p, const hemi_part *owner,
                           const hemi_part *halo) {
    hemd_halo_side from;
    hemd_halo_side to;
    hem_status status = HEM_OK;
    if (halo->bytes == 0)
        return HEM_OK;
    uint32_t unit = find_unit(owner, halo);
    uint32_t first = p->count;
    hemi_device_rows row = {.bytes = 0};
    hemi_halo_side_make(owner, unit, NULL, &from);
    hemi_halo_side_make(halo, unit, NULL, &to);
    for (uint64_t i = 0; i <= halo->bytes / unit && status == HEM_OK; i++) {
        bool over = i == halo->bytes / unit;
        hemi_device_rows next = {.rows = 1, .bytes = unit};
        if (!over) {
            next.to = to.base + hemd_halo_offset(&to, i);
            next.from = from.base + hemd_halo_offset(&from, i);
        }
        if (!over && row.bytes > 0 && (unsigned char *)row.to + row.bytes == next.to &&
            (const unsigned char *)row.from + row.bytes == next.from) {
            row.bytes += unit;
            continue;
        }
        if (row.bytes > 0)
            status = add(x, p, first, &row);
        row = next;
    }
    return status;
}

/* What this rank writes in a run: halos of neighbours, and those of its own other domains. */
static hem_status add_lane(const hem_exchange *x, const hem_exchange_how *how, size_t l, pile *p) {
    const hemi_halo_lane *lane = &x->lanes[l];
    bool own = lane->way.peer == x->world->rank;
    hem_status status = HEM_OK;
    for (size_t i = 0; i < lane->sends.count && status == HEM_OK; i++) {
        const hemi_part *part = &lane->sends.parts[i];
        const hemi_part *halo = own ? &lane->recvs.parts[i] : part->there;
        if (halo != NULL && hemi_part_is_in(own ? halo : part, how))
            status = add_pair(x, p, part, halo);
    }
    return status;
}

hem_status hemi_halo_engine_rows(const hem_exchange *x, const hem_exchange_how *how,
                                 hemi_halo_plan *plan) {
    pile p = {0};
    hem_status status = HEM_OK;
    for (size_t l = 0; l < x->lane_count && status == HEM_OK; l++)
        status = add_lane(x, how, l, &p);
    if (status != HEM_OK) {
        free(p.rows);
        return status;
    }
    plan->rows = p.rows;
    plan->row_count = p.count;
    return HEM_OK;
}
