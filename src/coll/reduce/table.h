/* The table of a set; SET is its name. The last part of each set_*.c. */
#ifndef HEMI_COLL_REDUCE_TABLE_H
#define HEMI_COLL_REDUCE_TABLE_H

#include "coll/reduce/half_loops.h"
#include "coll/reduce/loops.h"

#define ROW_LOGICAL(TYPE)                                                                          \
    [HEM_LAND] = &TYPE##_land_kernel, [HEM_LOR] = &TYPE##_lor_kernel,                              \
    [HEM_LXOR] = &TYPE##_lxor_kernel
#define ROW_COMPLEX(TYPE)                                                                          \
    [HEM_SUM] = &TYPE##_sum_kernel, [HEM_PROD] = &TYPE##_prod_kernel, ROW_LOGICAL(TYPE)
#define ROW_REAL(TYPE)                                                                             \
    [HEM_MIN] = &TYPE##_min_kernel, [HEM_MAX] = &TYPE##_max_kernel, ROW_COMPLEX(TYPE)
#define ROW_BITS(TYPE)                                                                             \
    [HEM_BAND] = &TYPE##_band_kernel, [HEM_BOR] = &TYPE##_bor_kernel,                              \
    [HEM_BXOR] = &TYPE##_bxor_kernel
/* Signed integers compare in their own way and have everything else of the unsigned. */
#define ROW_INTEGER(TYPE, UNSIGNED_TYPE)                                                           \
    [HEM_MIN] = &TYPE##_min_kernel, [HEM_MAX] = &TYPE##_max_kernel, ROW_COMPLEX(UNSIGNED_TYPE),    \
    ROW_BITS(UNSIGNED_TYPE)

const hemi_reduce_set SET = {{
    [HEM_BYTE] = {ROW_BITS(u8)},
    [HEM_I8] = {ROW_INTEGER(i8, u8)},
    [HEM_I16] = {ROW_INTEGER(i16, u16)},
    [HEM_I32] = {ROW_INTEGER(i32, u32)},
    [HEM_I64] = {ROW_INTEGER(i64, u64)},
    [HEM_U8] = {ROW_INTEGER(u8, u8)},
    [HEM_U16] = {ROW_INTEGER(u16, u16)},
    [HEM_U32] = {ROW_INTEGER(u32, u32)},
    [HEM_U64] = {ROW_INTEGER(u64, u64)},
    [HEM_F16] = {ROW_REAL(f16)},
    [HEM_BF16] = {ROW_REAL(bf16)},
    [HEM_F32] = {ROW_REAL(f32)},
    [HEM_F64] = {ROW_REAL(f64)},
    [HEM_C64] = {ROW_COMPLEX(c64)},
    [HEM_C128] = {ROW_COMPLEX(c128)},
    /* Any byte but 0 is true, so that operations on bits are the logical ones, too. */
    [HEM_BOOL] =
        {ROW_LOGICAL(u8), [HEM_SUM] = &u8_lor_kernel, [HEM_PROD] = &u8_land_kernel,
         [HEM_MIN] = &u8_land_kernel, [HEM_MAX] = &u8_lor_kernel, [HEM_BAND] = &u8_land_kernel,
         [HEM_BOR] = &u8_lor_kernel, [HEM_BXOR] = &u8_lxor_kernel},
}};

#endif
