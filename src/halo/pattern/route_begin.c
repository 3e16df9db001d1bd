#include "core/flight.h"
#include "core/team.h"
#include "halo/pattern/route.h"

/*
 * What ranks say. They go on from the most routes that any of them has made, so that numbers agree
 * even if one has left a call early.
 */
typedef struct begin_say {
    uint64_t routes;
    int64_t timeout_ns;
    uint64_t votes;
} begin_say;

_Static_assert(sizeof(begin_say) <= HEMI_SAY_MAX, "it is said in one step");

static void count(hemi_votes *votes, uint32_t rank, uint64_t said) {
    for (uint32_t bit = 0; bit < 2; bit++)
        if ((said >> bit & 1) != 0 && votes->voters[bit] == UINT32_MAX)
            votes->voters[bit] = rank;
    votes->all |= (uint32_t)said & 3;
}

static void hear(hem_world *world, begin_say *all, hemi_votes *votes) {
    votes->all = 0;
    votes->voters[0] = votes->voters[1] = UINT32_MAX;
    for (uint32_t r = 0; r < world->size; r++) {
        begin_say say;
        hemi_team_heard(world, r, &say, sizeof say);
        all->routes = say.routes > all->routes ? say.routes : all->routes;
        if (say.timeout_ns >= 0 && (all->timeout_ns < 0 || say.timeout_ns < all->timeout_ns))
            all->timeout_ns = say.timeout_ns;
        count(votes, r, say.votes);
    }
    hemi_team_done(world);
}

hem_status hemi_router_begin(hemi_router *router, hem_world *world, uint32_t call,
                             hem_status status, uint64_t fingerprint, int64_t timeout_ns,
                             hemi_votes *votes) {
    const hemi_platform *platform = world->root->platform;
    hemi_votes none = {0};
    if (votes == NULL)
        votes = &none;
    if (status == HEM_OK)
        status = hemi_check_timeout(timeout_ns, hemi_call_name(call));
    if (status == HEM_OK)
        status = hemi_route_ready(world);
    begin_say all = {world->routes_made, timeout_ns, votes->mine};
    if (timeout_ns == 0 || timeout_ns < HEM_FOREVER)
        all.timeout_ns = world->timeout_ns;
    status = hemi_team_agree(world, call, status, fingerprint, &all, sizeof all, all.timeout_ns);
    if (status != HEM_OK)
        return status;
    hear(world, &all, votes);
    world->routes_made = all.routes;
    router->world = world;
    router->call = call;
    router->deadline_ns = UINT64_MAX;
    if (all.timeout_ns >= 0)
        router->deadline_ns = platform->now(platform->ctx) + (uint64_t)all.timeout_ns;
    return HEM_OK;
}
