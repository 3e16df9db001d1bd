/* Kernels for processors with AVX-512 F, BW, DQ and VL. Compiled with options that name them. */
#if defined(__x86_64__)
#define SET hemi_reduce_avx512

#include "coll/reduce/lanes_avx512.h"

#include "coll/reduce/table.h"

#else
typedef int hemi_reduce_avx512_is_empty;
#endif
