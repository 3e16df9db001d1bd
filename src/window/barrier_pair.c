/* Barriers between two ranks: as those of all (barrier.c), with an arrival and a state per peer. */
#include "window/barrier.h"

static hemi_arrival *pair_arrival(const hem_window *window, hemi_arrival *arrivals, uint32_t id) {
    return arrivals + window->barriers + id;
}

typedef struct pair_wait {
    hem_window *window;
    hemi_peer *peer;
    hemi_barrier_state *state;
    const hemi_arrival *arrival;
    uint64_t epoch; /* that this rank has entered */
    uint32_t id;
} pair_wait;

static hem_status begin_pair(hem_window *window, int rank, uint32_t id, const char *call,
                             pair_wait *w) {
    hem_status status = hemi_barrier_check(window, id, call);
    if (status == HEM_OK)
        status = hemi_peer_find(window, rank, call, &w->peer);
    if (status != HEM_OK)
        return status;
    w->window = window;
    w->state = &w->peer->pairs[id];
    w->arrival = pair_arrival(window, w->peer->in_arrivals, id);
    w->epoch = w->state->arrived;
    w->id = id;
    if (!hemi_is_mixed(window, id))
        return HEM_OK;
    w->epoch = hemi_mixed_own(window, w->peer->rank, HEMD_MIXED_OWN, id, w->epoch);
    return hemi_mixed_check(window, w->peer->rank);
}

static bool has_come_pair(const pair_wait *w) {
    return hemi_barrier_heard(w->arrival, w->epoch) ||
           (hemi_is_mixed(w->window, w->id) &&
            hemi_mixed_heard(w->window, w->peer->rank, HEMD_MIXED_PAIR, w->id, w->epoch));
}

/* Tell this rank's kernels and the peer's, of a mixed barrier. May be called again, until it succeeds. */
static hem_status tell_kernels(pair_wait *w) {
    if (w->state->told == w->state->arrived)
        return HEM_OK;
    const uint32_t peer = w->peer->rank;
    hem_status status = hemi_mixed_tell(w->window, peer, HEMD_MIXED_OWN, w->id, w->state->arrived);
    if (status == HEM_OK)
        status = hemi_mixed_tell(w->window, peer, HEMD_MIXED_PAIR, w->id, w->state->arrived);
    if (status == HEM_OK)
        w->state->told = w->state->arrived;
    return status;
}

static hem_status arrive_pair(pair_wait *w, const char *call) {
    if (!hemi_is_mixed(w->window, w->id) && w->state->arrived != w->state->passed)
        return hemi_fail(HEM_ERR_ARG, "%s: barrier %u with rank %u was entered and not yet left",
                         call, w->id, w->peer->rank);
    w->state->arrived = ++w->epoch;
    hem_status status = hemi_is_mixed(w->window, w->id) ? tell_kernels(w) : HEM_OK;
    hemi_barrier_tell(w->window, w->peer, pair_arrival(w->window, w->peer->out_arrivals, w->id),
                      w->epoch);
    return status;
}

static hem_status take_up_pair(pair_wait *w, const char *call) {
    if (w->epoch == w->state->passed)
        return hemi_barrier_fail(w->id, call);
    return hemi_is_mixed(w->window, w->id) ? tell_kernels(w) : HEM_OK;
}

static hem_status poll_pair(void *arg) {
    return has_come_pair(arg) ? HEM_OK : HEMI_AGAIN;
}

static hem_status doomed_pair(void *arg) {
    const pair_wait *w = arg;
    if (hemi_world_may_come(w->window->world, w->peer->rank))
        return HEM_OK;
    return hemi_world_fail_peer(w->window->world, w->peer->rank, "hem_barrier_peer");
}

static hem_status leave_pair(pair_wait *w, int64_t limit_ns) {
    uint64_t look = hemi_load64_acquire(&w->arrival->look);
    hem_status status = look == 0 ? HEM_OK : hemi_peer_take_set(w->window, w->peer, look, limit_ns);
    if (status == HEM_OK)
        w->state->passed = w->epoch;
    return status;
}

static const uint64_t *pair_word(const pair_wait *w) {
    const uint32_t peer = w->peer->rank;
    if (hemi_is_mixed(w->window, w->id) &&
        hemi_mixed_heard(w->window, peer, HEMD_MIXED_PAIR, w->id, w->epoch - 1))
        return hemi_mixed_word(w->window, peer, HEMD_MIXED_PAIR, w->id);
    return &w->arrival->epoch;
}

static hem_status wait_pair(pair_wait *w, int64_t timeout_ns) {
    hem_window *window = w->window;
    const uint32_t id = w->id;
    hemi_wait_for wait = {
        .poll = poll_pair,
        .doomed = doomed_pair,
        .arg = w,
        .nap_ns = hemi_barrier_nap(window, id),
        .note = {.call = HEMI_CALL_BARRIER_PEER,
                 .peer = (int32_t)window->world->members[w->peer->rank],
                 .id = id,
                 .compare = HEM_GE,
                 .wanted = w->epoch,
                 .word = pair_word(w),
                 .window = window->id,
                 .world = window->world->id},
    };
    hem_status status = hemi_wait(window->world, &wait, timeout_ns);
    if (status == HEM_ERR_TIMEOUT)
        return hemi_fail(status, "hem_barrier_peer: rank %u has not entered barrier %u in time",
                         w->peer->rank, id);
    return status == HEM_OK ? leave_pair(w, timeout_ns) : status;
}

hem_status hem_barrier_peer(hem_window *window, int peer, uint32_t id, int64_t timeout_ns) {
    pair_wait w;
    hem_status status = begin_pair(window, peer, id, "hem_barrier_peer", &w);
    if (status == HEM_OK)
        status = hemi_check_timeout(timeout_ns, "hem_barrier_peer");
    if (status == HEM_OK)
        status = arrive_pair(&w, "hem_barrier_peer");
    return status == HEM_OK ? wait_pair(&w, timeout_ns) : status;
}

hem_status hem_barrier_peer_arrive(hem_window *window, int peer, uint32_t id) {
    pair_wait w;
    hem_status status = begin_pair(window, peer, id, "hem_barrier_peer_arrive", &w);
    return status == HEM_OK ? arrive_pair(&w, "hem_barrier_peer_arrive") : status;
}

hem_status hem_barrier_peer_wait(hem_window *window, int peer, uint32_t id, int64_t timeout_ns) {
    pair_wait w;
    hem_status status = begin_pair(window, peer, id, "hem_barrier_peer_wait", &w);
    if (status == HEM_OK)
        status = hemi_check_timeout(timeout_ns, "hem_barrier_peer_wait");
    if (status == HEM_OK)
        status = take_up_pair(&w, "hem_barrier_peer_wait");
    return status == HEM_OK ? wait_pair(&w, timeout_ns) : status;
}

hem_status hem_barrier_peer_test(hem_window *window, int peer, uint32_t id, bool *done_p) {
    pair_wait w;
    hem_status status = begin_pair(window, peer, id, "hem_barrier_peer_test", &w);
    if (status == HEM_OK && done_p == NULL)
        status = hemi_fail(HEM_ERR_ARG, "hem_barrier_peer_test: done_p is NULL");
    if (status == HEM_OK)
        status = take_up_pair(&w, "hem_barrier_peer_test");
    if (status != HEM_OK)
        return status;
    hem_status now = poll_pair(&w);
    if (now == HEMI_AGAIN) {
        status = doomed_pair(&w);
        if (status != HEM_OK)
            now = poll_pair(&w); /* what came before the death counts */
    }
    if (now == HEM_OK)
        status = leave_pair(&w, 0);
    return hemi_tell_done(status, now == HEM_OK, done_p);
}
