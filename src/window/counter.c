/* Local completion. Shared memory completes a put before it returns, so that counters only count. */
#include "window/window.h"

static hem_status check_counter(hem_window *window, uint32_t counter, const char *call) {
    hem_status status = hemi_window_check(window, call);
    if (status == HEM_OK && counter >= window->counters)
        status = hemi_window_fail_id(window, counter, window->counters, "counter", call);
    return status == HEM_OK ? hemi_window_check_revoked(window, call) : status;
}

static void complete(hem_window *window, uint32_t counter) {
    /* Pairs with the acquire in poll_counter. */
    hemi_add64_acq_rel(&hemi_window_counters(window)[counter], 1);
    hemi_wake(window->root, window->root->me);
}

hem_status hem_put_start(hem_window *window, int peer, size_t offset, const void *src, size_t n,
                         uint32_t counter) {
    hem_status status = check_counter(window, counter, "hem_put_start");
    if (status == HEM_OK)
        status = hem_put(window, peer, offset, src, n);
    if (status == HEM_OK)
        complete(window, counter);
    return status;
}

hem_status hem_get_start(hem_window *window, int peer, size_t offset, void *dst, size_t n,
                         uint32_t counter) {
    hem_status status = check_counter(window, counter, "hem_get_start");
    if (status == HEM_OK)
        status = hem_get(window, peer, offset, dst, n);
    if (status == HEM_OK)
        complete(window, counter);
    return status;
}

hem_status hem_put_signal_start(hem_window *window, int peer, size_t offset, const void *src,
                                size_t n, uint32_t id, uint64_t value, uint32_t counter) {
    hem_status status = check_counter(window, counter, "hem_put_signal_start");
    if (status == HEM_OK)
        status = hem_put_signal(window, peer, offset, src, n, id, value);
    if (status == HEM_OK)
        complete(window, counter);
    return status;
}

hem_status hem_read_counter(hem_window *window, uint32_t counter, uint64_t *value_p) {
    hem_status status = check_counter(window, counter, "hem_read_counter");
    if (status == HEM_OK && value_p == NULL)
        status = hemi_fail(HEM_ERR_ARG, "hem_read_counter: value_p is NULL");
    if (status == HEM_OK)
        *value_p = hemi_load64_acquire(&hemi_window_counters(window)[counter]);
    return status;
}

typedef struct counter_wait {
    const uint64_t *word;
    uint64_t value;
} counter_wait;

static hem_status poll_counter(void *arg) {
    const counter_wait *w = arg;
    return hemi_load64_acquire(w->word) >= w->value ? HEM_OK : HEMI_AGAIN;
}

hem_status hem_wait_counter(hem_window *window, uint32_t counter, uint64_t value,
                            int64_t timeout_ns) {
    hem_status status = check_counter(window, counter, "hem_wait_counter");
    if (status == HEM_OK)
        status = hemi_check_timeout(timeout_ns, "hem_wait_counter");
    if (status != HEM_OK)
        return status;
    counter_wait w = {&hemi_window_counters(window)[counter], value};
    hemi_wait_for wait = {
        .poll = poll_counter,
        .arg = &w,
        .note = {.call = HEMI_CALL_WAIT_COUNTER,
                 .peer = (int32_t)window->world->members[window->rank],
                 .id = counter,
                 .compare = HEM_GE,
                 .wanted = value,
                 .word = w.word,
                 .window = window->id,
                 .world = window->world->id},
    };
    status = hemi_wait(window->world, &wait, timeout_ns);
    if (status == HEM_ERR_TIMEOUT)
        return hemi_fail(status, "hem_wait_counter: counter %u is %llu after the time limit",
                         counter, (unsigned long long)hemi_load64_relaxed(w.word));
    return status;
}

hem_status hem_test_counter(hem_window *window, uint32_t counter, uint64_t value, bool *done_p) {
    hem_status status = check_counter(window, counter, "hem_test_counter");
    if (status == HEM_OK && done_p == NULL)
        status = hemi_fail(HEM_ERR_ARG, "hem_test_counter: done_p is NULL");
    if (status == HEM_OK)
        *done_p = hemi_load64_acquire(&hemi_window_counters(window)[counter]) >= value;
    return status;
}
