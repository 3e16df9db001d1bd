#include "core/heap.h"
#include "transport/transport.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

struct hem_memory {
    hemi_child child;
    hem_world *world; /* NULL once it is closed */
    hemi_region region;
    hemi_name name;
    uint32_t rank;
    bool library; /* allocated here, so freed here */
    bool imported;
};

static void orphan(hemi_child *child, bool dead) {
    hem_memory *memory = (hem_memory *)(void *)child;
    hemi_root *root = memory->world->root;
    if (memory->library && !memory->world->keep_memory)
        hemi_heap_free(&root->arena, root->platform, root->rank, memory->name.where,
                       root->cache_bytes);
    memory->world = NULL;
    memory->region.mapped = NULL;
    if (dead)
        free(memory);
}

static hem_status make(hem_world *world, const hemi_name *name, uint32_t rank,
                       hem_memory **memory_p) {
    hem_memory *memory = calloc(1, sizeof *memory);
    if (memory == NULL)
        return hemi_fail(HEM_ERR_MEMORY, "no memory for a memory handle");
    hem_status status =
        hemi_region_attach(world->root, name, world->members[rank], &memory->region);
    if (status != HEM_OK) {
        free(memory);
        return status;
    }
    memory->world = world;
    memory->name = *name;
    memory->rank = rank;
    memory->child.orphan = orphan;
    hemi_world_adopt(world, &memory->child);
    *memory_p = memory;
    return HEM_OK;
}

hem_status hem_memory_alloc(hem_world *world, size_t bytes, hem_memory **memory_p) {
    if (world == NULL || memory_p == NULL)
        return hemi_fail(HEM_ERR_ARG, "hem_memory_alloc: world or memory_p is NULL");
    hemi_root *root = world->root;
    uint64_t offset = 0;
    hem_status status = hemi_heap_alloc(&root->arena, root->platform, root->rank, bytes,
                                        HEMI_HEAP_RESERVED, &offset);
    if (status != HEM_OK)
        return status;
    hemi_name name = hemi_name_make(root, HEMI_NAME_LIBRARY, offset, bytes);
    hem_memory *memory = NULL;
    status = make(world, &name, world->rank, &memory);
    if (status != HEM_OK) {
        hemi_heap_free(&root->arena, root->platform, root->rank, offset, root->cache_bytes);
        return status;
    }
    memory->library = true;
    *memory_p = memory;
    return HEM_OK;
}

hem_status hem_memory_register(hem_world *world, void *address, size_t bytes,
                               hem_memory **memory_p) {
    if (world == NULL || memory_p == NULL || (address == NULL && bytes > 0))
        return hemi_fail(HEM_ERR_ARG, "hem_memory_register: world, address or memory_p is NULL");
    if ((uintptr_t)address > UINTPTR_MAX - bytes)
        return hemi_fail(HEM_ERR_RANGE, "hem_memory_register: %zu bytes end beyond all memory",
                         bytes);
    /* Where Yama restricts who may copy, this process allows its peers. Elsewhere it means nothing
     * and fails, which is fine. */
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    hemi_name name = hemi_name_make(world->root, HEMI_NAME_OWN, (uintptr_t)address, bytes);
    return make(world, &name, world->rank, memory_p);
}

hem_status hem_memory_free(hem_memory *memory) {
    if (memory == NULL)
        return HEM_OK;
    if (memory->world == NULL) {
        free(memory);
        return hemi_fail(HEM_ERR_CLOSED, "hem_memory_free: the world was closed before");
    }
    hemi_root *root = memory->world->root;
    hemi_world_abandon(memory->world, &memory->child);
    if (memory->library)
        hemi_heap_free(&root->arena, root->platform, root->rank, memory->name.where,
                       root->cache_bytes);
    free(memory);
    return HEM_OK;
}

void *hem_memory_address(const hem_memory *memory) {
    return memory == NULL ? NULL : memory->region.mapped;
}

size_t hem_memory_size(const hem_memory *memory) {
    return memory == NULL ? 0 : memory->region.bytes;
}

unsigned hem_memory_route(const hem_memory *memory) {
    return memory == NULL ? 0 : memory->region.route;
}

hem_status hem_memory_export(const hem_memory *memory, hem_memory_handle *handle_p) {
    if (memory == NULL || handle_p == NULL || memory->imported)
        return hemi_fail(HEM_ERR_ARG, "hem_memory_export: %s",
                         memory == NULL || handle_p == NULL ? "memory or handle_p is NULL"
                                                            : "imported memory is not one's own");
    memset(handle_p, 0, sizeof *handle_p);
    memcpy(handle_p, &memory->name, sizeof memory->name);
    return HEM_OK;
}

hem_status hem_memory_import(hem_world *world, int peer, const hem_memory_handle *handle,
                             hem_memory **memory_p) {
    if (world == NULL || handle == NULL || memory_p == NULL)
        return hemi_fail(HEM_ERR_ARG, "hem_memory_import: world, handle or memory_p is NULL");
    if (peer < 0 || (uint32_t)peer >= world->size)
        return hemi_fail(HEM_ERR_RANGE, "hem_memory_import: rank %d of %u", peer, world->size);
    hem_status status = hemi_world_check_peer(world, (uint32_t)peer, "hem_memory_import");
    if (status != HEM_OK)
        return status;
    hemi_name name;
    memcpy(&name, handle, sizeof name);
    hem_memory *memory = NULL;
    status = make(world, &name, (uint32_t)peer, &memory);
    if (status != HEM_OK)
        return status;
    memory->imported = true;
    *memory_p = memory;
    return HEM_OK;
}

static hem_status check_range(const hem_memory *memory, size_t offset, const void *here,
                              size_t bytes, const char *call) {
    if (memory == NULL || (here == NULL && bytes > 0))
        return hemi_fail(HEM_ERR_ARG, "%s: a pointer is NULL", call);
    if (memory->world == NULL)
        return hemi_fail(HEM_ERR_CLOSED, "%s: the world of this memory was closed", call);
    if (bytes > memory->region.bytes || offset > memory->region.bytes - bytes)
        return hemi_fail(HEM_ERR_RANGE, "%s: %zu bytes at %zu of %" PRIu64, call, bytes, offset,
                         memory->region.bytes);
    return hemi_world_check_peer(memory->world, memory->rank, call);
}

hem_status hem_memory_read(hem_memory *memory, size_t offset, void *to, size_t bytes) {
    hem_status status = check_range(memory, offset, to, bytes, "hem_memory_read");
    return status == HEM_OK ? hemi_region_get(&memory->region, offset, to, bytes) : status;
}

hem_status hem_memory_write(hem_memory *memory, size_t offset, const void *from, size_t bytes) {
    hem_status status = check_range(memory, offset, from, bytes, "hem_memory_write");
    return status == HEM_OK ? hemi_region_put(&memory->region, offset, from, bytes) : status;
}

int hem_route_query(const hem_world *world, int peer) {
    if (world == NULL || peer < 0 || (uint32_t)peer >= world->size)
        return hemi_fail(HEM_ERR_RANGE, "hem_route_query: no rank %d", peer);
    uint32_t root_rank = world->members[peer];
    const hemi_transport *transport = hemi_transport_select(world->root, root_rank);
    return transport == NULL ? 0 : (int)transport->reach(world->root, root_rank);
}
