#include "device/cuda/kernel.h"
#include "device/kernels/coll_deep.h"

HEMI_CUDA_KERNEL(coll_deep, hemd_kernel_coll_deep, struct hemd_coll_args)
