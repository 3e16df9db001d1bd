/*
 * Legacy IPC. CUDA lets a process open a handle once per context, and what it maps is the whole of
 * an allocation: ranks that are threads of one process, or windows in one allocation, share it. Closing
 * waits for kernels, so that what nobody uses stays open until memory is short or the context goes.
 */
#include "device/cuda/cuda.h"

#include <stdlib.h>
#include <string.h>

struct hemi_cuda_opening {
    struct hemi_cuda_opening *next;
    CUcontext context;
    cudaIpcMemHandle_t handle;
    uint64_t serial; /* a handle may come again, for other memory at the same address */
    void *base;
    uint32_t refs;
};

/* What is open belongs to the process, not to a rank. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct hemi_cuda_opening *openings;

static struct hemi_cuda_opening *find(const hemi_cuda *cuda, const cudaIpcMemHandle_t *handle,
                                      uint64_t serial) {
    struct hemi_cuda_opening *opening = openings;
    while (opening != NULL && (opening->context != cuda->context || opening->serial != serial ||
                               (serial == 0 && opening->refs == 0) ||
                               memcmp(&opening->handle, handle, sizeof *handle) != 0))
        opening = opening->next;
    return opening;
}

/* Under the lock. */
static bool close_idle(const hemi_cuda *cuda) {
    struct hemi_cuda_opening **link = &openings;
    bool some = false;
    while (*link != NULL) {
        struct hemi_cuda_opening *opening = *link;
        if (opening->context != cuda->context || opening->refs > 0) {
            link = &opening->next;
            continue;
        }
        *link = opening->next;
        cudaIpcCloseMemHandle(opening->base);
        free(opening);
        some = true;
    }
    return some;
}

static hem_status open_new(const hemi_cuda *cuda, const cudaIpcMemHandle_t *handle, uint64_t serial,
                           struct hemi_cuda_opening **opening_p) {
    struct hemi_cuda_opening *opening = calloc(1, sizeof *opening);
    if (opening == NULL)
        return cuda->host.fail(HEM_ERR_MEMORY, "No memory to describe a piece of device memory");
    cudaError_t error =
        cudaIpcOpenMemHandle(&opening->base, *handle, cudaIpcMemLazyEnablePeerAccess);
    /* What is open and not used may be in the way. */
    if (error != cudaSuccess && close_idle(cuda))
        error = cudaIpcOpenMemHandle(&opening->base, *handle, cudaIpcMemLazyEnablePeerAccess);
    hem_status status = hemi_cuda_check(cuda, error, "cudaIpcOpenMemHandle");
    if (status != HEM_OK) {
        free(opening);
        return status;
    }
    opening->context = cuda->context;
    opening->handle = *handle;
    opening->serial = serial;
    opening->next = openings;
    openings = opening;
    *opening_p = opening;
    return HEM_OK;
}

hem_status hemi_cuda_ipc_open(const hemi_cuda *cuda, const hemi_device_name *name,
                              hemi_cuda_piece *piece) {
    cudaIpcMemHandle_t handle;
    memcpy(&handle, name->handle, sizeof handle);
    pthread_mutex_lock(&lock);
    hem_status status = HEM_OK;
    struct hemi_cuda_opening *opening = find(cuda, &handle, name->serial);
    if (opening == NULL)
        status = open_new(cuda, &handle, name->serial, &opening);
    if (status == HEM_OK) {
        opening->refs++;
        status = hemi_cuda_check_length(cuda, opening->base, name);
        if (status != HEM_OK)
            opening->refs--;
    }
    pthread_mutex_unlock(&lock);
    if (status != HEM_OK)
        return status;
    piece->how = HEMI_CUDA_OPENED;
    piece->opening = opening;
    piece->base = (CUdeviceptr)(uintptr_t)opening->base;
    piece->whole = name->whole;
    return HEM_OK;
}

void hemi_cuda_ipc_close(const hemi_cuda *cuda, hemi_cuda_piece *piece) {
    (void)cuda;
    pthread_mutex_lock(&lock);
    piece->opening->refs--;
    pthread_mutex_unlock(&lock);
}

bool hemi_cuda_ipc_close_idle(const hemi_cuda *cuda) {
    pthread_mutex_lock(&lock);
    bool some = close_idle(cuda);
    pthread_mutex_unlock(&lock);
    return some;
}
