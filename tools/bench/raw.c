/*
 * hem-bench-raw: what the hardware does with no library. Two processes on two cores share an
 * anonymous mapping.
 *
 * raw         a message is one cache line: flag and up to 56 bytes; one line per direction
 * raw-2line   a flag line, and the data in lines of its own, also for larger messages
 * raw-bounce  one line that both sides write, which no library can use: the coherence traffic alone
 * raw-memcpy  memcpy into and out of the mapping, for the bandwidths
 *
 * Each is measured with and without `pause` in the spin, and the faster one counts.
 */
#include "bench.h"
#include "pair.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#define LINE_PAYLOAD 56

/* Two lines' distance keeps the neighbour-line prefetcher from tying them together. */
struct line {
    _Alignas(128) _Atomic uint64_t flag;
    unsigned char payload[LINE_PAYLOAD];
};

struct shared {
    struct line message[2];
    struct line flag[2];
    struct line post[2];
    struct line arrival[2];
    struct line bounce;
    _Alignas(128) _Atomic uint64_t agreed_seq;
    uint64_t agreed;
};

struct raw {
    struct bench_world world;
    struct bench_pair pair;
    struct shared *shared;
    unsigned char *data[2]; /* the ranks' windows in the mapping */
    struct line *tx;
    struct line *rx;
    uint64_t agree_seq;
    uint64_t posted;
    uint64_t awaited;
    uint64_t epoch;
};

BENCH_EXPAND void spin_until(_Atomic uint64_t *word, uint64_t value, bool pause) {
    while (atomic_load_explicit(word, memory_order_acquire) != value) {
        if (pause)
            bench_pause();
    }
}

static uint64_t agree(void *ctx, uint64_t value) {
    struct raw *raw = ctx;
    uint64_t seq = ++raw->agree_seq;

    if (raw->pair.rank == 0) {
        /* Rank 1 answers, so that the value is not overwritten before it was read. */
        raw->shared->agreed = value;
        atomic_store_explicit(&raw->shared->agreed_seq, 2 * seq, memory_order_release);
        spin_until(&raw->shared->agreed_seq, 2 * seq + 1, true);
        return value;
    }
    spin_until(&raw->shared->agreed_seq, 2 * seq, true);
    value = raw->shared->agreed;
    atomic_store_explicit(&raw->shared->agreed_seq, 2 * seq + 1, memory_order_release);
    return value;
}

/* One line. */

BENCH_EXPAND void line_send(void *ctx, uint64_t seq) {
    struct raw *raw = ctx;
    struct line *line = raw->tx;

    if (raw->pair.bytes == sizeof(uint64_t))
        memcpy(line->payload, raw->pair.local, sizeof(uint64_t));
    else
        memcpy(line->payload, raw->pair.local, raw->pair.bytes);
    atomic_store_explicit(&line->flag, seq, memory_order_release);
}

BENCH_EXPAND const void *line_recv(void *ctx, uint64_t seq) {
    struct raw *raw = ctx;

    spin_until(&raw->rx->flag, seq, false);
    return raw->rx->payload;
}

BENCH_EXPAND const void *line_recv_pause(void *ctx, uint64_t seq) {
    struct raw *raw = ctx;

    spin_until(&raw->rx->flag, seq, true);
    return raw->rx->payload;
}

static double line_batch(void *ctx, uint64_t iters) {
    struct raw *raw = ctx;

    return bench_pingpong(&raw->pair, iters, line_send, line_recv, raw);
}

static double line_batch_pause(void *ctx, uint64_t iters) {
    struct raw *raw = ctx;

    return bench_pingpong(&raw->pair, iters, line_send, line_recv_pause, raw);
}

/* A flag line and data lines. */

BENCH_EXPAND void data_send(void *ctx, uint64_t seq) {
    struct raw *raw = ctx;

    if (raw->pair.bytes == sizeof(uint64_t))
        memcpy(raw->data[1 - raw->pair.rank], raw->pair.local, sizeof(uint64_t));
    else
        memcpy(raw->data[1 - raw->pair.rank], raw->pair.local, raw->pair.bytes);
    atomic_store_explicit(&raw->tx->flag, seq, memory_order_release);
}

BENCH_EXPAND const void *data_recv(void *ctx, uint64_t seq) {
    struct raw *raw = ctx;

    spin_until(&raw->rx->flag, seq, false);
    return raw->pair.window;
}

BENCH_EXPAND const void *data_recv_pause(void *ctx, uint64_t seq) {
    struct raw *raw = ctx;

    spin_until(&raw->rx->flag, seq, true);
    return raw->pair.window;
}

static double data_batch(void *ctx, uint64_t iters) {
    struct raw *raw = ctx;

    return bench_pingpong(&raw->pair, iters, data_send, data_recv, raw);
}

static double data_batch_pause(void *ctx, uint64_t iters) {
    struct raw *raw = ctx;

    return bench_pingpong(&raw->pair, iters, data_send, data_recv_pause, raw);
}

/* memcpy. */

BENCH_EXPAND void copy_to(void *ctx, size_t offset) {
    struct raw *raw = ctx;

    memcpy(raw->data[1] + offset, raw->pair.local + offset, raw->pair.bytes);
}

BENCH_EXPAND void copy_from(void *ctx, size_t offset) {
    struct raw *raw = ctx;

    memcpy(raw->pair.local + offset, raw->data[1] + offset, raw->pair.bytes);
}

/* A memcpy that went around the caches has fenced itself; a release store publishes the rest. */
BENCH_EXPAND void copy_flush(void *ctx) {
    (void)ctx;
}

BENCH_EXPAND void post(void *ctx) {
    struct raw *raw = ctx;

    atomic_store_explicit(&raw->shared->post[raw->pair.rank].flag, ++raw->posted,
                          memory_order_release);
}

BENCH_EXPAND void await(void *ctx) {
    struct raw *raw = ctx;
    _Atomic uint64_t *flag = &raw->shared->post[1 - raw->pair.rank].flag;

    raw->awaited++;
    while (atomic_load_explicit(flag, memory_order_acquire) < raw->awaited)
        bench_pause();
}

static double put_batch(void *ctx, uint64_t iters) {
    static const struct bench_window_ops ops = {copy_to, copy_flush, post, await};
    struct raw *raw = ctx;

    return bench_put_windows(&raw->pair, iters, &ops, raw);
}

static double get_batch(void *ctx, uint64_t iters) {
    static const struct bench_window_ops ops = {copy_from, copy_flush, post, await};
    struct raw *raw = ctx;

    return bench_get_windows(&raw->pair, iters, &ops, raw);
}

/* Barrier: each rank says that it has come and waits for the other. */

BENCH_EXPAND double meet(struct raw *raw, uint64_t iters, bool pause) {
    _Atomic uint64_t *mine = &raw->shared->arrival[raw->pair.rank].flag;
    _Atomic uint64_t *other = &raw->shared->arrival[1 - raw->pair.rank].flag;
    double start = bench_now_ns();

    for (uint64_t i = 0; i < iters; i++) {
        atomic_store_explicit(mine, ++raw->epoch, memory_order_release);
        while (atomic_load_explicit(other, memory_order_acquire) < raw->epoch) {
            if (pause)
                bench_pause();
        }
    }
    return bench_now_ns() - start;
}

static double barrier_batch(void *ctx, uint64_t iters) {
    return meet(ctx, iters, false);
}

static double barrier_batch_pause(void *ctx, uint64_t iters) {
    return meet(ctx, iters, true);
}

/* The benchmarks. */

static void use_lines(struct raw *raw, struct line *of_rank_0, struct line *of_rank_1) {
    raw->tx = raw->pair.rank == 0 ? of_rank_0 : of_rank_1;
    raw->rx = raw->pair.rank == 0 ? of_rank_1 : of_rank_0;
}

static void run_lines(struct raw *raw, enum bench_kind kind, bool one_line, const char *impl) {
    static const bench_batch one[] = {line_batch, line_batch_pause};
    static const bench_batch two[] = {data_batch, data_batch_pause};
    struct bench_result result = bench_fastest(&raw->world, one_line ? one : two, 2, raw);

    bench_print(&raw->world, impl, kind, raw->pair.bytes, result, 2);
}

static void run_pingpong(struct raw *raw, enum bench_kind kind) {
    struct shared *shared = raw->shared;

    if (raw->pair.bytes <= LINE_PAYLOAD) {
        use_lines(raw, &shared->message[0], &shared->message[1]);
        run_lines(raw, kind, true, "raw");
    }
    if (raw->pair.bytes <= LINE_PAYLOAD && kind == BENCH_RAW) {
        use_lines(raw, &shared->bounce, &shared->bounce);
        run_lines(raw, kind, true, "raw-bounce");
    }
    use_lines(raw, &shared->flag[0], &shared->flag[1]);
    run_lines(raw, kind, false, "raw-2line");
}

static void run_size(struct raw *raw, enum bench_kind kind) {
    bool get = kind == BENCH_GET;

    if (kind == BENCH_SIGNAL || (kind == BENCH_RAW && raw->pair.bytes <= 64)) {
        run_pingpong(raw, kind);
        return;
    }
    struct bench_result result = bench_measure(&raw->world, get ? get_batch : put_batch, raw);
    bench_print(&raw->world, "raw-memcpy", kind, raw->pair.bytes, result,
                bench_window(raw->pair.bytes));
}

struct job {
    struct bench_args args;
    struct shared *shared;
    unsigned char *data;
    size_t region; /* bytes of each rank's window */
};

static int rank_main(int rank, void *arg) {
    static const bench_batch barriers[] = {barrier_batch, barrier_batch_pause};
    const struct job *job = arg;
    struct raw raw = {
        .world = {.impl = "raw", .rank = rank, .ranks = 2, .agree = agree},
        .pair = {.rank = rank},
        .shared = job->shared,
        .data = {job->data, job->data + job->region},
    };

    raw.world.ctx = &raw;
    raw.pair.local = bench_alloc(job->region);
    raw.pair.window = raw.data[rank];
    bench_yard_open(&raw.world);
    if (job->args.kind == BENCH_BARRIER) {
        struct bench_result result = bench_fastest(&raw.world, barriers, 2, &raw);
        bench_print(&raw.world, NULL, BENCH_BARRIER, 0, result, 1);
        return 0;
    }
    for (size_t i = 0; i < job->args.sizes.count; i++) {
        raw.pair.bytes = job->args.sizes.bytes[i];
        run_size(&raw, job->args.kind);
    }
    return 0;
}

int main(int argc, char **argv) {
    struct job job;

    bench_args_parse(argc, argv, &job.args);
    if (job.args.ranks != 2 || bench_cpus() < 2)
        bench_die("the hardware is measured with 2 ranks on 2 cores");
    job.region = bench_region(&job.args.sizes);
    size_t header = (sizeof(struct shared) + 4095) / 4096 * 4096;
    unsigned char *memory = mmap(NULL, header + 2 * job.region, PROT_READ | PROT_WRITE,
                                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        bench_die("no shared memory of %zu bytes", header + 2 * job.region);
    job.shared = (struct shared *)(void *)memory;
    job.data = memory + header;
    return bench_fork(2, rank_main, &job);
}
