/*
 * Copies by the CPU on the rank's own stream, complete on return but for what is sent: no other stream is waited for.
 *
 * Host memory that is not pinned is staged by the driver, which makes cudaMemcpyAsync itself wait,
 * for this stream alone.
 */
#include "device/cuda/cuda.h"

#include <string.h>

/* A word goes in one piece: kernels poll it. Copies do not promise that. */
static bool store_word(const hemi_cuda *cuda, void *to, const void *from) {
    CUdeviceptr address = (CUdeviceptr)(uintptr_t)to;
    if (address % sizeof(uint64_t) != 0 || hemi_cuda_place_of(cuda, to) != HEMI_CUDA_DEVICE ||
        hemi_cuda_place_of(cuda, from) != HEMI_CUDA_HOST)
        return false;
    uint64_t value;
    memcpy(&value, from, sizeof value);
    return cuda->driver.StreamWriteValue64(cuda->stream, address, value,
                                           CU_STREAM_WRITE_VALUE_DEFAULT) == CUDA_SUCCESS;
}

static hem_status put_on(const hemi_cuda *cuda, void *to, const void *from, uint64_t bytes) {
    return hemi_cuda_check(cuda, cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, cuda->stream),
                           "cudaMemcpyAsync");
}

/* A word that cannot be stored as one: what came before is complete first, and `from` is free again. */
static hem_status copy_word(const hemi_cuda *cuda, void *to, const void *from) {
    hem_status status = hemi_cuda_drain(cuda);
    if (status == HEM_OK)
        status = put_on(cuda, to, from, sizeof(uint64_t));
    return status == HEM_OK ? hemi_cuda_drain(cuda) : status;
}

/* Put a copy on the rank's own stream. Alone, under `copies`. */
static hem_status begin(const hemi_cuda *cuda, void *to, const void *from, uint64_t bytes) {
    if (bytes == 0)
        return HEM_OK;
    if (bytes != sizeof(uint64_t))
        return put_on(cuda, to, from, bytes);
    return store_word(cuda, to, from) ? HEM_OK : copy_word(cuda, to, from);
}

static hem_status copy(hemi_cuda *cuda, void *to, const void *from, uint64_t bytes, bool drains) {
    hemi_cuda_turn turn;
    hem_status status = hemi_cuda_enter(cuda, &turn);
    if (status != HEM_OK)
        return status;
    pthread_mutex_lock(&cuda->copies);
    status = begin(cuda, to, from, bytes);
    if (status == HEM_OK && drains)
        status = hemi_cuda_drain(cuda);
    pthread_mutex_unlock(&cuda->copies);
    hemi_cuda_leave(cuda, &turn);
    return status;
}

hem_status hemi_cuda_copy(void *context, void *to, const void *from, uint64_t bytes) {
    return copy(context, to, from, bytes, true);
}

hem_status hemi_cuda_send(void *context, void *to, const void *from, uint64_t bytes) {
    return copy(context, to, from, bytes, false);
}
