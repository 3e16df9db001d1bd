#include "waits.h"

static const char *const names[WAIT_KINDS] = {
    [WAIT_FROM] = "from",       [WAIT_SUM] = "sum",           [WAIT_ANY] = "any",
    [WAIT_BARRIER] = "barrier", [WAIT_BARRIER_HALF] = "half", [WAIT_BARRIER_PEER] = "pair",
    [WAIT_CREATE] = "create",   [WAIT_SPLIT] = "split",       [WAIT_DESTROY] = "destroy",
    [WAIT_CLOSE] = "close",
};

const char *wait_name(enum wait_kind kind) {
    return names[kind];
}

enum wait_kind wait_of_name(const char *name) {
    int kind = 0;

    while (kind < WAIT_KINDS && strcmp(names[kind], name) != 0)
        kind++;
    return (enum wait_kind)kind;
}

static hem_status create(hem_world *world) {
    hem_window_options options = {.struct_size = sizeof options, .bytes = 100, .timeout_ns = LIMIT};
    hem_window *window = NULL;
    hem_status status = hem_window_create(world, &options, &window);

    CHECK(status == HEM_OK || window == NULL);
    return status;
}

static hem_status split(hem_world *world) {
    hem_world *part = NULL;
    hem_status status = hem_world_split(world, 0, 0, &part);

    CHECK(status == HEM_OK || part == NULL);
    return status;
}

static hem_status any(hem_window *window, int other) {
    hem_signal_want wants[] = {{other, 1, HEM_GE, 1}, {other, 2, HEM_NE, 0}};
    size_t which = 99;
    hem_status status = hem_wait_signal_any(window, wants, 2, &which, LIMIT);

    CHECK(status != HEM_ERR_PEER || which < 2);
    return status;
}

/* On a busy machine the reason to give up may be there before the arrival. */
static hem_status barrier_in_halves(hem_window *window) {
    hem_status status = hem_barrier_arrive(window, 2);

    return status == HEM_OK ? hem_barrier_wait(window, 2, LIMIT) : status;
}

hem_status wait_for(enum wait_kind kind, hem_world *world, hem_window *window, int other) {
    switch (kind) {
    case WAIT_FROM:
        return hem_wait_signal_from(window, other, 1, HEM_GE, 1, LIMIT);
    case WAIT_SUM:
        return hem_wait_signal(window, 1, HEM_GE, 1, LIMIT);
    case WAIT_ANY:
        return any(window, other);
    case WAIT_BARRIER:
        return hem_barrier(window, 1, LIMIT);
    case WAIT_BARRIER_HALF:
        return barrier_in_halves(window);
    case WAIT_BARRIER_PEER:
        return hem_barrier_peer(window, other, 1, LIMIT);
    case WAIT_CREATE:
        return create(world);
    case WAIT_SPLIT:
        return split(world);
    case WAIT_DESTROY:
        return hem_window_destroy(window);
    default:
        harness_forget();
        return hem_world_close(world);
    }
}
