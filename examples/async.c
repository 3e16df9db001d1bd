/*
 * Work that goes on while you compute: `hem run -n 4 async`.
 *
 * A wave lies on a ring of points that is split over the ranks. In each step every point becomes
 * half of itself and a quarter of each of its two neighbours. At its two ends a rank needs a point
 * of the next rank, and all ranks want to know the energy, the sum of all squares.
 *
 * How this works: what has to travel is started first, then comes what needs nobody else, and only
 * then a wait. In each step a rank
 *
 *   1. starts two receives, two sends and an all-reduce,
 *   2. computes the points that have both neighbours here,
 *   3. waits for the four messages and computes the first and the last point,
 *   4. waits for the all-reduce.
 *
 * The buffers of an operation are the library's until it is done. So the sent points are copied out
 * first: the field may change while they are on their way.
 *
 * All five are the same in every step, with the same buffers. They are planned once, outside of the
 * loop, and a step starts them again without allocating anything.
 *
 * A step needs no barrier. Messages of one channel arrive in the order in which they were sent, so
 * a fast neighbour's next message waits until this rank has started its next receive. To the left
 * and to the right there are two channels, since with two ranks both neighbours are the same one.
 *
 * At the end comes the same thing for programs that have an event loop. Every rank sends a report
 * to rank 0. That one has a progress thread, which moves messages on while nobody calls the
 * library, and polls a descriptor that becomes readable when an operation got done. Its loop could
 * serve sockets and timers as well.
 *
 * A wave of one period keeps its shape. Each step only makes it lower by a known factor, so every
 * point and the energy are known beforehand and are compared.
 */
#include <errno.h>
#include <hem/hem.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    POINTS = 1000, /* of each rank */
    STEPS = 500
};

enum channel {
    LEFTWARD,
    RIGHTWARD,
    REPORT
};

/* The messages come first, so that the first four can be waited for. */
enum step_op {
    FROM_LEFT,
    FROM_RIGHT,
    TO_LEFT,
    TO_RIGHT,
    MESSAGES,
    ENERGY = MESSAGES,
    OPS
};

struct job {
    hem_world *world;
    int rank;
    int ranks;
    double field[2][POINTS]; /* before a step and after it, in turn */
    double ghost[2];         /* the points beyond the first and the last */
    double edge[2];          /* the first and the last, as they are sent */
    double energy;           /* of this rank's points */
    double total;            /* of all */
    hem_op *ops[OPS];
};

/* What a rank tells rank 0 at the end. */
struct report {
    int rank;
    double energy;
};

/* A rank that exits without closing the world is dead to the others: their waits end too. */
static void check(const struct job *job, hem_status status) {
    if (status == HEM_OK)
        return;
    fprintf(stderr, "async: rank %d: %s: %s\n", job->rank, hem_status_name(status),
            hem_last_error());
    exit(1);
}

static double wave(const struct job *job, int point) {
    int all = job->ranks * POINTS;

    return cos(2 * acos(-1) * (job->rank * POINTS + point) / all);
}

/* How high the wave is after so many steps; it begins with 1. */
static double height(const struct job *job, int steps) {
    return pow((1 + cos(2 * acos(-1) / (job->ranks * POINTS))) / 2, steps);
}

static void compare(const struct job *job, const char *what, double got, double want, int step) {
    if (fabs(got - want) <= 1e-9 * (1 + fabs(want)))
        return;
    fprintf(stderr, "async: rank %d, step %d: %s is %.15g, not %.15g\n", job->rank, step, what, got,
            want);
    exit(1);
}

static void plan(struct job *job) {
    int left = (job->rank + job->ranks - 1) % job->ranks;
    int right = (job->rank + 1) % job->ranks;
    hem_coll sum = {
        .struct_size = sizeof sum,
        .kind = HEM_ALLREDUCE,
        .dtype = HEM_F64,
        .op = HEM_SUM,
        .send = &job->energy,
        .recv = &job->total,
        .count = 1,
    };

    check(job, hem_recv_plan(job->world, left, RIGHTWARD, &job->ghost[0], sizeof(double),
                             &job->ops[FROM_LEFT]));
    check(job, hem_recv_plan(job->world, right, LEFTWARD, &job->ghost[1], sizeof(double),
                             &job->ops[FROM_RIGHT]));
    check(job, hem_send_plan(job->world, left, LEFTWARD, &job->edge[0], sizeof(double),
                             &job->ops[TO_LEFT]));
    check(job, hem_send_plan(job->world, right, RIGHTWARD, &job->edge[1], sizeof(double),
                             &job->ops[TO_RIGHT]));
    check(job, hem_coll_plan(job->world, &sum, &job->ops[ENERGY]));
}

static void start_all(struct job *job, const double *field) {
    job->edge[0] = field[0];
    job->edge[1] = field[POINTS - 1];
    job->energy = 0;
    for (int i = 0; i < POINTS; i++)
        job->energy += field[i] * field[i];
    for (int i = 0; i < OPS; i++)
        check(job, hem_op_start(job->ops[i]));
}

static double mix(double left, double middle, double right) {
    return left / 4 + middle / 2 + right / 4;
}

static void run_step(struct job *job, int step) {
    const double *now = job->field[step % 2];
    double *next = job->field[(step + 1) % 2];
    double all = (double)job->ranks * POINTS;

    start_all(job, now);
    for (int i = 1; i + 1 < POINTS; i++)
        next[i] = mix(now[i - 1], now[i], now[i + 1]);
    check(job, hem_op_wait_all(job->ops, MESSAGES, HEM_FOREVER));
    next[0] = mix(job->ghost[0], now[0], now[1]);
    next[POINTS - 1] = mix(now[POINTS - 2], now[POINTS - 1], job->ghost[1]);
    check(job, hem_op_wait(job->ops[ENERGY], HEM_FOREVER));
    compare(job, "the energy", job->total, all / 2 * pow(height(job, step), 2), step);
}

static void run_steps(struct job *job) {
    for (int i = 0; i < POINTS; i++)
        job->field[0][i] = wave(job, i);
    for (int step = 0; step < STEPS; step++)
        run_step(job, step);
    for (int i = 0; i < POINTS; i++)
        compare(job, "a point", job->field[STEPS % 2][i], height(job, STEPS) * wave(job, i), STEPS);
    for (int i = 0; i < OPS; i++)
        check(job, hem_op_free(job->ops[i]));
}

/* Looks at what is still under way and takes what has come. Returns how many that were. */
static int take_reports(struct job *job, hem_op **ops, const struct report *reports) {
    int taken = 0;

    for (int r = 0; r < job->ranks; r++) {
        bool done = false;

        if (!ops[r])
            continue;
        check(job, hem_op_test(ops[r], &done));
        if (!done)
            continue;
        compare(job, "the sender of a report", reports[r].rank, r, STEPS);
        compare(job, "the energy in a report", reports[r].energy, job->total, STEPS);
        check(job, hem_op_free(ops[r]));
        ops[r] = NULL;
        taken++;
    }
    return taken;
}

/* The descriptor is reset before the operations are looked at. The other way round, one that gets
 * done in between would be reset away, and the loop would sleep with a report at hand. */
static void event_loop(struct job *job, int fd, hem_op **ops, const struct report *reports) {
    struct pollfd event = {.fd = fd, .events = POLLIN};
    uint64_t count;

    for (int open = job->ranks; open > 0;) {
        if (poll(&event, 1, -1) < 0 && errno != EINTR) {
            perror("async: poll");
            exit(1);
        }
        check(job, hem_world_event_read(job->world, &count));
        open -= take_reports(job, ops, reports);
    }
}

static void gather_reports(struct job *job) {
    struct report *reports = calloc((size_t)job->ranks, sizeof *reports);
    hem_op **ops = calloc((size_t)job->ranks, sizeof(hem_op *));
    int fd;

    if (!reports || !ops) {
        fprintf(stderr, "async: rank %d: no memory\n", job->rank);
        exit(1);
    }
    check(job, hem_world_event_fd(job->world, &fd));
    check(job, hem_progress_start(job->world));
    for (int r = 0; r < job->ranks; r++)
        check(job, hem_recv_start(job->world, r, REPORT, &reports[r], sizeof *reports, &ops[r]));
    event_loop(job, fd, ops, reports);
    check(job, hem_progress_stop(job->world));
    free(reports);
    free(ops);
}

static void report(struct job *job) {
    struct report mine = {job->rank, job->total};
    hem_op *op;

    check(job, hem_send_start(job->world, 0, REPORT, &mine, sizeof mine, &op));
    if (job->rank == 0)
        gather_reports(job);
    check(job, hem_op_wait(op, HEM_FOREVER));
    check(job, hem_op_free(op));
}

int main(void) {
    static struct job job = {.rank = -1}; /* unknown as yet */

    check(&job, hem_world_open(NULL, &job.world));
    job.rank = hem_world_rank(job.world);
    job.ranks = hem_world_size(job.world);
    plan(&job);
    run_steps(&job);
    report(&job);
    /* This fails if a rank has given up, so what is printed below holds for all of them. */
    check(&job, hem_sync(job.world, HEM_FOREVER));
    if (job.rank == 0)
        printf("async          %d ranks, %d steps of %d points each: all as they should be\n",
               job.ranks, STEPS, POINTS);
    check(&job, hem_world_close(job.world));
    return 0;
}
