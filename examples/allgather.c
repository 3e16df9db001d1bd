/*
 * All-gather written by hand: `hem run -n 4 allgather`.
 *
 * Every rank has a block of C numbers and wants the blocks of all ranks, in rank order. The library
 * has hem_allgather for that. Here it is done with a window alone, as the author of a kernel would,
 * in three phases:
 *
 *   1. Stage in. A rank copies its block into `scratch`, a named buffer of the window. Peers can
 *      read that; they could not read the rank's private memory.
 *   2. Barrier FILLED. It says that every rank's scratch is full, and makes what is in it visible.
 *      Without it a fast rank reads the scratch of a slow one too early and gets the block of the
 *      round before, or half of each.
 *   3. Read. A rank gets the scratch of each peer, straight into its place in the result.
 *
 * That would do if it were done once. In the next round phase 1 writes the same scratch again, and
 * a slow peer may still be reading it. So there is a second barrier, READ, between the last phase
 * of a round and the first of the next. Without it the slow peer finds numbers of the next round.
 *
 * A barrier can be used for ever and is never reset. The two have ids of their own here so that
 * `hem ps` and the report of a hang tell which of them a rank is in; one id would work as well.
 *
 * Block r has the numbers r * 100 + i. Each round adds something to them, so that a number that is
 * too old or too new is found out.
 */
#include <hem/hem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    C = 1000,
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
    fprintf(stderr, "allgather: rank %d: %s: %s\n", job->rank, hem_status_name(status),
            hem_last_error());
    exit(1);
}

/* Names and types are the same on all ranks, and so are the counts here. Hence the offset of the
 * buffer, which is looked up in one's own window, is right for every peer's, too. */
static void set_up(struct job *job) {
    hem_buffer scratch = {.name = "scratch", .dtype = HEM_I64, .count = C};
    hem_window_options options = {
        .struct_size = sizeof options, .buffers = &scratch, .buffer_count = 1};

    check(job, hem_window_create(job->world, &options, &job->window));
    check(job, hem_window_buffer(job->window, "scratch", &job->scratch));
}

static void all_gather(struct job *job, const int64_t *mine, int64_t *out) {
    char *scratch = (char *)hem_window_memory(job->window) + job->scratch.offset;

    memcpy(scratch, mine, C * sizeof *mine);
    check(job, hem_barrier(job->window, FILLED, HEM_FOREVER));
    /* All start with themselves and go round, so that not all read from the same rank at once. */
    for (int step = 0; step < job->ranks; step++) {
        int peer = (job->rank + step) % job->ranks;

        check(job, hem_get(job->window, peer, job->scratch.offset, out + (size_t)peer * C,
                           C * sizeof *out));
    }
    check(job, hem_barrier(job->window, READ, HEM_FOREVER));
}

static int64_t number(int rank, int i, int round) {
    return rank * 100 + i + (int64_t)round * 1000000;
}

static void compare(const struct job *job, const int64_t *out, int round) {
    for (int r = 0; r < job->ranks; r++)
        for (int i = 0; i < C; i++) {
            int64_t got = out[(size_t)r * C + (size_t)i];

            if (got == number(r, i, round))
                continue;
            fprintf(stderr,
                    "allgather: rank %d, round %d: number %d of rank %d is %lld, not %lld\n",
                    job->rank, round, i, r, (long long)got, (long long)number(r, i, round));
            exit(1);
        }
}

static void run_rounds(struct job *job) {
    int64_t *mine = malloc(C * sizeof *mine);
    int64_t *out = malloc((size_t)job->ranks * C * sizeof *out);

    if (!mine || !out) {
        fprintf(stderr, "allgather: rank %d: no memory\n", job->rank);
        exit(1);
    }
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < C; i++)
            mine[i] = number(job->rank, i, round);
        all_gather(job, mine, out);
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
    /* This fails if a rank has given up, so what is printed below holds for all of them. */
    check(&job, hem_window_destroy(job.window));
    if (job.rank == 0)
        printf("all-gather     %d ranks, %d rounds of %d numbers each: all as they should be\n",
               job.ranks, ROUNDS, C);
    check(&job, hem_world_close(job.world));
    return 0;
}
