/* Waiting for signals. */
#include "window/device.h"

/* Polls before the general wait takes over: what a signal from a running peer needs at most. */
#define POLLS 2000
/*
 * Polls without a pause. Where the peer's core is near, the answer comes within these, and a pause
 * would delay it; where it is far, the pause keeps loads from being started that the arriving line
 * makes void (measured on two cores 210 ns apart: 257 ns without, 214 ns with).
 */
#define EAGER_POLLS 64
/* A read does not wait for signals, but for the peer to finish moving 32 bytes, if it is at it. */
#define READ_LIMIT_NS 10000000

hem_status hemi_window_check_want(const hem_window *window, uint32_t id, hem_compare compare,
                                  const char *call) {
    if (__builtin_expect(id >= window->signals, 0))
        return hemi_window_fail_id(window, id, window->signals, "signal", call);
    if (__builtin_expect(id < window->device_signals, 0))
        return hemi_fail(HEM_ERR_UNSUPPORTED,
                         "%s: signal %u is for kernels to wait for; those from %u on are for CPUs",
                         call, id, window->device_signals);
    if (__builtin_expect(compare < HEM_EQ || compare > HEM_LE, 0))
        return hemi_fail(HEM_ERR_ARG, "%s: %d is no comparison", call, (int)compare);
    return HEM_OK;
}

/* Kernels ring no doorbell. */
static int64_t nap_of(const hem_window *window) {
    return window->device == NULL ? 0 : HEMI_DEVICE_NAP_NS;
}

/* One peer. */
typedef struct from_wait {
    hem_window *window;
    hemi_peer *peer;
    uint32_t id;
    hem_compare compare;
    uint64_t value;
} from_wait;

static hem_status poll_from(void *arg) {
    from_wait *w = arg;
    uint64_t seen = hemi_window_seen(w->window, w->peer, w->id);
    return hemd_holds(seen, w->compare, w->value) ? HEM_OK : HEMI_AGAIN;
}

static hem_status doomed_from(void *arg) {
    from_wait *w = arg;
    if (hemi_world_may_come(w->window->world, w->peer->rank))
        return HEM_OK;
    return hemi_world_fail_peer(w->window->world, w->peer->rank, "hem_wait_signal_from");
}

static hem_status wait_from(from_wait *w, int64_t timeout_ns) {
    hem_window *window = w->window;
    hemi_wait_for wait = {
        .poll = poll_from,
        .doomed = doomed_from,
        .arg = w,
        .nap_ns = nap_of(window),
        .note = {.call = HEMI_CALL_WAIT_SIGNAL_FROM,
                 .peer = (int32_t)window->world->members[w->peer->rank],
                 .id = w->id,
                 .compare = w->compare,
                 .wanted = w->value,
                 .word = &w->peer->in[w->id].value,
                 .window = window->id,
                 .world = window->world->id},
    };
    hem_status status = hemi_wait(window->world, &wait, timeout_ns);
    if (status == HEM_ERR_TIMEOUT)
        return hemi_fail(status,
                         "hem_wait_signal_from: signal %u from rank %u is %llu and not what was "
                         "waited for (%llu) after the time limit",
                         w->id, w->peer->rank,
                         (unsigned long long)hemi_window_seen(window, w->peer, w->id),
                         (unsigned long long)w->value);
    return status;
}

static hem_status begin_from(hem_window *window, int rank, uint32_t id, hem_compare compare,
                             const char *call, hemi_peer **peer_p) {
    hem_status status = hemi_peer_find(window, rank, call, peer_p);
    if (status == HEM_OK)
        status = hemi_window_check_want(window, id, compare, call);
    if (status == HEM_OK)
        status = hemi_window_check_revoked(window, call);
    return status;
}

/* The common case in a loop of its own: no calls, no clock. */
static inline bool spin_from(const hem_window *window, const uint64_t *word, hem_compare compare,
                             uint64_t value) {
    uint32_t polls = window->root->spin < POLLS ? window->root->spin : POLLS;
    for (uint32_t i = 0; i <= polls; i++) {
        uint64_t seen = hemi_load64_acquire(word);
        if (compare == HEM_GE ? seen >= value : hemd_holds(seen, compare, value))
            return true;
        if (i >= EAGER_POLLS)
            hemi_pause();
    }
    return false;
}

static hem_status wait_from_slowly(hem_window *window, int rank, uint32_t id, hem_compare compare,
                                   uint64_t value, int64_t timeout_ns) {
    hemi_peer *peer = NULL;
    hem_status status = begin_from(window, rank, id, compare, "hem_wait_signal_from", &peer);
    if (status == HEM_OK)
        status = hemi_check_timeout(timeout_ns, "hem_wait_signal_from");
    if (status != HEM_OK)
        return status;
    from_wait w = {window, peer, id, compare, value};
    status = wait_from(&w, timeout_ns);
    return status == HEM_OK ? hemi_peer_take(window, peer, id, timeout_ns) : status;
}

hem_status hem_wait_signal_from(hem_window *window, int peer, uint32_t id, hem_compare compare,
                                uint64_t value, int64_t timeout_ns) {
    hemi_peer *p = hemi_peer_ready(window, peer);
    if (__builtin_expect(p != NULL && id < window->signals && timeout_ns >= HEM_FOREVER &&
                             spin_from(window, &p->in[id].value, compare, value),
                         1)) {
        const hemi_line *line = &p->in[id];
        if (__builtin_expect(
                hemi_load64_acquire(&line->look) == 0 &&
                    hemi_line_take(line, &p->in_claims[id], window->memory, window->bytes),
                1))
            return HEM_OK;
        return hemi_peer_take(window, p, id, timeout_ns);
    }
    return wait_from_slowly(window, peer, id, compare, value, timeout_ns);
}

hem_status hem_test_signal_from(hem_window *window, int peer, uint32_t id, hem_compare compare,
                                uint64_t value, bool *done_p) {
    hemi_peer *p = NULL;
    hem_status status = begin_from(window, peer, id, compare, "hem_test_signal_from", &p);
    if (status == HEM_OK && done_p == NULL)
        status = hemi_fail(HEM_ERR_ARG, "hem_test_signal_from: done_p is NULL");
    if (status != HEM_OK)
        return status;
    from_wait w = {window, p, id, compare, value};
    hem_status now = poll_from(&w);
    if (now == HEMI_AGAIN) {
        status = doomed_from(&w);
        if (status != HEM_OK)
            now = poll_from(&w); /* what came before the death counts */
    }
    if (now == HEM_OK)
        status = hemi_peer_take(window, p, id, 0);
    return hemi_tell_done(status, now == HEM_OK, done_p);
}

hem_status hem_read_signal_from(hem_window *window, int peer, uint32_t id, uint64_t *value_p) {
    hemi_peer *p = NULL;
    hem_status status = begin_from(window, peer, id, HEM_GE, "hem_read_signal_from", &p);
    if (status == HEM_OK && value_p == NULL)
        status = hemi_fail(HEM_ERR_ARG, "hem_read_signal_from: value_p is NULL");
    if (status != HEM_OK)
        return status;
    uint64_t value = hemi_window_seen(window, p, id);
    status = hemi_peer_take(window, p, id, READ_LIMIT_NS);
    if (status == HEM_OK)
        *value_p = value;
    return status;
}

/* The sum over all peers that have used this rank's rows. */
typedef struct sum_wait {
    hem_window *window;
    uint32_t id;
    hem_compare compare;
    uint64_t value;
    uint64_t seen;
} sum_wait;

static uint64_t sum_up(const hem_window *window, uint32_t id) {
    const hemi_window_layout *layout = &window->layout;
    const uint32_t *list = (const uint32_t *)(const void *)(window->control + layout->list);
    uint32_t users = hemi_load32_acquire(&hemi_window_own_head(window)->users);
    uint64_t sum = 0;
    for (uint32_t i = 0; i < users && i < window->size; i++) {
        /* Pairs with the release in enlist(). */
        uint32_t entry = hemi_load32_acquire(&list[i]);
        if (entry == 0 || entry > window->size)
            continue;
        const unsigned char *row = window->control + layout->rows + (entry - 1) * layout->row_bytes;
        sum += hemi_load64_acquire(&((const hemi_line *)(const void *)row)[id].value);
    }
    /* Kernels do not add their rank to the list. */
    for (uint32_t r = 0; window->device != NULL && r < window->size; r++)
        sum += hemi_device_seen(window, r, id);
    return sum;
}

static hem_status poll_sum(void *arg) {
    sum_wait *w = arg;
    w->seen = sum_up(w->window, w->id);
    return hemd_holds(w->seen, w->compare, w->value) ? HEM_OK : HEMI_AGAIN;
}

static hem_status doomed_sum(void *arg) {
    sum_wait *w = arg;
    hem_world *world = w->window->world;
    uint32_t left = 0;
    for (uint32_t r = 0; r < world->size; r++) {
        if (!hemi_liveness_may_come(&world->root->arena, world->members[r]) &&
            hemi_load32_acquire(&world->cells[r].closed) == 0)
            return hemi_world_fail_peer(world, r, "hem_wait_signal");
        /* Whoever has closed had done its part; the others may still do theirs. */
        left += r == world->rank || hemi_world_may_come(world, r) ? 0 : 1;
    }
    if (left > 0 && left == world->size - 1)
        return hemi_world_fail_peer(world, world->rank == 0 ? 1 : 0, "hem_wait_signal");
    return HEM_OK;
}

/* Deliver what came with the signals of all peers. */
static hem_status take_sum(hem_window *window, uint32_t id, int64_t limit_ns) {
    const uint32_t *list = (const uint32_t *)(const void *)(window->control + window->layout.list);
    uint32_t users = hemi_load32_acquire(&hemi_window_own_head(window)->users);
    hem_status status = HEM_OK;
    for (uint32_t i = 0; i < users && i < window->size && status == HEM_OK; i++) {
        uint32_t entry = hemi_load32_acquire(&list[i]);
        hemi_peer *peer = NULL;
        if (entry == 0 || entry > window->size)
            continue;
        status = hemi_peer_find(window, (int)entry - 1, "hem_wait_signal", &peer);
        if (status == HEM_OK)
            status = hemi_peer_take(window, peer, id, limit_ns);
    }
    return status;
}

static hem_status begin_sum(hem_window *window, uint32_t id, hem_compare compare,
                            const char *call) {
    hem_status status = hemi_window_check(window, call);
    if (status == HEM_OK)
        status = hemi_window_check_want(window, id, compare, call);
    if (status == HEM_OK)
        status = hemi_window_check_revoked(window, call);
    return status;
}

hem_status hem_wait_signal(hem_window *window, uint32_t id, hem_compare compare, uint64_t value,
                           int64_t timeout_ns) {
    hem_status status = begin_sum(window, id, compare, "hem_wait_signal");
    if (status == HEM_OK)
        status = hemi_check_timeout(timeout_ns, "hem_wait_signal");
    if (status != HEM_OK)
        return status;
    sum_wait w = {window, id, compare, value, 0};
    hemi_wait_for wait = {
        .poll = poll_sum,
        .doomed = doomed_sum,
        .arg = &w,
        .nap_ns = nap_of(window),
        .note = {.call = HEMI_CALL_WAIT_SIGNAL,
                 .peer = -1,
                 .id = id,
                 .compare = compare,
                 .wanted = value,
                 .window = window->id,
                 .world = window->world->id},
    };
    status = hemi_wait(window->world, &wait, timeout_ns);
    if (status == HEM_ERR_TIMEOUT)
        return hemi_fail(status,
                         "hem_wait_signal: the sum of signal %u is %llu and not what was waited "
                         "for (%llu) after the time limit",
                         id, (unsigned long long)w.seen, (unsigned long long)value);
    return status == HEM_OK ? take_sum(window, id, timeout_ns) : status;
}

hem_status hem_test_signal(hem_window *window, uint32_t id, hem_compare compare, uint64_t value,
                           bool *done_p) {
    hem_status status = begin_sum(window, id, compare, "hem_test_signal");
    if (status == HEM_OK && done_p == NULL)
        status = hemi_fail(HEM_ERR_ARG, "hem_test_signal: done_p is NULL");
    if (status != HEM_OK)
        return status;
    sum_wait w = {window, id, compare, value, 0};
    hem_status now = poll_sum(&w);
    if (now == HEMI_AGAIN) {
        status = doomed_sum(&w);
        if (status != HEM_OK)
            now = poll_sum(&w);
    }
    if (now == HEM_OK)
        status = take_sum(window, id, 0);
    return hemi_tell_done(status, now == HEM_OK, done_p);
}

hem_status hem_read_signal(hem_window *window, uint32_t id, uint64_t *value_p) {
    hem_status status = begin_sum(window, id, HEM_GE, "hem_read_signal");
    if (status == HEM_OK && value_p == NULL)
        status = hemi_fail(HEM_ERR_ARG, "hem_read_signal: value_p is NULL");
    if (status != HEM_OK)
        return status;
    uint64_t value = sum_up(window, id);
    status = take_sum(window, id, READ_LIMIT_NS);
    if (status == HEM_OK)
        *value_p = value;
    return status;
}
