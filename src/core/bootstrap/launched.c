#include "core/bootstrap/bootstrap.h"
#include "core/root.h"

hem_status hemi_open_launched(const hemi_launch_info *info, int64_t timeout_ns,
                              hem_world **world_p) {
    hemi_arena arena;
    hem_status status = hemi_arena_map(info->arena_fd, true, &arena);
    if (status != HEM_OK)
        return status;
    if (arena.ranks != info->size) {
        hemi_arena_unmap(&arena);
        return hemi_fail(HEM_ERR_ARG, "HEM_SIZE is %u, but the arena is for %u ranks", info->size,
                         arena.ranks);
    }
    hemi_root *root = NULL;
    status = hemi_root_attach(&arena, hemi_platform_real(), info->rank, &root);
    if (status != HEM_OK)
        return status;
    status = hemi_control_send_hello(info->control_fd, info->rank);
    if (status == HEM_OK)
        status = hemi_root_open_world(root, timeout_ns, timeout_ns, world_p);
    hemi_root_drop(root);
    return status;
}
