/*
 * hem-bench-openmpi and hem-bench-mpich: the same source, compiled against each.
 *
 * signal   MPI_Send and MPI_Recv; and MPI_Put of the data, flush, MPI_Put of a flag, flush, where
 *          the receiver polls its window memory. The faster one counts.
 * put, get MPI_Put or MPI_Get into memory of MPI_Win_allocate, then MPI_Win_flush
 * barrier  MPI_Barrier
 *
 * Messages and collectives are in mpi_coll.c, halo exchange in mpi_halo.c, lines in mpi_row.c,
 * set-up in mpi_setup.c.
 */
#include "bench.h"
#include "mpi_coll.h"
#include "mpi_halo.h"
#include "mpi_row.h"
#include "mpi_setup.h"
#include "pair.h"

#include <mpi.h>
#include <string.h>

enum {
    FLAG_OFFSET = 0,
    DATA_OFFSET = 4096,
    SPINS_PER_PROGRESS = 1024,
};

struct mpi {
    struct bench_world world;
    struct bench_pair pair;
    int peer;
    MPI_Win win;
    uint64_t *flag;       /* in this rank's window, written by the peer */
    unsigned char *inbox; /* where MPI_Recv puts messages */
};

/* MPI_BYTE counts are int; sizes end at 1 GiB, which fits. */
static int count_of(size_t bytes) {
    return (int)bytes;
}

static uint64_t agree(void *ctx, uint64_t value) {
    (void)ctx;
    MPI_Bcast(&value, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    return value;
}

/* Two-sided. */

BENCH_EXPAND void message_send(void *ctx, uint64_t seq) {
    struct mpi *mpi = ctx;

    (void)seq;
    MPI_Send(mpi->pair.local, count_of(mpi->pair.bytes), MPI_BYTE, mpi->peer, 0, MPI_COMM_WORLD);
}

BENCH_EXPAND const void *message_recv(void *ctx, uint64_t seq) {
    struct mpi *mpi = ctx;

    (void)seq;
    MPI_Recv(mpi->inbox, count_of(mpi->pair.bytes), MPI_BYTE, mpi->peer, 0, MPI_COMM_WORLD,
             MPI_STATUS_IGNORE);
    return mpi->inbox;
}

static double message_batch(void *ctx, uint64_t iters) {
    struct mpi *mpi = ctx;

    return bench_pingpong(&mpi->pair, iters, message_send, message_recv, mpi);
}

/* One-sided: the data, then a flag that the receiver polls. */

BENCH_EXPAND void put_send(void *ctx, uint64_t seq) {
    struct mpi *mpi = ctx;
    int count = count_of(mpi->pair.bytes);

    MPI_Put(mpi->pair.local, count, MPI_BYTE, mpi->peer, DATA_OFFSET, count, MPI_BYTE, mpi->win);
    MPI_Win_flush(mpi->peer, mpi->win);
    MPI_Put(&seq, 1, MPI_UINT64_T, mpi->peer, FLAG_OFFSET, 1, MPI_UINT64_T, mpi->win);
    MPI_Win_flush(mpi->peer, mpi->win);
}

/* A put may need the target's help, so now and then the library is let in. */
BENCH_EXPAND const void *put_recv(void *ctx, uint64_t seq) {
    struct mpi *mpi = ctx;

    for (int spins = 1; __atomic_load_n(mpi->flag, __ATOMIC_ACQUIRE) != seq; spins++) {
        int flag;
        if (spins % SPINS_PER_PROGRESS == 0)
            MPI_Iprobe(mpi->peer, 1, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    }
    MPI_Win_sync(mpi->win);
    return mpi->pair.window;
}

static double put_signal_batch(void *ctx, uint64_t iters) {
    struct mpi *mpi = ctx;

    return bench_pingpong(&mpi->pair, iters, put_send, put_recv, mpi);
}

/* Bandwidth. */

BENCH_EXPAND void move_put(void *ctx, size_t offset) {
    struct mpi *mpi = ctx;
    int count = count_of(mpi->pair.bytes);

    MPI_Put(mpi->pair.local + offset, count, MPI_BYTE, mpi->peer, (MPI_Aint)(DATA_OFFSET + offset),
            count, MPI_BYTE, mpi->win);
}

BENCH_EXPAND void move_get(void *ctx, size_t offset) {
    struct mpi *mpi = ctx;
    int count = count_of(mpi->pair.bytes);

    MPI_Get(mpi->pair.local + offset, count, MPI_BYTE, mpi->peer, (MPI_Aint)(DATA_OFFSET + offset),
            count, MPI_BYTE, mpi->win);
}

BENCH_EXPAND void flush(void *ctx) {
    struct mpi *mpi = ctx;

    MPI_Win_flush(mpi->peer, mpi->win);
}

BENCH_EXPAND void post(void *ctx) {
    struct mpi *mpi = ctx;

    MPI_Win_sync(mpi->win);
    MPI_Send(NULL, 0, MPI_BYTE, mpi->peer, 2, MPI_COMM_WORLD);
}

BENCH_EXPAND void await(void *ctx) {
    struct mpi *mpi = ctx;

    MPI_Recv(NULL, 0, MPI_BYTE, mpi->peer, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Win_sync(mpi->win);
}

static double put_batch(void *ctx, uint64_t iters) {
    static const struct bench_window_ops ops = {move_put, flush, post, await};
    struct mpi *mpi = ctx;

    return bench_put_windows(&mpi->pair, iters, &ops, mpi);
}

static double get_batch(void *ctx, uint64_t iters) {
    static const struct bench_window_ops ops = {move_get, flush, post, await};
    struct mpi *mpi = ctx;

    return bench_get_windows(&mpi->pair, iters, &ops, mpi);
}

static double barrier_batch(void *ctx, uint64_t iters) {
    double start = bench_now_ns();

    (void)ctx;
    for (uint64_t i = 0; i < iters; i++)
        MPI_Barrier(MPI_COMM_WORLD);
    return bench_now_ns() - start;
}

static void open_window(struct mpi *mpi, const struct hemt_sizes *sizes) {
    size_t region = bench_region(sizes);
    unsigned char *memory;

    MPI_Win_allocate((MPI_Aint)(DATA_OFFSET + region), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory,
                     &mpi->win);
    memset(memory, 0, DATA_OFFSET + region);
    mpi->flag = (uint64_t *)(void *)(memory + FLAG_OFFSET);
    mpi->pair.window = memory + DATA_OFFSET;
    mpi->pair.local = bench_alloc(region);
    mpi->inbox = bench_alloc(region);
    MPI_Win_lock_all(MPI_MODE_NOCHECK, mpi->win);
    MPI_Win_sync(mpi->win);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void run_size(struct mpi *mpi, enum bench_kind kind) {
    static const bench_batch signals[] = {message_batch, put_signal_batch};
    size_t bytes = mpi->pair.bytes;

    if (kind == BENCH_SIGNAL) {
        struct bench_result result = bench_fastest(&mpi->world, signals, 2, mpi);
        bench_print(&mpi->world, NULL, kind, bytes, result, 2);
        return;
    }
    bench_batch batch = kind == BENCH_GET ? get_batch : put_batch;
    struct bench_result result = bench_measure(&mpi->world, batch, mpi);
    bench_print(&mpi->world, NULL, kind, bytes, result, bench_window(bytes));
}

static void run(struct mpi *mpi, const struct bench_args *args) {
    bench_yard_open(&mpi->world);
    if (args->kind == BENCH_BARRIER) {
        struct bench_result result = bench_measure(&mpi->world, barrier_batch, mpi);
        bench_print(&mpi->world, NULL, args->kind, 0, result, 1);
        return;
    }
    if (hemt_kind(args->kind)->together) {
        bench_mpi_coll(&mpi->world, args);
        return;
    }
    if (args->kind == BENCH_GRID || args->kind == BENCH_MESH) {
        bench_mpi_halo(&mpi->world, args);
        return;
    }
    if (args->kind == BENCH_LINE || args->kind == BENCH_ROLLING) {
        bench_mpi_row(&mpi->world, args);
        return;
    }
    if (args->kind == BENCH_PATTERN_SETUP) {
        bench_mpi_setup(&mpi->world, args);
        return;
    }
    if (mpi->world.ranks != 2 || args->kind == BENCH_RAW)
        bench_die("this benchmark does not run over MPI with %d ranks", mpi->world.ranks);
    open_window(mpi, &args->sizes);
    for (size_t i = 0; i < args->sizes.count; i++) {
        mpi->pair.bytes = args->sizes.bytes[i];
        run_size(mpi, args->kind);
    }
    MPI_Win_unlock_all(mpi->win);
    MPI_Win_free(&mpi->win);
}

int main(int argc, char **argv) {
    struct mpi mpi = {.world = {.impl = BENCH_IMPL, .agree = agree}};
    struct bench_args args;

    bench_args_parse(argc, argv, &args);
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &mpi.world.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &mpi.world.ranks);
    mpi.world.ctx = &mpi;
    mpi.pair.rank = mpi.world.rank;
    mpi.peer = 1 - mpi.world.rank;
    run(&mpi, &args);
    MPI_Finalize();
    return 0;
}
