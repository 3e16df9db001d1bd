/*
 * Inside of a shape.
 *
 * How this works: making a shape drops what does not matter and joins what belongs together, until
 * a chunk of contiguous bytes, a few axes around it and perhaps a list are left. The axes stay in
 * the order in which elements are packed, and each one knows its stride in the field and when
 * packed, so that loops may be run in another order than that.
 *
 * A list is kept as offsets in bytes: 32 bits each where they fit, as a run over a list is bound by
 * reading it and the field. If most neighbours in a list are neighbours in memory, it is kept as
 * runs of different length instead, innermost.
 */
#ifndef HEMI_HALO_SHAPE_INSIDE_H
#define HEMI_HALO_SHAPE_INSIDE_H

#include "halo/shape.h"
#include "halo/shape_moves.h"

enum hemi_shape_list {
    HEMI_LIST_NONE,
    HEMI_LIST_NEAR, /**< offsets of 32 bits */
    HEMI_LIST_FAR,  /**< offsets of 64 bits */
    HEMI_LIST_RUNS  /**< hemi_shape_run */
};

typedef struct hemi_shape_loop {
    uint64_t count;
    int64_t stride;  /**< in the field; all steps of a list are multiples of this apart */
    uint64_t packed; /**< when packed */
} hemi_shape_loop;

struct hemi_shape {
    uint64_t bytes;
    int64_t first;
    int64_t end;
    int64_t base;
    uint64_t element;
    uint64_t chunk; /**< contiguous bytes, of runs the smallest unit */
    uint64_t unit;  /**< of the chunk, before neighbours in the list were joined */
    uint32_t axis_count;
    uint32_t list_at;   /**< the axis that is the list, or axis_count */
    uint32_t list_kind; /**< enum hemi_shape_list */
    /** Whether no two steps of the axes meet in memory, so that elements may be written in any
     *  order. Steps of the list that are equal stay in order, whatever the order of loops. */
    bool apart;
    hemi_shape_loop axes[HEMI_SHAPE_AXES];
    hemi_moves pack;
    hemi_moves unpack;
    union {
        const void *list;
        const int32_t *near;
        const int64_t *far;
        const hemi_shape_run *runs;
    };
    int64_t room[]; /**< the list */
};

/** Bytes of a step of a list of this kind. */
static inline size_t hemi_shape_step(uint32_t list_kind) {
    return list_kind == HEMI_LIST_NEAR
               ? sizeof(int32_t)
               : (list_kind == HEMI_LIST_FAR ? sizeof(int64_t) : sizeof(hemi_shape_run));
}

/** Offset of step i of a list. */
static inline int64_t hemi_shape_offset(const hemi_shape *s, uint64_t i) {
    return s->list_kind == HEMI_LIST_NEAR
               ? s->near[i]
               : (s->list_kind == HEMI_LIST_FAR ? s->far[i] : s->runs[i].offset);
}

/** The list as moves know it. */
static inline hemi_move_list hemi_shape_list_of(const hemi_shape *s) {
    return (hemi_move_list){.near = s->list_kind == HEMI_LIST_NEAR ? s->near : NULL,
                            .far = s->list_kind == HEMI_LIST_FAR ? s->far : NULL,
                            .runs = s->list_kind == HEMI_LIST_RUNS ? s->runs : NULL};
}

/** Room for a shape with a list of `count` steps. NULL if there is none. The list is not set. */
hemi_shape *hemi_shape_alloc(uint32_t list_kind, uint64_t count);

/**
 * Work out all that follows from the element, the chunk, the axes (counts, none 0, and strides) and
 * the list: bytes, bounds, packed strides, and how to move.
 *
 * @return HEM_OK; HEM_ERR_LIMIT if bytes or offsets do not fit into 63 bits.
 */
hem_status hemi_shape_settle(hemi_shape *shape);

/** Make it the shape of nothing. */
void hemi_shape_settle_empty(hemi_shape *shape);

#endif
