#include "device/cuda/kernel.h"
#include "device/kernels/halo.h"

HEMI_CUDA_KERNEL(halo_start, hemd_kernel_halo_start, struct hemd_halo_args)
HEMI_CUDA_KERNEL(halo_finish, hemd_kernel_halo_finish, struct hemd_halo_args)
