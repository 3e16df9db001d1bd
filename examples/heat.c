/*
 * Heat in a plate that is split over ranks: `hem run -n 4 heat`, or `make demo`.
 *
 * How this works: the plate is cut into tiles, one per rank. In each step a rank
 *
 *   1. puts the outermost points of its tile into its neighbours' windows, each edge with a signal,
 *   2. computes the inside of its tile, which needs nobody else's points,
 *   3. waits for the signals of its neighbours and computes the rest with the points they sent.
 *
 * There is no barrier in the loop: a rank waits for its neighbours only. Can a fast neighbour
 * overwrite an edge that is still being read? Not with two places per side, used in turn. To send
 * the edge of step s + 2, which goes where that of step s was, it must have finished step s + 1.
 * For that it needs my edge of step s + 1, and I send that after I have read its edge of step s.
 *
 * Signals only grow: after step s a neighbour's signal has the value s + 1, for ever. Nothing is
 * ever reset, so nothing can be reset too early.
 *
 * Rank 0 shows the plate. Its window has room for all of it, and now and then every rank puts its
 * tile there. What is drawn, and how, is in the folder heat/; here is only what concerns Hem.
 */
#include "heat/options.h"
#include "heat/report.h"
#include "heat/screen.h"

#include <hem/hem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The opposite of a side is `side ^ 1`. */
enum side {
    LEFT,
    RIGHT,
    UP,
    DOWN,
    SIDES
};

/* Signals 0 to 3 say that an edge has arrived at that side. */
enum signal {
    SIGNAL_TILE = SIDES,
    SIGNAL_GO_ON,
    SIGNAL_RHYTHM,
    SIGNALS
};

/* Frames of the live picture, and the seconds from one to the next. */
#define FRAMES         180
#define FRAME_INTERVAL 0.033

struct job {
    hem_world *world;
    hem_window *window;
    int rank;
    int ranks;
    struct options options;
    struct grid grid;
    struct field field;
    int neighbour[SIDES]; /* a rank, or -1 where the plate ends */
    float *column;        /* the points of a column, one after the other */
    size_t edge_bytes;    /* room for the longest edge of any rank */
    struct times times;
    struct screen *screen; /* on rank 0, if there is a terminal */
    uint64_t shown;        /* how often the plate was shown */
    bool failed;
};

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* A rank that exits without closing the world is dead to the others: their waits end too. */
static void check(const struct job *job, hem_status status) {
    if (status == HEM_OK)
        return;
    fprintf(stderr, "heat: rank %d: %s: %s\n", job->rank, hem_status_name(status),
            hem_last_error());
    exit(1);
}

/*
 * The window of a rank: two places for an edge at each side. Rank 0 also has the whole plate, and
 * the times of all ranks. Every rank can compute where things are in another's window.
 */
static size_t edge_offset(const struct job *job, enum side side, int step) {
    return ((size_t)side * 2 + (size_t)step % 2) * job->edge_bytes;
}

static size_t plate_offset(const struct job *job, int x, int y) {
    size_t point = (size_t)y * (size_t)job->options.plate.width + (size_t)x;
    return edge_offset(job, SIDES, 0) + point * sizeof(float);
}

static size_t times_offset(const struct job *job, int rank) {
    size_t end = plate_offset(job, 0, job->options.plate.height);
    return (end + 63) / 64 * 64 + (size_t)rank * sizeof(struct times);
}

static const void *own_memory(const struct job *job, size_t offset) {
    return (const char *)hem_window_memory(job->window) + offset;
}

/* One value for all ranks, so that all compute the same offsets; a multiple of a cache line. */
static size_t longest_edge(const struct plate *plate, const struct grid *grid) {
    int widest = (plate->width + grid->columns - 1) / grid->columns;
    int highest = (plate->height + grid->rows - 1) / grid->rows;
    size_t bytes = (size_t)(widest > highest ? widest : highest) * sizeof(float);

    return (bytes / 64 + 1) * 64;
}

static void find_neighbours(struct job *job) {
    int column = job->rank % job->grid.columns;
    int row = job->rank / job->grid.columns;

    job->neighbour[LEFT] = column > 0 ? job->rank - 1 : -1;
    job->neighbour[RIGHT] = column + 1 < job->grid.columns ? job->rank + 1 : -1;
    job->neighbour[UP] = row > 0 ? job->rank - job->grid.columns : -1;
    job->neighbour[DOWN] = row + 1 < job->grid.rows ? job->rank + job->grid.columns : -1;
}

static void set_up(struct job *job) {
    struct tile tile = grid_tile(&job->options.plate, &job->grid, job->rank);

    find_neighbours(job);
    job->edge_bytes = longest_edge(&job->options.plate, &job->grid);
    job->column = malloc(job->edge_bytes);
    if (!job->column || !field_create(&job->field, &job->options.plate, tile)) {
        fprintf(stderr, "heat: rank %d: no memory for %d x %d points\n", job->rank, tile.width,
                tile.height);
        exit(1);
    }

    hem_window_options options = {.struct_size = sizeof options, .signals = SIGNALS};
    options.bytes = job->rank == 0 ? times_offset(job, job->ranks) : edge_offset(job, SIDES, 0);
    check(job, hem_window_create(job->world, &options, &job->window));
}

/* A row lies in one piece already; the points of a column are gathered first. */
static const float *edge_points(const struct job *job, enum side side, size_t *bytes_p) {
    const struct field *field = &job->field;
    int width = field->tile.width;
    int height = field->tile.height;

    if (side == UP || side == DOWN) {
        *bytes_p = (size_t)width * sizeof(float);
        return field_at(field, 0, side == UP ? 0 : height - 1);
    }
    *bytes_p = (size_t)height * sizeof(float);
    for (int y = 0; y < height; y++)
        job->column[y] = *field_at(field, side == LEFT ? 0 : width - 1, y);
    return job->column;
}

/* What leaves on my right arrives on my neighbour's left. */
static void send_edges(struct job *job, int step) {
    for (int side = 0; side < SIDES; side++) {
        int arrival = side ^ 1;
        size_t bytes;

        if (job->neighbour[side] < 0)
            continue;
        const float *points = edge_points(job, (enum side)side, &bytes);
        check(job, hem_put_signal(job->window, job->neighbour[side],
                                  edge_offset(job, (enum side)arrival, step), points, bytes,
                                  (uint32_t)arrival, 1));
    }
}

static void wait_for_edges(struct job *job, int step) {
    for (int side = 0; side < SIDES; side++)
        if (job->neighbour[side] >= 0)
            check(job, hem_wait_signal_from(job->window, job->neighbour[side], (uint32_t)side,
                                            HEM_GE, (uint64_t)step + 1, HEM_FOREVER));
}

/* From the window into the ghost points around the tile. */
static void take_edges(struct job *job, int step) {
    const struct field *field = &job->field;
    int width = field->tile.width;
    int height = field->tile.height;

    for (int side = 0; side < SIDES; side++) {
        const float *points = own_memory(job, edge_offset(job, (enum side)side, step));

        if (job->neighbour[side] < 0)
            continue;
        if (side == UP || side == DOWN)
            memcpy(field_at(field, 0, side == UP ? -1 : height), points,
                   (size_t)width * sizeof(float));
        else
            for (int y = 0; y < height; y++)
                *field_at(field, side == LEFT ? -1 : width, y) = points[y];
    }
}

static void run_step(struct job *job, int step) {
    double begin = seconds();
    send_edges(job, step);
    double sent = seconds();
    field_diffuse_inside(&job->field);
    double computed = seconds();
    wait_for_edges(job, step);
    double arrived = seconds();
    take_edges(job, step);
    double taken = seconds();
    field_diffuse_rim(&job->field);
    field_finish_step(&job->field, step);

    job->times.moving += (sent - begin) + (taken - arrived);
    job->times.waiting += arrived - computed;
    job->times.steps += seconds() - begin;
}

/* Plain puts, one per row, and one signal after them: whoever sees the signal sees all of them. */
static void send_tile(struct job *job) {
    const struct tile *tile = &job->field.tile;

    for (int y = 0; y < tile->height; y++)
        check(job, hem_put(job->window, 0, plate_offset(job, tile->x, tile->y + y),
                           field_at(&job->field, 0, y), (size_t)tile->width * sizeof(float)));
    check(job,
          hem_put(job->window, 0, times_offset(job, job->rank), &job->times, sizeof job->times));
    check(job, hem_signal(job->window, 0, SIGNAL_TILE, HEM_SIGNAL_ADD, 1));
}

/* Rank 0 has the whole plate in its window and may read it as plain memory. */
static void draw_plate(struct job *job, int done) {
    struct picture picture = {job->options.plate, job->grid,
                              own_memory(job, plate_offset(job, 0, 0))};
    bool last = done == job->options.plate.steps;

    if (job->screen)
        screen_show(job->screen, &picture, done, FRAME_INTERVAL);
    if (!last)
        return;
    if (!report_png(&picture, job->options.png))
        job->failed = true;
    report_times(own_memory(job, times_offset(job, 0)), job->ranks, done);
    if (job->options.check && !report_check(&picture))
        job->failed = true;
}

/* Brings the plate together on rank 0. The others wait while it draws, so that drawing does not
 * look like communication in the times, and no tile changes under the brush. */
static void show_plate(struct job *job, int done) {
    send_tile(job);
    job->shown++;
    if (job->rank != 0) {
        check(job,
              hem_wait_signal_from(job->window, 0, SIGNAL_GO_ON, HEM_GE, job->shown, HEM_FOREVER));
        return;
    }
    check(job, hem_wait_signal(job->window, SIGNAL_TILE, HEM_GE, job->shown * (uint64_t)job->ranks,
                               HEM_FOREVER));
    draw_plate(job, done);
    check(job, hem_signal_all(job->window, SIGNAL_GO_ON, HEM_SIGNAL_ADD, 1));
}

/* Only rank 0 knows whether there is a terminal. A signal can carry a number: this one tells the
 * others after how many steps the plate is shown. */
static int agree_on_rhythm(struct job *job) {
    int steps = job->options.plate.steps;
    uint64_t every = (uint64_t)(job->screen ? (steps + FRAMES - 1) / FRAMES : steps);

    if (job->rank == 0) {
        check(job, hem_signal_all(job->window, SIGNAL_RHYTHM, HEM_SIGNAL_SET, every));
    } else {
        check(job, hem_wait_signal_from(job->window, 0, SIGNAL_RHYTHM, HEM_NE, 0, HEM_FOREVER));
        check(job, hem_read_signal_from(job->window, 0, SIGNAL_RHYTHM, &every));
    }
    return (int)every;
}

static void run_steps(struct job *job) {
    int steps = job->options.plate.steps;
    int every = agree_on_rhythm(job);
    int quarter = (steps + 3) / 4;

    for (int done = 1; done <= steps; done++) {
        run_step(job, done - 1);
        if (job->rank == 0 && !job->screen && (done % quarter == 0 || done == steps)) {
            printf("step %d of %d\n", done, steps);
            fflush(stdout);
        }
        if (done % every == 0 || done == steps)
            show_plate(job, done);
    }
}

/* Rank 0 speaks for all. False if there is nothing to run. */
static bool take_options(struct job *job, int argc, char **argv) {
    const struct plate *plate = &job->options.plate;
    bool speaker = job->rank == 0;
    enum options_answer answer = options_parse(argc, argv, speaker, &job->options);

    job->failed = answer == OPTIONS_WRONG;
    if (answer != OPTIONS_RUN)
        return false;
    if (!grid_choose(plate, job->ranks, &job->grid)) {
        if (speaker)
            fprintf(stderr, "heat: %d x %d points are too few for %d ranks\n", plate->width,
                    plate->height, job->ranks);
        job->failed = true;
        return false;
    }
    if (speaker) {
        printf("heat           %d x %d points, %d steps, %d x %d ranks\n", plate->width,
               plate->height, plate->steps, job->grid.columns, job->grid.rows);
        fflush(stdout);
    }
    return true;
}

int main(int argc, char **argv) {
    struct job job = {.rank = -1}; /* unknown as yet */

    check(&job, hem_world_open(NULL, &job.world));
    job.rank = hem_world_rank(job.world);
    job.ranks = hem_world_size(job.world);
    if (take_options(&job, argc, argv)) {
        if (job.rank == 0 && job.options.live)
            job.screen = screen_open();
        set_up(&job);
        run_steps(&job);
        check(&job, hem_window_destroy(job.window));
    }
    check(&job, hem_world_close(job.world));
    screen_close(job.screen);
    field_destroy(&job.field);
    free(job.column);
    return job.failed ? 1 : 0;
}
