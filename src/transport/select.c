#include "transport/transport.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

const hemi_transport *hemi_transport_select(const hemi_root *root, uint32_t root_rank) {
    for (const hemi_transport *const *t = hemi_transports; *t != NULL; t++)
        if ((*t)->reach(root, root_rank) != 0)
            return *t;
    return NULL;
}

/* Not a secret: it tells a name from bytes that were mixed up on the way. */
static uint32_t sum_of(const hemi_name *name) {
    uint64_t sum = name->kind;
    sum = (sum ^ name->root_rank) * 0x9e3779b97f4a7c15u;
    sum = (sum ^ sum >> 29 ^ name->where) * 0xbf58476d1ce4e5b9u;
    sum = (sum ^ sum >> 32 ^ name->bytes) * 0x94d049bb133111ebu;
    sum = (sum ^ sum >> 31 ^ name->pid) * 0x9e3779b97f4a7c15u;
    sum = (sum ^ sum >> 29 ^ name->job) * 0xbf58476d1ce4e5b9u;
    return (uint32_t)(sum >> 32);
}

hemi_name hemi_name_make(const hemi_root *root, enum hemi_name_kind kind, uint64_t where,
                         uint64_t bytes) {
    hemi_name name = {
        .kind = kind,
        .root_rank = root->rank,
        .where = where,
        .bytes = bytes,
        .pid = (uint32_t)getpid(),
        .job = root->arena.head->job,
    };
    name.check = sum_of(&name);
    return name;
}

hem_status hemi_name_check(const hemi_root *root, const hemi_name *name, uint32_t root_rank) {
    if (name->check != sum_of(name) || name->job != root->arena.head->job)
        return hemi_fail(HEM_ERR_RANGE, "this is not a handle of this job's memory");
    if (name->root_rank != root_rank)
        return hemi_fail(HEM_ERR_RANGE, "this handle is of rank %u's memory, not of rank %u's",
                         name->root_rank, root_rank);
    if (name->kind == HEMI_NAME_LIBRARY &&
        hemi_arena_in_part(&root->arena, root_rank, name->where, name->bytes))
        return HEM_OK;
    if (name->kind == HEMI_NAME_OWN && name->where <= UINT64_MAX - name->bytes)
        return HEM_OK;
    return hemi_fail(HEM_ERR_RANGE, "this handle names %" PRIu64 " bytes that rank %u cannot have",
                     name->bytes, root_rank);
}

hem_status hemi_region_attach(const hemi_root *root, const hemi_name *name, uint32_t root_rank,
                              hemi_region *region_p) {
    hem_status status = hemi_name_check(root, name, root_rank);
    if (status != HEM_OK)
        return status;
    const hemi_transport *transport = hemi_transport_select(root, root_rank);
    if (transport == NULL)
        return hemi_fail(HEM_ERR_UNSUPPORTED, "no transport reaches rank %u", root_rank);
    hemi_region region = {
        .transport = transport,
        .bytes = name->bytes,
        .root_rank = root_rank,
        .pid = name->pid,
    };
    status = transport->attach(root, name, &region);
    if (status == HEM_OK)
        *region_p = region;
    return status;
}

hem_status hemi_region_put(const hemi_region *region, uint64_t offset, const void *src, size_t n) {
    if (region->mapped == NULL)
        return n == 0 ? HEM_OK : region->transport->put(region, offset, src, n);
    if (n > 0)
        memcpy(region->mapped + offset, src, n);
    return HEM_OK;
}

hem_status hemi_region_get(const hemi_region *region, uint64_t offset, void *dst, size_t n) {
    if (region->mapped == NULL)
        return n == 0 ? HEM_OK : region->transport->get(region, offset, dst, n);
    if (n > 0)
        memcpy(dst, region->mapped + offset, n);
    return HEM_OK;
}
