/*
 * Memory of the GPU: the library's own, and the caller's.
 *
 * The library's is physical memory of its own, mapped (CUDA calls it virtual memory management): it
 * is exported as a descriptor, and lives on as long as anybody has it mapped, even if the rank that
 * made it dies. Where the device or HEM_CUDA_VMM=0 forbids that, it is cudaMalloc, which is shown by
 * legacy IPC.
 */
#include "device/cuda/cuda.h"

#include <stdlib.h>

static uint64_t round_up(uint64_t bytes, uint64_t to) {
    return (bytes + to - 1) / to * to;
}

static CUmemAllocationProp properties(const hemi_cuda *cuda) {
    CUmemAllocationProp wanted = {.type = CU_MEM_ALLOCATION_TYPE_PINNED};
    wanted.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    wanted.location.id = cuda->device;
    wanted.requestedHandleTypes =
        cuda->fabric ? CU_MEM_HANDLE_TYPE_FABRIC : CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    return wanted;
}

hem_status hemi_cuda_settle(const hemi_cuda *cuda, CUmemGenericAllocationHandle handle,
                            uint64_t whole, size_t count, hemi_cuda_piece *piece) {
    const hemi_cuda_driver *driver = &cuda->driver;
    CUdeviceptr base;
    CUresult result = driver->MemAddressReserve(&base, whole, HEMI_CUDA_ALIGN, 0, 0);
    if (result != CUDA_SUCCESS)
        return hemi_cuda_check_driver(cuda, result, "cuMemAddressReserve");
    const char *what = "cuMemMap";
    result = driver->MemMap(base, whole, 0, handle, 0);
    if (result == CUDA_SUCCESS) {
        what = "cuMemSetAccess";
        result = driver->MemSetAccess(base, whole, cuda->access, count);
        if (result != CUDA_SUCCESS)
            driver->MemUnmap(base, whole);
    }
    if (result != CUDA_SUCCESS) {
        driver->MemAddressFree(base, whole);
        return hemi_cuda_check_driver(cuda, result, what);
    }
    piece->base = base;
    piece->whole = whole;
    return HEM_OK;
}

void hemi_cuda_unsettle(const hemi_cuda *cuda, const hemi_cuda_piece *piece) {
    cuda->driver.MemUnmap(piece->base, piece->whole);
    cuda->driver.MemAddressFree(piece->base, piece->whole);
}

/* Of memory whose handles of legacy IPC may come from the caller as well as from here: the driver's. */
static uint64_t serial_of(const hemi_cuda *cuda, const void *address) {
    unsigned long long buffer = 0;
    if (!hemi_cuda_attribute(cuda, CU_POINTER_ATTRIBUTE_BUFFER_ID, address, &buffer) || buffer == 0)
        return 0;
    return hemi_cuda_serial(buffer);
}

static hem_status create(const hemi_cuda *cuda, uint64_t bytes, hemi_cuda_piece *piece) {
    CUmemAllocationProp wanted = properties(cuda);
    size_t granule = 0;
    CUresult result = cuda->driver.MemGetAllocationGranularity(
        &granule, &wanted, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
    if (result != CUDA_SUCCESS)
        return hemi_cuda_check_driver(cuda, result, "cuMemGetAllocationGranularity");
    uint64_t whole = round_up(bytes, granule);
    result = cuda->driver.MemCreate(&piece->handle, whole, &wanted, 0);
    if (result != CUDA_SUCCESS)
        return hemi_cuda_check_driver(cuda, result, "cuMemCreate");
    hem_status status = hemi_cuda_settle(cuda, piece->handle, whole, cuda->access_count, piece);
    if (status != HEM_OK) {
        cuda->driver.MemRelease(piece->handle);
        return status;
    }
    piece->how = HEMI_CUDA_CREATED;
    piece->room = whole;
    piece->serial = hemi_cuda_serial(0);
    piece->held = true;
    piece->kind = cuda->fabric ? HEMI_DEVICE_NAME_FABRIC : HEMI_DEVICE_NAME_FD;
    return HEM_OK;
}

hem_status hemi_cuda_create(const hemi_cuda *cuda, uint64_t bytes, hemi_cuda_piece **piece_p) {
    hemi_cuda_piece *piece = calloc(1, sizeof *piece);
    if (piece == NULL)
        return cuda->host.fail(HEM_ERR_MEMORY, "No memory to describe a piece of device memory");
    hem_status status = create(cuda, bytes, piece);
    if (status == HEM_OK)
        *piece_p = piece;
    else
        free(piece);
    return status;
}

/* With room to begin at a multiple of the alignment. */
static hem_status allocate(const hemi_cuda *cuda, uint64_t bytes, hemi_cuda_piece *piece) {
    void *base;
    piece->whole = bytes + HEMI_CUDA_ALIGN;
    hem_status status = hemi_cuda_check(cuda, cudaMalloc(&base, piece->whole), "cudaMalloc");
    if (status != HEM_OK)
        return status;
    piece->base = (CUdeviceptr)(uintptr_t)base;
    piece->how = HEMI_CUDA_MALLOCED;
    piece->room = bytes;
    piece->serial = serial_of(cuda, base);
    piece->kind = HEMI_DEVICE_NAME_HANDLE;
    return HEM_OK;
}

static hem_status zero(hemi_cuda *cuda, const hemi_cuda_piece *piece) {
    pthread_mutex_lock(&cuda->copies);
    hem_status status = hemi_cuda_check_driver(
        cuda, cuda->driver.MemsetD8Async(piece->base, 0, piece->whole, cuda->stream),
        "cuMemsetD8Async");
    if (status == HEM_OK)
        status = hemi_cuda_drain(cuda);
    pthread_mutex_unlock(&cuda->copies);
    return status;
}

void hemi_cuda_drop(const hemi_cuda *cuda, hemi_cuda_piece *piece) {
    if (piece->how == HEMI_CUDA_CREATED || piece->how == HEMI_CUDA_IMPORTED)
        hemi_cuda_unsettle(cuda, piece);
    if (piece->how == HEMI_CUDA_MALLOCED)
        cudaFree((void *)(uintptr_t)piece->base);
    if (piece->how == HEMI_CUDA_OPENED)
        hemi_cuda_ipc_close(cuda, piece);
    if (piece->how == HEMI_CUDA_POOLED)
        hemi_cuda_pools_drop(cuda, piece);
    if (piece->how == HEMI_CUDA_TEAM)
        hemi_cuda_team_undo(cuda, piece);
    if (piece->held)
        cuda->driver.MemRelease(piece->handle);
    free(piece);
}

static hem_status allocate_new(const hemi_cuda *cuda, uint64_t bytes, hemi_cuda_piece *piece) {
    return cuda->vmm || cuda->fabric ? create(cuda, bytes > 0 ? bytes : 1, piece)
                                     : allocate(cuda, bytes, piece);
}

/* What is kept comes first. Only if there is no memory else is it freed. */
static hem_status alloc_entered(hemi_cuda *cuda, uint64_t bytes, hemi_cuda_piece **piece_p) {
    /* A length that is not there would wrap when it is rounded up. */
    if (bytes > UINT64_C(1) << 46)
        return cuda->host.fail(HEM_ERR_MEMORY, "No GPU has %llu bytes of memory",
                               (unsigned long long)bytes);
    hem_status status = HEM_OK;
    hemi_cuda_piece *piece = hemi_cuda_keep_take_own(cuda, bytes);
    if (piece == NULL) {
        piece = calloc(1, sizeof *piece);
        if (piece == NULL)
            return cuda->host.fail(HEM_ERR_MEMORY,
                                   "No memory to describe a piece of device memory");
        status = allocate_new(cuda, bytes, piece);
        if (status == HEM_ERR_MEMORY && hemi_cuda_keep_empty(cuda))
            status = allocate_new(cuda, bytes, piece);
    }
    if (status == HEM_OK)
        status = zero(cuda, piece);
    if (status != HEM_OK)
        hemi_cuda_drop(cuda, piece);
    else
        *piece_p = piece;
    return status;
}

static hem_status memory_alloc(void *context, uint64_t bytes, hemi_device_memory *memory_p) {
    hemi_cuda *cuda = context;
    hemi_cuda_turn turn;
    hemi_cuda_piece *piece = NULL;
    hem_status status = hemi_cuda_enter(cuda, &turn);
    if (status != HEM_OK)
        return status;
    status = alloc_entered(cuda, bytes, &piece);
    hemi_cuda_leave(cuda, &turn);
    if (status != HEM_OK)
        return status;
    memory_p->address = (void *)(uintptr_t)round_up(piece->base, HEMI_CUDA_ALIGN);
    memory_p->bytes = bytes;
    memory_p->inside = piece;
    return HEM_OK;
}

/* What it takes a wait to free is kept; but for a peer's pool if that can be. */
static bool is_kept(const hemi_cuda_piece *piece, bool again) {
    return piece->how == HEMI_CUDA_CREATED || piece->how == HEMI_CUDA_MALLOCED ||
           piece->how == HEMI_CUDA_IMPORTED || piece->how == HEMI_CUDA_TEAM ||
           (piece->how == HEMI_CUDA_POOLED && !again);
}

static void give_up(hemi_cuda *cuda, hemi_device_memory *memory, bool again) {
    hemi_cuda_turn turn;
    hemi_cuda_piece *piece = memory->inside;
    if (piece != NULL && is_kept(piece, again)) {
        hemi_cuda_keep(cuda, piece, again);
    } else if (piece != NULL && hemi_cuda_enter(cuda, &turn) == HEM_OK) {
        if (piece->how == HEMI_CUDA_POOLED) {
            hemi_cuda_pools_release(cuda, piece);
            piece->how = HEMI_CUDA_SHARED; /* nothing is left to undo */
        }
        hemi_cuda_drop(cuda, piece);
        hemi_cuda_leave(cuda, &turn);
    }
    *memory = (hemi_device_memory){0};
}

static void memory_release(void *context, hemi_device_memory *memory) {
    give_up(context, memory, true);
}

static void memory_abandon(void *context, hemi_device_memory *memory) {
    give_up(context, memory, false);
}

/* The piece of one allocation or mapping that an address is in. */
static bool range_of(const hemi_cuda *cuda, uint64_t address, uint64_t *begin_p,
                     uint64_t *bytes_p) {
    CUdeviceptr begin;
    size_t bytes;
    if (!hemi_cuda_attribute(cuda, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, hemi_cuda_at(address),
                             &begin) ||
        !hemi_cuda_attribute(cuda, CU_POINTER_ATTRIBUTE_RANGE_SIZE, hemi_cuda_at(address), &bytes))
        return false;
    if (address < begin || address - begin >= bytes)
        return false;
    *begin_p = begin;
    *bytes_p = bytes;
    return true;
}

/* All of it is device memory of this GPU, or managed. It may be several mappings side by side. */
static hem_status check_adopted(const hemi_cuda *cuda, uint64_t address, uint64_t bytes) {
    uint64_t at = address;
    do {
        uint64_t begin, length;
        int ordinal = -1;
        hemi_cuda_place place = hemi_cuda_place_of(cuda, hemi_cuda_at(at));
        if (place == HEMI_CUDA_HOST || !range_of(cuda, at, &begin, &length))
            return cuda->host.fail(HEM_ERR_ARG,
                                   "Byte %llu of %llu at 0x%llx is not in device memory",
                                   (unsigned long long)(at - address), (unsigned long long)bytes,
                                   (unsigned long long)address);
        if (place == HEMI_CUDA_DEVICE &&
            hemi_cuda_attribute(cuda, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, hemi_cuda_at(at),
                                &ordinal) &&
            ordinal != cuda->device)
            return cuda->host.fail(HEM_ERR_ARG,
                                   "0x%llx is memory of GPU %d, and this rank's is GPU %d",
                                   (unsigned long long)at, ordinal, cuda->device);
        at = begin + length;
    } while (at - address < bytes);
    return HEM_OK;
}

/* As what other processes can get it: cudaMalloc by legacy IPC, a single mapping as descriptor, memory of a
 * pool with one if the pool allows it. */
static void find_kind(const hemi_cuda *cuda, uint64_t address, uint64_t bytes,
                      hemi_cuda_piece *piece) {
    uint64_t begin = address, whole = bytes;
    CUmemoryPool pool = NULL;
    int legacy = 0;
    unsigned long long allowed = 0;
    const void *at = hemi_cuda_at(address);
    piece->kind = HEMI_DEVICE_NAME_POINTER;
    if (!range_of(cuda, address, &begin, &whole))
        return;
    piece->base = begin;
    piece->whole = whole;
    piece->serial = serial_of(cuda, at);
    if (address - begin + bytes > whole || hemi_cuda_place_of(cuda, at) != HEMI_CUDA_DEVICE)
        return;
    if (hemi_cuda_attribute(cuda, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, at, &pool) && pool != NULL) {
        piece->pool = pool;
        if (hemi_cuda_pools_shows(cuda, piece))
            piece->kind = HEMI_DEVICE_NAME_POOL;
        return;
    }
    hemi_cuda_attribute(cuda, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, at, &legacy);
    hemi_cuda_attribute(cuda, CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, at, &allowed);
    if (legacy != 0) {
        piece->kind = HEMI_DEVICE_NAME_HANDLE;
        return;
    }
    if ((allowed & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) != 0 &&
        cuda->driver.MemRetainAllocationHandle(&piece->handle, (void *)(uintptr_t)begin) ==
            CUDA_SUCCESS) {
        piece->held = true;
        piece->kind = HEMI_DEVICE_NAME_FD;
    }
}

static hem_status memory_adopt(void *context, void *address, uint64_t bytes,
                               hemi_device_memory *memory_p) {
    hemi_cuda *cuda = context;
    hemi_cuda_turn turn;
    uint64_t begin = (uint64_t)(uintptr_t)address;
    if (bytes > UINT64_MAX - begin)
        return cuda->host.fail(HEM_ERR_ARG, "%llu bytes at 0x%llx end beyond all memory",
                               (unsigned long long)bytes, (unsigned long long)begin);
    hemi_cuda_piece *piece = calloc(1, sizeof *piece);
    if (piece == NULL)
        return cuda->host.fail(HEM_ERR_MEMORY, "No memory to describe a piece of device memory");
    hem_status status = hemi_cuda_enter(cuda, &turn);
    if (status == HEM_OK) {
        status = check_adopted(cuda, begin, bytes);
        if (status == HEM_OK)
            find_kind(cuda, begin, bytes, piece);
        hemi_cuda_leave(cuda, &turn);
    }
    if (status != HEM_OK) {
        free(piece);
        return status;
    }
    piece->how = HEMI_CUDA_ADOPTED;
    *memory_p = (hemi_device_memory){.address = address, .bytes = bytes, .inside = piece};
    return HEM_OK;
}

static hem_memory_kind memory_kind(void *context, const void *address) {
    return hemi_cuda_place_of(context, address) == HEMI_CUDA_HOST ? HEM_MEMORY_HOST
                                                                  : HEM_MEMORY_DEVICE;
}

static bool memory_host_reaches(void *context, const void *address) {
    return hemi_cuda_place_of(context, address) != HEMI_CUDA_DEVICE;
}

const hemi_device_memory_ops hemi_cuda_memory_ops = {
    .alloc = memory_alloc,
    .adopt = memory_adopt,
    .name = hemi_cuda_name,
    .map = hemi_cuda_map,
    .release = memory_release,
    .map_host = hemi_cuda_map_host,
    .unmap_host = hemi_cuda_unmap_host,
    .kind = memory_kind,
    .copy = hemi_cuda_copy,
    .send = hemi_cuda_send,
    .abandon = memory_abandon,
    .host_reaches = memory_host_reaches,
};
