#include "device/cuda/kernel.h"
#include "device/kernels/coll_multi.h"

HEMI_CUDA_KERNEL(coll_multi, hemd_kernel_coll_multi, struct hemd_coll_args)
