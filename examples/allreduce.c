/*
 * All-reduce written by hand: `hem run -n 4 allreduce`.
 *
 * Every rank has N numbers and wants their sums over all ranks. The library has hem_allreduce for
 * that. Here it is done with a window alone, as the author of a kernel would. The work is shared:
 * of the P ranks, rank d adds up block d, the d-th part of the numbers. So it is reduce_scatter.c
 * with allgather.c behind it, and where the one stages out, the other finds it staged in:
 *
 *   1. Stage in. A rank copies its numbers into the scratch, where peers can read them.
 *   2. Barrier FILLED: every scratch is full. Without it a fast rank adds up old numbers.
 *   3. Reduce. Rank d adds up block d of all scratches, which it reads in place, in rank order.
 *   4. Stage out. It writes the sums over block d of its own scratch.
 *   5. Barrier REDUCED: every block is added up. Without it a fast rank takes a block that has no
 *      sums in it yet, but what its owner had staged in.
 *   6. Read. A rank gets block d from the scratch of rank d, for each d.
 *
 * Why may phase 4 write into a scratch that others read? Before the second barrier block d is read
 * by rank d alone, everywhere. So nobody but the writer reads what is overwritten.
 *
 * Phase 1 of the next round must not write a scratch that a slow peer still reads in phase 6. The
 * other two examples have a barrier more for that. Here are two scratches instead, `even` and
 * `odd`, used in turn. To write one of them in round k + 2 a rank must have passed the barriers of
 * round k + 1, and each peer entered those after it had read all that it needed of round k. With
 * one scratch the slow peer would find numbers of the next round.
 *
 * Rank r has i + 100 * r as number i. The sum over all ranks is P * i + 100 * P * (P - 1) / 2. Each
 * round adds something, so that a number that is too old or too new is found out. All are whole
 * numbers below 2^53, for which double is exact.
 */
#include <hem/hem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    N = 1003, /* need not be a multiple of the number of ranks, nor as large */
    ROUNDS = 1000
};

enum barrier {
    FILLED,
    REDUCED
};

struct job {
    hem_world *world;
    hem_window *window;
    hem_buffer scratch[2];
    int rank;
    int ranks;
};

/* A rank that exits without closing the world is dead to the others: their waits end too. */
static void check(const struct job *job, hem_status status) {
    if (status == HEM_OK)
        return;
    fprintf(stderr, "allreduce: rank %d: %s: %s\n", job->rank, hem_status_name(status),
            hem_last_error());
    exit(1);
}

static void set_up(struct job *job) {
    hem_buffer scratch[2] = {
        {.name = "even", .dtype = HEM_F64, .count = N},
        {.name = "odd", .dtype = HEM_F64, .count = N},
    };
    hem_window_options options = {
        .struct_size = sizeof options, .buffers = scratch, .buffer_count = 2};

    check(job, hem_window_create(job->world, &options, &job->window));
    check(job, hem_window_buffer(job->window, "even", &job->scratch[0]));
    check(job, hem_window_buffer(job->window, "odd", &job->scratch[1]));
}

/* The first number of a block; it ends where the next one begins. */
static size_t block_begin(const struct job *job, int block) {
    return (size_t)N * (size_t)block / (size_t)job->ranks;
}

/* Peers on the same machine are mapped, so their scratch can be read without a copy. */
static const double *peer_scratch(struct job *job, int peer, const hem_buffer *scratch) {
    const double *numbers = hem_window_peer_address(job->window, peer, scratch->offset);

    if (!numbers) {
        fprintf(stderr, "allreduce: rank %d: rank %d is not mapped here\n", job->rank, peer);
        exit(1);
    }
    return numbers;
}

static void reduce_block(struct job *job, const hem_buffer *scratch, double *mine) {
    size_t begin = block_begin(job, job->rank);
    size_t end = block_begin(job, job->rank + 1);
    double sum[N] = {0};

    for (int peer = 0; peer < job->ranks; peer++) {
        const double *theirs = peer_scratch(job, peer, scratch);

        for (size_t i = begin; i < end; i++)
            sum[i] += theirs[i];
    }
    memcpy(mine + begin, sum + begin, (end - begin) * sizeof *sum);
}

static void read_blocks(struct job *job, const hem_buffer *scratch, double *out) {
    for (int step = 0; step < job->ranks; step++) {
        int owner = (job->rank + step) % job->ranks;
        size_t begin = block_begin(job, owner);
        size_t end = block_begin(job, owner + 1);

        check(job, hem_get(job->window, owner, scratch->offset + begin * sizeof *out, out + begin,
                           (end - begin) * sizeof *out));
    }
}

static void all_reduce(struct job *job, const double *numbers, double *out, int round) {
    const hem_buffer *scratch = &job->scratch[round % 2];
    double *mine = (double *)((char *)hem_window_memory(job->window) + scratch->offset);

    memcpy(mine, numbers, N * sizeof *numbers);
    check(job, hem_barrier(job->window, FILLED, HEM_FOREVER));
    reduce_block(job, scratch, mine);
    check(job, hem_barrier(job->window, REDUCED, HEM_FOREVER));
    read_blocks(job, scratch, out);
}

static void compare(const struct job *job, const double *out, int round) {
    double p = job->ranks;

    for (int i = 0; i < N; i++) {
        double want = p * i + 100 * p * (p - 1) / 2 + p * 1e6 * round;

        if (out[i] == want)
            continue;
        fprintf(stderr, "allreduce: rank %d, round %d: number %d is %.0f, not %.0f\n", job->rank,
                round, i, out[i], want);
        exit(1);
    }
}

static void run_rounds(struct job *job) {
    static double numbers[N];
    static double out[N];

    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < N; i++)
            numbers[i] = i + 100.0 * job->rank + 1e6 * round;
        all_reduce(job, numbers, out, round);
        compare(job, out, round);
    }
}

int main(void) {
    struct job job = {.rank = -1}; /* unknown as yet */

    check(&job, hem_world_open(NULL, &job.world));
    job.rank = hem_world_rank(job.world);
    job.ranks = hem_world_size(job.world);
    set_up(&job);
    run_rounds(&job);
    /* This fails if a rank has given up, so what is printed below holds for all of them. */
    check(&job, hem_window_destroy(job.window));
    if (job.rank == 0)
        printf("all-reduce     %d ranks, %d rounds of %d numbers each: all as they should be\n",
               job.ranks, ROUNDS, N);
    check(&job, hem_world_close(job.world));
    return 0;
}
