/* What follows from the chunk, the axes and the list of a shape. */
#include "halo/shape_inside.h"

#include "base/status.h"

static uint64_t magnitude(int64_t a) {
    return a < 0 ? 0 - (uint64_t)a : (uint64_t)a;
}

/* The lowest offset of the list and the highest that it reaches, less a chunk. */
static bool list_ends(const hemi_shape *s, int64_t *low_p, int64_t *high_p) {
    int64_t low = INT64_MAX;
    int64_t high = INT64_MIN;

    for (uint64_t i = 0; i < s->axes[s->list_at].count; i++) {
        int64_t offset = hemi_shape_offset(s, i);
        int64_t end = offset;
        if (s->list_kind == HEMI_LIST_RUNS &&
            __builtin_add_overflow(offset, (int64_t)(s->runs[i].bytes - s->chunk), &end))
            return false;
        low = offset < low ? offset : low;
        high = end > high ? end : high;
    }
    *low_p = low;
    *high_p = high;
    return true;
}

/* How far axis k goes down and up. */
static bool axis_ends(const hemi_shape *s, uint32_t k, int64_t *low_p, int64_t *high_p) {
    const hemi_shape_loop *axis = &s->axes[k];
    int64_t last;

    if (k == s->list_at)
        return list_ends(s, low_p, high_p);
    if (axis->count - 1 > INT64_MAX ||
        __builtin_mul_overflow((int64_t)(axis->count - 1), axis->stride, &last))
        return false;
    *low_p = last < 0 ? last : 0;
    *high_p = last > 0 ? last : 0;
    return true;
}

static bool find_bounds(hemi_shape *s) {
    s->first = s->base;
    s->end = s->base;
    for (uint32_t k = 0; k < s->axis_count; k++) {
        int64_t low;
        int64_t high;
        int64_t span;
        if (!axis_ends(s, k, &low, &high) || __builtin_sub_overflow(high, low, &span) ||
            __builtin_add_overflow(s->first, low, &s->first) ||
            __builtin_add_overflow(s->end, high, &s->end))
            return false;
    }
    return !__builtin_add_overflow(s->end, (int64_t)s->chunk, &s->end);
}

/* What all runs of a list are together when packed. */
static bool run_bytes(const hemi_shape *s, uint64_t *bytes_p) {
    uint64_t bytes = 0;

    for (uint64_t i = 0; i < s->axes[s->list_at].count; i++) {
        if (__builtin_add_overflow(bytes, s->runs[i].bytes, &bytes))
            return false;
    }
    *bytes_p = bytes;
    return true;
}

static bool find_packed(hemi_shape *s) {
    uint64_t bytes = s->chunk;

    for (uint32_t k = s->axis_count; k-- > 0;) {
        s->axes[k].packed = bytes;
        if (k == s->list_at && s->list_kind == HEMI_LIST_RUNS) {
            if (!run_bytes(s, &bytes))
                return false;
        } else if (__builtin_mul_overflow(bytes, s->axes[k].count, &bytes)) {
            return false;
        }
        if (bytes > INT64_MAX)
            return false;
    }
    s->bytes = bytes;
    return true;
}

/* The axis with the smallest stride of those not yet in `taken`. */
static uint32_t next_inner(const hemi_shape *s, uint32_t taken) {
    uint32_t best = s->axis_count;

    for (uint32_t k = 0; k < s->axis_count; k++) {
        if ((taken & 1u << k) == 0 &&
            (best == s->axis_count ||
             magnitude(s->axes[k].stride) < magnitude(s->axes[best].stride)))
            best = k;
    }
    return best;
}

/* Whether, ordered by stride, each axis steps over all that is inside of it. */
static bool is_apart(const hemi_shape *s) {
    /* Neighbours in a list that were joined may occur twice, as the list itself may say. */
    uint64_t extent = s->list_at < s->axis_count ? s->unit : s->chunk;
    uint32_t taken = 0;

    for (uint32_t i = 0; i < s->axis_count; i++) {
        uint32_t k = next_inner(s, taken);
        int64_t low = 0;
        int64_t high = 0;
        if (magnitude(s->axes[k].stride) < extent || !axis_ends(s, k, &low, &high))
            return false;
        extent += (uint64_t)high - (uint64_t)low;
        if (extent > INT64_MAX)
            return false;
        taken |= 1u << k;
    }
    return true;
}

/* Lay out packing, or unpacking, which is the same with sides exchanged. */
static void lay_out(const hemi_shape *s, bool unpack, hemi_moves *moves) {
    hemi_move_nest n = {.chunk = s->chunk,
                        .loop_count = s->axis_count,
                        .list_at = s->list_at,
                        .any_order = s->apart || !unpack};

    for (uint32_t k = 0; k < s->axis_count; k++) {
        const hemi_shape_loop *axis = &s->axes[k];
        int64_t packed = (int64_t)axis->packed;
        int64_t stride = k == s->list_at ? 0 : axis->stride;
        n.loops[k] = unpack ? (hemi_move_loop){axis->count, stride, packed}
                            : (hemi_move_loop){axis->count, packed, stride};
    }
    *(unpack ? &n.to_list : &n.from_list) = hemi_shape_list_of(s);
    if (s->axis_count > 0)
        hemi_moves_lay_out(&n, moves);
}

hem_status hemi_shape_settle(hemi_shape *s) {
    if (!find_packed(s) || !find_bounds(s))
        return hemi_fail(HEM_ERR_LIMIT, "the points of a field span more than 63 bits can count");
    s->apart = is_apart(s);
    lay_out(s, false, &s->pack);
    lay_out(s, true, &s->unpack);
    return HEM_OK;
}

void hemi_shape_settle_empty(hemi_shape *s) {
    s->bytes = 0;
    s->chunk = 0;
    s->unit = 0;
    s->axis_count = 0;
    s->list_at = 0;
    s->first = 0;
    s->end = 0;
    s->base = 0;
    s->apart = true;
}
