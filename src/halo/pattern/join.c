#include "halo/pattern/join.h"

#include "core/team.h"

/* What ranks say: they go on from the most routes that any of them has made, so that numbers agree
 * even if one has left a call early. */
typedef struct join_say {
    uint64_t routes;
    int64_t timeout_ns;
} join_say;

static void hear(hem_world *world, join_say *all) {
    for (uint32_t r = 0; r < world->size; r++) {
        join_say say;
        hemi_team_heard(world, r, &say, sizeof say);
        all->routes = say.routes > all->routes ? say.routes : all->routes;
        if (say.timeout_ns >= 0 && (all->timeout_ns < 0 || say.timeout_ns < all->timeout_ns))
            all->timeout_ns = say.timeout_ns;
    }
    hemi_team_done(world);
}

hem_status hemi_join_begin(hemi_router *router, const hem_pattern *pattern, uint32_t call,
                           hem_status status, int64_t timeout_ns) {
    hem_world *world = pattern->world;
    if (world == NULL)
        return hemi_fail(HEM_ERR_CLOSED, "%s: the world of the pattern is closed",
                         hemi_call_name(call));
    *router = (hemi_router){.world = world, .call = call, .deadline_ns = UINT64_MAX};
    if (status == HEM_OK)
        status = hemi_check_timeout(timeout_ns, hemi_call_name(call));
    if (status == HEM_OK)
        status = hemi_route_ready(world);
    join_say all = {world->routes_made, timeout_ns};
    if (timeout_ns == 0 || timeout_ns < HEM_FOREVER)
        all.timeout_ns = world->timeout_ns;
    status = hemi_team_agree(world, call, status, pattern->id, &all, sizeof all, all.timeout_ns);
    if (status != HEM_OK)
        return status;
    hear(world, &all);
    world->routes_made = all.routes;
    const hemi_platform *platform = world->root->platform;
    if (all.timeout_ns >= 0)
        router->deadline_ns = platform->now(platform->ctx) + (uint64_t)all.timeout_ns;
    return HEM_OK;
}

hem_status hemi_join_end(hemi_router *router, const hem_pattern *pattern, hem_status status) {
    return hemi_team_agree(router->world, router->call, status, pattern->id, NULL, 0,
                           hemi_router_left(router));
}
