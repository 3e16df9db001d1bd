/*
 * Heat on a torus, with a halo exchange: `hem run -n 4 halo`.
 *
 * How this works: the grid is cut into boxes, one per rank. A rank stores its box with one more
 * point on each side, the halo, where copies of the neighbours' points go. The pattern is made of
 * the boxes alone: it finds out which points of which rank each halo copies, also around the ends
 * of the grid. The exchange binds it to memory. There are two arrays, since a step reads one and
 * writes the other; they are fields 1 and 2 of one exchange, and each run moves one of them. Then a
 * step is
 *
 *   1. start: the own edges are on their way to the neighbours,
 *   2. the inside of the box, which needs no halo, is computed meanwhile,
 *   3. finish: the halos are there, and
 *   4. the edges of the box are computed.
 *
 * Nothing else keeps the ranks in step, and nobody waits for more than its neighbours. Between
 * start and finish the array that is under way may be read, but for its halos, and not be written.
 *
 * A wave on a torus stays a wave and only becomes lower, by the same factor in each step. So in the
 * end every point is compared with what it must be.
 */
#include <hem/hem.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    ROWS = 120,
    COLUMNS = 180,
    STEPS = 200
};

#define SPEED 0.2

struct job {
    hem_world *world;
    hem_box box;       /* what this rank owns */
    int64_t rows;      /* of it */
    int64_t columns;   /* of it */
    double *arrays[2]; /* rows + 2 times columns + 2 numbers each */
    hem_exchange *exchange;
};

/* A rank that exits without closing the world is dead to the others: their waits end too. */
static void check(hem_status status) {
    if (status == HEM_OK)
        return;
    fprintf(stderr, "halo: %s: %s\n", hem_status_name(status), hem_last_error());
    exit(1);
}

/* Row 0 and column 0 are halo, the own points begin at 1. */
static double *at(const struct job *job, double *array, int64_t row, int64_t column) {
    return array + row * (job->columns + 2) + column;
}

/* The wave in the beginning, at a point of the whole grid. */
static double wave(int64_t row, int64_t column) {
    return cos(2 * M_PI * (3.0 * (double)row / ROWS + 2.0 * (double)column / COLUMNS));
}

static double factor(void) {
    return 1 + SPEED * (2 * cos(2 * M_PI * 3 / ROWS) + 2 * cos(2 * M_PI * 2 / COLUMNS) - 4);
}

/* Cut the grid, and say who needs what of whom. A step looks at four neighbours: no corners. */
static hem_pattern *make_pattern(struct job *job) {
    const int64_t extent[] = {ROWS, COLUMNS};
    int rank = hem_world_rank(job->world);
    hem_grid_cut cut;
    hem_pattern *pattern;

    check(hem_grid_balance(2, extent, hem_world_size(job->world), &cut));
    check(hem_grid_part(&cut, rank, &job->box));
    job->rows = job->box.count[0];
    job->columns = job->box.count[1];

    hem_grid_domain domain = {.id = rank, .box = job->box};
    hem_grid_options options = {
        .struct_size = sizeof options,
        .dims = 2,
        .extent = {ROWS, COLUMNS},
        .periodic = {true, true},
        .halo_low = {1, 1},
        .halo_high = {1, 1},
        .faces_only = true,
        .domains = &domain,
        .domain_count = 1,
    };
    check(hem_pattern_grid(job->world, &options, &pattern));
    return pattern;
}

/* Bind both arrays. They are contiguous, so that no strides need be named. */
static void make_exchange(struct job *job, const hem_pattern *pattern) {
    size_t bytes = (size_t)((job->rows + 2) * (job->columns + 2)) * sizeof(double);
    hem_binding bindings[2];

    for (int i = 0; i < 2; i++) {
        job->arrays[i] = malloc(bytes);
        if (!job->arrays[i]) {
            fprintf(stderr, "halo: no memory\n");
            exit(1);
        }
        bindings[i] = (hem_binding){
            .pattern = pattern,
            .field = {.struct_size = sizeof(hem_field),
                      .memory = job->arrays[i],
                      .bytes = bytes,
                      .dtype = HEM_F64},
        };
    }
    hem_exchange_options options = {
        .struct_size = sizeof options, .bindings = bindings, .count = 2};
    check(hem_exchange_create(job->world, &options, &job->exchange));
}

/* Halos begin as what is no number: where one is not filled, that spreads. */
static void fill(const struct job *job) {
    for (int64_t r = 0; r < job->rows + 2; r++)
        for (int64_t c = 0; c < job->columns + 2; c++) {
            bool own = r > 0 && r <= job->rows && c > 0 && c <= job->columns;
            *at(job, job->arrays[0], r, c) =
                own ? wave(job->box.start[0] + r - 1, job->box.start[1] + c - 1) : NAN;
            *at(job, job->arrays[1], r, c) = NAN;
        }
}

/* One step for the rows from `top` up to `bottom` and the columns from `left` up to `right`. */
static void compute(const struct job *job, double *from, double *to, int64_t top, int64_t bottom,
                    int64_t left, int64_t right) {
    int64_t next = job->columns + 2;

    for (int64_t r = top; r < bottom; r++)
        for (int64_t c = left; c < right; c++) {
            const double *p = at(job, from, r, c);
            *at(job, to, r, c) = p[0] + SPEED * (p[-1] + p[1] + p[-next] + p[next] - 4 * p[0]);
        }
}

static void step(const struct job *job, int now) {
    double *from = job->arrays[now];
    double *to = job->arrays[1 - now];
    int64_t rows = job->rows;
    int64_t columns = job->columns;
    hem_exchange_how how = {.struct_size = sizeof how, .fields = UINT64_C(1) << now};

    check(hem_exchange_start(job->exchange, &how));
    compute(job, from, to, 2, rows, 2, columns);
    check(hem_exchange_finish(job->exchange, HEM_FOREVER));

    compute(job, from, to, 1, 2, 1, columns + 1);
    compute(job, from, to, 2, rows, 1, 2);
    if (columns > 1)
        compute(job, from, to, 2, rows, columns, columns + 1);
    if (rows > 1)
        compute(job, from, to, rows, rows + 1, 1, columns + 1);
}

static void compare(const struct job *job, double *array) {
    double height = pow(factor(), STEPS);

    for (int64_t r = 1; r <= job->rows; r++)
        for (int64_t c = 1; c <= job->columns; c++) {
            int64_t row = job->box.start[0] + r - 1;
            int64_t column = job->box.start[1] + c - 1;
            double want = height * wave(row, column);
            double got = *at(job, array, r, c);
            if (fabs(got - want) < 1e-12)
                continue;
            fprintf(stderr, "halo: rank %d: point %d, %d is %.17g, not %.17g\n",
                    hem_world_rank(job->world), (int)row, (int)column, got, want);
            exit(1);
        }
}

int main(void) {
    struct job job = {0};

    check(hem_world_open(NULL, &job.world));
    hem_pattern *pattern = make_pattern(&job);
    make_exchange(&job, pattern);
    check(hem_pattern_destroy(pattern)); /* the exchange keeps what it needs */

    fill(&job);
    for (int i = 0; i < STEPS; i++)
        step(&job, i % 2);
    compare(&job, job.arrays[STEPS % 2]);

    check(hem_sync(job.world, HEM_FOREVER)); /* nobody has exited */
    if (hem_world_rank(job.world) == 0)
        printf("halo           %d ranks, %d steps of %d x %d points: all as they should be\n",
               hem_world_size(job.world), STEPS, ROWS, COLUMNS);
    check(hem_exchange_destroy(job.exchange));
    free(job.arrays[0]);
    free(job.arrays[1]);
    check(hem_world_close(job.world));
    return 0;
}
