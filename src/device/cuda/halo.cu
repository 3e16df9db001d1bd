#include "device/cuda/kernel.h"
#include "device/kernels/halo.h"

/* So many fit that no register is spilled: of kernels that wait only a part of what fits is taken. */
HEMI_CUDA_KERNEL_SMALL(halo_start, hemd_kernel_halo_start, struct hemd_halo_args, 2)
HEMI_CUDA_KERNEL_SMALL(halo_finish, hemd_kernel_halo_finish, struct hemd_halo_args, 3)
HEMI_CUDA_KERNEL_SMALL(halo_back, hemd_kernel_halo_back, struct hemd_halo_args, 3)
