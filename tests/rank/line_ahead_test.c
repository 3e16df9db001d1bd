/*
 * Results travel with the completion of their round, not in members that rounds share: many rounds are
 * started ahead, taken in any order, from callbacks and handles, while later ones arrive; nothing of a
 * result changes afterwards. Several lines of one world at once, served in a different order on each
 * rank; with a progress thread and the event descriptor; awaited one by one and any of them.
 *
 * hem-test: ranks=1,2,3,5,8 modes=processes,threads timeout=60
 */
#include "line_kit.h"

#include <poll.h>
#include <stdatomic.h>

enum {
    AHEAD = 12,
    LINES = 3
};

typedef struct flight {
    hem_world *world;
    line_plan plan;
    line_packet packets[AHEAD];
    hem_op *ops[AHEAD];
    hem_line_result results[AHEAD];
    atomic_int called[AHEAD];
    hem_status ended[AHEAD];
} flight;

static void start_all(flight *f, hem_line *line, uint64_t first) {
    for (uint64_t i = 0; i < AHEAD; i++) {
        line_pack(&f->packets[i], f->world, &f->plan, first + i);
        CHECK_OK(hem_line_start(line, &f->packets[i].round, &f->ops[i]));
        /* Only the payloads have to stay. */
        memset(&f->packets[i].round, 0xff, sizeof f->packets[i].round);
    }
}

static void end_one(flight *f, uint64_t first, size_t i) {
    hem_line_result again;

    harness_step("started round", first + i);
    line_check(f->world, &f->plan, first + i, &f->results[i]);
    CHECK_STATUS(hem_line_take(f->ops[i], &again), HEM_ERR_ARG);
    CHECK_OK(hem_op_free(f->ops[i]));
    hem_line_release(&f->results[i]);
    line_unpack(&f->packets[i]);
}

/* All are waited for at the end, and taken from the last to the first. */
static void backwards(flight *f, hem_line *line, uint64_t first) {
    start_all(f, line, first);
    CHECK_OK(hem_op_wait_all(f->ops, AHEAD, LIMIT));
    for (size_t i = AHEAD; i-- > 0;)
        CHECK_OK(hem_line_take(f->ops[i], &f->results[i]));
    for (size_t i = 0; i < AHEAD; i++)
        end_one(f, first, i);
}

/* One after the other as they come; they come in order. */
static void one_by_one(flight *f, hem_line *line, uint64_t first) {
    hem_op *left[AHEAD];
    hem_line_result early;

    start_all(f, line, first);
    if (hem_world_size(f->world) > 1) {
        hem_op *last = NULL;
        CHECK_OK(hem_recv_start(f->world, hem_world_rank(f->world), 3, &early, 1, &last));
        CHECK_STATUS(hem_line_take(last, &early), HEM_ERR_ARG);
        CHECK_OK(hem_op_free(last));
    }
    memcpy(left, f->ops, sizeof left);
    for (size_t i = 0; i < AHEAD; i++) {
        size_t which = AHEAD;
        CHECK_OK(hem_op_wait_any(left, AHEAD, &which, LIMIT));
        CHECK_EQ(which, i);
        left[which] = NULL;
        CHECK_OK(hem_line_take(f->ops[i], &f->results[i]));
        end_one(f, first, i);
    }
}

static void on_done(hem_op *op, hem_status status, void *arg) {
    flight *f = arg;

    for (size_t i = 0; i < AHEAD; i++)
        if (f->ops[i] == op) {
            f->ended[i] = status == HEM_OK ? hem_line_take(op, &f->results[i]) : status;
            atomic_fetch_add(&f->called[i], 1);
        }
}

static void by_callback(flight *f, hem_line *line, uint64_t first) {
    memset(f->called, 0, sizeof f->called);
    start_all(f, line, first);
    for (size_t i = 0; i < AHEAD; i++)
        CHECK_OK(hem_op_on_done(f->ops[i], on_done, f));
    CHECK_OK(hem_op_wait_all(f->ops, AHEAD, LIMIT));
    for (size_t i = 0; i < AHEAD; i++) {
        while (atomic_load(&f->called[i]) == 0)
            CHECK_OK(hem_progress(f->world));
        CHECK_EQ(atomic_load(&f->called[i]), 1);
        CHECK_EQ(f->ended[i], HEM_OK);
        end_one(f, first, i);
    }
}

/* Some results are never taken, and go with their operations. */
static void dropped(flight *f, hem_line *line, uint64_t first) {
    start_all(f, line, first);
    CHECK_OK(hem_op_wait(f->ops[AHEAD - 1], LIMIT));
    for (size_t i = 0; i < AHEAD; i++) {
        CHECK_OK(hem_op_free(f->ops[i]));
        line_unpack(&f->packets[i]);
    }
}

static void on_a_line(hem_world *world, uint64_t seed, bool ring) {
    flight f = {.world = world, .plan = {seed, 6000, 300000, ring}};
    hem_line *line = line_make(world, ring);
    uint64_t first = 1;

    backwards(&f, line, first);
    one_by_one(&f, line, first += AHEAD);
    by_callback(&f, line, first += AHEAD);
    dropped(&f, line, first += AHEAD);
    backwards(&f, line, first + AHEAD);
    CHECK_OK(hem_line_destroy(line));
}

/* Rank r serves its lines from the r-th on; all rounds of a line are under way before any is waited
 * for. */
static void several_lines(hem_world *world, uint64_t seed) {
    static flight all[16][LINES];
    flight *f = all[hem_world_rank(world) % 16];
    hem_line *lines[LINES];
    int me = hem_world_rank(world);

    for (int i = 0; i < LINES; i++) {
        f[i] = (flight){.world = world, .plan = {seed + (uint64_t)i, 500, 70000, i == 1}};
        lines[i] = line_make(world, i == 1);
    }
    for (uint64_t first = 1; first <= 3 * AHEAD; first += AHEAD) {
        for (int i = 0; i < LINES; i++)
            start_all(&f[(i + me) % LINES], lines[(i + me) % LINES], first);
        for (int i = LINES; i-- > 0;) {
            flight *g = &f[(i + me) % LINES];
            CHECK_OK(hem_op_wait_all(g->ops, AHEAD, LIMIT));
            for (size_t k = 0; k < AHEAD; k++) {
                CHECK_OK(hem_line_take(g->ops[k], &g->results[k]));
                end_one(g, first, k);
            }
        }
    }
    for (int i = 0; i < LINES; i++)
        CHECK_OK(hem_line_destroy(lines[(i + me) % LINES]));
}

/* Nobody calls anything but poll() until all rounds are there. */
static void by_descriptor(hem_world *world, uint64_t seed) {
    flight f = {.world = world, .plan = {seed, 50, 100000, true}};
    hem_line *line = line_make(world, true);
    uint64_t seen = 0;
    int fd = -1;

    CHECK_OK(hem_progress_start(world));
    CHECK_OK(hem_world_event_fd(world, &fd));
    CHECK_OK(hem_world_event_read(world, &seen));
    start_all(&f, line, 1);
    for (seen = 0; seen < AHEAD;) {
        struct pollfd want = {.fd = fd, .events = POLLIN};
        uint64_t more = 0;
        CHECK(poll(&want, 1, 20000) == 1);
        CHECK_OK(hem_world_event_read(world, &more));
        seen += more;
    }
    CHECK_EQ(seen, AHEAD);
    for (size_t i = 0; i < AHEAD; i++) {
        CHECK_OK(hem_line_take(f.ops[i], &f.results[i]));
        end_one(&f, 1, i);
    }
    by_callback(&f, line, 1 + AHEAD);
    CHECK_OK(hem_progress_stop(world));
    CHECK_OK(hem_line_destroy(line));
}

int rank_main(hem_world *world) {
    uint64_t seed = harness_seed(world);

    on_a_line(world, seed, false);
    on_a_line(world, seed + 1, true);
    several_lines(world, seed + 2);
    by_descriptor(world, seed + 10);
    harness_close(world, HEM_OK);
    return 0;
}
