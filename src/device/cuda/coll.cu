#include "device/cuda/kernel.h"
#include "device/kernels/coll.h"

HEMI_CUDA_KERNEL(coll, hemd_kernel_coll, struct hemd_coll_args)
