/* Kernels for any processor. */
#define SET hemi_reduce_portable

#include "coll/reduce/lanes_portable.h"

#include "coll/reduce/table.h"
