#include "device/cuda/kernel.h"
#include "device/kernels/sendrecv.h"

HEMI_CUDA_KERNEL_LARGE(sendrecv, hemd_kernel_sendrecv, struct hemd_sendrecv_args)
