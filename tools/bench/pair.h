#ifndef BENCH_PAIR_H
#define BENCH_PAIR_H

/*
 * The loops of the benchmarks between two ranks, once for all libraries. They are expanded where
 * they are used, so that a library's calls stand in the loop directly: at 50 ns for a message an
 * indirect call would be seen.
 */

#include "bench.h"
#include "payload.h"

#define BENCH_EXPAND static inline __attribute__((always_inline))

struct bench_pair {
    int rank;
    size_t bytes;
    unsigned char *local;  /* private memory: what is sent from and fetched to */
    unsigned char *window; /* this rank's memory that the other rank reaches */
    uint64_t seq;
};

/* Sends message `seq`, which lies at `local`, and may be reused on return. */
typedef void (*bench_send)(void *ctx, uint64_t seq);

/* Waits for message `seq` and says where it is; NULL if it was checked on the way. */
typedef const void *(*bench_recv)(void *ctx, uint64_t seq);

BENCH_EXPAND void bench_receive(const struct bench_pair *pair, bench_recv recv, void *ctx,
                                uint64_t seq) {
    const void *place = recv(ctx, seq);

    if (place != NULL && !bench_check(place, pair->bytes, seq))
        bench_die("rank %d: message %llu of %zu bytes is not what was sent", pair->rank,
                  (unsigned long long)seq, pair->bytes);
}

BENCH_EXPAND void bench_transmit(const struct bench_pair *pair, bench_send send, void *ctx,
                                 uint64_t seq) {
    bench_fill(pair->local, pair->bytes, seq);
    send(ctx, seq);
}

/* An iteration is a round trip. Messages of rank 0 have odd numbers, those of rank 1 even ones. */
BENCH_EXPAND double bench_pingpong(struct bench_pair *pair, uint64_t iters, bench_send send,
                                   bench_recv recv, void *ctx) {
    uint64_t seq = pair->seq;
    double start = bench_now_ns();

    if (pair->rank == 0) {
        for (uint64_t i = 0; i < iters; i++, seq += 2) {
            bench_transmit(pair, send, ctx, seq + 1);
            bench_receive(pair, recv, ctx, seq + 2);
        }
    } else {
        for (uint64_t i = 0; i < iters; i++, seq += 2) {
            bench_receive(pair, recv, ctx, seq + 1);
            bench_transmit(pair, send, ctx, seq + 2);
        }
    }
    pair->seq = seq;
    return bench_now_ns() - start;
}

/* How a library moves a window of messages and tells the other rank of it. */
struct bench_window_ops {
    void (*move)(void *ctx, size_t offset); /* put from, or get to, `local` at the same offset */
    void (*flush)(void *ctx);               /* until everything moved is there */
    void (*post)(void *ctx);                /* tell the other rank */
    void (*await)(void *ctx);               /* wait to be told */
};

BENCH_EXPAND void bench_fill_all(const struct bench_pair *pair, unsigned char *to, uint64_t seq) {
    for (size_t i = 0; i < bench_window(pair->bytes); i++)
        bench_fill(to + i * pair->bytes, pair->bytes, seq + i);
}

BENCH_EXPAND void bench_check_all(const struct bench_pair *pair, const unsigned char *from,
                                  uint64_t seq) {
    for (size_t i = 0; i < bench_window(pair->bytes); i++) {
        if (!bench_check(from + i * pair->bytes, pair->bytes, seq + i))
            bench_die("rank %d: block %zu of window %llu of %zu bytes is not what was sent",
                      pair->rank, i, (unsigned long long)seq, pair->bytes);
    }
}

BENCH_EXPAND void bench_move_all(const struct bench_pair *pair, const struct bench_window_ops *ops,
                                 void *ctx) {
    for (size_t i = 0; i < bench_window(pair->bytes); i++)
        ops->move(ctx, i * pair->bytes);
    ops->flush(ctx);
}

/*
 * An iteration is a window of puts by rank 0. The time runs from the first put until rank 1 has
 * answered that it saw the window arrive; filling and checking lie outside.
 */
BENCH_EXPAND double bench_put_windows(struct bench_pair *pair, uint64_t iters,
                                      const struct bench_window_ops *ops, void *ctx) {
    double ns = 0;

    for (uint64_t i = 0; i < iters; i++, pair->seq += 64) {
        if (pair->rank == 0) {
            bench_fill_all(pair, pair->local, pair->seq);
            double start = bench_now_ns();
            bench_move_all(pair, ops, ctx);
            ops->post(ctx);
            ops->await(ctx);
            ns += bench_now_ns() - start;
            ops->await(ctx);
        } else {
            ops->await(ctx);
            ops->post(ctx);
            bench_check_all(pair, pair->window, pair->seq);
            ops->post(ctx);
        }
    }
    return ns;
}

/*
 * An iteration is a window of gets by rank 0 of what rank 1 has just written. The time runs until
 * the last one is there; filling and checking lie outside.
 */
BENCH_EXPAND double bench_get_windows(struct bench_pair *pair, uint64_t iters,
                                      const struct bench_window_ops *ops, void *ctx) {
    double ns = 0;

    for (uint64_t i = 0; i < iters; i++, pair->seq += 64) {
        if (pair->rank == 0) {
            ops->await(ctx);
            double start = bench_now_ns();
            bench_move_all(pair, ops, ctx);
            ns += bench_now_ns() - start;
            bench_check_all(pair, pair->local, pair->seq);
            ops->post(ctx);
        } else {
            bench_fill_all(pair, pair->window, pair->seq);
            ops->post(ctx);
            ops->await(ctx);
        }
    }
    return ns;
}

#endif
