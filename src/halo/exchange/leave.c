/*
 * How an exchange is given up. A rank that destroys one does not wait for its neighbours: what they may
 * still write to is set aside, and freed when they cannot any more, in a later call of this rank.
 */
#include "halo/exchange/engine.h"

#include <stdlib.h>

void hemi_exchange_free(hem_exchange *x) {
    hemi_halo_device_free(x, false);
    hemi_parts_free(x);
    free(x->queue.hows);
    free(x);
}

bool hemi_exchange_all_left(const hem_exchange *x) {
    bool all = true;
    for (size_t l = 0; l < x->lane_count; l++)
        all = all && (x->lanes[l].way.peer == x->world->rank ||
                      (hemi_way_gone(&x->lanes[l].way) & HEMI_GONE_DESTROYED) != 0);
    return all;
}

/* Whether no neighbour can write to our areas any more. */
static bool is_alone(const hem_exchange *x) {
    for (size_t l = 0; l < x->lane_count; l++) {
        const hemi_halo_way *way = &x->lanes[l].way;
        if (way->peer == x->world->rank || (hemi_way_gone(way) & HEMI_GONE_DESTROYED) != 0)
            continue;
        if (hemi_world_may_come(x->world, way->peer) ||
            (x->device != NULL && x->device->engine != NULL && hemi_halo_engine_may_tell(x, way)))
            return false;
    }
    return true;
}

/* Neighbours that hear that it is destroyed may give back what its kernels write to. While one of those
 * is still to come, they hear only that it is broken. */
static void tell_neighbours(const hem_world *world, hem_exchange *x) {
    x->told = x->device == NULL || hemi_halo_device_is_idle(x);
    uint64_t gone = x->broken || !x->told ? HEMI_GONE_BROKEN : 0;
    if (x->told)
        gone |= HEMI_GONE_DESTROYED;
    if (x->told && x->device != NULL)
        hemi_halo_engine_end(x->device);
    if (x->device != NULL)
        hemi_halo_device_break(x, gone);
    for (size_t l = 0; l < x->lane_count; l++)
        if (x->lanes[l].way.peer != world->rank)
            hemi_store64_release(&x->lanes[l].way.out->credit.gone, gone);
}

void hemi_exchange_sweep(hem_world *world) {
    hem_exchange **link = (hem_exchange **)&world->engine.left;
    while (*link != NULL) {
        hem_exchange *x = *link;
        /* Of a rank that is dead all know it. They may have given back what it would write to, and it
         * must not say that nothing more comes: its kernels may be on their way to their end. */
        if (x->world != NULL && !x->told && !world->keep_memory)
            tell_neighbours(world, x);
        /* Without a world its memory is gone already: free_left does the rest. */
        if (x->world == NULL || !x->told || !is_alone(x)) {
            link = &x->next_left;
            continue;
        }
        *link = x->next_left;
        /* A kernel of a rank that is dead, but whose process is not, may be on its way to its end. */
        hemi_halo_device_free(x, !hemi_exchange_all_left(x));
        hemi_world_abandon(world, &x->child);
        hemi_exchange_release(x);
        hemi_exchange_free(x);
    }
}

/* The world is gone, and the shared memory with it. */
static void free_left(void *left) {
    hem_exchange *x = left;
    while (x != NULL) {
        hem_exchange *next = x->next_left;
        hemi_exchange_free(x);
        x = next;
    }
}

static void set_aside(hem_world *world, hem_exchange *x) {
    x->next_left = world->engine.left;
    world->engine.left = x;
    world->engine.left_free = free_left;
    hemi_exchange_sweep(world);
    /* Whoever waits for a run that will not come must hear of it. */
    hemi_liveness_alarm(&world->root->arena, world->root->platform);
}

/* The caller may free its fields afterwards: nobody writes into their halos any more. */
static void give_halos_up(hem_world *world, hem_exchange *x) {
    if ((!x->device->some_direct && x->device->engine == NULL) || world->keep_memory)
        return;
    hemi_engine_lock(world);
    hemi_halo_device_break(x, HEMI_GONE_DESTROYED);
    hemi_engine_unlock(world);
    hemi_halo_device_drain(x);
}

void hemi_exchange_leave(hem_exchange *x) {
    hem_world *world = x->world;
    if (world != NULL && x->device != NULL)
        give_halos_up(world, x);
    hemi_halo_hide_fields(x);
    if (world == NULL || x->memory == 0) {
        hemi_exchange_free(x);
        return;
    }
    hemi_engine_lock(world);
    set_aside(world, x);
    hemi_engine_unlock(world);
}

hem_status hem_exchange_destroy(hem_exchange *x) {
    if (x == NULL)
        return HEM_OK;
    hem_world *world = x->op.world;
    if (world == NULL) {
        hemi_exchange_leave(x);
        return HEM_OK;
    }
    hem_status status = HEM_OK;
    if (x->asked != hemi_load64_acquire(&x->ended) || x->items != x->items_done ||
        hemi_halo_device_is_busy(x))
        status = hem_exchange_finish(x, x->setup_timeout_ns);
    hemi_engine_lock(world);
    if (x->op.state == HEMI_OP_RUNNING)
        x->op.type->cancel(&x->op);
    hemi_halo_device_stop(x);
    x->op.fn = NULL;
    bool busy = x->op.calls > 0 || x->op.queued;
    x->op.doomed = true;
    hemi_world_abandon(world, &x->op.child);
    hemi_engine_unlock(world);
    if (!busy)
        hemi_exchange_leave(x);
    hemi_engine_settle(world);
    return status;
}
