#include "transport/self/self.h"

#define ROUTE                                                                                      \
    (HEM_ROUTE_MAPPED | HEM_ROUTE_ATOMIC | HEM_ROUTE_SIGNAL | HEM_ROUTE_WAKES | HEM_ROUTE_COPY |   \
     HEM_ROUTE_SAME_PROCESS)

static unsigned reach(const hemi_root *root, uint32_t root_rank) {
    return root_rank == root->rank ? ROUTE : 0;
}

static hem_status attach(const hemi_root *root, const hemi_name *name, hemi_region *region_p) {
    if (name->kind == HEMI_NAME_LIBRARY) {
        region_p->mapped = hemi_arena_at(&root->arena, name->where);
        region_p->route = ROUTE;
    } else {
        region_p->mapped = (unsigned char *)(uintptr_t)name->where;
        region_p->route = HEM_ROUTE_MAPPED | HEM_ROUTE_COPY | HEM_ROUTE_SAME_PROCESS;
    }
    return HEM_OK;
}

/* Everything is mapped, so that nobody calls put and get. */
const hemi_transport hemi_transport_self = {
    .name = "self",
    .reach = reach,
    .attach = attach,
};
