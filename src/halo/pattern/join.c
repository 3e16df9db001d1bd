#include "halo/pattern/join.h"

#include "core/team.h"

hem_status hemi_join_begin(hemi_router *router, const hem_pattern *pattern, uint32_t call,
                           hem_status status, int64_t timeout_ns) {
    hem_world *world = pattern->world;
    if (world == NULL)
        return hemi_fail(HEM_ERR_CLOSED, "%s: the world of the pattern is closed",
                         hemi_call_name(call));
    *router = (hemi_router){0};
    return hemi_router_begin(router, world, call, status, pattern->id, timeout_ns, NULL);
}

hem_status hemi_join_end(hemi_router *router, const hem_pattern *pattern, hem_status status) {
    return hemi_team_agree(router->world, router->call, status, pattern->id, NULL, 0,
                           hemi_router_left(router));
}
