/*
 * How this works. Every rank has, per barrier id, the number of times it has entered (its epoch), in
 * its own control block. Words only grow, so that a barrier can be used again at once and ids do not
 * disturb each other; and entering is all that others depend on.
 *
 * Up to HEMI_BARRIER_FLAT ranks, everybody writes its epoch into its row at everybody else, and leaves
 * when all rows here have reached its own: one trip, one writer per word, and what serves best when
 * ranks share cores, because a rank that runs once has done all of its part.
 *
 * Beyond, that would cost memory for every pair. Instead ranks count themselves in groups, the last of
 * a group counts the group, and the last of those releases the epoch (window/barrier_tree.c).
 *
 * What was put before must be visible after, and older than what anybody puts after. Between two ranks,
 * payloads that still travel in a signal's line are named in a `look` word beside the epoch, and the
 * receiver delivers them before it leaves. With more, a third rank may leave first and put to the same
 * place, and so they are put in place before this rank enters.
 */
#include "window/barrier_tree.h"
#include "window/window.h"

static bool is_flat(const hem_window *window) {
    return window->size <= HEMI_BARRIER_FLAT;
}

static hemi_arrival *pair_arrival(const hem_window *window, hemi_arrival *arrivals, uint32_t id) {
    return arrivals + window->barriers + id;
}

static hem_status check_barrier(hem_window *window, uint32_t id, const char *call) {
    hem_status status = hemi_window_check(window, call);
    if (status == HEM_OK && __builtin_expect(id >= window->barriers, 0))
        status = hemi_window_fail_id(window, id, window->barriers, "barrier", call);
    return status == HEM_OK ? hemi_window_check_revoked(window, call) : status;
}

/* Write an epoch into a peer's memory and wake it. */
static inline void tell(hem_window *window, hemi_peer *peer, hemi_arrival *arrival,
                        uint64_t epoch) {
    if (__builtin_expect(hemi_load64_relaxed(&peer->sent_inline) != 0, 0))
        hemi_store64_release(&arrival->look, hemi_peer_unsettled(peer, UINT32_MAX));
    /* Pairs with the acquire in heard(). */
    hemi_store64_release(&arrival->epoch, epoch);
    hemi_wake(window->root, peer->block);
}

static inline bool heard(const hemi_arrival *arrival, uint64_t epoch) {
    return hemi_load64_acquire(&arrival->epoch) >= epoch;
}

static hem_status find(hem_window *window, uint32_t rank, hemi_peer **peer_p) {
    return hemi_peer_find(window, (int)rank, "hem_barrier", peer_p);
}

static hem_status tell_all(hem_window *window, uint32_t id, uint64_t epoch) {
    for (uint32_t r = 0; r < window->size; r++) {
        hemi_peer *peer = NULL;
        if (r == window->rank)
            continue;
        hem_status status = find(window, r, &peer);
        if (status != HEM_OK)
            return status;
        tell(window, peer, &peer->out_arrivals[id], epoch);
    }
    return HEM_OK;
}

static hem_status settle_everything(hem_window *window) {
    hem_status status = HEM_OK;
    for (uint32_t r = 0; r < window->size && status == HEM_OK; r++) {
        hemi_peer *peer = __atomic_load_n(&window->peers[r], __ATOMIC_ACQUIRE);
        if (peer != NULL && hemi_load64_relaxed(&peer->sent_inline) != 0 &&
            hemi_world_may_come(window->world, r))
            status = hemi_peer_settle_all(window, peer);
    }
    return status;
}

/* Before the first entry: have memory behind every word that it will write. */
static hem_status prepare(hem_window *window, uint32_t id) {
    if (!is_flat(window))
        return hemi_tree_prepare(window, id);
    hem_status status = HEM_OK;
    hemi_peer *peer = NULL;
    for (uint32_t r = 0; r < window->size && status == HEM_OK; r++)
        status = find(window, r, &peer);
    return status;
}

static hem_status arrive(hem_window *window, uint32_t id, const char *call) {
    hemi_barrier_state *state = &hemi_window_states(window)[id];
    if (state->arrived != state->passed)
        return hemi_fail(HEM_ERR_ARG, "%s: barrier %u was entered and not yet left", call, id);
    hem_status status = HEM_OK;
    if (__builtin_expect(state->arrived == 0, 0))
        status = prepare(window, id);
    if (status == HEM_OK && window->size > 2)
        status = settle_everything(window);
    if (status != HEM_OK)
        return status;
    state->arrived++;
    if (is_flat(window))
        return tell_all(window, id, state->arrived);
    hemi_tree_arrive(window, id, state);
    return HEM_OK;
}

typedef struct barrier_wait {
    hem_window *window;
    hemi_barrier_state *state;
    uint32_t id;
    uint32_t next; /* the first rank that is not known to have entered */
} barrier_wait;

static hem_status poll_flat(void *arg) {
    barrier_wait *w = arg;
    hem_window *window = w->window;
    for (; w->next < window->size; w->next++)
        if (w->next != window->rank &&
            !heard(&window->peers[w->next]->in_arrivals[w->id], w->state->arrived))
            return HEMI_AGAIN;
    return HEM_OK;
}

static hem_status poll_tree(void *arg) {
    const barrier_wait *w = arg;
    return hemi_tree_released(w->window, w->id) >= w->state->arrived ? HEM_OK : HEMI_AGAIN;
}

static hem_status poll_barrier(barrier_wait *w) {
    return is_flat(w->window) ? poll_flat(w) : poll_tree(w);
}

/* Whether a rank has entered; one that has gone since is no loss then. */
static bool has_entered(const barrier_wait *w, uint32_t rank) {
    const hem_window *window = w->window;
    if (rank == window->rank)
        return true;
    return is_flat(window) ? heard(&window->peers[rank]->in_arrivals[w->id], w->state->arrived)
                           : hemi_tree_entered(window, w->id, rank) >= w->state->arrived;
}

static hem_status doomed_barrier(void *arg) {
    barrier_wait *w = arg;
    hem_window *window = w->window;
    for (uint32_t r = 0; r < window->size; r++) {
        if (hemi_world_may_come(window->world, r) || has_entered(w, r))
            continue;
        return hemi_world_fail_peer(window->world, r, "hem_barrier");
    }
    return HEM_OK;
}

static uint32_t first_missing(const barrier_wait *w) {
    uint32_t r = 0;
    while (r < w->window->size && has_entered(w, r))
        r++;
    return r;
}

static void where_barrier(void *arg, hemi_flight_note *note) {
    const barrier_wait *w = arg;
    hem_window *window = w->window;
    uint32_t missing = first_missing(w);
    if (missing >= window->size)
        return;
    note->peer = (int32_t)window->world->members[missing];
    note->word = is_flat(window) ? &window->peers[missing]->in_arrivals[w->id].epoch
                                 : hemi_tree_word(window, w->id);
}

/* Everybody has entered: deliver what they named, and count. */
static hem_status leave(barrier_wait *w, int64_t limit_ns) {
    hem_window *window = w->window;
    hem_status status = HEM_OK;
    for (uint32_t r = 0; is_flat(window) && r < window->size && status == HEM_OK; r++) {
        hemi_peer *peer = window->peers[r];
        uint64_t look = r == window->rank ? 0 : hemi_load64_acquire(&peer->in_arrivals[w->id].look);
        if (__builtin_expect(look != 0, 0))
            status = hemi_peer_take_set(window, peer, look, limit_ns);
    }
    if (status == HEM_OK)
        hemi_store64_release(&w->state->passed, w->state->arrived);
    return status;
}

static hem_status not_entered(uint32_t id, const char *call) {
    return hemi_fail(HEM_ERR_ARG, "%s: barrier %u was not entered", call, id);
}

static hem_status wait_barrier(hem_window *window, uint32_t id, int64_t timeout_ns) {
    barrier_wait w = {window, &hemi_window_states(window)[id], id, 0};
    hemi_wait_for wait = {
        .poll = is_flat(window) ? poll_flat : poll_tree,
        .doomed = doomed_barrier,
        .where = where_barrier,
        .arg = &w,
        .note = {.call = HEMI_CALL_BARRIER,
                 .peer = -1,
                 .id = id,
                 .compare = HEM_GE,
                 .wanted = w.state->arrived,
                 .window = window->id,
                 .world = window->world->id},
    };
    hem_status status = hemi_wait(window->world, &wait, timeout_ns);
    if (status == HEM_ERR_TIMEOUT)
        return hemi_fail(status, "hem_barrier: rank %u has not entered barrier %u in time",
                         first_missing(&w), id);
    return status == HEM_OK ? leave(&w, timeout_ns) : status;
}

hem_status hem_barrier_arrive(hem_window *window, uint32_t id) {
    hem_status status = check_barrier(window, id, "hem_barrier_arrive");
    return status == HEM_OK ? arrive(window, id, "hem_barrier_arrive") : status;
}

hem_status hem_barrier_wait(hem_window *window, uint32_t id, int64_t timeout_ns) {
    hem_status status = check_barrier(window, id, "hem_barrier_wait");
    if (status == HEM_OK)
        status = hemi_check_timeout(timeout_ns, "hem_barrier_wait");
    if (status != HEM_OK)
        return status;
    const hemi_barrier_state *state = &hemi_window_states(window)[id];
    if (state->arrived == state->passed)
        return not_entered(id, "hem_barrier_wait");
    return wait_barrier(window, id, timeout_ns);
}

hem_status hem_barrier_test(hem_window *window, uint32_t id, bool *done_p) {
    hem_status status = check_barrier(window, id, "hem_barrier_test");
    if (status == HEM_OK && done_p == NULL)
        status = hemi_fail(HEM_ERR_ARG, "hem_barrier_test: done_p is NULL");
    if (status != HEM_OK)
        return status;
    barrier_wait w = {window, &hemi_window_states(window)[id], id, 0};
    if (w.state->arrived == w.state->passed)
        return not_entered(id, "hem_barrier_test");
    hem_status now = poll_barrier(&w);
    if (now == HEMI_AGAIN) {
        status = doomed_barrier(&w);
        if (status != HEM_OK) /* what came before the death counts */
            now = poll_barrier(&w);
    }
    if (now == HEM_OK)
        status = leave(&w, 0);
    return hemi_tell_done(status, now == HEM_OK, done_p);
}

hem_status hem_barrier(hem_window *window, uint32_t id, int64_t timeout_ns) {
    hem_status status = check_barrier(window, id, "hem_barrier");
    if (status == HEM_OK)
        status = hemi_check_timeout(timeout_ns, "hem_barrier");
    if (status == HEM_OK)
        status = arrive(window, id, "hem_barrier");
    return status == HEM_OK ? wait_barrier(window, id, timeout_ns) : status;
}

/* Between two. */
typedef struct pair_wait {
    hem_window *window;
    hemi_peer *peer;
    hemi_barrier_state *state;
    const hemi_arrival *arrival;
} pair_wait;

static hem_status begin_pair(hem_window *window, int rank, uint32_t id, const char *call,
                             pair_wait *w) {
    hem_status status = check_barrier(window, id, call);
    if (status == HEM_OK)
        status = hemi_peer_find(window, rank, call, &w->peer);
    if (status != HEM_OK)
        return status;
    w->window = window;
    w->state = &w->peer->pairs[id];
    w->arrival = pair_arrival(window, w->peer->in_arrivals, id);
    return HEM_OK;
}

static hem_status arrive_pair(pair_wait *w, uint32_t id, const char *call) {
    if (w->state->arrived != w->state->passed)
        return hemi_fail(HEM_ERR_ARG, "%s: barrier %u with rank %u was entered and not yet left",
                         call, id, w->peer->rank);
    w->state->arrived++;
    tell(w->window, w->peer, pair_arrival(w->window, w->peer->out_arrivals, id), w->state->arrived);
    return HEM_OK;
}

static hem_status poll_pair(void *arg) {
    const pair_wait *w = arg;
    return heard(w->arrival, w->state->arrived) ? HEM_OK : HEMI_AGAIN;
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
        w->state->passed = w->state->arrived;
    return status;
}

static hem_status wait_pair(pair_wait *w, uint32_t id, int64_t timeout_ns) {
    hem_window *window = w->window;
    hemi_wait_for wait = {
        .poll = poll_pair,
        .doomed = doomed_pair,
        .arg = w,
        .note = {.call = HEMI_CALL_BARRIER_PEER,
                 .peer = (int32_t)window->world->members[w->peer->rank],
                 .id = id,
                 .compare = HEM_GE,
                 .wanted = w->state->arrived,
                 .word = &w->arrival->epoch,
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
        status = arrive_pair(&w, id, "hem_barrier_peer");
    return status == HEM_OK ? wait_pair(&w, id, timeout_ns) : status;
}

hem_status hem_barrier_peer_arrive(hem_window *window, int peer, uint32_t id) {
    pair_wait w;
    hem_status status = begin_pair(window, peer, id, "hem_barrier_peer_arrive", &w);
    return status == HEM_OK ? arrive_pair(&w, id, "hem_barrier_peer_arrive") : status;
}

hem_status hem_barrier_peer_wait(hem_window *window, int peer, uint32_t id, int64_t timeout_ns) {
    pair_wait w;
    hem_status status = begin_pair(window, peer, id, "hem_barrier_peer_wait", &w);
    if (status == HEM_OK)
        status = hemi_check_timeout(timeout_ns, "hem_barrier_peer_wait");
    if (status != HEM_OK)
        return status;
    if (w.state->arrived == w.state->passed)
        return not_entered(id, "hem_barrier_peer_wait");
    return wait_pair(&w, id, timeout_ns);
}

hem_status hem_barrier_peer_test(hem_window *window, int peer, uint32_t id, bool *done_p) {
    pair_wait w;
    hem_status status = begin_pair(window, peer, id, "hem_barrier_peer_test", &w);
    if (status == HEM_OK && done_p == NULL)
        status = hemi_fail(HEM_ERR_ARG, "hem_barrier_peer_test: done_p is NULL");
    if (status != HEM_OK)
        return status;
    if (w.state->arrived == w.state->passed)
        return not_entered(id, "hem_barrier_peer_test");
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
