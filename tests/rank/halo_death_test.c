/*
 * A rank dies while the others set up a pattern or an exchange, or are in runs, of every form. Each
 * survivor gets an error within 50 ms of the death: HEM_ERR_PEER naming the dead rank in set-up and if
 * it is a neighbour's, else perhaps HEM_ERR_REVOKED. The exchange is broken then, everything can still
 * be given up, and a shrunk world makes patterns and exchanges that work.
 *
 * As threads, a rank that returns without closing is dead. As processes, `prog KIND VICTIM MANNER` runs
 * one case under the launcher; tests/script/halo-death.sh does that. HEM_TEST_DEATH_MS (50) is the
 * limit.
 *
 * hem-test: ranks=2,3,5 modes=threads timeout=90
 */
#include "death_clock.h"
#include "halo_bad.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

enum kind {
    GRID,
    MESH,
    LISTS,
    SPHERE,
    CREATE,
    VALIDATE,
    RUN,     /**< the victim does not start */
    BUSY,    /**< it dies between two of many runs */
    STARTED, /**< it dies with a run under way */
    REVERSE,
    TEST,
    OP,
    STREAM,
    ANYWHERE, /**< at a random moment; processes only */
    KINDS
};

static const char *const names[KINDS] = {
    "grid", "mesh",    "lists",   "sphere", "create", "validate", "run",
    "busy", "started", "reverse", "test",   "op",     "stream",   "anywhere",
};

static struct plan {
    enum kind kind;
    int victim;
    const char *manner;
    bool early;
} plan;

struct rank {
    hem_world *world;
    hem_world *twin; /* for the clock */
    hem_window *clock;
    int me;
    int size;
    halo_grid g;
    halo_case c;
    halo_set s;
    hem_pattern *pattern;
    hem_exchange *exchange;
    hem_stream *stream;
};

/* What a dead thread leaves behind, to be freed when all have ended. */
static struct rank dead;

static hem_status live(struct rank *r);
static void kill_later(void *arg);

static int die(struct rank *r) {
    harness_thread thread;

    if (plan.kind == ANYWHERE) {
        harness_start(&thread, kill_later, r);
        while (live(r) == HEM_OK)
            continue;
        return 1;
    }
    if (plan.kind == BUSY)
        for (int i = 0; i < 30; i++)
            CHECK_OK(hem_exchange_run(r->exchange, NULL, LIMIT));
    if (plan.kind == STARTED)
        CHECK_OK(hem_exchange_start(r->exchange, NULL));
    if (!plan.early && plan.kind != BUSY)
        harness_sleep_ms(12);
    dead = *r;
    death_clock_stamp(r->twin, r->clock);
    if (strcmp(plan.manner, "kill") == 0)
        raise(SIGKILL);
    if (strcmp(plan.manner, "exit") == 0)
        _exit(3);
    return atoi(plan.manner);
}

/* Set-up that needs the dead rank. */
static hem_status set_up(struct rank *r) {
    hem_pattern *pattern = NULL;
    hem_exchange *exchange = NULL;
    hem_mesh_options mesh = {.struct_size = sizeof mesh};
    hem_explicit_options lists = {.struct_size = sizeof lists};
    hem_sphere_options sphere = {.struct_size = sizeof sphere, .cells = 4, .halo = 1};
    hem_exchange_options options = halo_set_options(&r->s);
    hem_grid_options grid = halo_grid_options(&r->g, r->me);
    hem_status status = HEM_OK;

    if (plan.kind == GRID)
        status = hem_pattern_grid(r->world, &grid, &pattern);
    if (plan.kind == MESH)
        status = hem_pattern_mesh(r->world, &mesh, &pattern);
    if (plan.kind == LISTS)
        status = hem_pattern_explicit(r->world, &lists, &pattern);
    if (plan.kind == SPHERE)
        status = hem_pattern_sphere(r->world, &sphere, &pattern);
    if (plan.kind == CREATE)
        status = hem_exchange_create(r->world, &options, &exchange);
    if (plan.kind == VALIDATE)
        status = hem_pattern_validate(r->pattern, LIMIT);
    CHECK(pattern == NULL && exchange == NULL);
    free((void *)(uintptr_t)grid.domains);
    return status;
}

static hem_status test_for_long(hem_exchange *exchange) {
    hem_status status = HEM_OK;
    bool done = false;
    int64_t until = harness_now() + LIMIT;

    while (status == HEM_OK && !done && harness_now() < until)
        status = hem_exchange_test(exchange, &done);
    return status;
}

static hem_status run_once(struct rank *r) {
    hem_exchange_how how = {.struct_size = sizeof how, .combine = HEM_COMBINE_SUM};
    hem_status status;

    if (plan.kind == STREAM) {
        status = hem_exchange_start_on(r->exchange, NULL, r->stream);
        if (status == HEM_OK)
            status = hem_exchange_finish_on(r->exchange, r->stream);
        return status == HEM_OK ? hem_stream_sync(r->stream, LIMIT) : status;
    }
    if (plan.kind != TEST && plan.kind != OP)
        return hem_exchange_run(r->exchange, plan.kind == REVERSE ? &how : NULL, LIMIT);
    status = hem_exchange_start(r->exchange, NULL);
    if (status != HEM_OK)
        return status;
    if (plan.kind == TEST)
        return test_for_long(r->exchange);
    return hem_op_wait(hem_exchange_op(r->exchange), LIMIT);
}

/* Everything from a pattern to its end, many times: there is always something under way. */
static hem_status live(struct rank *r) {
    hem_exchange_how how = {.struct_size = sizeof how, .combine = HEM_COMBINE_MAX};
    hem_exchange_options options = halo_set_options(&r->s);
    hem_grid_options grid = halo_grid_options(&r->g, r->me);
    hem_pattern *pattern = NULL;
    hem_exchange *exchange = NULL;
    hem_status status = hem_pattern_grid(r->world, &grid, &pattern);

    if (status == HEM_OK)
        status = hem_exchange_create(r->world, &options, &exchange);
    for (int i = 0; i < 9 && status == HEM_OK; i++)
        status = hem_exchange_run(exchange, i % 3 ? NULL : &how, LIMIT);
    if (status == HEM_OK)
        status = hem_exchange_run(r->exchange, NULL, LIMIT);
    free((void *)(uintptr_t)grid.domains);
    hem_pattern_destroy(pattern);
    hem_exchange_destroy(exchange);
    return status;
}

static void kill_later(void *arg) {
    const struct rank *r = arg;
    struct timespec t = {.tv_nsec = (long)(harness_now() / 7 % 4000000)};

    nanosleep(&t, NULL);
    death_clock_stamp(r->twin, r->clock);
    raise(SIGKILL);
}

static bool is_neighbour(const struct rank *r) {
    return harness_left(r->world) == plan.victim || harness_right(r->world) == plan.victim;
}

/* A run without the dead one may still work for those who are no neighbours. */
static void wait_until_dead(struct rank *r) {
    hem_status status = HEM_OK;
    bool in_setup = plan.kind < RUN;

    if (plan.early)
        harness_sleep_ms(60);
    while (status == HEM_OK)
        status = in_setup ? set_up(r) : plan.kind == ANYWHERE ? live(r) : run_once(r);
    if (status != HEM_ERR_PEER && (in_setup || status != HEM_ERR_REVOKED))
        harness_fail(__FILE__, __LINE__, "%s gave %s: %s", names[plan.kind],
                     hem_status_name(status), hem_last_error());
    /* Neighbours of the dead rank see that, whoever else has given up by then. */
    if (plan.kind != ANYWHERE && (in_setup || is_neighbour(r))) {
        CHECK_EQ((uint64_t)status, (uint64_t)HEM_ERR_PEER);
        CHECK_NAMES_RANK(plan.victim);
    }
    /* Others may wait for this rank in an exchange that had no part in it. */
    if (plan.kind == ANYWHERE)
        CHECK_OK(hem_world_revoke(r->world));
    if (!plan.early)
        death_clock_check(r->twin, r->clock, names[plan.kind], plan.victim, 0,
                          plan.kind == ANYWHERE);
    if (!in_setup && plan.kind != ANYWHERE)
        CHECK_STATUS(hem_exchange_run(r->exchange, NULL, LIMIT), HEM_ERR_REVOKED);
}

static void go_on(const struct rank *r) {
    hem_world *rest = NULL;

    CHECK_OK(hem_world_shrink(r->world, &rest));
    CHECK_EQ(hem_world_size(rest), r->size - 1);
    halo_works(rest);
    CHECK_OK(hem_world_close(rest));
}

static void make(struct rank *r) {
    harness_rng rng = {7};
    halo_spec spec = halo_spec_plain(5);

    r->g = halo_ring(r->size);
    r->c = halo_grid_case(&r->g, r->size);
    r->pattern = halo_grid_pattern(r->world, &r->g, &r->c);
    r->s = (halo_set){.world = r->world};
    halo_set_add(&r->s, r->pattern, &r->c, &spec, HALO_C, HALO_PRIVATE, &rng);
    r->exchange = halo_set_exchange(&r->s);
    for (uint64_t round = 0; round < 5 && plan.kind != BUSY; round++)
        halo_set_run(&r->s, r->exchange, NULL, round);
    if (plan.kind == STREAM)
        CHECK_OK(hem_stream_create(r->world, &r->stream));
}

/* What a rank held in the library goes with its world if it ends without closing it. */
static void drop(struct rank *r, bool lives) {
    if (lives) {
        hem_exchange_destroy(r->exchange);
        hem_stream_destroy(r->stream);
        hem_pattern_destroy(r->pattern);
    }
    halo_set_free(&r->s);
    halo_case_free(&r->c);
    halo_grid_free(&r->g);
}

int rank_main(hem_world *world) {
    struct rank r = {.world = world, .me = hem_world_rank(world), .size = hem_world_size(world)};

    CHECK_OK(hem_world_split(world, 0, 0, &r.twin));
    r.clock = harness_window(r.twin, 64);
    harness_step(names[plan.kind], (uint64_t)plan.victim);
    make(&r);
    harness_barrier(r.clock);
    if (r.me == plan.victim)
        return die(&r);
    wait_until_dead(&r);
    go_on(&r);
    if (r.me % 2)
        drop(&r, true);
    harness_close(world, HEM_ERR_PEER);
    if (r.me % 2 == 0)
        drop(&r, true);
    CHECK_STATUS(hem_window_destroy(r.clock), HEM_ERR_PEER);
    CHECK_STATUS(hem_world_close(r.twin), HEM_ERR_PEER);
    if (!harness_threads()) {
        printf("survived %d\n", r.me);
        fflush(stdout);
    }
    return 0;
}

static int thread_rank(hem_world *world, void *unused) {
    (void)unused;
    return harness_run(world, rank_main);
}

static int all_cases(int ranks) {
    int failed = 0;

    harness_set_threads();
    for (int kind = 0; kind < ANYWHERE; kind++) {
        for (int i = 0; i < 3; i++) {
            plan = (struct plan){(enum kind)kind, i == 1 ? ranks - 1 : 0, "0", i == 2};
            if (plan.early && plan.kind == BUSY)
                continue;
            if (hem_world_threads(ranks, thread_rank, NULL, NULL) != HEM_OK) {
                fprintf(stderr, "%s, victim %d%s: %s\n", names[kind], plan.victim,
                        plan.early ? ", early" : "", hem_last_error());
                failed = 1;
            }
            drop(&dead, false);
        }
    }
    return failed;
}

int main(int argc, char **argv) {
    hem_world *world = NULL;
    int kind = 0;

    if (argc == 3 && strcmp(argv[1], "--threads") == 0)
        return all_cases(atoi(argv[2]));
    while (argc == 4 && kind < KINDS && strcmp(argv[1], names[kind]) != 0)
        kind++;
    if (argc != 4 || kind == KINDS) {
        fprintf(stderr, "usage: %s KIND VICTIM kill|exit|NUMBER\n", argv[0]);
        return 2;
    }
    plan = (struct plan){(enum kind)kind, atoi(argv[2]), argv[3], false};
    CHECK_OK(hem_world_open(NULL, &world));
    return harness_run(world, rank_main);
}
