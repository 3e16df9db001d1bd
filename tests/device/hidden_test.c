/*
 * Device memory of the caller's that other processes cannot map, of all ranks and of one. As a window it is
 * reached through the host of its rank: it has no address elsewhere and cannot be read, and what kernels and CPUs
 * put and signal arrives. As a field it is staged by HEM_EXCHANGE_BEST, and refused on all ranks where values are to
 * go straight into halos. Between threads it is memory like any other.
 *
 * hem-test: ranks=2,3 modes=processes,threads timeout=90
 */
/* A name that others have inside of functions is one of halo_ring.h's types. */
#include "window_kit.h"

#include "halo_ring.h"

#define WORDS 5000
#define WIDE  8 /* words of a point: pieces that are long enough to go straight */

/* Whose memory it is. */
typedef enum hidden_who {
    HIDDEN_ALL,
    HIDDEN_FIRST
} hidden_who;

static bool hides(hidden_who who, int rank) {
    return who == HIDDEN_ALL || rank == 0;
}

/* Whether kernels of others have an address for a rank's memory. */
static bool shown(hidden_who who, int rank) {
    return harness_threads() || !hides(who, rank);
}

static uint64_t *alloc(hidden_who who, int rank, size_t bytes) {
    return (uint64_t *)(hides(who, rank) ? device_hidden_alloc(bytes) : device_alloc(bytes));
}

static void give_back(hidden_who who, int rank, uint64_t *memory) {
    if (hides(who, rank))
        device_hidden_free(memory);
    else
        device_free(memory);
}

typedef struct send_args {
    hem_dev_window w;
    uint64_t *errors; /* of each kind */
    int32_t right;
    int32_t left;
    uint32_t shown; /* whether the right one's memory has an address here */
} send_args;

enum {
    ERROR_ADDRESS,
    ERROR_GET,
    ERROR_PUT,
    ERROR_WAIT,
    ERROR_WORDS,
    ERROR_SIGNAL,
    ERRORS
};

/* The first half goes to the second one of the right neighbour, and the left one's comes. */
DEVICE_KERNEL(send, send_args) {
    hem_dev_window w = args->w;
    hem_group block = hem_block();
    uint64_t bad[ERRORS] = {0};
    uint64_t *own = (uint64_t *)hem_dev_address(w, w.rank, 0);
    bad[ERROR_ADDRESS] = (hem_dev_address(w, args->right, 0) != NULL) != (args->shown != 0);
    /* The source of this put and of the get is the same. */
    uint64_t word = 0;
    hem_status status = hem_dev_get(w, hem_thread(), args->right, 0, &word, 8);
    bad[ERROR_GET] = status != (args->shown != 0 ? HEM_OK : HEM_ERR_UNSUPPORTED);
    status = hem_dev_put_signal(w, block, args->right, WORDS * 8, own, WORDS * 8, 1, 1);
    bad[ERROR_PUT] = status != HEM_OK;
    status = hem_dev_wait_signal_from(w, block, args->left, 1, HEM_EQ, 1, LIMIT);
    bad[ERROR_WAIT] = status != HEM_OK;
    for (uint64_t i = block.rank; i < WORDS && status == HEM_OK; i += block.size)
        bad[ERROR_WORDS] += own[WORDS + i] != (uint64_t)args->left * 100000 + i;
    status = hem_dev_signal(w, block, args->left, 15, HEM_SIGNAL_ADD, 1);
    bad[ERROR_SIGNAL] = status != HEM_OK;
    for (int kind = 0; kind < ERRORS; kind++)
        if (bad[kind] != 0)
            hemd_add64_relaxed(&args->errors[kind], bad[kind]);
}

static void check_kernel(hem_window *window, const send_args *args) {
    uint64_t errors[ERRORS];
    device_stream stream = device_stream_create();
    device_launch(send, stream, 1, 2, args);
    CHECK_OK(hem_wait_signal_from(window, args->right, 15, HEM_GE, 1, LIMIT));
    device_stream_sync(stream);
    device_copy(errors, args->errors, sizeof errors);
    for (uint64_t kind = 0; kind < ERRORS; kind++) {
        harness_step("kind of error", kind);
        CHECK_EQ(errors[kind], 0);
    }
    device_stream_destroy(stream);
}

/* The same by CPUs: two words to the right, and none from there. */
static void check_host(hem_window *window, const send_args *args, const uint64_t *own) {
    uint64_t words[2] = {7000 + (uint64_t)args->w.rank, 8000}, got[2];
    harness_step("host", 0);
    CHECK((hem_window_peer_address(window, args->right, 0) != NULL) == (args->shown != 0));
    CHECK_OK(hem_put(window, args->right, 16, words, sizeof words));
    CHECK_OK(hem_signal(window, args->right, 2, HEM_SIGNAL_ADD, 1));
    harness_barrier(window);
    device_copy(got, own + 2, sizeof got);
    CHECK_EQ(got[0], 7000 + args->left);
    CHECK_EQ(got[1], 8000);
    if (args->shown != 0) {
        CHECK_OK(hem_get(window, args->right, 16, got, sizeof got));
        CHECK_EQ(got[0], words[0]);
    } else {
        CHECK_STATUS(hem_get(window, args->right, 16, got, sizeof got), HEM_ERR_UNSUPPORTED);
        CHECK_SENTENCE("host");
    }
    harness_barrier(window);
}

static void check_window(hem_world *world, hidden_who who) {
    static const size_t bytes = 2 * WORDS * 8;
    int rank = hem_world_rank(world);
    uint64_t *own = alloc(who, rank, bytes);
    uint64_t *host = (uint64_t *)calloc(2, WORDS * 8);
    hem_window_options o = window_kit_options(bytes);
    send_args args;
    CHECK(host != NULL);
    for (uint64_t i = 0; i < WORDS; i++)
        host[i] = (uint64_t)rank * 100000 + i;
    device_copy(own, host, bytes);
    o.memory = own;
    hem_window *window = window_kit_create(world, &o);
    CHECK(hem_window_memory(window) == own);
    args.w = window_kit_dev(window);
    args.errors = (uint64_t *)device_alloc(ERRORS * sizeof *args.errors);
    args.left = harness_left(world);
    args.right = harness_right(world);
    args.shown = shown(who, args.right);
    check_kernel(window, &args);
    harness_barrier(window);
    check_host(window, &args, own);
    CHECK_OK(hem_window_destroy(window));
    CHECK_OK(hem_sync(world, LIMIT));
    give_back(who, rank, own);
    device_free(args.errors);
    free(host);
}

static void set_field(const ring *r, uint64_t *memory) {
    uint64_t words[(RING_CELLS + 2) * WIDE];
    for (uint64_t i = 0; i < (RING_CELLS + 2) * WIDE; i++)
        words[i] = (uint64_t)(r->me + 1) * 1000 + i;
    device_copy(memory, words, sizeof words);
}

/* The halos are those of the neighbours, or still what set_field wrote. */
static void check_halos(const ring *r, const uint64_t *memory, bool filled) {
    uint64_t words[(RING_CELLS + 2) * WIDE], last = (RING_CELLS + 1) * WIDE;
    uint64_t own = (uint64_t)(r->me + 1) * 1000;
    uint64_t left = (uint64_t)((r->me + r->size - 1) % r->size + 1) * 1000;
    uint64_t right = (uint64_t)((r->me + 1) % r->size + 1) * 1000;
    device_copy(words, memory, sizeof words);
    for (uint64_t i = 0; i < WIDE; i++) {
        CHECK_EQ(words[i], filled ? left + RING_CELLS * WIDE + i : own + i);
        CHECK_EQ(words[last + i], filled ? right + WIDE + i : own + last + i);
    }
}

/* One run. Halos that values go straight into are written when all starts are done, staged ones not yet. */
static void check_run(const ring *r, hem_exchange *x, uint64_t *memory, bool straight) {
    set_field(r, memory);
    CHECK_OK(hem_exchange_start_on(x, NULL, r->handle));
    device_stream_sync(r->stream);
    CHECK_OK(hem_sync(r->world, LIMIT));
    harness_step("straight after the start", straight);
    check_halos(r, memory, straight);
    CHECK_OK(hem_exchange_finish_on(x, r->handle));
    device_stream_sync(r->stream);
    CHECK_OK(hem_exchange_status(x));
    harness_step("after the finish, straight", straight);
    check_halos(r, memory, true);
}

/* A way that wants all halos to be reached. */
static void check_straight(const ring *r, uint64_t *memory, hem_exchange_way way) {
    hem_exchange *x = NULL;
    harness_step("way", (uint64_t)way);
    if (harness_threads()) {
        CHECK_OK(ring_try(r, memory, WIDE, way, &x));
        CHECK_OK(hem_exchange_run(x, NULL, LIMIT));
    } else {
        CHECK_STATUS(ring_try(r, memory, WIDE, way, &x), HEM_ERR_UNSUPPORTED);
        CHECK_SENTENCE("its memory is none that can be shown");
        CHECK(x == NULL);
    }
    CHECK_OK(hem_exchange_destroy(x));
}

static void check_exchange(hem_world *world, hidden_who who) {
    ring r = ring_make(world);
    uint64_t *memory = alloc(who, r.me, (RING_CELLS + 2) * WIDE * sizeof *memory);
    hem_exchange *x = NULL;
    CHECK_OK(ring_try(&r, memory, WIDE, HEM_EXCHANGE_BEST, &x));
    check_run(&r, x, memory, shown(who, r.me));
    CHECK_OK(hem_exchange_destroy(x));
    check_straight(&r, memory, HEM_EXCHANGE_DIRECT);
    check_straight(&r, memory, HEM_EXCHANGE_ENGINES);
    /* What was refused has left nothing behind. */
    CHECK_OK(ring_try(&r, memory, WIDE, HEM_EXCHANGE_BEST, &x));
    check_run(&r, x, memory, shown(who, r.me));
    CHECK_OK(hem_exchange_destroy(x));
    CHECK_OK(hem_sync(world, LIMIT));
    give_back(who, r.me, memory);
    ring_free(&r);
}

int rank_main(hem_world *world) {
    static const hidden_who all[] = {HIDDEN_ALL, HIDDEN_FIRST};
    CHECK_OK(hem_device_open(world, NULL));
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        harness_step("window", i);
        check_window(world, all[i]);
        harness_step("exchange", i);
        check_exchange(world, all[i]);
    }
    harness_close(world, HEM_OK);
    return 0;
}
