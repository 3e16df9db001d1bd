/* hem_sparse as a collective. */
#ifndef HEMI_COLL_SPARSE_H
#define HEMI_COLL_SPARSE_H

#include "coll/parcels.h"

/** Fill in a collective whose method is hemi_direct_sparse with its messages. */
hem_status hemi_sparse_make(hemi_collective *c, const hem_parcel *list, size_t count,
                            hem_sparse_result *result_p);

#endif
