/* Device memory of one rank in the address space of another: names, and mapping what they name. */
#include "device/cuda/cuda.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What a name may say at most: no GPU has more, and sums of three such numbers do not wrap. */
#define LARGEST (UINT64_C(1) << 48)

_Static_assert(sizeof(cudaIpcMemHandle_t) <= sizeof((hemi_device_name *)0)->handle,
               "an IPC handle fits into a name");
_Static_assert(sizeof(CUmemFabricHandle) <= sizeof((hemi_device_name *)0)->handle,
               "a fabric handle fits into a name");

static hem_status export_ipc(const hemi_cuda *cuda, const hemi_cuda_piece *piece,
                             hemi_device_name *name) {
    cudaIpcMemHandle_t handle;
    hem_status status = hemi_cuda_check(
        cuda, cudaIpcGetMemHandle(&handle, (void *)(uintptr_t)piece->base), "cudaIpcGetMemHandle");
    if (status == HEM_OK)
        memcpy(name->handle, &handle, sizeof handle);
    return status;
}

static hem_status export_fabric(const hemi_cuda *cuda, const hemi_cuda_piece *piece,
                                hemi_device_name *name) {
    return hemi_cuda_check_driver(cuda,
                                  cuda->driver.MemExportToShareableHandle(
                                      name->handle, piece->handle, CU_MEM_HANDLE_TYPE_FABRIC, 0),
                                  "cuMemExportToShareableHandle");
}

static hem_status export_fd(const hemi_cuda *cuda, const hemi_cuda_piece *piece, int *fd_p) {
    return hemi_cuda_check_driver(
        cuda,
        cuda->driver.MemExportToShareableHandle(fd_p, piece->handle,
                                                CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
        "cuMemExportToShareableHandle");
}

hem_status hemi_cuda_name(void *context, const hemi_device_memory *memory, hemi_device_name *name_p,
                          int *fd_p) {
    hemi_cuda *cuda = context;
    hemi_cuda_turn turn;
    const hemi_cuda_piece *piece = memory->inside;
    hemi_device_name name = {.kind = piece->kind, .pid = (uint32_t)getpid()};
    int fd = -1;
    name.address = (uint64_t)(uintptr_t)memory->address;
    name.bytes = memory->bytes;
    name.offset = name.address - piece->base;
    name.whole = piece->whole;
    name.serial = piece->serial;
    name.members = piece->members;
    if (piece->how == HEMI_CUDA_TEAM) /* for threads of this process; export_fabric overwrites it */
        memcpy(name.handle, &piece->handle, sizeof piece->handle);
    memcpy(name.uuid, cuda->uuid, sizeof name.uuid);
    hem_status status = hemi_cuda_enter(cuda, &turn);
    if (status != HEM_OK)
        return status;
    if (piece->kind == HEMI_DEVICE_NAME_HANDLE)
        status = export_ipc(cuda, piece, &name);
    else if (piece->kind == HEMI_DEVICE_NAME_FABRIC)
        status = export_fabric(cuda, piece, &name);
    else if (piece->kind == HEMI_DEVICE_NAME_FD)
        status = export_fd(cuda, piece, &fd);
    else if (piece->kind == HEMI_DEVICE_NAME_POOL)
        status = hemi_cuda_pools_export(cuda, piece, &name, &fd);
    hemi_cuda_leave(cuda, &turn);
    if (status != HEM_OK)
        return status;
    *name_p = name;
    *fd_p = fd;
    return HEM_OK;
}

/* Whether what a peer says can be true at all. */
static bool plausible(const hemi_device_name *name) {
    return name->whole <= LARGEST && name->offset <= name->whole &&
           name->bytes <= name->whole - name->offset;
}

/* Whether kernels of this device may read and write memory that somebody has mapped by hand: the library,
 * which gives access to the devices that have a way, or the caller. */
static hem_status check_access(const hemi_cuda *cuda, const hemi_device_name *name) {
    CUmemLocation here = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = cuda->device};
    uint64_t ends[2] = {name->address, name->address + (name->bytes > 0 ? name->bytes - 1 : 0)};
    for (int i = 0; i < 2; i++) {
        unsigned long long flags = 0;
        CUresult result = cuda->driver.MemGetAccess(&flags, &here, (CUdeviceptr)ends[i]);
        if (result != CUDA_SUCCESS || flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
            return cuda->host.fail(
                HEM_ERR_UNSUPPORTED,
                "GPU %d may not read and write 0x%llx, which is mapped memory of "
                "another",
                cuda->device, (unsigned long long)ends[i]);
    }
    return HEM_OK;
}

/* The same of a pool. */
static hem_status check_pool_access(const hemi_cuda *cuda, CUmemoryPool pool) {
    CUmemLocation here = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = cuda->device};
    CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
    CUresult result = cuda->driver.MemPoolGetAccess(&flags, pool, &here);
    if (result == CUDA_SUCCESS && flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
        return HEM_OK;
    return cuda->host.fail(HEM_ERR_UNSUPPORTED,
                           "GPU %d may not read and write a pool of another: cudaMemPoolSetAccess "
                           "allows it",
                           cuda->device);
}

/* Memory of this process. Of another GPU: cudaMalloc is reached once that was enabled. */
static hem_status share(const hemi_cuda *cuda, const hemi_device_name *name,
                        hemi_cuda_piece *piece) {
    const void *address = hemi_cuda_at(name->address);
    CUcontext owner = NULL;
    CUmemoryPool pool = NULL;
    if (hemi_cuda_place_of(cuda, address) == HEMI_CUDA_HOST)
        return cuda->host.fail(HEM_ERR_ARG, "0x%llx is not in device memory",
                               (unsigned long long)name->address);
    piece->how = HEMI_CUDA_SHARED;
    if (memcmp(name->uuid, cuda->uuid, sizeof name->uuid) == 0)
        return HEM_OK;
    if (name->kind == HEMI_DEVICE_NAME_FD || name->kind == HEMI_DEVICE_NAME_FABRIC)
        return check_access(cuda, name);
    if (hemi_cuda_attribute(cuda, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, address, &pool) &&
        pool != NULL)
        return check_pool_access(cuda, pool);
    if (!hemi_cuda_attribute(cuda, CU_POINTER_ATTRIBUTE_CONTEXT, address, &owner) || owner == NULL)
        return cuda->host.fail(HEM_ERR_UNSUPPORTED,
                               "This GPU does not reach managed memory of another");
    CUresult result = cuda->driver.CtxEnablePeerAccess(owner, 0);
    if (result == CUDA_SUCCESS || result == CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED)
        return HEM_OK;
    (void)hemi_cuda_check_driver(cuda, result, "cuCtxEnablePeerAccess");
    return HEM_ERR_UNSUPPORTED;
}

/* The mapping keeps the memory: the handle is not needed after it. */
static hem_status import(const hemi_cuda *cuda, void *handle, CUmemAllocationHandleType type,
                         const hemi_device_name *name, hemi_cuda_piece *piece) {
    CUmemGenericAllocationHandle memory;
    CUresult result = cuda->driver.MemImportFromShareableHandle(&memory, handle, type);
    hem_status status = hemi_cuda_check_driver(cuda, result, "cuMemImportFromShareableHandle");
    if (status != HEM_OK)
        return status;
    status = hemi_cuda_settle(cuda, memory, name->whole, 1, piece);
    cuda->driver.MemRelease(memory);
    if (status != HEM_OK)
        return status;
    piece->how = HEMI_CUDA_IMPORTED;
    piece->kind = name->kind;
    piece->serial = name->serial;
    return HEM_OK;
}

hem_status hemi_cuda_check_length(const hemi_cuda *cuda, const void *base,
                                  const hemi_device_name *name) {
    size_t bytes = 0;
    hemi_cuda_attribute(cuda, CU_POINTER_ATTRIBUTE_RANGE_SIZE, base, &bytes);
    if (bytes >= name->offset + name->bytes)
        return HEM_OK;
    return cuda->host.fail(HEM_ERR_ARG, "A peer names %llu bytes at %llu of an allocation of %llu",
                           (unsigned long long)name->bytes, (unsigned long long)name->offset,
                           (unsigned long long)bytes);
}

static hem_status map_foreign(const hemi_cuda *cuda, const hemi_device_name *name, int fd,
                              hemi_cuda_piece *piece) {
    if (!plausible(name))
        return cuda->host.fail(HEM_ERR_ARG, "A peer names %llu bytes at %llu of %llu",
                               (unsigned long long)name->bytes, (unsigned long long)name->offset,
                               (unsigned long long)name->whole);
    if (name->kind == HEMI_DEVICE_NAME_FD && fd >= 0)
        return import(cuda, (void *)(intptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, name,
                      piece);
    if (name->kind == HEMI_DEVICE_NAME_POOL && fd >= 0)
        return hemi_cuda_pools_import(cuda, name, fd, piece);
    if (name->kind == HEMI_DEVICE_NAME_FABRIC) {
        CUmemFabricHandle handle;
        memcpy(&handle, name->handle, sizeof handle);
        return import(cuda, &handle, CU_MEM_HANDLE_TYPE_FABRIC, name, piece);
    }
    if (name->kind == HEMI_DEVICE_NAME_HANDLE)
        return hemi_cuda_ipc_open(cuda, name, piece);
    return cuda->host.fail(HEM_ERR_UNSUPPORTED,
                           "Device memory of process %u cannot be shown to others: it is of a pool "
                           "without descriptors, managed, or several pieces side by side",
                           name->pid);
}

/* Memory of another process: what is mapped already, or a mapping. `*piece_p` is empty before. */
static hem_status find_foreign(const hemi_cuda *cuda, const hemi_device_name *name, int fd,
                               hemi_cuda_piece **piece_p) {
    hemi_cuda_piece *kept = plausible(name) ? hemi_cuda_keep_take_import(cuda, name) : NULL;
    if (kept != NULL) {
        free(*piece_p);
        *piece_p = kept;
        return HEM_OK;
    }
    hem_status status = map_foreign(cuda, name, fd, *piece_p);
    if (status == HEM_ERR_MEMORY && hemi_cuda_keep_empty(cuda))
        status = map_foreign(cuda, name, fd, *piece_p);
    return status;
}

hem_status hemi_cuda_map(void *context, const hemi_device_name *name, int fd, bool same_process,
                         hemi_device_memory *memory_p) {
    hemi_cuda *cuda = context;
    hemi_cuda_turn turn;
    hemi_cuda_piece *piece = calloc(1, sizeof *piece);
    if (piece == NULL)
        return cuda->host.fail(HEM_ERR_MEMORY, "No memory to describe a piece of device memory");
    hem_status status = hemi_cuda_enter(cuda, &turn);
    if (status == HEM_OK) {
        if (name->members > 0)
            status = hemi_cuda_team_map(cuda, name, fd, same_process, &piece);
        else
            status = same_process ? share(cuda, name, piece) : find_foreign(cuda, name, fd, &piece);
        hemi_cuda_leave(cuda, &turn);
    }
    if (status != HEM_OK) {
        free(piece);
        /* Whatever the driver has against it: kernels here cannot reach it. */
        return status == HEM_ERR_SYSTEM ? HEM_ERR_UNSUPPORTED : status;
    }
    bool here = same_process && name->members == 0;
    uint64_t address = here ? name->address : piece->base + name->offset;
    memory_p->address = (void *)(uintptr_t)address;
    memory_p->bytes = name->bytes;
    memory_p->inside = piece;
    return HEM_OK;
}
