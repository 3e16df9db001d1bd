#include "device/cuda/kernel.h"
#include "device/kernels/sendrecv.h"

HEMI_CUDA_KERNEL(straight, hemd_kernel_straight, struct hemd_straight_args)
