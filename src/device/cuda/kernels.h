/* The library's kernels as the host launches them. Each is compiled in a file of its own. */
#ifndef HEMI_DEVICE_CUDA_KERNELS_H
#define HEMI_DEVICE_CUDA_KERNELS_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HEMI_CUDA_FORMS 2

/**
 * A kernel is compiled for blocks of up to so many threads: the fewer there are, the more registers
 * each may have.
 */
typedef struct hemi_cuda_form {
    const void *function; /**< as the runtime knows it */
    unsigned threads;     /**< the most that a block may have */
} hemi_cuda_form;

typedef struct hemi_cuda_kernel {
    const char *name;
    size_t bytes;                          /**< of its arguments */
    hemi_cuda_form forms[HEMI_CUDA_FORMS]; /**< smallest first; function NULL: no more */
} hemi_cuda_kernel;

extern const hemi_cuda_kernel hemi_cuda_sendrecv;
extern const hemi_cuda_kernel hemi_cuda_halo_start;
extern const hemi_cuda_kernel hemi_cuda_halo_finish;
extern const hemi_cuda_kernel hemi_cuda_halo_back;
extern const hemi_cuda_kernel hemi_cuda_coll;
extern const hemi_cuda_kernel hemi_cuda_coll_multi;
extern const hemi_cuda_kernel hemi_cuda_coll_deep;
extern const hemi_cuda_kernel hemi_cuda_copies;
extern const hemi_cuda_kernel hemi_cuda_straight;

#ifdef __cplusplus
}
#endif
#endif
