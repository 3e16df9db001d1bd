#include "base/env.h"
#include "base/options.h"
#include "core/bootstrap/bootstrap.h"
#include "core/root.h"

#define DEFAULT_TIMEOUT_S 60

hem_status hemi_open_timeout(const hem_world_options *options, int64_t *timeout_p) {
    if (options->timeout_ns != 0) {
        *timeout_p = options->timeout_ns;
        return hemi_check_timeout(options->timeout_ns, "hem_world_open");
    }
    uint64_t seconds = DEFAULT_TIMEOUT_S;
    hem_status status = hemi_env_number("HEM_OPEN_TIMEOUT", 1, 1u << 30, &seconds);
    *timeout_p = HEM_SEC(seconds);
    return status;
}

hem_status hemi_open_alone(const hem_world_options *options, hem_world **world_p) {
    int64_t timeout = 0;
    hem_status status = hemi_open_timeout(options, &timeout);
    if (status != HEM_OK)
        return status;
    hemi_arena_plan plan = {
        .ranks = 1, .kind = HEMI_KIND_ALONE, .part_bytes = options->arena_bytes};
    hemi_arena arena;
    status = hemi_arena_make(&plan, hemi_platform_real(), &arena);
    if (status != HEM_OK)
        return status;
    hemi_root *root = NULL;
    status = hemi_root_attach(&arena, hemi_platform_real(), 0, &root);
    if (status != HEM_OK)
        return status;
    status = hemi_root_open_world(root, timeout, timeout, world_p);
    hemi_root_drop(root);
    return status;
}

static hem_status check(const hem_world_options *options) {
    if (options->allgather == NULL && (options->rank != 0 || options->size != 0))
        return hemi_fail(HEM_ERR_ARG, "hem_world_open: rank and size go with an allgather");
    if (options->allgather != NULL &&
        (options->size < 1 || options->rank < 0 || options->rank >= options->size))
        return hemi_fail(HEM_ERR_ARG, "hem_world_open: rank %d of %d", options->rank,
                         options->size);
    return HEM_OK;
}

hem_status hem_world_open(const hem_world_options *options, hem_world **world_p) {
    hem_world_options o;
    hem_status status = hemi_options_read(&o, sizeof o, options, "hem_world_open");
    if (status == HEM_OK && world_p == NULL)
        status = hemi_fail(HEM_ERR_ARG, "hem_world_open: world_p is NULL");
    if (status == HEM_OK)
        status = check(&o);
    if (status != HEM_OK)
        return status;
    if (o.allgather != NULL)
        return hemi_open_callback(&o, world_p);
    hemi_launch_info info;
    int launched = 0;
    status = hemi_control_environment(&info, &launched);
    if (status != HEM_OK)
        return status;
    if (!launched)
        return hemi_open_alone(&o, world_p);
    int64_t timeout = 0;
    status = hemi_open_timeout(&o, &timeout);
    return status == HEM_OK ? hemi_open_launched(&info, timeout, world_p) : status;
}
