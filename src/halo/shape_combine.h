/* The loops that combine and negate elements of a field that are not next to each other. */
#ifndef HEMI_HALO_SHAPE_COMBINE_H
#define HEMI_HALO_SHAPE_COMBINE_H

#include <hem/coll.h>

/** Steps in the field, each with some contiguous units; packed, they follow each other. */
typedef struct hemi_combine_row {
    uint64_t count;
    uint64_t units; /**< of a step */
    uint64_t bytes; /**< of a step */
    int64_t stride; /**< without a list */
    const int32_t *near;
    const int64_t *far;
} hemi_combine_row;

typedef struct hemi_combine_loop {
    void (*run)(unsigned char *field, const unsigned char *in, const hemi_combine_row *row);
    size_t unit; /**< bytes; half of a complex number */
} hemi_combine_loop;

typedef struct hemi_negate_loop {
    void (*run)(unsigned char *field, uint64_t units);
    size_t unit;
} hemi_negate_loop;

/** NULL if the type does not have the operation, or if it is not sum, minimum or maximum. */
const hemi_combine_loop *hemi_combine_loop_of(hem_dtype dtype, hem_reduction op);

/** NULL for unsigned types, booleans and bytes. */
const hemi_negate_loop *hemi_negate_loop_of(hem_dtype dtype);

#endif
