/*
 * Memory in the order of streams, and marks on streams.
 *
 * The memory comes out of a pool of the rank's own. The device's common pool would let an allocation
 * on one stream wait for another stream that gives memory back, and that one may wait for what the
 * allocation is for; and what the program sets there would hold here. The pool keeps what it has: to
 * give memory back to the device may wait for kernels.
 *
 * A mark is an event of CUDA. Those that were given back are used again: a line marks every piece that it
 * copies.
 */
#include "device/cuda/cuda.h"

/* One that was given back, or NULL. Recording it anew makes it stand for what is on the stream then. */
static cudaEvent_t take_idle(hemi_cuda *cuda) {
    cudaEvent_t event = NULL;
    pthread_mutex_lock(&cuda->marking);
    if (cuda->mark_count > 0)
        event = cuda->marks[--cuda->mark_count];
    pthread_mutex_unlock(&cuda->marking);
    return event;
}

static void give_back(hemi_cuda *cuda, cudaEvent_t event) {
    bool kept = false;
    pthread_mutex_lock(&cuda->marking);
    if (cuda->mark_count < HEMI_CUDA_MARKS) {
        cuda->marks[cuda->mark_count++] = event;
        kept = true;
    }
    pthread_mutex_unlock(&cuda->marking);
    if (!kept)
        cudaEventDestroy(event); /* does not wait for it */
}

hem_status hemi_cuda_mark(void *context, void *stream, void **mark_p) {
    hemi_cuda *cuda = context;
    hemi_cuda_turn turn;
    hem_status status = hemi_cuda_enter(cuda, &turn);
    if (status != HEM_OK)
        return status;
    cudaEvent_t event = take_idle(cuda);
    if (event == NULL)
        status = hemi_cuda_check(cuda, cudaEventCreateWithFlags(&event, cudaEventDisableTiming),
                                 "cudaEventCreateWithFlags");
    if (status == HEM_OK)
        status = hemi_cuda_check(cuda, cudaEventRecord(event, stream), "cudaEventRecord");
    if (status == HEM_OK)
        *mark_p = event;
    else if (event != NULL)
        cudaEventDestroy(event);
    hemi_cuda_leave(cuda, &turn);
    return status;
}

/* Not being done is no failure that needs a sentence: whoever asks asks again. */
hem_status hemi_cuda_test(void *context, void *mark) {
    hemi_cuda *cuda = context;
    hemi_cuda_turn turn;
    hem_status status = hemi_cuda_enter(cuda, &turn);
    if (status != HEM_OK)
        return status;
    cudaError_t error = cudaEventQuery(mark);
    status = error == cudaErrorNotReady ? HEM_ERR_TIMEOUT
                                        : hemi_cuda_check(cuda, error, "cudaEventQuery");
    hemi_cuda_leave(cuda, &turn);
    return status;
}

void hemi_cuda_unmark(void *context, void *mark) {
    hemi_cuda *cuda = context;
    hemi_cuda_turn turn;
    if (hemi_cuda_enter(cuda, &turn) != HEM_OK)
        return;
    give_back(cuda, mark);
    hemi_cuda_leave(cuda, &turn);
}

static CUresult set_up(const hemi_cuda *cuda, CUmemoryPool pool) {
    int off = 0;
    cuuint64_t all = UINT64_MAX;
    CUresult result = cuda->driver.MemPoolSetAttribute(
        pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, &off);
    if (result == CUDA_SUCCESS)
        result = cuda->driver.MemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &all);
    return result;
}

/* Under `copies`. */
static hem_status make_pool(hemi_cuda *cuda) {
    int able = 0;
    if (cuda->pool != NULL)
        return HEM_OK;
    cuda->driver.DeviceGetAttribute(&able, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED,
                                    cuda->device);
    if (able == 0)
        return cuda->host.fail(HEM_ERR_UNSUPPORTED,
                               "This GPU has no memory in the order of streams (memory pools)");
    CUmemPoolProps wanted = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED};
    CUmemoryPool pool = NULL;
    wanted.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    wanted.location.id = cuda->device;
    CUresult result = cuda->driver.MemPoolCreate(&pool, &wanted);
    if (result == CUDA_SUCCESS) {
        result = set_up(cuda, pool);
        if (result != CUDA_SUCCESS)
            cuda->driver.MemPoolDestroy(pool);
    }
    if (result == CUDA_SUCCESS)
        cuda->pool = pool;
    return hemi_cuda_check_driver(cuda, result, "cuMemPoolCreate");
}

hem_status hemi_cuda_alloc_on(void *context, void *stream, uint64_t bytes, void **address_p) {
    hemi_cuda *cuda = context;
    hemi_cuda_turn turn;
    CUdeviceptr address = 0;
    hem_status status = hemi_cuda_enter(cuda, &turn);
    if (status != HEM_OK)
        return status;
    pthread_mutex_lock(&cuda->copies);
    status = make_pool(cuda);
    pthread_mutex_unlock(&cuda->copies);
    if (status == HEM_OK)
        status = hemi_cuda_check_driver(
            cuda, cuda->driver.MemAllocFromPoolAsync(&address, bytes, cuda->pool, stream),
            "cuMemAllocFromPoolAsync");
    hemi_cuda_leave(cuda, &turn);
    if (status == HEM_OK)
        *address_p = (void *)(uintptr_t)address;
    return status;
}

void hemi_cuda_free_on(void *context, void *stream, void *address) {
    hemi_cuda *cuda = context;
    hemi_cuda_turn turn;
    if (hemi_cuda_enter(cuda, &turn) != HEM_OK)
        return;
    (void)cuda->driver.MemFreeAsync((CUdeviceptr)(uintptr_t)address, stream);
    hemi_cuda_leave(cuda, &turn);
}

void hemi_cuda_ordered_close(hemi_cuda *cuda) {
    for (uint32_t i = 0; i < cuda->mark_count; i++)
        cudaEventDestroy(cuda->marks[i]);
    cuda->mark_count = 0;
    if (cuda->pool != NULL)
        cuda->driver.MemPoolDestroy(cuda->pool);
    cuda->pool = NULL;
}
