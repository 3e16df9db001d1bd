/*
 * Memory of a pool of the caller's (cudaMallocAsync, RMM) in other processes. The pool goes over as a
 * descriptor, if it was made with that as its type of handle, and an allocation as 64 bytes that the driver
 * fills in. Who maps it makes a pool of the one, for its own device, and a pointer of the other.
 *
 * CUDA wants such a pointer given back before its owner frees it, so that it is not kept as other mappings
 * are: releasing it is over when it was given back, in the order of the rank's own stream. Whether that waits
 * for kernels the documentation does not say; driver 580 does not. The pool goes with the last pointer.
 */
#include "device/cuda/cuda.h"

#include <string.h>
#include <unistd.h>

_Static_assert(sizeof(CUmemPoolPtrExportData) <= sizeof((hemi_device_name *)0)->handle,
               "what the driver says of a pool's memory fits into a name");

/* The pool goes first: before a pool was exported once, the driver (580) refuses to export what is in it. */
static CUresult export_both(const hemi_cuda *cuda, const hemi_cuda_piece *piece,
                            CUmemPoolPtrExportData *data, int *fd_p) {
    int fd = -1;
    CUresult result = cuda->driver.MemPoolExportToShareableHandle(
        &fd, piece->pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
    if (result != CUDA_SUCCESS)
        return result;
    result = cuda->driver.MemPoolExportPointer(data, piece->base);
    if (result != CUDA_SUCCESS) {
        close(fd);
        return result;
    }
    *fd_p = fd;
    return CUDA_SUCCESS;
}

bool hemi_cuda_pools_shows(const hemi_cuda *cuda, const hemi_cuda_piece *piece) {
    CUmemPoolPtrExportData data;
    int fd = -1;
    if (export_both(cuda, piece, &data, &fd) != CUDA_SUCCESS)
        return false;
    close(fd);
    return true;
}

hem_status hemi_cuda_pools_export(const hemi_cuda *cuda, const hemi_cuda_piece *piece,
                                  hemi_device_name *name, int *fd_p) {
    CUmemPoolPtrExportData data;
    memset(&data, 0, sizeof data);
    hem_status status = hemi_cuda_check_driver(cuda, export_both(cuda, piece, &data, fd_p),
                                               "the export of a pool's memory");
    if (status == HEM_OK)
        memcpy(name->handle, &data, sizeof data);
    return status;
}

/* The pointer, once there is the pool. */
static hem_status import_pointer(const hemi_cuda *cuda, CUmemoryPool pool,
                                 const hemi_device_name *name, CUdeviceptr *base_p) {
    CUmemAccessDesc here = {.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    here.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    here.location.id = cuda->device;
    hem_status status = hemi_cuda_check_driver(cuda, cuda->driver.MemPoolSetAccess(pool, &here, 1),
                                               "cuMemPoolSetAccess");
    if (status != HEM_OK)
        return status;
    CUmemPoolPtrExportData data;
    memcpy(&data, name->handle, sizeof data);
    return hemi_cuda_check_driver(cuda, cuda->driver.MemPoolImportPointer(base_p, pool, &data),
                                  "cuMemPoolImportPointer");
}

static void give_back(const hemi_cuda *cuda, CUmemoryPool pool, CUdeviceptr base) {
    cuda->driver.MemFreeAsync(base, cuda->stream);
    cuda->driver.MemPoolDestroy(pool);
}

hem_status hemi_cuda_pools_import(const hemi_cuda *cuda, const hemi_device_name *name, int fd,
                                  hemi_cuda_piece *piece) {
    CUmemoryPool pool = NULL;
    CUdeviceptr base = 0;
    hem_status status = hemi_cuda_check_driver(
        cuda,
        cuda->driver.MemPoolImportFromShareableHandle(&pool, (void *)(intptr_t)fd,
                                                      CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
        "cuMemPoolImportFromShareableHandle");
    if (status != HEM_OK)
        return status;
    status = import_pointer(cuda, pool, name, &base);
    if (status != HEM_OK) {
        cuda->driver.MemPoolDestroy(pool);
        return status;
    }
    piece->pool = pool;
    piece->base = base;
    piece->whole = name->whole;
    status = hemi_cuda_check_length(cuda, hemi_cuda_at(base), name);
    if (status == HEM_OK)
        piece->how = HEMI_CUDA_POOLED;
    else
        give_back(cuda, pool, base);
    return status;
}

void hemi_cuda_pools_release(hemi_cuda *cuda, const hemi_cuda_piece *piece) {
    give_back(cuda, piece->pool, piece->base); /* it may wait: others must be able to copy */
    pthread_mutex_lock(&cuda->copies);
    (void)hemi_cuda_drain(cuda); /* a device that has failed gives everything back */
    pthread_mutex_unlock(&cuda->copies);
}

void hemi_cuda_pools_drop(const hemi_cuda *cuda, const hemi_cuda_piece *piece) {
    cudaFree((void *)(uintptr_t)piece->base);
    cuda->driver.MemPoolDestroy(piece->pool);
}
