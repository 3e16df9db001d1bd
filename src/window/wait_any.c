/* Waiting for whichever of several signals comes first. */
#include "window/device.h"

typedef struct any_wait {
    hem_window *window;
    const hem_signal_want *wants;
    size_t count;
    size_t which;
} any_wait;

static const uint64_t *word_of(const any_wait *w, size_t i) {
    const hem_signal_want *want = &w->wants[i];
    return &w->window->peers[want->peer]->in[want->id].value;
}

static hem_status poll_any(void *arg) {
    any_wait *w = arg;
    for (size_t i = 0; i < w->count; i++) {
        const hem_signal_want *want = &w->wants[i];
        uint64_t seen = hemi_window_seen(w->window, w->window->peers[want->peer], want->id);
        if (hemd_holds(seen, want->compare, want->value)) {
            w->which = i;
            return HEM_OK;
        }
    }
    return HEMI_AGAIN;
}

static hem_status doomed_any(void *arg) {
    any_wait *w = arg;
    for (size_t i = 0; i < w->count; i++) {
        uint32_t peer = (uint32_t)w->wants[i].peer;
        if (hemi_world_may_come(w->window->world, peer))
            continue;
        w->which = i;
        return hemi_world_fail_peer(w->window->world, peer, "hem_wait_signal_any");
    }
    return HEM_OK;
}

static void where_any(void *arg, hemi_flight_note *note) {
    const any_wait *w = arg;
    if (w->count == 0)
        return;
    /* The first of them stands for all. */
    note->peer = (int32_t)w->window->world->members[w->wants[0].peer];
    note->word = word_of(w, 0);
}

/* Open every peer that is waited for, so that polling finds it without a look-up. */
static hem_status begin(hem_window *window, const hem_signal_want *wants, size_t count,
                        const void *out, const char *call) {
    hem_status status = hemi_window_check(window, call);
    if (status == HEM_OK && (wants == NULL || count == 0 || out == NULL))
        status =
            hemi_fail(HEM_ERR_ARG, "%s: there is nothing to wait for, or no place to say it", call);
    for (size_t i = 0; status == HEM_OK && i < count; i++) {
        hemi_peer *peer = NULL;
        status = hemi_peer_find(window, wants[i].peer, call, &peer);
        if (status == HEM_OK)
            status = hemi_window_check_want(window, wants[i].id, wants[i].compare, call);
    }
    return status == HEM_OK ? hemi_window_check_revoked(window, call) : status;
}

static hem_status take(any_wait *w, int64_t limit_ns) {
    const hem_signal_want *want = &w->wants[w->which];
    return hemi_peer_take(w->window, w->window->peers[want->peer], want->id, limit_ns);
}

hem_status hem_wait_signal_any(hem_window *window, const hem_signal_want *wants, size_t count,
                               size_t *which_p, int64_t timeout_ns) {
    hem_status status = begin(window, wants, count, which_p, "hem_wait_signal_any");
    if (status == HEM_OK)
        status = hemi_check_timeout(timeout_ns, "hem_wait_signal_any");
    if (status != HEM_OK)
        return status;
    any_wait w = {window, wants, count, 0};
    hemi_wait_for wait = {
        .poll = poll_any,
        .doomed = doomed_any,
        .where = where_any,
        .arg = &w,
        .nap_ns = window->device == NULL ? 0 : HEMI_DEVICE_NAP_NS,
        .note = {.call = HEMI_CALL_WAIT_SIGNAL_ANY,
                 .id = wants[0].id,
                 .compare = wants[0].compare,
                 .wanted = wants[0].value,
                 .window = window->id,
                 .world = window->world->id},
    };
    status = hemi_wait(window->world, &wait, timeout_ns);
    if (status == HEM_ERR_TIMEOUT)
        return hemi_fail(status, "hem_wait_signal_any: none of %zu came in time", count);
    if (status == HEM_OK)
        status = take(&w, timeout_ns);
    if (status == HEM_OK || status == HEM_ERR_PEER)
        *which_p = w.which;
    return status;
}

hem_status hem_test_signal_any(hem_window *window, const hem_signal_want *wants, size_t count,
                               size_t *which_p, bool *done_p) {
    const void *out = which_p == NULL ? NULL : done_p;
    hem_status status = begin(window, wants, count, out, "hem_test_signal_any");
    if (status != HEM_OK)
        return status;
    any_wait w = {window, wants, count, 0};
    hem_status now = poll_any(&w);
    if (now == HEMI_AGAIN) {
        status = doomed_any(&w);
        if (status != HEM_OK)
            now = poll_any(&w); /* what came before the death counts */
    }
    if (now == HEM_OK)
        status = take(&w, 0);
    if ((status == HEM_OK && now == HEM_OK) || status == HEM_ERR_PEER)
        *which_p = w.which;
    return hemi_tell_done(status, now == HEM_OK, done_p);
}
