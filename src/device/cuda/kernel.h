/* Makes kernels of what device/kernels/ has: the arguments are one struct, constant for the grid. */
#ifndef HEMI_DEVICE_CUDA_KERNEL_H
#define HEMI_DEVICE_CUDA_KERNEL_H

#include "device/cuda/kernels.h"

#include <hem/device/group.h>

#define HEMI_CUDA_FORM(name, body, arguments, limit, blocks)                                       \
    extern "C" __global__ void __launch_bounds__(limit, blocks)                                    \
        hem_kernel_##name##_##limit(const __grid_constant__ arguments args) {                      \
        body(&args);                                                                               \
    }

#define HEMI_CUDA_ENTRY(name, limit)                                                               \
    { (const void *)hem_kernel_##name##_##limit, limit }

/** One form, for blocks of up to 512 threads. */
#define HEMI_CUDA_KERNEL(name, body, arguments)                                                    \
    HEMI_CUDA_FORM(name, body, arguments, 512, 1)                                                  \
    extern "C" const hemi_cuda_kernel hemi_cuda_##name = {                                         \
        "hem_kernel_" #name, sizeof(arguments), {HEMI_CUDA_ENTRY(name, 512), {NULL, 0}}};

/** One form, for blocks of up to 256 threads, of which so many fit on a multiprocessor. */
#define HEMI_CUDA_KERNEL_SMALL(name, body, arguments, blocks)                                      \
    HEMI_CUDA_FORM(name, body, arguments, 256, blocks)                                             \
    extern "C" const hemi_cuda_kernel hemi_cuda_##name = {                                         \
        "hem_kernel_" #name, sizeof(arguments), {HEMI_CUDA_ENTRY(name, 256), {NULL, 0}}};

/** Another one for the largest blocks. */
#define HEMI_CUDA_KERNEL_LARGE(name, body, arguments)                                              \
    HEMI_CUDA_FORM(name, body, arguments, 512, 1)                                                  \
    HEMI_CUDA_FORM(name, body, arguments, 1024, 1)                                                 \
    extern "C" const hemi_cuda_kernel hemi_cuda_##name = {                                         \
        "hem_kernel_" #name,                                                                       \
        sizeof(arguments),                                                                         \
        {HEMI_CUDA_ENTRY(name, 512), HEMI_CUDA_ENTRY(name, 1024)}};

#endif
