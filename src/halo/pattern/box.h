/*
 * Boxes of 64-bit points, without overflow.
 *
 * A grid has at most HEMI_POINTS_MAX points per dimension, and so has a box with its halo in all. Then
 * every end of a box, of its halo, and of an image of either one period further is an int64_t.
 */
#ifndef HEMI_HALO_PATTERN_BOX_H
#define HEMI_HALO_PATTERN_BOX_H

#include <hem/pattern.h>

#define HEMI_POINTS_MAX (INT64_C(1) << 62)

/** Points of one dimension: from `start` on. */
typedef struct hemi_stretch {
    int64_t start;
    int64_t count;
} hemi_stretch;

/** Rounded down, also for negative `a`; `b` is positive. */
static inline int64_t hemi_floor_div(int64_t a, int64_t b) {
    int64_t q = a / b;
    return a % b < 0 ? q - 1 : q;
}

/** What two stretches share; `count` is 0 if that is nothing. */
static inline hemi_stretch hemi_stretch_meet(hemi_stretch a, hemi_stretch b) {
    int64_t start = a.start > b.start ? a.start : b.start;
    int64_t a_end = a.start + a.count;
    int64_t b_end = b.start + b.count;
    int64_t end = a_end < b_end ? a_end : b_end;
    return (hemi_stretch){start, end > start ? end - start : 0};
}

static inline hemi_stretch hemi_box_stretch(const hem_box *box, int dim) {
    return (hemi_stretch){box->start[dim], box->count[dim]};
}

/** The points of a box, or -1 if there are more than HEMI_POINTS_MAX. No count may be negative. */
static inline int64_t hemi_box_points(int dims, const hem_box *box) {
    int64_t points = 1;
    for (int d = 0; d < dims; d++)
        if (box->count[d] == 0)
            return 0;
    for (int d = 0; d < dims; d++)
        if (__builtin_mul_overflow(points, box->count[d], &points) || points > HEMI_POINTS_MAX)
            return -1;
    return points;
}

/** Whether a box is not empty and inside of a grid of `extent` points. */
static inline bool hemi_box_inside(int dims, const hem_box *box, const int64_t *extent) {
    for (int d = 0; d < dims; d++)
        if (box->start[d] < 0 || box->count[d] < 1 || box->start[d] >= extent[d] ||
            box->count[d] > extent[d] - box->start[d])
            return false;
    return true;
}

/** What two boxes share. @return false if that is nothing; `meet_p` then has no meaning. */
static inline bool hemi_box_meet(int dims, const hem_box *a, const hem_box *b, hem_box *meet_p) {
    for (int d = 0; d < dims; d++) {
        hemi_stretch stretch = hemi_stretch_meet(hemi_box_stretch(a, d), hemi_box_stretch(b, d));
        if (stretch.count == 0)
            return false;
        meet_p->start[d] = stretch.start;
        meet_p->count[d] = stretch.count;
    }
    return true;
}

/**
 * `outer` without `inner`, which lies inside of it, as boxes that do not overlap.
 *
 * @return how many were written to `parts`: at most 2 x dims.
 */
static inline int hemi_box_subtract(int dims, const hem_box *outer, const hem_box *inner,
                                    hem_box *parts) {
    hem_box rest = *outer;
    int count = 0;
    for (int d = 0; d < dims; d++) {
        int64_t below = inner->start[d] - rest.start[d];
        int64_t above = rest.count[d] - below - inner->count[d];
        if (below > 0) {
            parts[count] = rest;
            parts[count++].count[d] = below;
        }
        if (above > 0) {
            parts[count] = rest;
            parts[count].start[d] = inner->start[d] + inner->count[d];
            parts[count++].count[d] = above;
        }
        rest.start[d] = inner->start[d];
        rest.count[d] = inner->count[d];
    }
    return count;
}

/**
 * Where the points of a stretch, which may lie outside of 0 to extent - 1, are in the grid: wrapped
 * around if it is periodic, cut off if not.
 *
 * @return how many stretches were written to `stretches`: at most 2. They do not overlap.
 */
static inline int hemi_stretch_wrap(hemi_stretch stretch, int64_t extent, bool periodic,
                                    hemi_stretch stretches[2]) {
    if (!periodic) {
        stretches[0] = hemi_stretch_meet(stretch, (hemi_stretch){0, extent});
        return stretches[0].count > 0;
    }
    if (stretch.count >= extent) {
        stretches[0] = (hemi_stretch){0, extent};
        return 1;
    }
    int64_t start = stretch.start - hemi_floor_div(stretch.start, extent) * extent;
    int64_t room = extent - start;
    if (stretch.count <= room) {
        stretches[0] = (hemi_stretch){start, stretch.count};
        return stretch.count > 0;
    }
    stretches[0] = (hemi_stretch){start, room};
    stretches[1] = (hemi_stretch){0, stretch.count - room};
    return 2;
}

/**
 * Where the points of a box are in the grid.
 *
 * @return how many boxes were written to `parts`: at most 2 to the power of dims.
 */
static inline int hemi_box_wrap(int dims, const hem_box *box, const int64_t *extent,
                                const bool *periodic, hem_box *parts) {
    int count = 1;
    for (int d = 0; d < dims; d++) {
        hemi_stretch stretches[2];
        int pieces = hemi_stretch_wrap(hemi_box_stretch(box, d), extent[d], periodic[d], stretches);
        if (pieces == 0)
            return 0;
        for (int i = 0; i < count * pieces; i++) {
            if (i >= count)
                parts[i] = parts[i - count];
            parts[i].start[d] = stretches[i / count].start;
            parts[i].count[d] = stretches[i / count].count;
        }
        count *= pieces;
    }
    return count;
}

#endif
