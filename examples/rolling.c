/*
 * Rolling sums, means and minima over a time series that is sorted over the ranks: `hem run -n 4
 * rolling`.
 *
 * Each row has a time and a value. For row i the window is all rows up to i whose time is later than
 * that of i minus W. W is long here: longer than what a rank holds, so that the first rows of a rank
 * need rows of several ranks before it. There are two ways to get them.
 *
 *   Hop by hop, on a line. In each round a rank passes on to the right what it got last, at first its
 *   own rows, cut down to what the rank there can still need. Rows travel as data, the time up to which
 *   the receiver has everything as metadata. A rank that has all that it needs says so, but goes on
 *   passing: others behind it may need more. Nobody knows ahead how many rounds it takes; when all are
 *   done, all find out in the same round.
 *
 *   Planned, as a reach. One collective finds out who needs which rows of whom; then each run brings
 *   them in one step, straight from their owners. It pays when the same times come with new values.
 *
 * Both fill the same array of rows before one's own, which then is worked through once: sums by adding
 * and taking away, which is exact as the values are whole numbers, minima with a queue of candidates.
 * At the end every result is compared with that of a plain loop over the whole series, which every rank
 * can make for itself, since the series comes from a formula.
 */
#include <hem/hem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    ROWS = 12000, /* in all */
    SPAN = 6000,  /* W, in units of time; a row comes every 1 to 4 units or so */
    ROUNDS = 20   /* for the clock */
};

struct row {
    int64_t time;
    double value;
};

struct result {
    double sum;
    double mean;
    double least;
};

struct job {
    hem_world *world;
    int rank;
    int ranks;
    size_t first; /* of the own rows, in the whole series */
    size_t count;
    struct row *rows;   /* the own ones */
    struct row *before; /* those of other ranks that they need */
    size_t before_count;
    struct result *results; /* of the own rows */
};

/* A rank that exits without closing the world is dead to the others: their waits end too. */
static void check(const struct job *job, hem_status status) {
    if (status == HEM_OK)
        return;
    fprintf(stderr, "rolling: rank %d: %s: %s\n", job->rank, hem_status_name(status),
            hem_last_error());
    exit(1);
}

static void *allocate(const struct job *job, size_t bytes) {
    void *memory = malloc(bytes + 1);

    if (!memory) {
        fprintf(stderr, "rolling: rank %d: no memory\n", job->rank);
        exit(1);
    }
    return memory;
}

static double now(void) {
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* The series: some rows share a time, and values go up and down. */
static void make_series(struct row *rows, size_t count) {
    uint64_t state = 88172645463325252u;
    int64_t time = 1000;

    for (size_t i = 0; i < count; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        time += (int64_t)(state % 5);
        rows[i].time = time;
        rows[i].value = (double)(int64_t)(state >> 8 & 0xffff) - 30000;
    }
}

/* Ranks hold different numbers of rows, the last ones more. */
static size_t first_of(const struct job *job, int rank) {
    double part = (double)rank / job->ranks;

    return (size_t)((double)ROWS * part * (0.5 + 0.5 * part));
}

/* The earliest time that a row needs to see. */
static int64_t earliest(int64_t time) {
    return time - SPAN + 1;
}

/* Hop by hop. Rows come from the right to the left end of `before`, which is filled backwards. */
struct hops {
    hem_line *line;
    struct row *store; /* room for all rows that could come */
    size_t room;
    int rounds; /* that the last run took */
};

/* Put rows in front of those that are there already; those that nobody here needs are left out. */
static void prepend(struct job *job, struct hops *hops, const struct row *rows, size_t count) {
    size_t from = 0;

    if (job->count == 0)
        return;
    while (from < count && rows[from].time < earliest(job->rows[0].time))
        from++;
    count -= from;
    job->before_count += count;
    if (job->before_count > hops->room) {
        fprintf(stderr, "rolling: rank %d: more rows than there are\n", job->rank);
        exit(1);
    }
    job->before = hops->store + hops->room - job->before_count;
    memcpy(job->before, rows + from, count * sizeof *rows);
}

/* All that is needed is there if the rows that came reach back far enough, or to the beginning. */
static bool has_all(const struct job *job, const struct row *oldest, bool beginning) {
    return job->count == 0 || beginning || (oldest && oldest->time < earliest(job->rows[0].time));
}

static void hop(struct job *job, struct hops *hops) {
    hem_line_result last = {0}; /* what came in the round before, to be passed on */
    const struct row *rows = job->rows;
    size_t count = job->count;
    char end = job->rank == 0; /* metadata: these are the first rows of all */
    bool done = has_all(job, NULL, end);
    bool all_done = false;

    job->before_count = 0;
    job->before = hops->store + hops->room;
    for (hops->rounds = 0; !all_done; hops->rounds++) {
        hem_payload payload = {&end, 1, rows, count * sizeof *rows};
        hem_line_round round = {.struct_size = sizeof round, .to_right = &payload, .done = done};
        hem_line_result came;

        check(job, hem_line_exchange(hops->line, &round, &came, HEM_FOREVER));
        hem_line_release(&last);
        last = came;
        all_done = came.all_done;
        rows = came.from_left.buffer.data;
        count = came.from_left.data_bytes / sizeof *rows;
        end = came.from_left.present ? *(char *)came.from_left.meta : 1;
        if (!done) {
            prepend(job, hops, rows, count);
            done = has_all(job, count > 0 ? rows : NULL, end);
        }
    }
    hem_line_release(&last);
}

static void hop_set_up(struct job *job, struct hops *hops) {
    hops->room = job->first;
    hops->store = allocate(job, hops->room * sizeof *hops->store);
}

/* A loop ends when all have said that they are done, so each needs a line of its own. */
static double time_hops(struct job *job, struct hops *hops) {
    double spent = 0;

    for (int i = 0; i < ROUNDS; i++) {
        check(job, hem_line_create(job->world, NULL, &hops->line));
        check(job, hem_sync(job->world, HEM_FOREVER));
        double start = now();
        hop(job, hops);
        spent += now() - start;
        check(job, hem_line_destroy(hops->line));
    }
    return spent / ROUNDS;
}

/* Planned. */
static hem_reach *plan(struct job *job, struct row **store, struct row **after_p) {
    int64_t *times = allocate(job, job->count * sizeof *times);
    hem_reach *reach = NULL;
    uint64_t before = 0;
    uint64_t after = 0;

    for (size_t i = 0; i < job->count; i++)
        times[i] = job->rows[i].time;
    hem_reach_options options = {.struct_size = sizeof options,
                                 .rows = job->count,
                                 .row_bytes = sizeof(struct row),
                                 .keys = times,
                                 .back_key = SPAN - 1};
    check(job, hem_reach_plan(job->world, &options, &reach));
    check(job, hem_reach_rows(reach, &before, &after));
    free(times);
    *store = allocate(job, before * sizeof **store);
    /* Rows of the next ranks with the last own time lie within a distance of 0. They come, but rows
     * only look back here. */
    *after_p = allocate(job, after * sizeof **after_p);
    job->before = *store;
    job->before_count = before;
    return reach;
}

static double time_runs(struct job *job, hem_reach *reach, struct row *after) {
    double spent = 0;

    for (int i = 0; i < ROUNDS; i++) {
        check(job, hem_sync(job->world, HEM_FOREVER));
        double start = now();
        check(job, hem_reach_run(reach, job->rows, job->before, after, HEM_FOREVER));
        spent += now() - start;
    }
    return spent / ROUNDS;
}

/* Work through the rows before and the own ones. */
static struct row row_at(const struct job *job, size_t i) {
    return i < job->before_count ? job->before[i] : job->rows[i - job->before_count];
}

static void roll(struct job *job) {
    size_t all = job->before_count + job->count;
    size_t *least = allocate(job, all * sizeof *least); /* values rise from `head` on */
    size_t head = 0;
    size_t tail = 0;
    size_t begin = 0;
    double sum = 0;

    for (size_t i = 0; i < all; i++) {
        struct row row = row_at(job, i);

        sum += row.value;
        while (tail > head && row_at(job, least[tail - 1]).value >= row.value)
            tail--;
        least[tail++] = i;
        for (; row_at(job, begin).time < earliest(row.time); begin++)
            sum -= row_at(job, begin).value;
        while (least[head] < begin)
            head++;
        if (i >= job->before_count) {
            struct result *result = &job->results[i - job->before_count];
            result->sum = sum;
            result->mean = sum / (double)(i + 1 - begin);
            result->least = row_at(job, least[head]).value;
        }
    }
    free(least);
}

/* What one rank alone would find, without any cleverness. */
static void compare(const struct job *job, const struct row *series, const char *way) {
    for (size_t i = 0; i < job->count; i++) {
        size_t at = job->first + i;
        size_t begin = at;
        struct result want = {0, 0, series[at].value};
        const struct result *got = &job->results[i];

        for (; begin > 0 && series[begin - 1].time >= earliest(series[at].time); begin--)
            want.sum += series[begin].value;
        want.sum += series[begin].value;
        for (size_t k = begin; k < at; k++)
            want.least = series[k].value < want.least ? series[k].value : want.least;
        want.mean = want.sum / (double)(at + 1 - begin);
        if (got->sum == want.sum && got->mean == want.mean && got->least == want.least)
            continue;
        fprintf(stderr, "rolling, %s: rank %d: row %zu has %.0f %.3f %.0f, not %.0f %.3f %.0f\n",
                way, job->rank, at, got->sum, got->mean, got->least, want.sum, want.mean,
                want.least);
        exit(1);
    }
}

static double slowest(struct job *job, double mine) {
    double all = 0;

    check(job, hem_allreduce(job->world, &mine, &all, 1, HEM_F64, HEM_MAX, HEM_FOREVER));
    return all;
}

static void go(struct job *job) {
    struct row *series = allocate(job, ROWS * sizeof *series);
    struct hops hops = {0};
    struct row *store = NULL;
    struct row *after = NULL;

    make_series(series, ROWS);
    job->first = first_of(job, job->rank);
    job->count = first_of(job, job->rank + 1) - job->first;
    job->rows = series + job->first;
    job->results = allocate(job, job->count * sizeof *job->results);

    hop_set_up(job, &hops);
    double hopped = slowest(job, time_hops(job, &hops));
    roll(job);
    compare(job, series, "hop by hop");
    free(hops.store);

    memset(job->results, 0, job->count * sizeof *job->results);
    check(job, hem_sync(job->world, HEM_FOREVER));
    double start = now();
    hem_reach *reach = plan(job, &store, &after);
    double planned = slowest(job, now() - start);
    double ran = slowest(job, time_runs(job, reach, after));
    roll(job);
    compare(job, series, "planned");
    check(job, hem_reach_destroy(reach));

    if (job->rank == 0)
        printf(
            "rolling        %d ranks, %d rows, windows of %d: %d hops %.0f us, planned in %.0f us, "
            "run in %.0f us: all as they should be\n",
            job->ranks, ROWS, SPAN, hops.rounds, hopped, planned, ran);
    free(store);
    free(after);
    free(job->results);
    free(series);
}

int main(void) {
    struct job job = {.rank = -1}; /* unknown as yet */

    check(&job, hem_world_open(NULL, &job.world));
    job.rank = hem_world_rank(job.world);
    job.ranks = hem_world_size(job.world);
    go(&job);
    check(&job, hem_world_close(job.world));
    return 0;
}
