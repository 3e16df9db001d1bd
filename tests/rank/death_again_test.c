/*
 * Ranks die one after the other and sometimes two at a time, in the middle of traffic, of window
 * creation, or of the shrink itself, until one is left. After each death the survivors shrink and
 * go on. All that are left agree at every step on who they are.
 *
 * As processes, tests/script/death.sh runs `prog SEED` under the launcher.
 *
 * hem-test: ranks=2,3,5,8 modes=threads timeout=60
 */
#include "harness.h"

#include <signal.h>
#include <unistd.h>

static uint64_t seed;

struct fate {
    int dying;
    int after;
    bool in_create;
    bool in_shrink;
};

/* What happens in a generation follows from the seed, so that every rank knows it. */
static struct fate fate_of(int generation, int size) {
    harness_rng rng = harness_rng_of(seed, (uint64_t)generation, (uint64_t)size);
    struct fate f;

    f.dying = size > 2 && harness_below(&rng, 3) == 0 ? 2 : 1;
    f.after = (int)harness_below(&rng, 200);
    f.in_create = harness_below(&rng, 3) == 0;
    f.in_shrink = f.dying == 2 && harness_below(&rng, 2) == 0;
    return f;
}

/* Victims sit at both ends, so that rank 0 dies as often as the last. */
static bool is_victim(const struct fate *f, int generation, int rank, int size, int number) {
    bool high = (generation + number) % 2;

    return number < f->dying && rank == (high ? size - 1 : 0);
}

/* A thread returns; a process is killed. */
static bool dies(void) {
    if (!harness_threads())
        raise(SIGKILL);
    return true;
}

/* Barriers and puts until some call says that a rank is gone. */
static hem_status traffic(hem_world *world, hem_window *window, int rounds) {
    uint64_t word = 1;
    hem_status status = HEM_OK;

    for (int i = 0; i < rounds && status == HEM_OK; i++) {
        status = hem_put_signal(window, harness_right(world), 8, &word, 8, 0, 1);
        if (status == HEM_OK)
            status = hem_wait_signal_from(window, harness_left(world), 0, HEM_GE, (uint64_t)i + 1,
                                          LIMIT);
        if (status == HEM_OK)
            status = hem_barrier(window, 1, LIMIT);
    }
    return status;
}

static hem_status create_many(hem_world *world, int rounds) {
    hem_window_options options = {.struct_size = sizeof options, .bytes = 1000};
    hem_window *window;
    hem_status status = HEM_OK;

    for (int i = 0; i < rounds && status == HEM_OK; i++) {
        status = hem_window_create(world, &options, &window);
        if (status == HEM_OK)
            status = hem_window_destroy(window);
    }
    return status;
}

/* Returns false if this rank died. Otherwise `*world_p` is the next generation's. */
static bool generation(hem_world **world_p, int number) {
    hem_world *world = *world_p;
    int rank = hem_world_rank(world);
    int size = hem_world_size(world);
    struct fate f = fate_of(number, size);
    hem_window *window = harness_window(world, 64);
    bool second = is_victim(&f, number, rank, size, 1);

    bool victim = is_victim(&f, number, rank, size, 0) || (second && !f.in_shrink);
    int rounds = victim ? f.after : 1 << 30;
    hem_status status;

    status = f.in_create ? create_many(world, rounds / 8) : traffic(world, window, rounds);
    if (victim)
        return !dies();
    if (status != HEM_ERR_PEER && status != HEM_ERR_REVOKED)
        harness_fail(__FILE__, __LINE__, "%s: %s", hem_status_name(status), hem_last_error());
    if (second) {
        harness_sleep_ms(5);
        return !dies();
    }
    CHECK_OK(hem_world_revoke(world));
    CHECK_OK(hem_world_shrink(world, world_p));
    hem_window_destroy(window);
    harness_close(world, HEM_ERR_PEER);
    return true;
}

int rank_main(hem_world *world) {
    int number = 0;
    int size;

    harness_note_seed(seed);
    while ((size = hem_world_size(world)) > 1) {
        if (!generation(&world, number))
            return 0;
        CHECK(hem_world_size(world) < size);
        harness_same(world, (uint64_t)hem_world_size(world));
        number++;
    }
    CHECK_OK(hem_world_close(world));
    if (!harness_threads())
        printf("survived\n");
    return 0;
}

static int thread_rank(hem_world *world, void *unused) {
    (void)unused;
    return harness_run(world, rank_main);
}

int main(int argc, char **argv) {
    const char *given = getenv("HEM_SEED");
    hem_world *world = NULL;
    int rounds = harness_rounds(12);

    seed = given && *given ? strtoull(given, NULL, 0) : (uint64_t)harness_now() % 1000003;
    if (argc == 3 && strcmp(argv[1], "--threads") == 0) {
        harness_set_threads();
        for (int round = 0; round < rounds; round++, seed++)
            CHECK_OK(hem_world_threads(atoi(argv[2]), thread_rank, NULL, NULL));
        return 0;
    }
    if (argc == 2)
        seed = strtoull(argv[1], NULL, 0);
    CHECK_OK(hem_world_open(NULL, &world));
    return harness_run(world, rank_main);
}
