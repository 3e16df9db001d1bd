/*
 * Host memory that kernels see: pinned.
 *
 * Ranks that are threads of one process map the same arena, and a field may be in several exchanges,
 * while CUDA pins memory once in a process. So pinned ranges are listed for the process, never
 * overlapping, with a count of who uses them. A range that somebody else has pinned is used as it is,
 * and left so. Just the bytes that were asked for are pinned: of a copy that begins in pinned memory
 * CUDA wants all of it to be there, so that a neighbour on the same page may not become pinned in part.
 *
 * Unpinning waits for all kernels of the context.
 */
#include "device/cuda/cuda.h"

#include <stdlib.h>

typedef struct pinned {
    struct pinned *next;
    uint64_t begin, end;
    uint32_t refs;
    bool ours;
    bool frozen; /* kernels cannot write there */
} pinned;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pinned *ranges; /* by address */

static void drop(pinned **link) {
    pinned *range = *link;
    if (--range->refs > 0)
        return;
    *link = range->next;
    if (range->ours)
        cudaHostUnregister((void *)(uintptr_t)range->begin);
    free(range);
}

/* Give back one use of every range that lies in [begin, end). */
static void drop_all(uint64_t begin, uint64_t end) {
    pinned **link = &ranges;
    while (*link != NULL && (*link)->begin < end) {
        pinned *range = *link;
        if (range->end > begin)
            drop(link);
        if (*link == range)
            link = &range->next;
    }
}

/* Pages that cannot be written can be pinned for reading only, where the GPU can do that. */
static cudaError_t enlist(pinned *range, bool frozen) {
    const unsigned flags = cudaHostRegisterPortable | cudaHostRegisterMapped;
    void *host = (void *)(uintptr_t)range->begin;
    const uint64_t bytes = range->end - range->begin;
    cudaError_t error = cudaHostRegister(host, bytes, flags);
    if (error == cudaErrorInvalidValue && frozen) {
        (void)cudaGetLastError();
        error = cudaHostRegister(host, bytes, flags | cudaHostRegisterReadOnly);
        range->frozen = true;
    }
    return error;
}

/* Pin [begin, end), of which nothing is in the list, and put it in at `link`. */
static hem_status pin(const hemi_cuda *cuda, uint64_t begin, uint64_t end, bool frozen,
                      pinned **link) {
    pinned *range = calloc(1, sizeof *range);
    if (range == NULL)
        return cuda->host.fail(HEM_ERR_MEMORY, "No memory to describe pinned memory");
    range->begin = begin;
    range->end = end;
    cudaError_t error = enlist(range, frozen);
    if (error != cudaSuccess && error != cudaErrorHostMemoryAlreadyRegistered) {
        free(range);
        return hemi_cuda_check(cuda, error, "cudaHostRegister");
    }
    range->refs = 1;
    range->ours = error == cudaSuccess;
    range->next = *link;
    *link = range;
    return HEM_OK;
}

/* Use what is pinned of [begin, end) already, and pin the rest. */
static hem_status cover(const hemi_cuda *cuda, uint64_t begin, uint64_t end, bool frozen) {
    pinned **link = &ranges;
    uint64_t at = begin;
    hem_status status = HEM_OK;
    while (at < end && status == HEM_OK) {
        while (*link != NULL && (*link)->end <= at)
            link = &(*link)->next;
        pinned *next = *link;
        if (next != NULL && next->begin <= at) {
            if (next->frozen && !frozen) {
                status = cuda->host.fail(HEM_ERR_UNSUPPORTED,
                                         "Memory at 0x%llx is pinned as memory that is only read",
                                         (unsigned long long)at);
            } else {
                next->refs++;
                at = next->end;
            }
            continue;
        }
        const uint64_t until = next != NULL && next->begin < end ? next->begin : end;
        status = pin(cuda, at, until, frozen, link);
        if (status == HEM_OK)
            at = until;
    }
    if (at > begin && status != HEM_OK)
        drop_all(begin, at);
    return status;
}

/* Where kernels see an address. */
static hem_status seen_at(const hemi_cuda *cuda, uint64_t host, uint64_t *device_p) {
    void *device;
    hem_status status =
        hemi_cuda_check(cuda, cudaHostGetDevicePointer(&device, (void *)(uintptr_t)host, 0),
                        "cudaHostGetDevicePointer");
    if (status == HEM_OK)
        *device_p = (uint64_t)(uintptr_t)device;
    return status;
}

/* Ranges that were pinned apart must still be side by side for kernels. */
static hem_status check_seen(const hemi_cuda *cuda, uint64_t begin, uint64_t end,
                             uint64_t *device_p) {
    uint64_t first;
    hem_status status = seen_at(cuda, begin, &first);
    for (const pinned *range = ranges; range != NULL && status == HEM_OK; range = range->next) {
        if (range->end <= begin || range->begin >= end)
            continue;
        uint64_t at = range->begin > begin ? range->begin : begin;
        uint64_t last = (range->end < end ? range->end : end) - 1;
        uint64_t at_device, last_device;
        status = seen_at(cuda, at, &at_device);
        if (status == HEM_OK)
            status = seen_at(cuda, last, &last_device);
        if (status == HEM_OK &&
            (at_device - first != at - begin || last_device - first != last - begin))
            status = cuda->host.fail(HEM_ERR_UNSUPPORTED,
                                     "Kernels see pinned memory at 0x%llx in pieces",
                                     (unsigned long long)begin);
    }
    if (status == HEM_OK)
        *device_p = first;
    return status;
}

hem_status hemi_cuda_map_host(void *context, void *host, uint64_t bytes, bool frozen,
                              void **address_p) {
    hemi_cuda *cuda = context;
    hemi_cuda_turn turn;
    uint64_t begin = (uint64_t)(uintptr_t)host, end = begin + (bytes > 0 ? bytes : 1), device = 0;
    hem_status status = hemi_cuda_enter(cuda, &turn);
    if (status != HEM_OK)
        return status;
    pthread_mutex_lock(&lock);
    status = cover(cuda, begin, end, frozen);
    if (status == HEM_OK) {
        status = check_seen(cuda, begin, end, &device);
        if (status != HEM_OK)
            drop_all(begin, end);
    }
    pthread_mutex_unlock(&lock);
    hemi_cuda_leave(cuda, &turn);
    if (status == HEM_OK)
        *address_p = (void *)(uintptr_t)device;
    return status;
}

void hemi_cuda_unmap_host(void *context, void *host, uint64_t bytes) {
    hemi_cuda *cuda = context;
    hemi_cuda_turn turn;
    uint64_t begin = (uint64_t)(uintptr_t)host, end = begin + (bytes > 0 ? bytes : 1);
    if (hemi_cuda_enter(cuda, &turn) != HEM_OK)
        return;
    pthread_mutex_lock(&lock);
    drop_all(begin, end);
    pthread_mutex_unlock(&lock);
    hemi_cuda_leave(cuda, &turn);
}
