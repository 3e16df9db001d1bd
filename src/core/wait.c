#include "core/wait.h"

/* A sleeper that cannot make the others fence looks again this often. */
#define NAP_NS 1000000

void hemi_wake_sleepers(const hemi_root *root, hemi_rank_block *block) {
    /* Pairs with the acquire of the doorbell in sleep_once. */
    hemi_add32_acq_rel(&block->doorbell, 1);
    root->platform->wake(root->platform->ctx, &block->doorbell);
}

/* Whether to give up. What holds after all beats the reason. */
static hem_status look_for_trouble(hem_world *world, const hemi_wait_for *wait) {
    hem_status why = HEM_OK;
    if (!wait->also_revoked && hemi_load32_acquire(&world->team->revoked) != 0)
        why = HEM_ERR_REVOKED;
    else if (wait->doomed != NULL)
        why = wait->doomed(wait->arg);
    if (why == HEM_OK)
        return HEMI_AGAIN;
    hem_status status = wait->poll(wait->arg);
    if (status == HEMI_AGAIN && why == HEM_ERR_REVOKED)
        return hemi_world_fail_revoked(world, hemi_call_name(wait->note.call));
    return status == HEMI_AGAIN ? why : status;
}

static hem_status spin(hem_world *world, const hemi_wait_for *wait) {
    for (uint32_t i = world->root->spin; i > 0; i--) {
        hem_status status = wait->poll(wait->arg);
        if (status != HEMI_AGAIN)
            return status;
        hemi_pause();
    }
    return wait->poll(wait->arg);
}

static hem_status look(hem_world *world, const hemi_wait_for *wait) {
    hem_status status = wait->poll(wait->arg);
    return status == HEMI_AGAIN ? look_for_trouble(world, wait) : status;
}

/* Announce, make everybody fence, look again, park. See "who writes what" in the header. */
static hem_status sleep_once(hem_world *world, const hemi_wait_for *wait, uint64_t deadline) {
    hemi_root *root = world->root;
    const hemi_platform *platform = root->platform;
    uint32_t bell = hemi_load32_acquire(&root->me->doorbell);
    hemi_add32_seq_cst(&root->me->sleepers, 1);
    int64_t most = wait->nap_ns > 0 ? wait->nap_ns : INT64_MAX;
    if (wait->nap_ns == 0 && !root->all_fence &&
        (root->fence || !platform->membarrier(platform->ctx)))
        most = NAP_NS;
    hemi_fence_seq_cst(); /* where signallers fence, this is the other half */
    hem_status status = look(world, wait);
    uint64_t now = platform->now(platform->ctx);
    if (status == HEMI_AGAIN && now >= deadline)
        status = HEM_ERR_TIMEOUT;
    if (status == HEMI_AGAIN) {
        uint64_t left = deadline - now;
        int64_t limit = left > (uint64_t)most ? most : (int64_t)left;
        platform->park(platform->ctx, &root->me->doorbell, bell,
                       deadline == UINT64_MAX && most == INT64_MAX ? -1 : limit);
    }
    hemi_add32_acq_rel(&root->me->sleepers, UINT32_MAX);
    return status;
}

static hem_status yield_phase(hem_world *world, const hemi_wait_for *wait, uint64_t start,
                              uint64_t deadline) {
    const hemi_platform *platform = world->root->platform;
    uint64_t end = start + world->root->yield_ns;
    for (;;) {
        hem_status status = look(world, wait);
        if (status != HEMI_AGAIN)
            return status;
        uint64_t now = platform->now(platform->ctx);
        if (now >= deadline)
            return HEM_ERR_TIMEOUT;
        if (now >= end)
            return HEMI_AGAIN;
        platform->yield(platform->ctx);
    }
}

hem_status hemi_wait(hem_world *world, const hemi_wait_for *wait, int64_t timeout_ns) {
    hem_status status = spin(world, wait);
    if (status != HEMI_AGAIN)
        return status;
    hemi_root *root = world->root;
    uint64_t start = root->platform->now(root->platform->ctx);
    uint64_t deadline = timeout_ns < 0 ? UINT64_MAX : start + (uint64_t)timeout_ns;
    status = yield_phase(world, wait, start, deadline);
    if (status != HEMI_AGAIN)
        return status;
    hemi_flight_note note = wait->note;
    hemi_flight *flight = hemi_flight_enter(&root->arena, root->rank, &note, start);
    do {
        if (wait->where != NULL) {
            wait->where(wait->arg, &note);
            hemi_flight_update(&root->arena, flight, note.peer, note.word, note.wanted);
        }
        status = sleep_once(world, wait, deadline);
    } while (status == HEMI_AGAIN);
    hemi_flight_leave(flight);
    return status;
}
