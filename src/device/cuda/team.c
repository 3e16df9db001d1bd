/*
 * Teams: multicast objects of the driver (NVLS), and this rank's memory in them.
 *
 * One rank creates the object, which the others import (peer.c); each adds its device; when all have,
 * each binds physical memory of its own and maps the object. cuMulticastBindMem may wait for a device
 * that was not added, so that all must have: the caller votes in between.
 *
 * A team that is given up is kept as all memory is (keep.c), and used again when the same devices want
 * one of about that size: the rank that makes it finds it by the number of the group, the others by
 * its serial, and each goes on from where it was. Where one of them has lost it meanwhile, its device
 * cannot be added a second time, and all do without. None of this has run on several GPUs.
 */
#include "device/cuda/cuda.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static uint64_t round_up(uint64_t bytes, uint64_t to) {
    return (bytes + to - 1) / to * to;
}

/* Addresses for all of it, where nothing is yet. */
static hem_status reserve(const hemi_cuda *cuda, hemi_cuda_piece *piece) {
    return hemi_cuda_check_driver(
        cuda, cuda->driver.MemAddressReserve(&piece->base, piece->whole, HEMI_CUDA_ALIGN, 0, 0),
        "cuMemAddressReserve");
}

static hem_status create(const hemi_cuda *cuda, uint64_t bytes, hemi_cuda_piece *piece) {
    CUmulticastObjectProp wanted = {.numDevices = piece->members};
    size_t granule = 0;
    wanted.size = round_up(bytes > 0 ? bytes : 1, HEMI_CUDA_ALIGN);
    wanted.handleTypes =
        cuda->fabric ? CU_MEM_HANDLE_TYPE_FABRIC : CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    CUresult result =
        cuda->driver.MulticastGetGranularity(&granule, &wanted, CU_MULTICAST_GRANULARITY_MINIMUM);
    if (result != CUDA_SUCCESS)
        return hemi_cuda_check_driver(cuda, result, "cuMulticastGetGranularity");
    wanted.size = round_up(wanted.size, granule);
    piece->whole = wanted.size;
    piece->kind = cuda->fabric ? HEMI_DEVICE_NAME_FABRIC : HEMI_DEVICE_NAME_FD;
    result = cuda->driver.MulticastCreate(&piece->handle, &wanted);
    piece->held = result == CUDA_SUCCESS;
    return hemi_cuda_check_driver(cuda, result, "cuMulticastCreate");
}

/* A handle of this process's own: threads that share one would give it back once each. */
static hem_status import(const hemi_cuda *cuda, const hemi_device_name *name, int fd,
                         bool same_process, hemi_cuda_piece *piece) {
    const hemi_cuda_driver *driver = &cuda->driver;
    CUmemFabricHandle fabric;
    CUmemGenericAllocationHandle there;
    void *handle = &fabric;
    CUmemAllocationHandleType type = CU_MEM_HANDLE_TYPE_FABRIC;
    CUresult result = CUDA_SUCCESS;
    int own = -1;
    memcpy(&fabric, name->handle, sizeof fabric);
    memcpy(&there, name->handle, sizeof there);
    if (name->kind == HEMI_DEVICE_NAME_FD) {
        type = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
        if (same_process)
            result = driver->MemExportToShareableHandle(&own, there, type, 0);
        handle = (void *)(intptr_t)(same_process ? own : fd);
    }
    if (result == CUDA_SUCCESS)
        result = driver->MemImportFromShareableHandle(&piece->handle, handle, type);
    if (own >= 0)
        close(own);
    piece->held = result == CUDA_SUCCESS;
    return hemi_cuda_check_driver(cuda, result, "importing a multicast object");
}

hem_status hemi_cuda_team_map(const hemi_cuda *cuda, const hemi_device_name *name, int fd,
                              bool same_process, hemi_cuda_piece **piece_p) {
    hemi_cuda_piece *piece = *piece_p;
    hemi_cuda_piece *kept = hemi_cuda_keep_take_team(cuda, name->serial, 0, 0);
    if (kept != NULL) {
        free(piece);
        *piece_p = kept;
        return HEM_OK;
    }
    if (cuda->driver.MulticastAddDevice == NULL || name->members > HEMI_CUDA_DEVICES ||
        name->whole % HEMI_CUDA_ALIGN != 0 || name->offset != 0)
        return cuda->host.fail(HEM_ERR_UNSUPPORTED, "A peer names a team that cannot be one");
    piece->how = HEMI_CUDA_TEAM;
    piece->kind = name->kind;
    piece->whole = name->whole;
    piece->members = (uint32_t)name->members;
    piece->serial = name->serial;
    hem_status status = import(cuda, name, fd, same_process, piece);
    if (status == HEM_OK)
        status = reserve(cuda, piece);
    if (status != HEM_OK && piece->held)
        cuda->driver.MemRelease(piece->handle);
    return status;
}

static hem_status make_entered(const hemi_cuda *cuda, uint32_t members, uint64_t bytes,
                               uint64_t group, hemi_cuda_piece **piece_p) {
    hemi_cuda_piece *piece = hemi_cuda_keep_take_team(cuda, 0, group, bytes);
    if (piece == NULL) {
        piece = calloc(1, sizeof *piece);
        if (piece == NULL)
            return cuda->host.fail(HEM_ERR_MEMORY, "No memory to describe a team");
        piece->how = HEMI_CUDA_TEAM;
        piece->members = members;
        piece->group = group;
        piece->serial = hemi_cuda_serial(0);
        hem_status status = create(cuda, bytes, piece);
        if (status == HEM_OK)
            status = reserve(cuda, piece);
        if (status != HEM_OK) {
            hemi_cuda_drop(cuda, piece);
            return status;
        }
    }
    *piece_p = piece;
    return HEM_OK;
}

static hem_status team_make(void *context, uint32_t members, uint64_t bytes, uint64_t group,
                            hemi_device_memory *team_p) {
    hemi_cuda *cuda = context;
    hemi_cuda_turn turn;
    hemi_cuda_piece *piece = NULL;
    if (members > HEMI_CUDA_DEVICES || bytes > UINT64_C(1) << 46)
        return cuda->host.fail(HEM_ERR_UNSUPPORTED, "No team has %u members with %llu bytes",
                               members, (unsigned long long)bytes);
    hem_status status = hemi_cuda_enter(cuda, &turn);
    if (status != HEM_OK)
        return status;
    status = make_entered(cuda, members, bytes, group, &piece);
    hemi_cuda_leave(cuda, &turn);
    if (status == HEM_OK)
        *team_p = (hemi_device_memory){(void *)(uintptr_t)piece->base, piece->whole, piece};
    return status;
}

static hem_status team_join(void *context, const hemi_device_memory *team) {
    hemi_cuda *cuda = context;
    hemi_cuda_turn turn;
    hemi_cuda_piece *piece = team->inside;
    hem_status status = hemi_cuda_enter(cuda, &turn);
    if (status != HEM_OK)
        return status;
    if (!piece->joined)
        status = hemi_cuda_check_driver(
            cuda, cuda->driver.MulticastAddDevice(piece->handle, cuda->device),
            "cuMulticastAddDevice");
    piece->joined = status == HEM_OK;
    hemi_cuda_leave(cuda, &turn);
    return status;
}

/* What has been done is noted in the piece, so that dropping it undoes just that. */
static hem_status bind_entered(const hemi_cuda *cuda, hemi_cuda_piece *piece) {
    const hemi_cuda_driver *driver = &cuda->driver;
    CUresult result = CUDA_SUCCESS;
    const char *what = "cuMulticastBindMem";
    if (piece->member == NULL) {
        hem_status status = hemi_cuda_create(cuda, piece->whole, &piece->member);
        if (status != HEM_OK)
            return status;
    }
    if (!piece->bound)
        result =
            driver->MulticastBindMem(piece->handle, 0, piece->member->handle, 0, piece->whole, 0);
    piece->bound = result == CUDA_SUCCESS;
    if (result == CUDA_SUCCESS && !piece->mapped) {
        what = "cuMemMap";
        result = driver->MemMap(piece->base, piece->whole, 0, piece->handle, 0);
        piece->mapped = result == CUDA_SUCCESS;
    }
    if (result == CUDA_SUCCESS) {
        what = "cuMemSetAccess";
        result = driver->MemSetAccess(piece->base, piece->whole, cuda->access, 1);
    }
    return hemi_cuda_check_driver(cuda, result, what);
}

static hem_status team_bind(void *context, const hemi_device_memory *team, uint32_t index,
                            hemd_multi *multi_p) {
    hemi_cuda *cuda = context;
    hemi_cuda_turn turn;
    hemi_cuda_piece *piece = team->inside;
    (void)index;
    hem_status status = hemi_cuda_enter(cuda, &turn);
    if (status != HEM_OK)
        return status;
    status = bind_entered(cuda, piece);
    hemi_cuda_leave(cuda, &turn);
    if (status == HEM_OK)
        *multi_p = (hemd_multi){.own = (void *)(uintptr_t)piece->member->base,
                                .all = (void *)(uintptr_t)piece->base,
                                .count = piece->members};
    return status;
}

void hemi_cuda_team_undo(const hemi_cuda *cuda, hemi_cuda_piece *piece) {
    const hemi_cuda_driver *driver = &cuda->driver;
    if (piece->mapped)
        driver->MemUnmap(piece->base, piece->whole);
    if (piece->base != 0)
        driver->MemAddressFree(piece->base, piece->whole);
    if (piece->bound)
        driver->MulticastUnbind(piece->handle, cuda->device, 0, piece->whole);
    if (piece->held)
        driver->MemRelease(piece->handle);
    piece->held = false;
    if (piece->member != NULL)
        hemi_cuda_drop(cuda, piece->member);
}

const hemi_device_team_ops hemi_cuda_team_ops = {
    .make = team_make,
    .join = team_join,
    .bind = team_bind,
};
