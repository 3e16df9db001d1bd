/*
 * hem-bench-hem: Hem itself, through its public headers, started by `hem run`.
 *
 * signal   hem_put_signal and hem_wait_signal_from
 * put, get hem_put or hem_get, then hem_flush
 * barrier  hem_barrier
 *
 * Messages and collectives are in hem_coll.c, halo exchange in hem_halo.c, lines in hem_row.c,
 * set-up in hem_setup.c, and streams in hem_stream.c.
 */
#include "bench.h"
#include "hem_coll.h"
#include "hem_halo.h"
#include "hem_row.h"
#include "hem_setup.h"
#include "pair.h"

#include <hem/hem.h>

enum {
    MESSAGE_SIGNAL,
    POST_SIGNAL,
    AGREE_SIGNAL,
    SIGNALS
};
enum {
    MEASURED_BARRIER,
    AGREE_BARRIER,
    BARRIERS
};
enum {
    AGREE_OFFSET = 0,
    DATA_OFFSET = 4096
};

/* Just below the limit of the driver, so that a hang ends with a sentence. */
static const int64_t limit_ns = HEM_SEC(100);

struct hem {
    struct bench_world world;
    struct bench_pair pair;
    int peer;
    hem_world *ranks;
    hem_window *window;
    uint64_t agreed;
    uint64_t awaited;
};

BENCH_EXPAND void need(hem_status status, const char *what) {
    if (status != HEM_OK)
        bench_die("%s: %s: %s", what, hem_status_name(status), hem_last_error());
}

/* The barrier keeps rank 0 from overwriting a value that somebody has not read yet. */
static uint64_t agree(void *ctx, uint64_t value) {
    struct hem *hem = ctx;
    uint64_t *mine = hem_window_memory(hem->window);

    hem->agreed++;
    if (hem->pair.rank == 0) {
        for (int peer = 1; peer < hem->world.ranks; peer++)
            need(hem_put_value(hem->window, peer, AGREE_OFFSET, value), "hem_put_value");
        need(hem_signal_all(hem->window, AGREE_SIGNAL, HEM_SIGNAL_ADD, 1), "hem_signal_all");
    } else {
        need(hem_wait_signal_from(hem->window, 0, AGREE_SIGNAL, HEM_GE, hem->agreed, limit_ns),
             "hem_wait_signal_from");
        value = *mine;
    }
    need(hem_barrier(hem->window, AGREE_BARRIER, limit_ns), "hem_barrier");
    return value;
}

/* Signal. */

BENCH_EXPAND void send_message(void *ctx, uint64_t seq) {
    struct hem *hem = ctx;

    (void)seq;
    need(hem_put_signal(hem->window, hem->peer, DATA_OFFSET, hem->pair.local, hem->pair.bytes,
                        MESSAGE_SIGNAL, 1),
         "hem_put_signal");
}

/* Both ranks' messages are numbered in one row, so half of them come from the peer. */
BENCH_EXPAND const void *recv_message(void *ctx, uint64_t seq) {
    struct hem *hem = ctx;

    need(hem_wait_signal_from(hem->window, hem->peer, MESSAGE_SIGNAL, HEM_GE, (seq + 1) / 2,
                              limit_ns),
         "hem_wait_signal_from");
    return hem->pair.window;
}

static double signal_batch(void *ctx, uint64_t iters) {
    struct hem *hem = ctx;

    return bench_pingpong(&hem->pair, iters, send_message, recv_message, hem);
}

/* Bandwidth. */

BENCH_EXPAND void move_put(void *ctx, size_t offset) {
    struct hem *hem = ctx;

    need(hem_put(hem->window, hem->peer, DATA_OFFSET + offset, hem->pair.local + offset,
                 hem->pair.bytes),
         "hem_put");
}

BENCH_EXPAND void move_get(void *ctx, size_t offset) {
    struct hem *hem = ctx;

    need(hem_get(hem->window, hem->peer, DATA_OFFSET + offset, hem->pair.local + offset,
                 hem->pair.bytes),
         "hem_get");
}

BENCH_EXPAND void flush(void *ctx) {
    struct hem *hem = ctx;

    need(hem_flush(hem->window, hem->peer), "hem_flush");
}

BENCH_EXPAND void post(void *ctx) {
    struct hem *hem = ctx;

    need(hem_signal(hem->window, hem->peer, POST_SIGNAL, HEM_SIGNAL_ADD, 1), "hem_signal");
}

BENCH_EXPAND void await(void *ctx) {
    struct hem *hem = ctx;

    need(
        hem_wait_signal_from(hem->window, hem->peer, POST_SIGNAL, HEM_GE, ++hem->awaited, limit_ns),
        "hem_wait_signal_from");
}

static double put_batch(void *ctx, uint64_t iters) {
    static const struct bench_window_ops ops = {move_put, flush, post, await};
    struct hem *hem = ctx;

    return bench_put_windows(&hem->pair, iters, &ops, hem);
}

static double get_batch(void *ctx, uint64_t iters) {
    static const struct bench_window_ops ops = {move_get, flush, post, await};
    struct hem *hem = ctx;

    return bench_get_windows(&hem->pair, iters, &ops, hem);
}

static double barrier_batch(void *ctx, uint64_t iters) {
    struct hem *hem = ctx;
    double start = bench_now_ns();

    for (uint64_t i = 0; i < iters; i++)
        need(hem_barrier(hem->window, MEASURED_BARRIER, limit_ns), "hem_barrier");
    return bench_now_ns() - start;
}

/* The benchmarks. */

static void run_size(struct hem *hem, enum bench_kind kind) {
    size_t bytes = hem->pair.bytes;
    bench_batch batch = kind == BENCH_SIGNAL ? signal_batch
                        : kind == BENCH_GET  ? get_batch
                                             : put_batch;
    struct bench_result result = bench_measure(&hem->world, batch, hem);

    bench_print(&hem->world, NULL, kind, bytes, result,
                kind == BENCH_SIGNAL ? 2 : bench_window(bytes));
}

/* Those with files of their own. Returns whether it was one of them. */
static bool run_elsewhere(struct hem *hem, const struct bench_args *args) {
    static void (*const places[BENCH_KINDS])(const struct bench_world *, const struct bench_args *,
                                             hem_world *) = {
        [BENCH_GRID] = bench_hem_halo,
        [BENCH_MESH] = bench_hem_halo,
        [BENCH_LINE] = bench_hem_row,
        [BENCH_ROLLING] = bench_hem_row,
        [BENCH_PATTERN_SETUP] = bench_hem_setup,
        [BENCH_STREAM] = bench_hem_stream,
    };

    if (hemt_kind(args->kind)->together)
        bench_hem_coll(&hem->world, args, hem->ranks);
    else if (places[args->kind] != NULL)
        places[args->kind](&hem->world, args, hem->ranks);
    else
        return false;
    return true;
}

static void run(struct hem *hem, const struct bench_args *args) {
    bench_yard_open(&hem->world);
    if (args->kind == BENCH_BARRIER) {
        struct bench_result result = bench_measure(&hem->world, barrier_batch, hem);
        bench_print(&hem->world, NULL, args->kind, 0, result, 1);
        return;
    }
    if (run_elsewhere(hem, args))
        return;
    if (hem->world.ranks != 2 || args->kind == BENCH_RAW)
        bench_die("this benchmark does not run over Hem with %d ranks", hem->world.ranks);
    for (size_t i = 0; i < args->sizes.count; i++) {
        hem->pair.bytes = args->sizes.bytes[i];
        run_size(hem, args->kind);
    }
}

static void open_all(struct hem *hem, const struct bench_args *args) {
    static const struct hemt_sizes none;
    bool windows = hemt_kind(args->kind)->pair;
    size_t region = bench_region(windows ? &args->sizes : &none);
    hem_window_options options = {
        .struct_size = sizeof(options),
        .bytes = DATA_OFFSET + region,
        .signals = SIGNALS,
        .barriers = BARRIERS,
    };

    need(hem_window_create(hem->ranks, &options, &hem->window), "hem_window_create");
    hem->world.ctx = hem;
    hem->world.rank = hem_world_rank(hem->ranks);
    hem->world.ranks = hem_world_size(hem->ranks);
    hem->peer = 1 - hem->world.rank;
    hem->pair.rank = hem->world.rank;
    hem->pair.local = bench_alloc(region);
    hem->pair.window = (unsigned char *)hem_window_memory(hem->window) + DATA_OFFSET;
}

static int be_rank(hem_world *ranks, void *arg) {
    const struct bench_args *args = arg;
    struct hem hem = {.world = {.agree = agree}, .ranks = ranks};

    hem.world.impl = args->name != NULL  ? args->name
                     : args->threads > 0 ? "hem-threads"
                     : args->library     ? "hem-lib"
                                         : "hem";
    open_all(&hem, args);
    run(&hem, args);
    need(hem_window_destroy(hem.window), "hem_window_destroy");
    need(hem_world_close(hem.ranks), "hem_world_close");
    return 0;
}

int main(int argc, char **argv) {
    struct bench_args args;
    hem_world *ranks;

    bench_args_parse(argc, argv, &args);
    if (args.threads > 0) {
        need(hem_world_threads(args.threads, be_rank, &args, NULL), "hem_world_threads");
        return 0;
    }
    need(hem_world_open(NULL, &ranks), "hem_world_open");
    return be_rank(ranks, &args);
}
