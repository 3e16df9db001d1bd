/* Sorting by numbers: in linear time, stable, without allocating. */
#ifndef HEMI_HALO_PATTERN_ORDER_H
#define HEMI_HALO_PATTERN_ORDER_H

#include <stddef.h>
#include <stdint.h>

typedef struct hemi_keyed {
    uint64_t key;
    uint64_t value;
} hemi_keyed;

/**
 * Order `items` by key; equal keys stay in their order. `spare` has room for as many.
 *
 * To order by several keys, begin with the least significant one.
 */
void hemi_order(hemi_keyed *items, hemi_keyed *spare, size_t count);

#endif
