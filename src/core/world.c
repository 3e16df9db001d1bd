#include "core/world.h"
#include "base/lock.h"
#include "core/engine.h"
#include "core/heap.h"
#include "core/root.h"
#include "core/stream.h"
#include "core/team.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

hem_status hemi_check_timeout(int64_t timeout_ns, const char *call) {
    if (timeout_ns >= 0 || timeout_ns == HEM_FOREVER)
        return HEM_OK;
    return hemi_fail(HEM_ERR_ARG, "%s: a time limit of %lld ns is neither HEM_FOREVER nor positive",
                     call, (long long)timeout_ns);
}

int hem_world_rank(const hem_world *world) {
    return world == NULL ? hemi_fail(HEM_ERR_ARG, "hem_world_rank: world is NULL")
                         : (int)world->rank;
}

int hem_world_size(const hem_world *world) {
    return world == NULL ? hemi_fail(HEM_ERR_ARG, "hem_world_size: world is NULL")
                         : (int)world->size;
}

/* A world lies on one machine until there is a transport between machines. */
int hem_world_local_rank(const hem_world *world) {
    return hem_world_rank(world);
}

int hem_world_local_size(const hem_world *world) {
    return hem_world_size(world);
}

int hem_world_host(const hem_world *world, int rank) {
    if (world == NULL || rank < 0 || (uint32_t)rank >= world->size)
        return hemi_fail(HEM_ERR_RANGE, "hem_world_host: there is no rank %d", rank);
    return 0;
}

int hem_world_alive(const hem_world *world, int rank) {
    if (world == NULL || rank < 0 || (uint32_t)rank >= world->size)
        return hemi_fail(HEM_ERR_RANGE, "hem_world_alive: there is no rank %d", rank);
    if (hemi_world_may_come(world, (uint32_t)rank))
        return 1;
    /* Whoever is told of a death here must not find the dead alive in the next call. */
    hemi_world_distrust(world);
    return 0;
}

bool hemi_world_may_come(const hem_world *world, uint32_t rank) {
    return hemi_liveness_may_come(&world->root->arena, world->members[rank]) &&
           hemi_load32_acquire(&world->cells[rank].closed) == 0;
}

void hemi_world_distrust(const hem_world *world) {
    uint32_t *seen = (uint32_t *)(uintptr_t)&world->alarm_seen;
    hemi_store32_relaxed(seen, hemi_load32_acquire(&world->root->arena.head->alarm) - 1);
}

hem_status hemi_world_fail_peer(const hem_world *world, uint32_t rank, const char *call) {
    /* The word of a death comes before the alarm: whoever has heard it must not put to the dead. */
    hemi_world_distrust(world);
    char what[96] = "has closed this world";
    if (!hemi_liveness_may_come(&world->root->arena, world->members[rank]))
        hemi_liveness_describe(&world->root->arena, world->members[rank], what, sizeof what);
    return hemi_fail(HEM_ERR_PEER, "%s: rank %u %s", call, rank, what);
}

hem_status hemi_world_fail_revoked(const hem_world *world, const char *call) {
    hemi_world_distrust(world);
    return hemi_fail(HEM_ERR_REVOKED, "%s: world %llu was revoked", call,
                     (unsigned long long)world->id);
}

hem_status hemi_world_check_slowly(hem_world *world, uint32_t rank, const char *call) {
    uint32_t alarm = hemi_load32_acquire(&world->root->arena.head->alarm);
    if (hemi_load32_acquire(&world->team->revoked) != 0)
        return hemi_world_fail_revoked(world, call);
    /* A rank that has closed is no error here: what is put there is not seen, and does no harm. */
    if (!hemi_liveness_may_come(&world->root->arena, world->members[rank]))
        return hemi_world_fail_peer(world, rank, call);
    for (uint32_t r = 0; r < world->size; r++)
        if (!hemi_liveness_may_come(&world->root->arena, world->members[r]))
            return HEM_OK; /* somebody else has gone: the fast way stays closed */
    hemi_store32_relaxed(&world->alarm_seen, alarm);
    return HEM_OK;
}

void hemi_world_adopt(hem_world *world, hemi_child *child) {
    hemi_lock(world->root->platform, &world->children_lock);
    child->next = world->children;
    child->link = &world->children;
    if (child->next != NULL)
        child->next->link = &child->next;
    world->children = child;
    hemi_unlock(&world->children_lock);
}

void hemi_world_abandon(hem_world *world, hemi_child *child) {
    hemi_lock(world->root->platform, &world->children_lock);
    *child->link = child->next;
    if (child->next != NULL)
        child->next->link = child->link;
    hemi_unlock(&world->children_lock);
}

static hem_status check_team(const hemi_root *root, uint64_t offset, uint32_t rank,
                             hemi_team **team_p, uint32_t *size_p) {
    const hemi_arena *arena = &root->arena;
    bool inside =
        offset == arena->team_offset || (offset >= arena->parts_offset && offset % HEMI_PAGE == 0 &&
                                         offset <= arena->total_bytes - HEMI_PAGE);
    if (!inside)
        return hemi_fail(HEM_ERR_MISMATCH, "a peer named a world outside of shared memory");
    hemi_team *team = hemi_arena_at(arena, offset);
    uint32_t size = team->size;
    if (team->magic != HEMI_TEAM_MAGIC || size == 0 || size > arena->ranks || rank >= size ||
        hemi_team_bytes(size) > arena->total_bytes - offset ||
        hemi_team_members(team, size)[rank] != root->rank)
        return hemi_fail(HEM_ERR_MISMATCH, "a peer named a world that is none");
    *team_p = team;
    *size_p = size;
    return HEM_OK;
}

/* What a peer has written is checked once and then kept: it may write something else later. */
static hem_status copy_members(const hemi_root *root, hemi_team *team, uint32_t size,
                               hem_world *world) {
    const uint32_t *members = hemi_team_members(team, size);
    world->size = size;
    world->members = malloc(size * sizeof *world->members);
    if (world->members == NULL)
        return hemi_fail(HEM_ERR_MEMORY, "no memory for a world of %u ranks", size);
    for (uint32_t r = 0; r < size; r++) {
        world->members[r] = members[r];
        if (world->members[r] >= root->arena.ranks) {
            free(world->members);
            return hemi_fail(HEM_ERR_MISMATCH, "a peer named a world with a rank that is none");
        }
    }
    return HEM_OK;
}

hem_status hemi_world_make(hemi_root *root, uint64_t team_offset, uint32_t rank, int64_t timeout_ns,
                           hem_world **world_p) {
    hemi_team *team = NULL;
    uint32_t size = 0;
    hem_status status = check_team(root, team_offset, rank, &team, &size);
    if (status != HEM_OK)
        return status;
    hem_world *world = calloc(1, sizeof *world);
    status = world == NULL ? hemi_fail(HEM_ERR_MEMORY, "no memory for a world")
                           : copy_members(root, team, size, world);
    if (status != HEM_OK) {
        free(world);
        return status;
    }
    hemi_root_hold(root);
    world->root = root;
    world->team = team;
    world->cells = team->cells;
    world->rank = rank;
    world->id = team->id;
    world->team_offset = team_offset;
    world->timeout_ns = timeout_ns;
    world->engine.event_fd = -1;
    hemi_lock(root->platform, &root->worlds_lock);
    world->next = root->worlds;
    world->link = &root->worlds;
    if (world->next != NULL)
        world->next->link = &world->next;
    root->worlds = world;
    hemi_unlock(&root->worlds_lock);
    *world_p = world;
    return HEM_OK;
}

void hemi_world_free(hem_world *world) {
    hemi_root *root = world->root;
    hemi_lock(root->platform, &root->worlds_lock);
    *world->link = world->next;
    if (world->next != NULL)
        world->next->link = world->link;
    hemi_unlock(&root->worlds_lock);
    hemi_engine_free(world);
    hemi_root_drop(root);
    free(world->members);
    free(world);
}

hem_status hem_world_revoke(hem_world *world) {
    if (world == NULL)
        return hemi_fail(HEM_ERR_ARG, "hem_world_revoke: world is NULL");
    /* Pairs with the acquires in look_for_trouble and hemi_world_check_slowly. */
    hemi_store32_release(&world->team->revoked, 1);
    hemi_liveness_alarm(&world->root->arena, world->root->platform);
    return HEM_OK;
}

static void orphan_children(hem_world *world, bool dead) {
    while (world->children != NULL) {
        hemi_child *child = world->children;
        hemi_world_abandon(world, child);
        child->orphan(child, dead);
    }
}

void hemi_root_stop_workers(hemi_root *root) {
    /* First: what is on a host stream may wait for a kernel that waits for a peer. */
    struct hemi_device_room *room = __atomic_load_n(&root->device, __ATOMIC_ACQUIRE);
    if (room != NULL)
        root->device_abandon(room);
    hemi_streams_abandon(root);
    for (hem_world *world = root->worlds; world != NULL; world = world->next)
        hemi_worker_stop(world);
}

void hemi_root_bury(hemi_root *root) {
    hemi_streams_join(root); /* what is on a stream touches other things of its world */
    while (root->worlds != NULL) {
        hem_world *world = root->worlds;
        world->keep_memory = true; /* survivors may still put into it */
        orphan_children(world, true);
        hemi_world_free(world);
    }
}

/* The rank in whose part the team lies gives it back when nobody looks at it any more. */
static void release_team(hem_world *world) {
    hemi_root *root = world->root;
    uint32_t owner = world->team->owner;
    /* The last touch of a rank that does not own it. Pairs with the acquire in the owner's
     * hemi_team_await_flag. */
    hemi_store32_release(&world->cells[world->rank].left, 1);
    if (owner != root->rank) {
        if (owner < root->arena.ranks)
            hemi_wake(root, hemi_arena_rank(&root->arena, owner));
        return;
    }
    if (world->keep_memory)
        return; /* some rank did not come, and waiting a second time would not help */
    hem_status gone =
        hemi_team_await_flag(world, HEMI_CALL_CLOSE, offsetof(hemi_cell, left), world->timeout_ns);
    if (gone == HEM_OK || gone == HEM_ERR_PEER)
        hemi_heap_free(&root->arena, root->platform, root->rank, world->team_offset, 0);
}

hem_status hem_world_close(hem_world *world) {
    if (world == NULL)
        return HEM_OK;
    hemi_cell *mine = &world->cells[world->rank];
    hem_status status = hemi_streams_close(world);
    if (status != HEM_OK)
        return status;
    hemi_engine_close(world);
    /* Pairs with the acquire in hemi_world_may_come. */
    hemi_store32_release(&mine->closed, 1);
    hemi_liveness_count(&world->root->arena, world->root->platform);
    hemi_team_wake(world);
    status = hemi_team_await_flag(world, HEMI_CALL_CLOSE, offsetof(hemi_cell, closed),
                                  world->timeout_ns);
    /* A rank that has not closed may still put into this one's memory: it is not given back. */
    world->keep_memory = status == HEM_ERR_TIMEOUT;
    orphan_children(world, false);
    release_team(world);
    hemi_world_free(world);
    return status;
}
