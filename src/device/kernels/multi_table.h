/* Memory of several devices under one address, as kernels and the host know it. */
#ifndef HEMD_KERNELS_MULTI_TABLE_H
#define HEMD_KERNELS_MULTI_TABLE_H

#include <stdint.h>

/**
 * Each member has memory of its own of the same length. What is stored at an offset of `all` is
 * stored at that offset in the memory of every member; what is loaded there is combined of all.
 */
typedef struct hemd_multi {
    unsigned char *own; /**< this member's memory, as any other */
    unsigned char *all; /**< of a GPU: for multimem instructions only */
    uint64_t
        stride;     /**< of the stand-in, where `all` is the first member's memory: to the next's */
    uint64_t count; /**< members */
} hemd_multi;

#endif
