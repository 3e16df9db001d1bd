/*
 * Reduce-scatter written by hand: `hem run -n 4 reduce_scatter`.
 *
 * Every rank has P blocks of C numbers, one block for each of the P ranks. Rank d wants the sum
 * over all ranks of their block d. The library has hem_reduce_scatter for that. Here it is done
 * with a window alone, as the author of a kernel would, in four phases:
 *
 *   1. Stage in. A rank copies its P blocks into `scratch`, a named buffer of the window, where
 *      peers can read them.
 *   2. Barrier FILLED. It says that every rank's scratch is full, and makes what is in it visible.
 *      Without it a fast rank adds up numbers of the round before.
 *   3. Reduce. Rank d gets block d of one peer after the other, tile by tile, and adds it up in a
 *      tile of its own. It goes in rank order: sums of floating-point numbers depend on the order,
 *      and so they are the same in every run.
 *   4. Stage out. The finished tile is copied to the result.
 *
 * Phase 1 of the next round writes the same scratch again. Before that all peers must have read
 * what they need of this one, or a slow peer adds up numbers of the next round. That takes a
 * second barrier, READ, but nobody needs to stand still in it. A rank *arrives* as soon as it has
 * read, goes on with its own work (here: looking at the result and making the next numbers), and
 * *waits* right before it writes the scratch again. The longer that work takes, the less it waits.
 *
 * The first wait needs an arrival before it, as any other. Hence each rank arrives once at the
 * start: it has nothing to read yet.
 *
 * Rank r has d * C + j + 100 * r as number j of its block d. The sum over all ranks is
 * P * (d * C + j) + 100 * P * (P - 1) / 2. Each round adds something, so that a number that is too
 * old or too new is found out. All are whole numbers below 2^53, for which double is exact.
 */
#include <hem/hem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    C = 1000,
    TILE = 256, /* numbers; four tiles make a block, the last one is shorter */
    ROUNDS = 1000
};

enum barrier {
    FILLED,
    READ
};

struct job {
    hem_world *world;
    hem_window *window;
    hem_buffer scratch;
    int rank;
    int ranks;
};

/* A rank that exits without closing the world is dead to the others: their waits end too. */
static void check(const struct job *job, hem_status status) {
    if (status == HEM_OK)
        return;
    fprintf(stderr, "reduce_scatter: rank %d: %s: %s\n", job->rank, hem_status_name(status),
            hem_last_error());
    exit(1);
}

static void set_up(struct job *job) {
    hem_buffer scratch = {.name = "scratch", .dtype = HEM_F64, .count = (size_t)job->ranks * C};
    hem_window_options options = {
        .struct_size = sizeof options, .buffers = &scratch, .buffer_count = 1};

    check(job, hem_window_create(job->world, &options, &job->window));
    check(job, hem_window_buffer(job->window, "scratch", &job->scratch));
    check(job, hem_barrier_arrive(job->window, READ));
}

/* `at` counts numbers in the scratch. The buffer has the same offset on all ranks. */
static void add_tile(struct job *job, int peer, size_t at, size_t count, double *sum) {
    double tile[TILE];

    check(job, hem_get(job->window, peer, job->scratch.offset + at * sizeof *tile, tile,
                       count * sizeof *tile));
    for (size_t i = 0; i < count; i++)
        sum[i] += tile[i];
}

static void reduce_scatter(struct job *job, const double *mine, double *out) {
    char *scratch = (char *)hem_window_memory(job->window) + job->scratch.offset;

    check(job, hem_barrier_wait(job->window, READ, HEM_FOREVER)); /* of the round before */
    memcpy(scratch, mine, (size_t)job->ranks * C * sizeof *mine);
    check(job, hem_barrier(job->window, FILLED, HEM_FOREVER));
    for (size_t begin = 0; begin < C; begin += TILE) {
        size_t count = C - begin < TILE ? C - begin : TILE;
        double sum[TILE] = {0};

        for (int peer = 0; peer < job->ranks; peer++)
            add_tile(job, peer, (size_t)job->rank * C + begin, count, sum);
        memcpy(out + begin, sum, count * sizeof *sum);
    }
    check(job, hem_barrier_arrive(job->window, READ));
}

static void fill(const struct job *job, double *mine, int round) {
    for (int i = 0; i < job->ranks * C; i++)
        mine[i] = (double)i + 100.0 * job->rank + 1e6 * round;
}

static void compare(const struct job *job, const double *out, int round) {
    double p = job->ranks;

    for (int j = 0; j < C; j++) {
        double want = p * (job->rank * C + j) + 100 * p * (p - 1) / 2 + p * 1e6 * round;

        if (out[j] == want)
            continue;
        fprintf(stderr, "reduce_scatter: rank %d, round %d: number %d is %.0f, not %.0f\n",
                job->rank, round, j, out[j], want);
        exit(1);
    }
}

static void run_rounds(struct job *job) {
    double *mine = malloc((size_t)job->ranks * C * sizeof *mine);
    double *out = malloc(C * sizeof *out);

    if (!mine || !out) {
        fprintf(stderr, "reduce_scatter: rank %d: no memory\n", job->rank);
        exit(1);
    }
    for (int round = 0; round < ROUNDS; round++) {
        fill(job, mine, round);
        reduce_scatter(job, mine, out);
        compare(job, out, round);
    }
    free(mine);
    free(out);
}

int main(void) {
    struct job job = {.rank = -1}; /* unknown as yet */

    check(&job, hem_world_open(NULL, &job.world));
    job.rank = hem_world_rank(job.world);
    job.ranks = hem_world_size(job.world);
    set_up(&job);
    run_rounds(&job);
    check(&job, hem_barrier_wait(job.window, READ, HEM_FOREVER));
    /* This fails if a rank has given up, so what is printed below holds for all of them. */
    check(&job, hem_window_destroy(job.window));
    if (job.rank == 0)
        printf("reduce-scatter %d ranks, %d rounds of %d numbers each: all as they should be\n",
               job.ranks, ROUNDS, C);
    check(&job, hem_world_close(job.world));
    return 0;
}
