/*
 * A rank dies while the others wait for it, in every call that waits. Each survivor gets
 * HEM_ERR_PEER within 50 ms of the death, puts to the dead fail from then on, what it sent before
 * is still seen, its memory can still be read, the survivors go on among themselves, and a shrink
 * gives them a world without it, in which everything works.
 *
 * As threads, a rank that returns without closing is dead. As processes, `prog KIND VICTIM MANNER`
 * runs one case under the launcher; tests/script/death.sh does that and checks the exit code.
 * HEM_TEST_DEATH_MS (50) is the limit.
 *
 * hem-test: ranks=2,3,4,5,8 modes=threads timeout=60
 */
#include "death_clock.h"
#include "waits.h"

#include <signal.h>
#include <unistd.h>

enum {
    LAST_WORDS = 8,
    RING = 32,
    RING_ID = 5,
    WORDS_ID = 6
};

static struct plan {
    enum wait_kind kind;
    int victim;
    const char *manner;
    bool early;
} plan;

struct rank {
    hem_world *world;
    hem_window *window;
    /* A second world of the same ranks, which outlives a close of the first. */
    hem_world *twin;
    hem_window *clock;
    int me;
    int size;
};

/* A child that outlives the rank keeps its files open; the death must be seen all the same. */
static void leave_orphan(void) {
    if (fork() == 0) {
        harness_sleep_ms(3000);
        _exit(0);
    }
}

/* Nobody looks at them before the rank is dead. */
static void say_last_words(const struct rank *r) {
    for (int peer = 0; peer < r->size; peer++)
        CHECK_OK(hem_put_signal(r->window, peer, LAST_WORDS, "farewell", 8, WORDS_ID, 1));
}

static int die(const struct rank *r) {
    if (!plan.early)
        harness_sleep_ms(12);
    if (strcmp(plan.manner, "orphan") == 0)
        leave_orphan();
    death_clock_stamp(r->twin, r->clock);
    if (strcmp(plan.manner, "kill") == 0 || strcmp(plan.manner, "orphan") == 0)
        raise(SIGKILL);
    if (strcmp(plan.manner, "exit") == 0)
        _exit(3);
    if (strcmp(plan.manner, "zero") == 0)
        _exit(0);
    return atoi(plan.manner);
}

static void wait_until_dead(struct rank *r) {
    hem_status status;

    if (plan.early)
        harness_sleep_ms(60);
    status = wait_for(plan.kind, r->world, r->window, plan.victim);
    if (status != HEM_ERR_PEER)
        harness_fail(__FILE__, __LINE__, "%s gave %s, not HEM_ERR_PEER: %s", wait_name(plan.kind),
                     hem_status_name(status), hem_last_error());
    CHECK_NAMES_RANK(plan.victim);
    if (!plan.early)
        death_clock_check(r->twin, r->clock, wait_name(plan.kind), plan.victim, 0, false);
}

/* In the other world nobody has waited yet: a put learns of the death by itself. */
static void puts_fail(struct rank *r) {
    uint64_t word = 1;
    hem_status status;

    do {
        status = hem_put(r->clock, plan.victim, 16, &word, 8);
        if (!plan.early)
            death_clock_check(r->twin, r->clock, "put", plan.victim, 0, false);
    } while (status == HEM_OK && !plan.early);
    CHECK_STATUS(status, HEM_ERR_PEER);
    CHECK_STATUS(hem_signal(r->clock, plan.victim, 0, HEM_SIGNAL_ADD, 1), HEM_ERR_PEER);
    CHECK_STATUS(hem_put_signal(r->clock, plan.victim, 16, &word, 8, 0, 1), HEM_ERR_PEER);
    CHECK_STATUS(hem_fetch_add(r->clock, plan.victim, 16, 1, NULL), HEM_ERR_PEER);
    CHECK_STATUS(hem_signal_all(r->clock, 7, HEM_SIGNAL_ADD, 1), HEM_ERR_PEER);
    CHECK_STATUS(hem_barrier(r->clock, 3, LIMIT), HEM_ERR_PEER);
    for (int peer = 0; peer < r->size; peer++)
        CHECK_EQ(hem_world_alive(r->twin, peer), peer != plan.victim);
}

/* The living still reach each other, and what the dead left behind can be read. */
static void living_go_on(struct rank *r) {
    int right = (r->me + 1) % r->size;
    int left = (r->me + r->size - 1) % r->size;
    char *mine = hem_window_memory(r->window);
    const volatile char *theirs;

    if (right == plan.victim)
        right = (right + 1) % r->size;
    if (left == plan.victim)
        left = (left + r->size - 1) % r->size;
    CHECK_OK(hem_put_signal(r->window, right, RING, "ring", 4, RING_ID, 1));
    CHECK_OK(hem_wait_signal_from(r->window, left, RING_ID, HEM_GE, 1, LIMIT));
    CHECK(memcmp(mine + RING, "ring", 4) == 0);
    CHECK_OK(hem_wait_signal_from(r->window, plan.victim, WORDS_ID, HEM_EQ, 1, LIMIT));
    CHECK(memcmp(mine + LAST_WORDS, "farewell", 8) == 0);
    theirs = hem_window_peer_address(r->window, plan.victim, 0);
    CHECK(theirs == NULL || theirs[63] == 0);
}

static void shrink(struct rank *r) {
    hem_world *rest = NULL;
    hem_window *window;
    uint64_t word = (uint64_t)r->me;

    CHECK_OK(hem_world_shrink(plan.kind == WAIT_CLOSE ? r->twin : r->world, &rest));
    CHECK_EQ(hem_world_size(rest), r->size - 1);
    CHECK_EQ(hem_world_rank(rest), r->me - (r->me > plan.victim));
    window = harness_window(rest, 64);
    for (uint64_t round = 1; round <= 20; round++) {
        CHECK_OK(hem_put_signal(window, harness_right(rest), 8, &word, 8, 0, 1));
        CHECK_OK(hem_wait_signal(window, 0, HEM_EQ, round, LIMIT));
        harness_barrier(window);
    }
    harness_destroy(window);
    CHECK_OK(hem_world_close(rest));
}

static void close_all(struct rank *r) {
    if (plan.kind != WAIT_CLOSE) {
        if (plan.kind != WAIT_DESTROY)
            CHECK_STATUS(hem_window_destroy(r->window), HEM_ERR_PEER);
        harness_close(r->world, HEM_ERR_PEER);
    } else {
        CHECK_OK(hem_window_destroy(r->window));
    }
    CHECK_STATUS(hem_window_destroy(r->clock), HEM_ERR_PEER);
    CHECK_STATUS(hem_world_close(r->twin), HEM_ERR_PEER);
}

int rank_main(hem_world *world) {
    struct rank r = {.world = world, .me = hem_world_rank(world), .size = hem_world_size(world)};

    r.window = harness_window(world, 64);
    CHECK_OK(hem_world_split(world, 0, 0, &r.twin));
    r.clock = harness_window(r.twin, 64);
    if (r.me == plan.victim)
        say_last_words(&r);
    harness_barrier(r.clock);
    if (r.me == plan.victim)
        return die(&r);
    wait_until_dead(&r);
    puts_fail(&r);
    if (plan.kind < WAIT_DESTROY)
        living_go_on(&r);
    shrink(&r);
    close_all(&r);
    if (!harness_threads()) {
        printf("survived %d\n", r.me);
        fflush(stdout);
    }
    return 0;
}

static int status_of_dead;

/* The harness reports only 0 and 1; the dead thread's own number must come through. */
static int thread_rank(hem_world *world, void *unused) {
    int victim = hem_world_rank(world) == plan.victim;
    int failed = harness_run(world, rank_main);

    (void)unused;
    return victim ? status_of_dead : failed;
}

static int one_case(int ranks) {
    hem_status want = status_of_dead ? HEM_ERR_PEER : HEM_OK;
    hem_status status = hem_world_threads(ranks, thread_rank, NULL, NULL);

    if (status == want)
        return 0;
    fprintf(stderr, "%s, victim %d%s: %s: %s\n", wait_name(plan.kind), plan.victim,
            plan.early ? ", early" : "", hem_status_name(status), hem_last_error());
    return 1;
}

static int all_cases(int ranks) {
    int failed = 0;

    harness_set_threads();
    for (int kind = 0; kind < WAIT_KINDS; kind++) {
        for (int i = 0; i < 4; i++) {
            status_of_dead = i % 2 ? 7 : 0;
            plan = (struct plan){(enum wait_kind)kind, i / 2 ? ranks - 1 : 0, "0", i == 3};
            failed |= one_case(ranks);
        }
    }
    return failed;
}

int main(int argc, char **argv) {
    hem_world *world = NULL;

    if (argc == 3 && strcmp(argv[1], "--threads") == 0)
        return all_cases(atoi(argv[2]));
    if (argc != 4 || wait_of_name(argv[1]) == WAIT_KINDS) {
        fprintf(stderr, "usage: %s KIND VICTIM kill|exit|zero|orphan|NUMBER\n", argv[0]);
        return 2;
    }
    plan = (struct plan){wait_of_name(argv[1]), atoi(argv[2]), argv[3], false};
    CHECK_OK(hem_world_open(NULL, &world));
    if (hem_world_rank(world) == plan.victim && atoi(plan.manner)) {
        harness_run(world, rank_main);
        return atoi(plan.manner);
    }
    return harness_run(world, rank_main);
}
