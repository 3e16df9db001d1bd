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
 *
 * Into a mixed barrier kernels may enter instead of their rank's CPU, and leave: then words of theirs count as
 * well (window/mixed.h), and every entry is told in both ways.
 */
#include "window/barrier.h"
#include "window/barrier_tree.h"

static bool is_flat(const hem_window *window, uint32_t id) {
    return window->size <= HEMI_BARRIER_FLAT || hemi_is_mixed(window, id);
}

hem_status hemi_barrier_check(hem_window *window, uint32_t id, const char *call) {
    hem_status status = hemi_window_check(window, call);
    if (status == HEM_OK && __builtin_expect(id >= window->barriers, 0))
        status = hemi_window_fail_id(window, id, window->barriers, "barrier", call);
    return status == HEM_OK ? hemi_window_check_revoked(window, call) : status;
}

hem_status hemi_barrier_fail(uint32_t id, const char *call) {
    return hemi_fail(HEM_ERR_ARG, "%s: barrier %u was not entered", call, id);
}

/* Whether `rank` has entered a flat barrier of all. */
static inline bool has_come(const hem_window *window, uint32_t rank, uint32_t id, uint64_t epoch) {
    return hemi_barrier_heard(&window->peers[rank]->in_arrivals[id], epoch) ||
           (hemi_is_mixed(window, id) && hemi_mixed_heard(window, rank, HEMD_MIXED_ALL, id, epoch));
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
        hemi_barrier_tell(window, peer, &peer->out_arrivals[id], epoch);
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
    if (!is_flat(window, id))
        return hemi_tree_prepare(window, id);
    hem_status status = HEM_OK;
    hemi_peer *peer = NULL;
    for (uint32_t r = 0; r < window->size && status == HEM_OK; r++) {
        status = find(window, r, &peer);
        if (status == HEM_OK && hemi_is_mixed(window, id))
            status = hemi_mixed_check(window, r);
    }
    return status;
}

typedef struct barrier_wait {
    hem_window *window;
    hemi_barrier_state *state;
    uint64_t epoch; /* that all are to have entered */
    uint32_t id;
    uint32_t next; /* the first rank that is not known to have entered */
} barrier_wait;

static hem_status poll_flat(void *arg) {
    barrier_wait *w = arg;
    hem_window *window = w->window;
    for (; w->next < window->size; w->next++)
        if (w->next != window->rank &&
            !hemi_barrier_heard(&window->peers[w->next]->in_arrivals[w->id], w->epoch))
            return HEMI_AGAIN;
    return HEM_OK;
}

static hem_status poll_mixed(void *arg) {
    barrier_wait *w = arg;
    for (; w->next < w->window->size; w->next++)
        if (w->next != w->window->rank && !has_come(w->window, w->next, w->id, w->epoch))
            return HEMI_AGAIN;
    return HEM_OK;
}

static hem_status poll_tree(void *arg) {
    const barrier_wait *w = arg;
    return hemi_tree_released(w->window, w->id) >= w->epoch ? HEM_OK : HEMI_AGAIN;
}

typedef hem_status (*poll_fn)(void *);

static poll_fn poll_of(const hem_window *window, uint32_t id) {
    if (hemi_is_mixed(window, id))
        return poll_mixed;
    return is_flat(window, id) ? poll_flat : poll_tree;
}

/* Count an entry into a mixed one and tell kernels; `entered_p`: it stands. Whether the last one was left cannot
 * be told: it may have been left by a kernel, to which peers tell theirs before they tell this CPU. */
static hem_status enter_mixed(hem_window *window, uint32_t id, bool *entered_p) {
    hemi_barrier_state *state = &hemi_window_states(window)[id];
    hem_status status = prepare(window, id);
    *entered_p = status == HEM_OK;
    if (status != HEM_OK)
        return status;
    state->arrived = hemi_mixed_own(window, window->rank, HEMD_MIXED_ALL, id, state->arrived) + 1;
    status = hemi_mixed_tell_all(window, id, state->arrived);
    if (status == HEM_OK)
        state->told = state->arrived;
    return status;
}

/* Count an entry into an ordinary one. */
static hem_status enter(hem_window *window, uint32_t id, const char *call) {
    hemi_barrier_state *state = &hemi_window_states(window)[id];
    if (state->arrived != state->passed)
        return hemi_fail(HEM_ERR_ARG, "%s: barrier %u was entered and not yet left", call, id);
    hem_status status = HEM_OK;
    if (__builtin_expect(state->arrived == 0, 0))
        status = prepare(window, id);
    if (status == HEM_OK && window->size > 2)
        status = settle_everything(window);
    if (status == HEM_OK)
        state->arrived++;
    return status;
}

static hem_status arrive(hem_window *window, uint32_t id, const char *call) {
    hemi_barrier_state *state = &hemi_window_states(window)[id];
    bool entered = false;
    hem_status status =
        hemi_is_mixed(window, id) ? enter_mixed(window, id, &entered) : enter(window, id, call);
    if (status != HEM_OK && !entered)
        return status;
    if (is_flat(window, id)) {
        hem_status cpus = tell_all(window, id, state->arrived);
        return status == HEM_OK ? cpus : status;
    }
    hemi_tree_arrive(window, id, state);
    return HEM_OK;
}

/* Take up an entry, which may be one of a kernel. */
static hem_status take_up(hem_window *window, uint32_t id, const char *call, barrier_wait *w_p) {
    hemi_barrier_state *state = &hemi_window_states(window)[id];
    uint64_t epoch = state->arrived;
    hem_status status = HEM_OK;
    if (hemi_is_mixed(window, id)) {
        status = prepare(window, id);
        epoch = hemi_mixed_own(window, window->rank, HEMD_MIXED_ALL, id, epoch);
        /* One that could not be told to all kernels in time. */
        if (status == HEM_OK && state->told != state->arrived)
            status = hemi_mixed_tell_all(window, id, state->arrived);
        if (status == HEM_OK)
            state->told = state->arrived;
    }
    if (status == HEM_OK && epoch == state->passed)
        status = hemi_barrier_fail(id, call);
    *w_p = (barrier_wait){window, state, epoch, id, 0};
    return status;
}

/* Whether a rank has entered; one that has gone since is no loss then. */
static bool has_entered(const barrier_wait *w, uint32_t rank) {
    const hem_window *window = w->window;
    if (rank == window->rank)
        return true;
    return is_flat(window, w->id) ? has_come(window, rank, w->id, w->epoch)
                                  : hemi_tree_entered(window, w->id, rank) >= w->epoch;
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
    note->word = is_flat(window, w->id) ? &window->peers[missing]->in_arrivals[w->id].epoch
                                        : hemi_tree_word(window, w->id);
    if (hemi_is_mixed(window, w->id) &&
        hemi_mixed_heard(window, missing, HEMD_MIXED_ALL, w->id, w->epoch - 1))
        note->word = hemi_mixed_word(window, missing, HEMD_MIXED_ALL, w->id);
}

/* Everybody has entered: deliver what they named, and count. */
static hem_status leave(barrier_wait *w, int64_t limit_ns) {
    hem_window *window = w->window;
    const bool flat = is_flat(window, w->id);
    hem_status status = HEM_OK;
    for (uint32_t r = 0; flat && r < window->size && status == HEM_OK; r++) {
        hemi_peer *peer = window->peers[r];
        uint64_t look = r == window->rank ? 0 : hemi_load64_acquire(&peer->in_arrivals[w->id].look);
        if (__builtin_expect(look != 0, 0))
            status = hemi_peer_take_set(window, peer, look, limit_ns);
    }
    if (status == HEM_OK)
        hemi_store64_release(&w->state->passed, w->epoch);
    return status;
}

static hem_status wait_barrier(barrier_wait *w, int64_t timeout_ns) {
    hem_window *window = w->window;
    const uint32_t id = w->id;
    hemi_wait_for wait = {
        .poll = poll_of(window, id),
        .doomed = doomed_barrier,
        .where = where_barrier,
        .arg = w,
        .nap_ns = hemi_barrier_nap(window, id),
        .note = {.call = HEMI_CALL_BARRIER,
                 .peer = -1,
                 .id = id,
                 .compare = HEM_GE,
                 .wanted = w->epoch,
                 .window = window->id,
                 .world = window->world->id},
    };
    hem_status status = hemi_wait(window->world, &wait, timeout_ns);
    if (status == HEM_ERR_TIMEOUT)
        return hemi_fail(status, "hem_barrier: rank %u has not entered barrier %u in time",
                         first_missing(w), id);
    return status == HEM_OK ? leave(w, timeout_ns) : status;
}

hem_status hem_barrier_arrive(hem_window *window, uint32_t id) {
    hem_status status = hemi_barrier_check(window, id, "hem_barrier_arrive");
    return status == HEM_OK ? arrive(window, id, "hem_barrier_arrive") : status;
}

hem_status hem_barrier_wait(hem_window *window, uint32_t id, int64_t timeout_ns) {
    hem_status status = hemi_barrier_check(window, id, "hem_barrier_wait");
    if (status == HEM_OK)
        status = hemi_check_timeout(timeout_ns, "hem_barrier_wait");
    barrier_wait w;
    if (status == HEM_OK)
        status = take_up(window, id, "hem_barrier_wait", &w);
    return status == HEM_OK ? wait_barrier(&w, timeout_ns) : status;
}

hem_status hem_barrier_test(hem_window *window, uint32_t id, bool *done_p) {
    hem_status status = hemi_barrier_check(window, id, "hem_barrier_test");
    if (status == HEM_OK && done_p == NULL)
        status = hemi_fail(HEM_ERR_ARG, "hem_barrier_test: done_p is NULL");
    barrier_wait w;
    if (status == HEM_OK)
        status = take_up(window, id, "hem_barrier_test", &w);
    if (status != HEM_OK)
        return status;
    const poll_fn poll = poll_of(window, id);
    hem_status now = poll(&w);
    if (now == HEMI_AGAIN) {
        status = doomed_barrier(&w);
        if (status != HEM_OK) /* what came before the death counts */
            now = poll(&w);
    }
    if (now == HEM_OK)
        status = leave(&w, 0);
    return hemi_tell_done(status, now == HEM_OK, done_p);
}

hem_status hem_barrier(hem_window *window, uint32_t id, int64_t timeout_ns) {
    hem_status status = hemi_barrier_check(window, id, "hem_barrier");
    if (status == HEM_OK)
        status = hemi_check_timeout(timeout_ns, "hem_barrier");
    if (status == HEM_OK)
        status = arrive(window, id, "hem_barrier");
    if (status != HEM_OK)
        return status;
    hemi_barrier_state *state = &hemi_window_states(window)[id];
    barrier_wait w = {window, state, state->arrived, id, 0};
    return wait_barrier(&w, timeout_ns);
}
