/* Kernels for processors with AVX2 and F16C. Compiled with the options that name them. */
#if defined(__x86_64__)
#define SET hemi_reduce_avx2

#include "coll/reduce/lanes_avx2.h"

#include "coll/reduce/table.h"

#else
typedef int hemi_reduce_avx2_is_empty;
#endif
