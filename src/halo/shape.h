/*
 * Shapes: which bytes of a field, in which order; packing, unpacking and copying them.
 *
 * A shape is made once from a few nested loops over elements, of which one may go through a list of
 * points. Making it finds what is contiguous, so that a run copies the longest pieces there are. A
 * shape names no address: the field's is given to each call. Nothing here allocates but making.
 */
#ifndef HEMI_HALO_SHAPE_H
#define HEMI_HALO_SHAPE_H

#include <hem/coll.h>

/** Dimensions, levels, components. */
#define HEMI_SHAPE_AXES 8

typedef struct hemi_shape_axis {
    uint64_t count;
    int64_t stride; /**< bytes; may be negative or 0 */
} hemi_shape_axis;

/** What to make a shape of. The last axis is the innermost. */
typedef struct hemi_shape_spec {
    int64_t base;   /**< bytes from the field's address to the first element, without the list */
    size_t element; /**< bytes of an element, not 0 */
    size_t axis_count;
    hemi_shape_axis axes[HEMI_SHAPE_AXES];
    /** If not NULL, step i of axis `list_axis` is at list[i] x its stride, not i x its stride. Not
     *  kept. */
    const int64_t *list;
    size_t list_axis;
} hemi_shape_spec;

typedef struct hemi_shape hemi_shape;

/** @return HEM_OK; HEM_ERR_MEMORY; HEM_ERR_LIMIT if bytes or offsets do not fit into 63 bits;
 *         HEM_ERR_ARG for a specification that is none. */
hem_status hemi_shape_make(const hemi_shape_spec *spec, hemi_shape **shape_p);

/** NULL is allowed. */
void hemi_shape_free(hemi_shape *shape);

/** Bytes when packed. */
uint64_t hemi_shape_bytes(const hemi_shape *shape);

/** Bytes of a contiguous piece, on average. */
uint64_t hemi_shape_piece(const hemi_shape *shape);

/** The first byte that it touches, and the first after the last one, from the field's address. */
void hemi_shape_bounds(const hemi_shape *shape, int64_t *first_p, int64_t *end_p);

/** Field to `out`, and `in` to field. Any alignment; they do not overlap. */
void hemi_shape_pack(const hemi_shape *shape, const void *field, void *out);
void hemi_shape_unpack(const hemi_shape *shape, void *field, const void *in);

/** From one field to another, element by element in the order of both shapes, which have equally
 *  many of the same size. The places do not overlap. */
void hemi_shape_copy(const hemi_shape *to, void *to_field, const hemi_shape *from,
                     const void *from_field);

/** The same, with what there is to find out found once. The shapes must stay. @return HEM_OK,
 *  HEM_ERR_MEMORY. */
typedef struct hemi_shape_pair hemi_shape_pair;
hem_status hemi_shape_pair_make(const hemi_shape *to, const hemi_shape *from,
                                hemi_shape_pair **pair_p);
void hemi_shape_pair_copy(const hemi_shape_pair *pair, void *to_field, const void *from_field);
/** NULL is allowed. */
void hemi_shape_pair_free(hemi_shape_pair *pair);

/** field[i] = field[i] op in[i], elements of `dtype`. Only for what hemi_shape_can_combine. */
void hemi_shape_combine(const hemi_shape *shape, void *field, const void *in, hem_dtype dtype,
                        hem_reduction op);
bool hemi_shape_can_combine(hem_dtype dtype, hem_reduction op);

/** field[i] = -field[i]: signed integers, floating point, complex. */
void hemi_shape_negate(const hemi_shape *shape, void *field, hem_dtype dtype);
bool hemi_shape_can_negate(hem_dtype dtype);

/**
 * A shape as plain bytes, for a peer, and back. What comes from a peer is checked: it is well
 * formed and touches only [0, field_bytes).
 *
 * hemi_shape_write returns the bytes needed, and writes if `room` is enough.
 * hemi_shape_read: @return HEM_OK, HEM_ERR_MISMATCH, HEM_ERR_MEMORY.
 */
size_t hemi_shape_write(const hemi_shape *shape, void *bytes, size_t room);
hem_status hemi_shape_read(const void *bytes, size_t count, uint64_t field_bytes,
                           hemi_shape **shape_p);

#endif
