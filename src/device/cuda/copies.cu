#include "device/cuda/kernel.h"
#include "device/kernels/copy.h"

HEMI_CUDA_KERNEL(copies, hemd_kernel_copy, struct hemd_copy_args)
