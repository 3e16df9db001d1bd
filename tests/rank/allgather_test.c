/*
 * A world made by the caller's own all-gather is a world like any other: it works, a death in it is
 * noticed within 50 ms, and when the all-gather fails, or a rank hangs or dies while opening, no
 * rank waits for ever: each gets an error, or a world that says who is missing.
 *
 * hem-test: modes=alone timeout=120
 */
#include "death_clock.h"

#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    MOST = 5,
    CALLS = 32,
    BLOCK = 16384,
    PATIENCE_MS = 800,
    OPEN_MS = 400
};

/* What the forked ranks share: the blocks of every call, and the time at which one died. */
static struct board {
    atomic_int arrived[CALLS];
    atomic_int calls;
    _Atomic int64_t died;
    unsigned char blocks[CALLS][MOST][BLOCK];
} * board;

enum trouble {
    NONE,
    CALLBACK_FAILS,
    HANGS,
    DIES_OPENING,
    DIES_LATER,
    DIES_WITH_CHILD
};

struct rank {
    int me;
    int size;
    int call;
    enum trouble trouble;
    int victim;
    int at;
};

/* The victim's call number `at` goes wrong after its own block is there, as seen by the others. */
static int trouble_in(const struct rank *r) {
    if (r->me != r->victim || r->call != r->at)
        return 0;
    if (r->trouble == HANGS)
        pause();
    if (r->trouble == DIES_OPENING)
        raise(SIGKILL);
    return r->trouble == CALLBACK_FAILS ? -1 : 0;
}

static int allgather(void *ctx, const void *mine, void *all, size_t bytes) {
    struct rank *r = ctx;
    int64_t limit = harness_now() + HEM_MS(PATIENCE_MS);
    int call = r->call;

    if (call >= CALLS || bytes > BLOCK)
        return -1;
    memcpy(board->blocks[call][r->me], mine, bytes);
    atomic_fetch_add(&board->arrived[call], 1);
    atomic_store(&board->calls, call + 1);
    if (trouble_in(r))
        return -1;
    while (atomic_load(&board->arrived[call]) < r->size) {
        if (harness_now() > limit)
            return -1;
        usleep(200);
    }
    for (int rank = 0; rank < r->size; rank++)
        memcpy((char *)all + (size_t)rank * bytes, board->blocks[call][rank], bytes);
    r->call++;
    return 0;
}

static hem_status open_world(struct rank *r, hem_world **world_p) {
    hem_world_options options = {
        .struct_size = sizeof options,
        .allgather = allgather,
        .allgather_ctx = r,
        .rank = r->me,
        .size = r->size,
        .timeout_ns = HEM_MS(r->trouble == NONE ? 20000 : OPEN_MS),
    };

    return hem_world_open(&options, world_p);
}

static void ring(hem_world *world) {
    hem_window *window = harness_window(world, 64);
    uint64_t word = (uint64_t)hem_world_rank(world);

    for (uint64_t round = 1; round <= 100; round++) {
        CHECK_OK(hem_put_signal(window, harness_right(world), 0, &word, 8, 0, 1));
        CHECK_OK(hem_wait_signal(window, 0, HEM_EQ, round, LIMIT));
        CHECK_EQ(*(uint64_t *)hem_window_memory(window), harness_left(world));
        harness_barrier(window);
    }
    harness_destroy(window);
}

/* Two worlds, one after the other is open, and a split of them. */
static int live_well(struct rank *r) {
    hem_world *world = NULL;
    hem_world *second = NULL;
    hem_world *part = NULL;

    CHECK_OK(open_world(r, &world));
    CHECK_EQ(hem_world_rank(world), r->me);
    CHECK_EQ(hem_world_size(world), r->size);
    CHECK_EQ(hem_world_local_size(world), r->size);
    ring(world);
    CHECK_OK(open_world(r, &second));
    CHECK_OK(hem_world_split(world, 0, -r->me, &part));
    ring(part);
    CHECK_OK(hem_world_close(world));
    ring(second);
    CHECK_OK(hem_world_close(part));
    CHECK_OK(hem_world_close(second));
    return 0;
}

/* A child that outlives the rank keeps its files open; the death must be seen all the same. */
static void die(const struct rank *r) {
    harness_sleep_ms(20);
    if (r->trouble == DIES_WITH_CHILD && fork() == 0) {
        harness_sleep_ms(2000);
        _exit(0);
    }
    atomic_store(&board->died, harness_now());
    raise(SIGKILL);
}

static int survive(struct rank *r) {
    hem_world *world = NULL;
    hem_world *rest = NULL;
    hem_window *window;
    int64_t took;

    CHECK_OK(open_world(r, &world));
    window = harness_window(world, 64);
    harness_barrier(window);
    if (r->me == r->victim)
        die(r);
    CHECK_STATUS(hem_barrier(window, 1, LIMIT), HEM_ERR_PEER);
    took = harness_now() - atomic_load(&board->died);
    if (took > death_clock_limit(1, false))
        harness_fail(__FILE__, __LINE__, "learnt of the death after %lld us",
                     (long long)took / 1000);
    CHECK_NAMES_RANK(r->victim);
    CHECK_OK(hem_world_shrink(world, &rest));
    CHECK_EQ(hem_world_size(rest), r->size - 1);
    ring(rest);
    CHECK_OK(hem_world_close(rest));
    CHECK_STATUS(hem_window_destroy(window), HEM_ERR_PEER);
    CHECK_STATUS(hem_world_close(world), HEM_ERR_PEER);
    return 0;
}

/* If the open worked, the trouble came after the last call: then the window says who is missing. */
static int fail_in_time(struct rank *r) {
    hem_window_options options = {
        .struct_size = sizeof options, .bytes = 8, .timeout_ns = HEM_MS(300)};
    int64_t start = harness_now();
    hem_world *world = NULL;
    hem_window *window;
    hem_status status = open_world(r, &world);

    CHECK(r->me != r->victim || status != HEM_OK);
    CHECK(harness_now() - start < HEM_MS(PATIENCE_MS + 3 * OPEN_MS) + harness_slack());
    if (status != HEM_OK) {
        CHECK(world == NULL);
        CHECK(hem_last_error()[0]);
        if (status == HEM_ERR_TIMEOUT || status == HEM_ERR_PEER)
            CHECK_NAMES_RANK(r->victim);
        return 0;
    }
    status = hem_window_create(world, &options, &window);
    CHECK(status == HEM_ERR_TIMEOUT || status == HEM_ERR_PEER);
    CHECK_NAMES_RANK(r->victim);
    start = harness_now();
    status = hem_world_close(world);
    CHECK(status == HEM_ERR_TIMEOUT || status == HEM_ERR_PEER);
    CHECK(harness_now() - start < HEM_MS(2 * OPEN_MS) + harness_slack());
    return 0;
}

static int rank_of_case(struct rank r) {
    harness_note_rank(r.me);
    if (r.trouble == NONE)
        return live_well(&r);
    return r.trouble >= DIES_LATER ? survive(&r) : fail_in_time(&r);
}

/* Waits for all but the victim, which may hang and is then killed. */
static int collect(const pid_t *children, const struct rank *r, const char *what) {
    int failed = 0;
    int status;

    for (int rank = 0; rank < r->size; rank++) {
        if (rank == r->victim && (r->trouble == HANGS || r->trouble == DIES_OPENING))
            continue;
        waitpid(children[rank], &status, 0);
        if (rank == r->victim && r->trouble >= DIES_LATER)
            continue;
        if (status != 0) {
            fprintf(stderr, "%s at call %d of rank %d, %d ranks: rank %d ended with %#x\n", what,
                    r->at, r->victim, r->size, rank, (unsigned)status);
            failed = 1;
        }
    }
    if (r->trouble == HANGS || r->trouble == DIES_OPENING) {
        kill(children[r->victim], SIGKILL);
        waitpid(children[r->victim], &status, 0);
    }
    return failed;
}

static int run_case(const char *what, struct rank r) {
    pid_t children[MOST];

    memset(board, 0, sizeof *board);
    for (r.me = 0; r.me < r.size; r.me++) {
        children[r.me] = fork();
        CHECK(children[r.me] >= 0);
        if (children[r.me] == 0)
            exit(rank_of_case(r));
    }
    return collect(children, &r, what);
}

static int never_called(void *ctx, const void *mine, void *all, size_t bytes) {
    (void)ctx;
    (void)mine;
    (void)all;
    fprintf(stderr, "the all-gather was called with %zu bytes\n", bytes);
    exit(1);
}

/* Options that make no sense are refused before anything is gathered. */
static void bad_options(void) {
    static const int wrong[][2] = {{0, 0}, {3, 3}, {-1, 2}, {0, -2}, {7, 2}};
    hem_world_options options = {.struct_size = sizeof options, .allgather = never_called};
    hem_world *world = NULL;

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        options.rank = wrong[i][0];
        options.size = wrong[i][1];
        CHECK_STATUS(hem_world_open(&options, &world), HEM_ERR_ARG);
    }
    options.rank = 0;
    options.size = 2;
    options.timeout_ns = -4;
    CHECK_STATUS(hem_world_open(&options, &world), HEM_ERR_ARG);
    CHECK(world == NULL);
}

int main(void) {
    int calls;
    int failed = 0;

    board = mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(board != MAP_FAILED);
    bad_options();
    for (int size = 1; size <= MOST; size++)
        failed |= run_case("no trouble", (struct rank){.size = size, .victim = -1});
    calls = atomic_load(&board->calls) / 2;
    CHECK(calls > 0);
    for (int victim = 0; victim < 3; victim++) {
        struct rank late = {.size = 3, .trouble = DIES_LATER, .victim = victim, .at = -1};

        failed |= run_case("a later death", late);
        late.trouble = DIES_WITH_CHILD;
        /* Which rank watches the others is a matter of luck, so try more than once. */
        for (int round = 0; round < 3; round++)
            failed |= run_case("a death that leaves a child", late);
        for (int at = 0; at < calls; at++) {
            struct rank r = {.size = 3, .trouble = CALLBACK_FAILS, .victim = victim, .at = at};

            failed |= run_case("a failing call", r);
            r.trouble = HANGS;
            failed |= run_case("a hanging call", r);
            r.trouble = DIES_OPENING;
            failed |= run_case("a death", r);
        }
    }
    return failed;
}
