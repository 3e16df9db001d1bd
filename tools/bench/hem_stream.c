/*
 * What it costs the host to start an exchange on a stream and to go on: hem_exchange_start_on while
 * the stream's worker is awake (hem), and while it sleeps, so that it has to be woken (hem-asleep);
 * and hem_exchange_finish_on after the former (hem-finish). The halos are checked each time.
 */
#include "hem_halo.h"
#include "meet.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

/* Of a batch. */
enum {
    MOST_CALLS = 50
};

static const int64_t limit_ns = HEM_SEC(100);

/* Long enough for a worker to give up spinning. */
static const double idle_ns = 3e6;

static hem_world *ranks_of_run;

struct streamed {
    struct hem_halo hem;
    hem_stream *stream;
    _Atomic int held;
    _Atomic int holding;
};

static void help(void *ctx) {
    (void)ctx;
    bench_hem_need(hem_progress(ranks_of_run), "hem_progress");
}

/* Keeps the worker in here, so that nobody need wake it; it leaves its core to the host. */
static void hold(hem_status status, void *arg) {
    struct streamed *streamed = arg;

    (void)status;
    atomic_store(&streamed->holding, 1);
    while (atomic_load_explicit(&streamed->held, memory_order_acquire) != 0)
        nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
}

static void wait_until_held(struct streamed *streamed) {
    atomic_store(&streamed->holding, 0);
    atomic_store(&streamed->held, 1);
    bench_hem_need(hem_stream_call(streamed->stream, hold, streamed), "hem_stream_call");
    while (atomic_load(&streamed->holding) == 0)
        sched_yield();
}

static double timed_start(struct streamed *streamed) {
    double start = bench_now_ns();

    bench_hem_need(hem_exchange_start_on(streamed->hem.exchange, NULL, streamed->stream),
                   "hem_exchange_start_on");
    return bench_now_ns() - start;
}

static double timed_finish(struct streamed *streamed) {
    double start = bench_now_ns();

    bench_hem_need(hem_exchange_finish_on(streamed->hem.exchange, streamed->stream),
                   "hem_exchange_finish_on");
    return bench_now_ns() - start;
}

static void begin(struct streamed *streamed) {
    struct bench_halo *halo = &streamed->hem.halo;

    halo->seq++;
    bench_halo_fill(halo);
}

static void end(struct streamed *streamed) {
    bench_hem_need(hem_stream_sync(streamed->stream, limit_ns), "hem_stream_sync");
    bench_halo_check(&streamed->hem.halo);
    bench_meet(streamed->hem.halo.meet, streamed->hem.halo.world, help);
}

static int by_time(const void *a, const void *b) {
    double x = *(const double *)a;
    double y = *(const double *)b;

    return (x > y) - (x < y);
}

/* As if all calls had taken as long as the middle one: the worker may take the host's core. */
static double middle_of_all(double *times, uint64_t count, uint64_t iters) {
    qsort(times, count, sizeof(*times), by_time);
    return times[count / 2] * (double)iters;
}

/* Returns the time of the starts, or of the finishes. */
static double awake(struct streamed *streamed, uint64_t iters, bool finishes) {
    double times[MOST_CALLS];
    uint64_t count = iters < MOST_CALLS ? iters : MOST_CALLS;

    for (uint64_t i = 0; i < count; i++) {
        begin(streamed);
        wait_until_held(streamed);
        double start_ns = timed_start(streamed);
        double finish_ns = timed_finish(streamed);
        atomic_store(&streamed->held, 0);
        times[i] = finishes ? finish_ns : start_ns;
        end(streamed);
    }
    return middle_of_all(times, count, iters);
}

static double awake_batch(void *ctx, uint64_t iters) {
    return awake(ctx, iters, false);
}

static double finish_batch(void *ctx, uint64_t iters) {
    return awake(ctx, iters, true);
}

static double asleep_batch(void *ctx, uint64_t iters) {
    struct streamed *streamed = ctx;
    double times[MOST_CALLS];
    uint64_t count = iters < MOST_CALLS ? iters : MOST_CALLS;

    for (uint64_t i = 0; i < count; i++) {
        struct timespec idle = {.tv_nsec = (long)idle_ns};

        begin(streamed);
        nanosleep(&idle, NULL);
        times[i] = timed_start(streamed);
        (void)timed_finish(streamed);
        end(streamed);
    }
    return middle_of_all(times, count, iters);
}

void bench_hem_stream(const struct bench_world *world, const struct bench_args *args,
                      hem_world *ranks) {
    static const struct {
        const char *impl;
        bench_batch batch;
    } ways[] = {{"hem", awake_batch}, {"hem-finish", finish_batch}, {"hem-asleep", asleep_batch}};
    struct streamed streamed = {.hem = {.halo = {.world = world, .help = help}, .ranks = ranks}};
    struct bench_world alone = *world;

    /* Host and worker share a core, which is lost all the time; nor does the distance count. */
    alone.yard = NULL;
    ranks_of_run = ranks;
    streamed.hem.halo.meet = bench_meet_open(world);
    bench_hem_need(hem_stream_create(ranks, &streamed.stream), "hem_stream_create");
    for (size_t i = 0; i < args->sizes.count; i++) {
        bench_hem_halo_open(&streamed.hem, args, args->sizes.bytes[i]);
        for (size_t w = 0; w < sizeof(ways) / sizeof(ways[0]); w++) {
            struct bench_result result = bench_measure(&alone, ways[w].batch, &streamed);
            bench_print_more(world, ways[w].impl, args->kind, args->sizes.bytes[i], result,
                             &(struct bench_more){0});
        }
        bench_hem_halo_close(&streamed.hem);
    }
    bench_hem_need(hem_stream_destroy(streamed.stream), "hem_stream_destroy");
}
