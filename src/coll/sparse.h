/* hem_sparse as a collective. */
#ifndef HEMI_COLL_SPARSE_H
#define HEMI_COLL_SPARSE_H

#include "coll/parcels.h"

/** What the caller says: `call` of the collective, while it is being made. */
typedef struct hemi_sparse_call {
    const hem_parcel *parcels;
    size_t count;
    hem_sparse_result *result_p;
} hemi_sparse_call;

#endif
