/*
 * A rank dies in the middle of a collective, of each kind, small and large: every survivor that
 * waits gets HEM_ERR_PEER within 50 ms, all survivors that receive something agree on how many were
 * completed, and after a shrink the same collective works without the dead.
 *
 * As threads, a rank that returns without closing is dead; it stops after a random number of looks
 * at what is under way. As processes, `prog SEED` runs one case under the launcher, and a thread of
 * the victim kills it at a random moment; tests/script/coll-death.sh does that.
 * HEM_TEST_DEATH_MS (50) is the limit.
 *
 * hem-test: ranks=2,3,4,5,8 modes=threads timeout=60
 */
#include "coll_buffers.h"
#include "death_clock.h"

#include <signal.h>
#include <time.h>

enum {
    KINDS = HEM_ALLTOALLV + 1 /* and sparse */
};

static struct fate {
    uint64_t seed;
    int kind;
    bool big;
    int victim;
    int after; /**< collectives that the victim completes */
    int looks; /**< at the last one, before it dies; -1: it does not begin it */
    int64_t delay_ns;
} fate;

/* What a dead thread used must stay until all are gone. */
static coll_buffers leftover;

struct rank {
    hem_world *world;
    hem_world *twin; /**< of the same ranks: for what must go on */
    hem_window *clock;
    coll_case c;
    int me;
    int size;
};

static struct fate fate_of(uint64_t seed, int size) {
    harness_rng rng = harness_rng_of(seed, 3, (uint64_t)size);
    struct fate f = {.seed = seed};

    f.kind = (int)(seed % KINDS) + 1;
    f.big = seed / KINDS % 2;
    f.victim = (int)harness_below(&rng, (size_t)size);
    f.after = (int)harness_below(&rng, f.big ? 6 : 40);
    f.looks = (int)harness_below(&rng, 12) - 1;
    f.delay_ns = (int64_t)harness_below(&rng, harness_below(&rng, 2) ? HEM_MS(2) : HEM_MS(20));
    return f;
}

static coll_case case_of(int size) {
    harness_rng rng = harness_rng_of(fate.seed, 4, 0);
    coll_case c = {.kind = (hem_coll_kind)fate.kind,
                   .dtype = harness_below(&rng, 2) ? HEM_F64 : HEM_I16,
                   .count = fate.big ? 30000 : 1 + harness_below(&rng, 30),
                   .size = size,
                   .seed = harness_random(&rng) / 16 * 16};

    if (fate.kind == KINDS)
        c.kind = HEM_ALLTOALLV;
    c.in_place = c.kind == HEM_BROADCAST;
    c.op = coll_combines(c.kind) ? HEM_SUM : (hem_reduction)0;
    c.root = coll_has_root(c.kind) ? (int)harness_below(&rng, (size_t)size) : 0;
    return c;
}

/* The collective, and the sparse exchange as one more kind. */

static hem_status run_sparse(const struct rank *r) {
    size_t bytes = r->c.count * 8;
    char *data = calloc(bytes + 1, 1);
    hem_parcel parcels[2] = {{(r->me + 1) % r->size, bytes, data}, {r->me, 3, data}};
    hem_sparse_result got = {0};
    hem_status status;

    CHECK(data != NULL);
    status = hem_sparse(r->world, parcels, bytes ? 2 : 0, &got, LIMIT);
    if (status == HEM_OK)
        CHECK_EQ(got.count, bytes ? 2 : 0);
    hem_sparse_free(&got);
    free(data);
    return status;
}

static hem_status run_once(const struct rank *r, coll_buffers *b, int64_t *called_p) {
    hem_status status;

    if (fate.kind != KINDS)
        coll_buffers_fill(b);
    *called_p = harness_now();
    if (fate.kind == KINDS)
        return run_sparse(r);
    status = hem_coll_run(r->world, &b->coll, LIMIT);
    if (status == HEM_OK)
        coll_buffers_check(b);
    return status;
}

/* The victim. */

static void *kill_later(void *arg) {
    const struct rank *r = arg;
    struct timespec t = {.tv_nsec = (long)fate.delay_ns};

    nanosleep(&t, NULL);
    death_clock_stamp(r->twin, r->clock);
    raise(SIGKILL);
    return NULL;
}

/* A process is killed from the side, whatever it is doing. */
static void die_as_process(struct rank *r, coll_buffers *b) {
    int64_t called;
    pthread_t id;

    CHECK_EQ(pthread_create(&id, NULL, kill_later, r), 0);
    for (;;)
        CHECK_OK(run_once(r, b, &called));
}

static int die_as_thread(struct rank *r, coll_buffers *b) {
    int64_t called;
    hem_op *op = NULL;

    for (int i = 0; i < fate.after; i++)
        CHECK_OK(run_once(r, b, &called));
    if (fate.looks >= 0 && fate.kind != KINDS) {
        coll_buffers_fill(b);
        CHECK_OK(hem_coll_start(r->world, &b->coll, &op));
        for (int i = 0; i < fate.looks; i++) {
            CHECK_OK(hem_progress(r->world));
            harness_dither((uint64_t)i * 4);
        }
    }
    leftover = *b;
    death_clock_stamp(r->twin, r->clock);
    return 0;
}

/* The survivors. */

/* Those who receive something have received it equally often. */
static void agree(const struct rank *r, hem_world *rest, uint64_t completed) {
    bool counts = !coll_only_gives(&r->c, r->me);
    uint64_t word = counts ? completed : UINT64_MAX;
    int size = hem_world_size(rest);
    hem_window *window = harness_window(rest, (size_t)size * 8);
    const uint64_t *all = hem_window_memory(window);

    for (int peer = 0; peer < size; peer++)
        CHECK_OK(hem_put(window, peer, (size_t)hem_world_rank(rest) * 8, &word, 8));
    harness_barrier(window);
    for (int peer = 0; peer < size; peer++)
        if (counts && all[peer] != UINT64_MAX && all[peer] != completed)
            harness_fail(__FILE__, __LINE__, "%s: survivor %d completed %lld, this one %lld",
                         coll_kind_name(r->c.kind), peer, (long long)all[peer],
                         (long long)completed);
    harness_destroy(window);
}

static void go_on(struct rank *r, uint64_t completed) {
    hem_world *rest = NULL;
    coll_case c = r->c;

    CHECK_OK(hem_world_shrink(r->world, &rest));
    CHECK_EQ(hem_world_size(rest), r->size - 1);
    agree(r, rest, completed);
    c.size = r->size - 1;
    c.root = coll_has_root(c.kind) ? c.root % c.size : 0;
    for (uint64_t round = 0; round < 3; round++) {
        c.seed += 16;
        coll_run_checked(rest, &c);
    }
    CHECK_OK(hem_sync(rest, LIMIT));
    CHECK_OK(hem_world_close(rest));
}

static void survive(struct rank *r, coll_buffers *b) {
    int64_t limit = harness_now() + LIMIT;
    int64_t called = 0;
    uint64_t completed = 0;
    hem_status status;

    while ((status = run_once(r, b, &called)) == HEM_OK) {
        completed++;
        CHECK(harness_now() < limit);
    }
    if (status != HEM_ERR_PEER)
        harness_fail(__FILE__, __LINE__, "%s gave %s, not HEM_ERR_PEER, after %llu: %s",
                     coll_kind_name(r->c.kind), hem_status_name(status),
                     (unsigned long long)completed, hem_last_error());
    CHECK_NAMES_RANK(fate.victim);
    death_clock_check(r->twin, r->clock, coll_kind_name(r->c.kind), fate.victim, called,
                      !harness_threads());
    /* Nothing that needs everybody works any more, and that is said at once. */
    CHECK_STATUS(hem_sync(r->world, LIMIT), HEM_ERR_PEER);
    coll_buffers_free(b);
    go_on(r, completed);
}

int rank_main(hem_world *world) {
    struct rank r = {.world = world, .me = hem_world_rank(world), .size = hem_world_size(world)};
    coll_buffers b;

    harness_note_seed(fate.seed);
    r.c = case_of(r.size);
    CHECK_OK(hem_world_split(world, 0, 0, &r.twin));
    r.clock = harness_window(r.twin, 64);
    b = coll_buffers_make(world, &r.c, (int)(fate.seed / 7 % 4), COLL_ANY);
    harness_barrier(r.clock);
    if (r.me == fate.victim) {
        if (!harness_threads())
            die_as_process(&r, &b);
        return die_as_thread(&r, &b);
    }
    survive(&r, &b);
    CHECK_STATUS(hem_window_destroy(r.clock), HEM_ERR_PEER);
    CHECK_STATUS(hem_world_close(r.twin), HEM_ERR_PEER);
    harness_close(world, HEM_ERR_PEER);
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

static void bury(void) {
    for (int i = 0; i < 2; i++)
        if (leftover.rooms[i].base && !leftover.rooms[i].memory)
            free(leftover.rooms[i].base);
    leftover = (coll_buffers){0};
}

static int all_cases(int ranks, uint64_t seed) {
    int rounds = harness_rounds(4 * KINDS);
    int failed = 0;

    harness_set_threads();
    for (int round = 0; round < rounds; round++) {
        hem_status status;

        fate = fate_of(seed + (uint64_t)round, ranks);
        status = hem_world_threads(ranks, thread_rank, NULL, NULL);
        if (status != HEM_OK) {
            fprintf(stderr, "HEM_SEED=%llu: %s: %s\n", (unsigned long long)fate.seed,
                    hem_status_name(status), hem_last_error());
            failed = 1;
        }
        bury();
    }
    return failed;
}

int main(int argc, char **argv) {
    const char *given = getenv("HEM_SEED");
    uint64_t seed = given && *given ? strtoull(given, NULL, 0) : (uint64_t)harness_now() % 1000003;
    hem_world *world = NULL;

    if (argc == 3 && strcmp(argv[1], "--threads") == 0)
        return all_cases(atoi(argv[2]), seed);
    if (argc != 2) {
        fprintf(stderr, "usage: %s SEED\n", argv[0]);
        return 2;
    }
    CHECK_OK(hem_world_open(NULL, &world));
    fate = fate_of(strtoull(argv[1], NULL, 0), hem_world_size(world));
    return harness_run(world, rank_main);
}
