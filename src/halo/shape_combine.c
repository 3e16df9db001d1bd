/*
 * Combining packed values into a field, and negating a field.
 *
 * Elements are always combined in the order in which they are packed, since a list may name a point
 * twice. Long pieces go through the kernels of collectives, short ones and single elements through
 * the loops of shape_combine_loops.h, which give the same bits.
 */
#include "halo/shape_combine.h"
#include "coll/reduce/reduce.h"
#include "halo/shape_inside.h"

/* From so many bytes on a piece is worth calling a kernel for. */
#define PIECE_BYTES 256

/* The innermost axis as a row of steps, and how far the others are. */
typedef struct sweep {
    const hemi_shape *shape;
    uint32_t axis_count; /* outside of the row */
    int64_t at;
    uint64_t done[HEMI_SHAPE_AXES];
} sweep;

static void begin(sweep *w, const hemi_shape *s, uint32_t axis_count) {
    *w = (sweep){.shape = s, .axis_count = axis_count, .at = s->base};
}

static bool next(sweep *w) {
    const hemi_shape *s = w->shape;

    for (uint32_t k = w->axis_count; k-- > 0;) {
        const hemi_shape_loop *axis = &s->axes[k];
        bool listed = k == s->list_at;
        if (++w->done[k] < axis->count) {
            w->at += listed ? 0 : axis->stride;
            return true;
        }
        w->done[k] = 0;
        w->at -= listed ? 0 : (int64_t)(axis->count - 1) * axis->stride;
    }
    return false;
}

/* Where the row begins in the field. */
static int64_t place(const sweep *w) {
    const hemi_shape *s = w->shape;

    return w->at + (s->list_at < w->axis_count ? hemi_shape_offset(s, w->done[s->list_at]) : 0);
}

static hemi_combine_row row_of(const hemi_shape *s, size_t unit) {
    const hemi_shape_loop *axis = &s->axes[s->axis_count - 1];
    hemi_combine_row row = {
        .count = axis->count, .units = s->chunk / unit, .stride = axis->stride, .bytes = s->chunk};

    if (s->list_at + 1 == s->axis_count) {
        row.near = s->list_kind == HEMI_LIST_NEAR ? s->near : NULL;
        row.far = s->list_kind == HEMI_LIST_FAR ? s->far : NULL;
    }
    return row;
}

/* Short pieces: rows of steps. */
static void combine_rows(const hemi_shape *s, unsigned char *field, const unsigned char *in,
                         const hemi_combine_loop *loop) {
    hemi_combine_row row = row_of(s, loop->unit);
    sweep w;

    begin(&w, s, s->axis_count - 1);
    do {
        loop->run(field + place(&w), in, &row);
        in += row.count * row.bytes;
    } while (next(&w));
}

/* Long pieces, each of them by `run`; `in` may be NULL. */
typedef struct piecewise {
    void (*run)(const void *how, unsigned char *field, const unsigned char *in, uint64_t bytes);
    const void *how;
} piecewise;

static void each_piece(const hemi_shape *s, unsigned char *field, const unsigned char *in,
                       piecewise by) {
    bool runs = s->list_kind == HEMI_LIST_RUNS;
    sweep w;

    begin(&w, s, s->axis_count);
    do {
        uint64_t bytes = runs ? s->runs[w.done[s->list_at]].bytes : s->chunk;
        by.run(by.how, field + place(&w), in, bytes);
        if (in != NULL)
            in += bytes;
    } while (next(&w));
}

static void reduce_piece(const void *how, unsigned char *field, const unsigned char *in,
                         uint64_t bytes) {
    const hemi_reducer *reducer = how;
    const void *sources[] = {field, in};

    hemi_reduce(reducer, field, sources, 2, bytes / reducer->element);
}

void hemi_shape_combine(const hemi_shape *shape, void *field, const void *in, hem_dtype dtype,
                        hem_reduction op) {
    bool pieces =
        shape->axis_count == 0 || shape->chunk >= PIECE_BYTES || shape->list_kind == HEMI_LIST_RUNS;
    hemi_reducer reducer;

    if (shape->bytes == 0 || !hemi_shape_can_combine(dtype, op))
        return;
    if (!pieces)
        combine_rows(shape, field, in, hemi_combine_loop_of(dtype, op));
    else if (hemi_reducer_find(dtype, op, NULL, NULL, 0, &reducer) == HEM_OK)
        each_piece(shape, field, in, (piecewise){reduce_piece, &reducer});
}

bool hemi_shape_can_combine(hem_dtype dtype, hem_reduction op) {
    return hemi_combine_loop_of(dtype, op) != NULL;
}

/* Negating. */

static void negate_piece(const void *how, unsigned char *field, const unsigned char *in,
                         uint64_t bytes) {
    const hemi_negate_loop *loop = how;

    (void)in;
    loop->run(field, bytes / loop->unit);
}

void hemi_shape_negate(const hemi_shape *shape, void *field, hem_dtype dtype) {
    const hemi_negate_loop *loop = hemi_negate_loop_of(dtype);

    if (shape->bytes > 0 && loop != NULL)
        each_piece(shape, field, NULL, (piecewise){negate_piece, loop});
}

bool hemi_shape_can_negate(hem_dtype dtype) {
    return hemi_negate_loop_of(dtype) != NULL;
}
