/*
 * A rank dies between two rounds of a line, or in the middle of one that it has started. Its neighbours
 * get HEM_ERR_PEER within 50 ms of the death, naming it, and everybody else hears of it down the line
 * with HEM_ERR_REVOKED; what it had given whole before still counts. At every length of payload, in
 * calls that wait and in started rounds, in open lines and rings. Survivors shrink and go on with a new
 * line. A revoke of the world ends rounds, too.
 *
 * As threads, a rank that returns without closing is dead. As processes, `prog BYTES VICTIM MANNER
 * wait|start open|ring` runs one case under the launcher; tests/script/line-death.sh does that and
 * checks the exit code. HEM_TEST_DEATH_MS (50) is the limit.
 *
 * hem-test: ranks=2,3,5 modes=threads timeout=60
 */
#include "death_clock.h"
#include "line_kit.h"

#include <signal.h>
#include <unistd.h>

static struct plan {
    size_t bytes;
    int victim;
    const char *manner;
    bool started;
    bool ring;
    unsigned char *data; /* what all ranks give; a dead rank could not free it */
} plan;

enum {
    WHOLE = 2 /* rounds before the death */
};

struct rank {
    hem_world *world;
    hem_window *clock;
    hem_line *line;
    hem_payload payload;
    hem_line_round round;
};

static bool is_neighbour(const struct rank *r) {
    line_plan links = {.ring = plan.ring};

    return line_neighbour(r->world, &links, LINE_LEFT) == plan.victim ||
           line_neighbour(r->world, &links, LINE_RIGHT) == plan.victim;
}

static void set_up(struct rank *r, hem_world *world) {
    r->world = world;
    r->clock = harness_window(world, 64);
    r->line = line_make(world, plan.ring);
    r->payload = (hem_payload){"meta", 4, plan.data, plan.bytes};
    r->round = (hem_line_round){
        .struct_size = sizeof r->round, .to_left = &r->payload, .to_right = &r->payload};
}

static hem_status one(struct rank *r, hem_line_result *result) {
    hem_op *op = NULL;

    if (!plan.started)
        return hem_line_exchange(r->line, &r->round, result, LIMIT);
    hem_status status = hem_line_start(r->line, &r->round, &op);
    if (status == HEM_OK)
        status = hem_op_wait(op, LIMIT);
    if (op != NULL)
        CHECK_EQ(hem_line_take(op, result), status);
    CHECK(hem_op_free(op) == HEM_OK);
    return status;
}

static int die(struct rank *r) {
    hem_line_result result;
    hem_op *op = NULL;

    for (int i = 0; i < WHOLE; i++) {
        CHECK_OK(one(r, &result));
        hem_line_release(&result);
    }
    harness_sleep_ms(10); /* the neighbours are in the next one */
    if (plan.started)
        CHECK_OK(hem_line_start(r->line, &r->round, &op));
    death_clock_stamp(r->world, r->clock);
    if (strcmp(plan.manner, "kill") == 0)
        raise(SIGKILL);
    if (strcmp(plan.manner, "exit") == 0)
        _exit(3);
    return 0;
}

static void survive(struct rank *r) {
    hem_line_result result = {0};
    hem_status status;
    int rounds = 0;

    while ((status = one(r, &result)) == HEM_OK) {
        CHECK(!result.from_left.present || result.from_left.data_bytes == plan.bytes);
        CHECK_FILLED(result.from_left.buffer.data, result.from_left.data_bytes, plan.bytes);
        CHECK_FILLED(result.from_right.buffer.data, result.from_right.data_bytes, plan.bytes);
        hem_line_release(&result);
        rounds++;
    }
    death_clock_check(r->world, r->clock, "the round", plan.victim, 0, false);
    if (is_neighbour(r) && status == HEM_ERR_PEER)
        CHECK_NAMES_RANK(plan.victim);
    else /* of neighbours, too: another one may have been faster than the alarm */
        CHECK_EQ(status, HEM_ERR_REVOKED);
    /* A round that it had started may have been whole. */
    if (is_neighbour(r))
        CHECK(rounds == WHOLE || (plan.started && rounds == WHOLE + 1));
    CHECK_STATUS(hem_line_exchange(r->line, NULL, &result, LIMIT), HEM_ERR_REVOKED);
    CHECK_OK(hem_line_destroy(r->line));
}

static void go_on(hem_world *world) {
    hem_world *rest = NULL;
    line_plan links = {5, 200, 30000, true};

    CHECK_OK(hem_world_shrink(world, &rest));
    hem_line *line = line_make(rest, true);
    for (uint64_t i = 1; i <= 5; i++)
        CHECK(!line_pass(rest, line, &links, i, false));
    CHECK_OK(hem_line_destroy(line));
    CHECK_OK(hem_world_close(rest));
}

/* Rank 0 revokes a world while rank 1 waits in a round. */
static void revoked(hem_world *world) {
    hem_world *copy = NULL;
    hem_line_result result;

    CHECK_OK(hem_world_split(world, 0, 0, &copy));
    hem_line *line = line_make(copy, false);
    CHECK_OK(hem_line_exchange(line, NULL, &result, LIMIT));
    CHECK_OK(hem_sync(world, LIMIT));
    if (hem_world_rank(world) == 0) {
        harness_sleep_ms(5);
        CHECK_OK(hem_world_revoke(copy));
    } else if (hem_world_rank(world) == 1) {
        CHECK_STATUS(hem_line_exchange(line, NULL, &result, LIMIT), HEM_ERR_REVOKED);
    }
    CHECK_OK(hem_sync(world, LIMIT));
    CHECK_OK(hem_line_destroy(line));
    hem_status closed = hem_world_close(copy);
    CHECK(closed == HEM_OK || closed == HEM_ERR_REVOKED);
}

int rank_main(hem_world *world) {
    struct rank r;
    int me = hem_world_rank(world);

    if (plan.bytes == 0) {
        revoked(world);
        harness_close(world, HEM_OK);
        return 0;
    }
    set_up(&r, world);
    if (me == plan.victim)
        return die(&r);
    survive(&r);
    go_on(world);
    harness_close(world, HEM_ERR_PEER);
    (void)hem_window_destroy(r.clock);
    if (!harness_threads()) {
        printf("survived %d\n", me);
        fflush(stdout);
    }
    return 0;
}

static void make_plan(size_t bytes, int victim, const char *manner, bool started, bool ring) {
    plan = (struct plan){bytes, victim, manner, started, ring, malloc(bytes + 1)};
    harness_fill(plan.data, bytes, bytes);
}

/* The victim does not fail by dying. */
static int thread_rank(hem_world *world, void *unused) {
    (void)unused;
    return harness_run(world, rank_main);
}

static int all_cases(int ranks) {
    static const size_t sizes[] = {0, 8, 4000, 100000, 500000};
    int failed = 0;

    harness_set_threads();
    for (int i = 0; i < 20; i++) {
        make_plan(sizes[i / 4], i % ranks, "", i % 2 == 1, i % 4 >= 2);
        if (hem_world_threads(ranks, thread_rank, NULL, NULL) != HEM_OK) {
            fprintf(stderr, "case %d: %s\n", i, hem_last_error());
            failed = 1;
        }
        free(plan.data);
    }
    return failed;
}

int main(int argc, char **argv) {
    hem_world *world = NULL;

    if (argc == 3 && strcmp(argv[1], "--threads") == 0)
        return all_cases(atoi(argv[2]));
    if (argc != 6) {
        fprintf(stderr, "usage: %s BYTES VICTIM kill|exit wait|start open|ring\n", argv[0]);
        return 2;
    }
    make_plan((size_t)atol(argv[1]), atoi(argv[2]), argv[3], strcmp(argv[4], "start") == 0,
              strcmp(argv[5], "ring") == 0);
    CHECK_OK(hem_world_open(NULL, &world));
    int failed = harness_run(world, rank_main);
    free(plan.data);
    return failed;
}
