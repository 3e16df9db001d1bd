/*
 * A planned reach brings exactly the rows that were asked for, from however many ranks away: by count and
 * by distance of keys, with ranks that have no rows, equal keys over the ends of ranks, distances of
 * nothing and of everything, rows of any width; again and again with other data, started as well, several
 * plans in turn. Compared with what one rank would find that has all rows.
 *
 * hem-test: ranks=1,2,3,4,5,8,9 modes=processes,threads timeout=60
 */
#include "harness.h"

enum {
    MOST = 400 /* rows of a rank */
};

typedef struct table {
    uint64_t total;
    uint64_t starts[65];
    int64_t *keys; /* of all rows */
} table;

typedef struct need {
    bool keyed;
    uint64_t back;
    uint64_t ahead;
} need;

static void make_table(table *t, int size, uint64_t seed) {
    harness_rng rng = harness_rng_of(seed, 1, 2);
    int64_t key = (int64_t)harness_below(&rng, 1000) - 500;

    t->total = 0;
    for (int r = 0; r < size; r++) {
        t->starts[r] = t->total;
        if (harness_below(&rng, 5) != 0)
            t->total += harness_below(&rng, MOST);
    }
    t->starts[size] = t->total;
    t->keys = malloc((t->total + 1) * sizeof *t->keys);
    for (uint64_t i = 0; i < t->total; i++) {
        t->keys[i] = key;
        if (harness_below(&rng, 3) == 0) /* many rows share a key */
            key += (int64_t)harness_below(&rng, 20);
    }
}

/* Each rank looks as far as it likes. */
static need need_of(const table *t, uint64_t seed, int rank, bool keyed) {
    harness_rng rng = harness_rng_of(seed, 77, (uint64_t)rank);
    static const uint64_t far[] = {0, 1, 5, 300, 2000, INT64_MAX};
    need n = {.keyed = keyed};

    (void)t;
    n.back = far[harness_below(&rng, 6)];
    n.ahead = far[harness_below(&rng, 6)];
    return n;
}

/* What one who has everything finds. */
static void expect(const table *t, const need *n, int rank, uint64_t *low_p, uint64_t *high_p) {
    uint64_t start = t->starts[rank];
    uint64_t end = t->starts[rank + 1];
    uint64_t low = start;
    uint64_t high = end;

    if (start < end && !n->keyed) {
        low = n->back > start ? 0 : start - n->back;
        high = n->ahead > t->total - end ? t->total : end + n->ahead;
    } else if (start < end) {
        while (low > 0 && (uint64_t)(t->keys[start] - t->keys[low - 1]) <= n->back)
            low--;
        while (high < t->total && (uint64_t)(t->keys[high] - t->keys[end - 1]) <= n->ahead)
            high++;
    }
    *low_p = low;
    *high_p = high;
}

static void fill_row(unsigned char *row, size_t width, uint64_t number, uint64_t run) {
    for (size_t i = 0; i < width; i++)
        row[i] = (unsigned char)(number * 31 + (number >> 7) + i * 7 + run * 101);
}

static unsigned char *rows_of(uint64_t from, uint64_t to, size_t width, uint64_t run) {
    unsigned char *rows = malloc((to - from) * width + 1);

    CHECK(rows != NULL);
    for (uint64_t i = from; i < to; i++)
        fill_row(rows + (i - from) * width, width, i, run);
    return rows;
}

static void check_rows(const unsigned char *got, uint64_t from, uint64_t to, size_t width,
                       uint64_t run) {
    unsigned char *want = rows_of(from, to, width, run);

    CHECK(memcmp(got, want, (to - from) * width) == 0);
    CHECK_EQ(got[(to - from) * width], 0xa5);
    free(want);
}

typedef struct job {
    hem_reach *reach;
    table t;
    size_t width;
    uint64_t low;
    uint64_t start;
    uint64_t end;
    uint64_t high;
} job;

static void plan(hem_world *world, job *j, uint64_t seed) {
    static const size_t widths[] = {1, 8, 12, 64, 1000};
    harness_rng rng = harness_rng_of(seed, 3, 4);
    int me = hem_world_rank(world);
    bool keyed = harness_below(&rng, 2) == 0;
    uint64_t before = 9;
    uint64_t after = 9;

    j->width = widths[harness_below(&rng, 5)];
    make_table(&j->t, hem_world_size(world), seed);
    need n = need_of(&j->t, seed, me, keyed);
    expect(&j->t, &n, me, &j->low, &j->high);
    j->start = j->t.starts[me];
    j->end = j->t.starts[me + 1];
    hem_reach_options o = {
        .struct_size = sizeof o, .rows = j->end - j->start, .row_bytes = j->width};
    if (keyed) {
        /* A rank without rows need not have keys. */
        o.keys = j->end == j->start && me % 2 == 0 ? NULL : j->t.keys + j->start;
        o.back_key = (int64_t)n.back;
        o.ahead_key = (int64_t)n.ahead;
    } else {
        o.back_rows = n.back;
        o.ahead_rows = n.ahead;
    }
    CHECK_OK(hem_reach_plan(world, &o, &j->reach));
    CHECK_OK(hem_reach_rows(j->reach, &before, &after));
    CHECK_EQ(before, j->start - j->low);
    CHECK_EQ(after, j->high - j->end);
}

static void run(job *j, uint64_t number, bool started) {
    unsigned char *rows = rows_of(j->start, j->end, j->width, number);
    unsigned char *before = malloc((j->start - j->low) * j->width + 1);
    unsigned char *after = malloc((j->high - j->end) * j->width + 1);
    hem_op *op = NULL;

    before[(j->start - j->low) * j->width] = 0xa5;
    after[(j->high - j->end) * j->width] = 0xa5;
    if (started) {
        CHECK_OK(hem_reach_start(j->reach, rows, before, after, &op));
        CHECK_OK(hem_op_wait(op, LIMIT));
        CHECK_OK(hem_op_free(op));
    } else {
        CHECK_OK(hem_reach_run(j->reach, rows, before, after, LIMIT));
    }
    check_rows(before, j->low, j->start, j->width, number);
    check_rows(after, j->end, j->high, j->width, number);
    free(rows);
    free(before);
    free(after);
}

static void end(job *j) {
    CHECK_OK(hem_reach_destroy(j->reach));
    free(j->t.keys);
}

int rank_main(hem_world *world) {
    uint64_t seed = harness_seed(world);

    for (uint64_t trial = 0; trial < (uint64_t)harness_rounds(20); trial++) {
        job a;
        job b;

        harness_step("trial", trial);
        plan(world, &a, seed + 2 * trial);
        plan(world, &b, seed + 2 * trial + 1);
        for (uint64_t number = 0; number < 8; number++) {
            run(&a, number, number % 2 == 1);
            if (number % 3 == 0)
                run(&b, number, number % 2 == 0);
        }
        end(trial % 2 == 0 ? &a : &b);
        end(trial % 2 == 0 ? &b : &a);
    }
    harness_close(world, HEM_OK);
    return 0;
}
