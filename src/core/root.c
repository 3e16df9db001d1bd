#include "core/root.h"

#include "base/env.h"
#include "core/heap.h"
#include "core/monitor.h"
#include "core/team.h"
#include "core/topology.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Measured on two cores. With a core for each rank, the spin is about the time of two context
 * switches; with 8 ranks on 2 cores a barrier takes 11.7 us with 40 polls, 8.8 us with 4. */
#define SPIN_ALONE      4000
#define SPIN_SHARED     4
#define YIELD_ALONE_NS  50000
#define YIELD_SHARED_NS 200000
#define CACHE_BYTES     (64ull << 20)
/* Of a lane and of a step; see the table in base/env.c. Between near cores, messages of 1 MiB went
 * at 6.3 GB/s each way through a ring of 1 MiB, at 4.4 GB/s through one of 256 KiB. */
#define SLOTS       32
#define RING_BYTES  (1u << 20)
#define STAGE_BYTES (64u << 10)

/* Shorter messages of an exchange are packed although they could be copied in one go. */
#define DIRECT_BYTES (2u << 10)

/* What a rank says about its cores when it opens. */
typedef struct cores_say {
    uint32_t usable;
    uint32_t first;
} cores_say;

static hem_status read_limits(hemi_root *root) {
    uint64_t cache = CACHE_BYTES;
    hem_status status = hemi_env_number("HEM_ARENA_CACHE", 0, UINT64_MAX, &cache);
    root->cache_bytes = cache;
    uint64_t fence = 0;
    if (status == HEM_OK)
        status = hemi_env_number("HEM_FENCE", 0, 1, &fence);
    root->fence = fence == 1;
    return status;
}

static void register_for_fences(hemi_root *root) {
    const hemi_platform *platform = root->platform;
    bool bad = root->fence || !platform->membarrier_register(platform->ctx) ||
               !platform->membarrier(platform->ctx);
    if (bad) {
        root->fence = true;
        /* Pairs with the acquire in open_over_all, after everybody has come. */
        hemi_store32_release(&root->arena.head->fence, 1);
    }
}

hem_status hemi_root_attach(hemi_arena *arena, const hemi_platform *platform, uint32_t rank,
                            hemi_root **root_p) {
    hemi_root *root = calloc(1, sizeof *root);
    if (root == NULL) {
        hemi_arena_unmap(arena);
        return hemi_fail(HEM_ERR_MEMORY, "no memory for a world");
    }
    root->arena = *arena;
    root->platform = platform;
    root->rank = rank;
    root->refs = 1;
    root->threads = arena->kind == HEMI_KIND_THREADS;
    root->me = hemi_arena_rank(arena, rank);
    root->mates = &root->alone;
    hem_status status = read_limits(root);
    if (status == HEM_OK)
        status = hemi_heap_open(&root->arena, platform, rank);
    if (status != HEM_OK) {
        hemi_root_drop(root);
        return status;
    }
    register_for_fences(root);
    hemi_store32_relaxed(&root->me->pid, (uint32_t)getpid());
    uint32_t state = HEMI_STATE_NEW;
    if (!hemi_cas32_acq_rel(&root->me->state, &state, HEMI_STATE_ALIVE) &&
        state != HEMI_STATE_ALIVE) {
        hemi_root_drop(root);
        return hemi_fail(HEM_ERR_PEER, "rank %u has ended already: another process was this rank",
                         rank);
    }
    *root_p = root;
    return HEM_OK;
}

void hemi_root_hold(hemi_root *root) {
    hemi_add32_relaxed(&root->refs, 1);
}

void hemi_root_drop(hemi_root *root) {
    if (hemi_add32_acq_rel(&root->refs, UINT32_MAX) != 1)
        return;
    if (root->device != NULL)
        root->device_free(root->device);
    hemi_monitor_stop(root->monitor);
    hemi_arena_unmap(&root->arena);
    free(root);
}

static cores_say my_cores(void) {
    cores_say say = {.usable = hemi_topology_usable()};
    say.first = hemi_topology_first();
    return say;
}

/* Whether more ranks than cores share this machine: by how many cores each may use. */
static bool oversubscribed(hem_world *world) {
    uint32_t widest = 0;
    uint32_t distinct = 0;
    uint64_t seen[16] = {0}; /* cores that single-core ranks are bound to */
    for (uint32_t r = 0; r < world->size; r++) {
        cores_say say;
        hemi_team_heard(world, r, &say, sizeof say);
        if (say.usable > widest)
            widest = say.usable;
        uint64_t bit = 1ull << (say.first % 64);
        if (say.usable == 1 && say.first < 1024 && (seen[say.first / 64] & bit) == 0) {
            seen[say.first / 64] |= bit;
            distinct++;
        }
    }
    return world->size > (widest > distinct ? widest : distinct);
}

static hem_status choose_waiting(hemi_root *root, bool crowded) {
    uint64_t spin = crowded ? SPIN_SHARED : SPIN_ALONE;
    uint64_t yield_us = (crowded ? YIELD_SHARED_NS : YIELD_ALONE_NS) / 1000;
    hem_status status = hemi_env_number("HEM_SPIN", 0, 1u << 30, &spin);
    if (status == HEM_OK)
        status = hemi_env_number("HEM_YIELD_US", 0, 1u << 30, &yield_us);
    root->spin = (uint32_t)spin;
    root->yield_ns = yield_us * 1000;
    return status;
}

static hem_status read_copy(uint32_t *copy_p) {
    const char *text = hemi_env_text("HEM_CHANNEL_COPY");
    static const char *const names[] = {"auto", "staged", "single"};
    for (uint32_t i = 0; i < 3; i++)
        if (text == NULL || strcmp(text, names[i]) == 0) {
            *copy_p = i;
            return HEM_OK;
        }
    return hemi_fail(HEM_ERR_ARG, "HEM_CHANNEL_COPY is \"%s\": auto, staged or single", text);
}

/* How channels and collectives are to be: see base/env.c. */
static hem_status read_settings(hemi_settings *settings) {
    uint64_t slots = SLOTS;
    uint64_t check = 0;
    settings->ring_bytes = RING_BYTES;
    settings->stage_bytes = STAGE_BYTES;
    hem_status status = hemi_env_number("HEM_CHANNEL_SLOTS", 1, 4096, &slots);
    if (status == HEM_OK)
        status = hemi_env_number("HEM_CHANNEL_BYTES", HEMI_PAGE, 1u << 30, &settings->ring_bytes);
    if (status == HEM_OK)
        status = hemi_env_number("HEM_COLL_BYTES", HEMI_PAGE, 1u << 30, &settings->stage_bytes);
    settings->direct_bytes = DIRECT_BYTES;
    if (status == HEM_OK)
        status = hemi_env_number("HEM_HALO_DIRECT", 0, UINT64_MAX, &settings->direct_bytes);
    if (status == HEM_OK)
        status = hemi_env_number("HEM_CHECK", 0, 1, &check);
    if (status == HEM_OK)
        status = read_copy(&settings->copy);
    const char *algorithm = hemi_env_text("HEM_ALGORITHM");
    if (status == HEM_OK && algorithm != NULL && strlen(algorithm) >= sizeof settings->algorithm)
        status = hemi_fail(HEM_ERR_ARG, "HEM_ALGORITHM is longer than %zu characters",
                           sizeof settings->algorithm - 1);
    if (status == HEM_OK && algorithm != NULL)
        memcpy(settings->algorithm, algorithm, strlen(algorithm) + 1);
    settings->slots = (uint32_t)slots;
    settings->check = check != 0;
    return status;
}

/* Agree on how to wait, then split a team of its own off the team of all. */
static hem_status open_over_all(hem_world *all, hem_status status, hem_world **world_p) {
    hemi_root *root = all->root;
    cores_say cores = my_cores();
    status = hemi_team_agree(all, HEMI_CALL_OPEN, status, 0, &cores, sizeof cores, all->timeout_ns);
    if (status == HEM_OK) {
        root->all_fence = hemi_load32_acquire(&root->arena.head->fence) != 0;
        root->fence = root->all_fence;
        status = choose_waiting(root, oversubscribed(all));
        hemi_team_done(all);
    }
    if (status != HEM_OK)
        return status;
    return hemi_world_split(all, HEMI_CALL_OPEN, 0, (int)root->rank, world_p);
}

hem_status hemi_root_open_world(hemi_root *root, int64_t open_ns, int64_t timeout_ns,
                                hem_world **world_p) {
    hem_world *all = NULL;
    hem_status status = hemi_world_make(root, root->arena.team_offset, root->rank, open_ns, &all);
    if (status != HEM_OK)
        return status;
    hem_world *world = NULL;
    /* Until it is known how crowded the machine is, yield early. A bad setting is told to all. */
    status = choose_waiting(root, true);
    if (status == HEM_OK)
        status = read_settings(&root->settings);
    status = open_over_all(all, status, &world);
    hemi_world_free(all);
    if (status != HEM_OK)
        return status;
    world->timeout_ns = timeout_ns;
    *world_p = world;
    return HEM_OK;
}
