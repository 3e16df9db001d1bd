/* Around every call into CUDA: whose context, and what an error means. */
#include "base/platform.h"
#include "device/cuda/cuda.h"

/* Copies of a few bytes take some ten microseconds, and so does the last of many that were sent together; what takes
 * longer may take much longer. A nap of 20 us took 77. */
#define SPIN_NS     50000
#define SHORT_NS    2000000
#define NAP_NS      20000
#define LONG_NAP_NS 200000

hem_status hemi_cuda_check_driver(const hemi_cuda *cuda, CUresult result, const char *what) {
    if (result == CUDA_SUCCESS)
        return HEM_OK;
    const char *name = NULL, *text = NULL;
    cuda->driver.GetErrorName(result, &name);
    cuda->driver.GetErrorString(result, &text);
    hem_status status = result == CUDA_ERROR_OUT_OF_MEMORY ? HEM_ERR_MEMORY : HEM_ERR_SYSTEM;
    return cuda->host.fail(status, "%s: %s (%s)", what, text != NULL ? text : "unknown error",
                           name != NULL ? name : "?");
}

hem_status hemi_cuda_check(const hemi_cuda *cuda, cudaError_t error, const char *what) {
    if (error == cudaSuccess)
        return HEM_OK;
    hem_status status = error == cudaErrorMemoryAllocation ? HEM_ERR_MEMORY : HEM_ERR_SYSTEM;
    return cuda->host.fail(status, "%s: %s (%s)", what, cudaGetErrorString(error),
                           cudaGetErrorName(error));
}

hem_status hemi_cuda_enter(const hemi_cuda *cuda, hemi_cuda_turn *turn_p) {
    CUresult result = cuda->driver.CtxPushCurrent(cuda->context);
    if (result != CUDA_SUCCESS)
        return hemi_cuda_check_driver(cuda, result, "cuCtxPushCurrent");
    turn_p->mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    cuda->driver.ThreadExchangeStreamCaptureMode(&turn_p->mode);
    return HEM_OK;
}

void hemi_cuda_leave(const hemi_cuda *cuda, hemi_cuda_turn *turn) {
    CUcontext popped;
    cuda->driver.ThreadExchangeStreamCaptureMode(&turn->mode);
    cuda->driver.CtxPopCurrent(&popped);
}

bool hemi_cuda_attribute(const hemi_cuda *cuda, CUpointer_attribute attribute, const void *address,
                         void *value_p) {
    return address != NULL &&
           cuda->driver.PointerGetAttribute(value_p, attribute, (CUdeviceptr)(uintptr_t)address) ==
               CUDA_SUCCESS;
}

hemi_cuda_place hemi_cuda_place_of(const hemi_cuda *cuda, const void *address) {
    /* Asked for several at once, the driver does not take memory that it does not know for an error. */
    CUpointer_attribute attributes[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                        CU_POINTER_ATTRIBUTE_IS_MANAGED};
    unsigned type = 0;
    int managed = 0;
    void *values[] = {&type, &managed};
    if (address == NULL ||
        cuda->driver.PointerGetAttributes(2, attributes, values, (CUdeviceptr)(uintptr_t)address) !=
            CUDA_SUCCESS)
        return HEMI_CUDA_HOST;
    if (managed)
        return HEMI_CUDA_MANAGED;
    return type == CU_MEMORYTYPE_DEVICE ? HEMI_CUDA_DEVICE : HEMI_CUDA_HOST;
}

hem_status hemi_cuda_drain(const hemi_cuda *cuda) {
    const hemi_platform *platform = hemi_platform_real();
    uint64_t begin = platform->now(platform->ctx);
    for (;;) {
        cudaError_t error = cudaStreamQuery(cuda->stream);
        if (error != cudaErrorNotReady)
            return hemi_cuda_check(cuda, error, "cudaStreamQuery");
        uint64_t waited = platform->now(platform->ctx) - begin;
        if (waited > SHORT_NS)
            platform->nap(platform->ctx, LONG_NAP_NS);
        else if (waited > SPIN_NS)
            platform->nap(platform->ctx, NAP_NS);
    }
}
