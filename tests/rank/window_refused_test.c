/*
 * A bad argument of one rank makes window creation fail on all ranks, with one status, in a
 * sentence that names that rank; nothing is written and the world works afterwards. The same holds
 * for ranks that call different things, for sizes that no machine has, and for a rank that does not
 * come.
 *
 * hem-test: ranks=1,2,3,4,5,8 modes=processes,threads timeout=60
 */
#include "harness.h"

/* A newer program's options: a tail that this library does not know. */
struct newer {
    hem_window_options known;
    uint64_t tail[2];
};

struct fault {
    const char *what;
    void (*spoil)(struct newer *options);
    hem_status want;
    bool between_ranks;
};

static void many_signals(struct newer *o) {
    o->known.signals = 4097;
}

static void many_barriers(struct newer *o) {
    o->known.barriers = 257;
}

static void many_counters(struct newer *o) {
    o->known.counters = UINT32_MAX;
}

static void odd_alignment(struct newer *o) {
    o->known.align = 48;
}

static void negative_time(struct newer *o) {
    o->known.timeout_ns = -7;
}

static void no_buffers(struct newer *o) {
    o->known.buffer_count = 2;
}

static void unknown_tail(struct newer *o) {
    o->known.struct_size = sizeof *o;
    o->tail[1] = 1;
}

static void no_struct_size(struct newer *o) {
    o->known.struct_size = 0;
}

static void odd_struct_size(struct newer *o) {
    o->known.struct_size = 3;
}

static void huge(struct newer *o) {
    o->known.bytes = (size_t)1 << 50;
}

static void largest(struct newer *o) {
    o->known.bytes = SIZE_MAX;
}

static void nearly_largest(struct newer *o) {
    o->known.bytes = SIZE_MAX - 4095;
}

static void other_signals(struct newer *o) {
    o->known.signals = 17;
}

static void other_barriers(struct newer *o) {
    o->known.barriers = 5;
}

static void other_counters(struct newer *o) {
    o->known.counters = 5;
}

static void own_memory(struct newer *o) {
    o->known.memory = malloc(o->known.bytes);
}

/* HEM_OK as the wanted status stands for any error. */
static const struct fault faults[] = {
    {"signals", many_signals, HEM_OK, false},
    {"barriers", many_barriers, HEM_OK, false},
    {"counters", many_counters, HEM_OK, false},
    {"align", odd_alignment, HEM_ERR_ARG, false},
    {"timeout", negative_time, HEM_ERR_ARG, false},
    {"no buffers", no_buffers, HEM_ERR_ARG, false},
    {"tail", unknown_tail, HEM_ERR_ARG, false},
    {"struct_size 0", no_struct_size, HEM_ERR_ARG, false},
    {"struct_size 3", odd_struct_size, HEM_ERR_ARG, false},
    {"1 PiB", huge, HEM_ERR_MEMORY, false},
    {"SIZE_MAX", largest, HEM_OK, false},
    {"nearly SIZE_MAX", nearly_largest, HEM_OK, false},
    {"other signals", other_signals, HEM_ERR_MISMATCH, true},
    {"other barriers", other_barriers, HEM_ERR_MISMATCH, true},
    {"other counters", other_counters, HEM_ERR_MISMATCH, true},
    {"own memory", own_memory, HEM_ERR_MISMATCH, true},
};

static struct newer good(void) {
    return (struct newer){.known = {.struct_size = sizeof(hem_window_options), .bytes = 100}};
}

static void still_works(hem_world *world) {
    hem_window *window = harness_window(world, 64);
    uint64_t word = (uint64_t)hem_world_rank(world);

    CHECK_OK(hem_put_signal(window, harness_right(world), 0, &word, 8, 0, 1));
    CHECK_OK(hem_wait_signal_from(window, harness_left(world), 0, HEM_EQ, 1, LIMIT));
    CHECK_EQ(*(uint64_t *)hem_window_memory(window), harness_left(world));
    harness_destroy(window);
}

/* `culprit` < 0: all ranks are at fault. */
static void refused(hem_world *world, const struct fault *fault, int culprit) {
    int rank = hem_world_rank(world);
    struct newer options = good();
    hem_window *window = (hem_window *)&options;
    hem_status status;

    if (rank == culprit || culprit < 0)
        fault->spoil(&options);
    status = hem_window_create(world, &options.known, &window);
    if (status == HEM_OK)
        harness_fail(__FILE__, __LINE__, "%s passed", fault->what);
    if (fault->want != HEM_OK && status != fault->want)
        harness_fail(__FILE__, __LINE__, "%s: %s: %s", fault->what, hem_status_name(status),
                     hem_last_error());
    CHECK(window == (hem_window *)&options);
    CHECK(hem_last_error()[0]);
    /* The rank itself knows that it is meant. */
    if (culprit >= 0 && culprit != rank)
        CHECK_NAMES_RANK(culprit);
    harness_same(world, (uint64_t)(int64_t)status);
    free(options.known.memory);
}

static void all_faults(hem_world *world) {
    int size = hem_world_size(world);

    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        if (faults[i].between_ranks && size == 1)
            continue;
        refused(world, &faults[i], 0);
        refused(world, &faults[i], size - 1);
        if (!faults[i].between_ranks)
            refused(world, &faults[i], -1);
    }
    still_works(world);
}

/* Options of a newer program that uses nothing new. */
static void zero_tail(hem_world *world) {
    struct newer options = good();
    hem_window *window;

    options.known.struct_size = sizeof options;
    CHECK_OK(hem_window_create(world, &options.known, &window));
    CHECK_EQ(hem_window_bytes(window, 0), 100);
    harness_destroy(window);
}

/* One rank has no place for the result. */
static void no_result(hem_world *world) {
    struct newer options = good();
    hem_window *window = NULL;
    bool bad = hem_world_rank(world) == 0;

    CHECK_STATUS(hem_window_create(world, &options.known, bad ? NULL : &window), HEM_ERR_ARG);
    if (!bad)
        CHECK_NAMES_RANK(0);
    CHECK(window == NULL);
    CHECK_STATUS(hem_window_create(NULL, &options.known, &window), HEM_ERR_ARG);
    still_works(world);
}

/* Rank 0 splits while the others create. */
static void different_calls(hem_world *world) {
    struct newer options = good();
    hem_window *window = NULL;
    hem_world *part = NULL;

    if (hem_world_size(world) == 1)
        return;
    if (hem_world_rank(world) == 0)
        CHECK_STATUS(hem_world_split(world, 0, 0, &part), HEM_ERR_MISMATCH);
    else
        CHECK_STATUS(hem_window_create(world, &options.known, &window), HEM_ERR_MISMATCH);
    CHECK(!window && !part);
    still_works(world);
}

/* The last rank does not come to create; the others say so when their time is up. */
static void never_comes(hem_world *world) {
    int last = hem_world_size(world) - 1;
    struct newer options = good();
    hem_window *window = NULL;
    int64_t start = harness_now();

    if (last == 0)
        return;
    if (hem_world_rank(world) == last) {
        harness_sleep_ms(250);
        return;
    }
    options.known.timeout_ns = HEM_MS(80);
    CHECK_STATUS(hem_window_create(world, &options.known, &window), HEM_ERR_TIMEOUT);
    /* The first whose time is up decides for all, and not all began at the same moment. */
    CHECK(harness_now() - start >= HEM_MS(40));
    CHECK(harness_now() - start <= HEM_MS(80) + harness_slack());
    CHECK_NAMES_RANK(last);
    CHECK(window == NULL);
}

int rank_main(hem_world *world) {
    all_faults(world);
    zero_tail(world);
    no_result(world);
    different_calls(world);
    never_comes(world);
    harness_close(world, HEM_OK);
    return 0;
}
