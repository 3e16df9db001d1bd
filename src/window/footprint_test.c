/*
 * hem-test: timeout=60
 *
 * Ranks cost memory when they are used, not because they exist: at most 16 bytes of each rank's own
 * memory for every other rank of the world, with a window open, and nothing in the shared arena.
 */
#include "window/window.h"

#include "base/testing.h"

#include <hem/hem.h>
#include <malloc.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <cmocka.h>

#define FEW 2
/* So many that what set-up allocates and frees is not kept by the C library's thread caches. */
#define MANY         300
#define BYTES_A_RANK 16

static uint64_t private_bytes(void) {
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

/* Of all ranks together, at a moment when all have a world, and then also a window. */
typedef struct footprint {
    pthread_barrier_t meet;
    uint64_t world_private;
    uint64_t world_shared;
    uint64_t window_private;
    uint64_t window_shared;
} footprint;

static uint64_t shared_bytes(const hem_world *world) {
    struct stat file;
    return fstat(world->root->arena.fd, &file) == 0 ? (uint64_t)file.st_blocks * 512 : UINT64_MAX;
}

/* Nobody does anything while rank 0 measures. */
static void measure(footprint *f, const hem_world *world, uint64_t *private_p, uint64_t *shared_p) {
    pthread_barrier_wait(&f->meet);
    if (hem_world_rank(world) == 0) {
        *private_p = private_bytes();
        *shared_p = shared_bytes(world);
    }
    pthread_barrier_wait(&f->meet);
}

static int use_nobody(hem_world *world, void *arg) {
    footprint *f = arg;
    hem_window_options options = {.struct_size = sizeof options, .bytes = 4096};
    hem_window *window = NULL;
    measure(f, world, &f->world_private, &f->world_shared);
    hem_status status = hem_window_create(world, &options, &window);
    measure(f, world, &f->window_private, &f->window_shared);
    RANK_CHECK(status == HEM_OK);
    RANK_CHECK(hem_window_destroy(window) == HEM_OK);
    RANK_CHECK(hem_world_close(world) == HEM_OK);
    return 0;
}

/* What threads cost that are no ranks: the C library keeps something for each. */
static void *be_no_rank(void *arg) {
    footprint *f = arg;
    free(malloc(1));
    pthread_barrier_wait(&f->meet);
    pthread_barrier_wait(&f->meet);
    return NULL;
}

static uint64_t threads_alone(footprint *f, int count) {
    pthread_t threads[MANY];
    uint64_t before = private_bytes();
    for (int i = 0; i < count; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, be_no_rank, f), 0);
    pthread_barrier_wait(&f->meet);
    uint64_t cost = private_bytes() - before;
    pthread_barrier_wait(&f->meet);
    for (int i = 0; i < count; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    return cost;
}

static footprint run(int ranks) {
    hem_world_options options = {.struct_size = sizeof options, .arena_bytes = 16u << 20};
    footprint f = {.world_private = 0};
    assert_int_equal(pthread_barrier_init(&f.meet, NULL, (unsigned)ranks + 1), 0);
    uint64_t threads = threads_alone(&f, ranks);
    pthread_barrier_destroy(&f.meet);
    assert_int_equal(pthread_barrier_init(&f.meet, NULL, (unsigned)ranks), 0);
    uint64_t before = private_bytes() + threads;
    assert_int_equal(hem_world_threads(ranks, use_nobody, &f, &options), HEM_OK);
    pthread_barrier_destroy(&f.meet);
    f.world_private -= before;
    f.window_private -= before;
    return f;
}

/* What a rank pays more for each further rank of the world, from two sizes of world. */
static double for_each_rank(uint64_t few, uint64_t many) {
    return ((double)many / MANY - (double)few / FEW) / (MANY - FEW);
}

static void an_unused_rank_costs_little(void **state) {
    (void)state;
    if (TESTING_SANITIZED)
        skip();     /* a sanitizer's malloc does not count, and rounds as it likes */
    (void)run(FEW); /* what the C library keeps for threads is there from now on */
    footprint few = run(FEW);
    footprint many = run(MANY);
    double world = for_each_rank(few.world_private, many.world_private);
    double window = for_each_rank(few.window_private, many.window_private);
    double shared = for_each_rank(few.window_shared, many.window_shared);
    print_message("own memory for each unused rank: world %.1f, with a window %.1f bytes\n", world,
                  window);
    print_message("a rank's shared memory: %llu bytes of %d ranks, %llu of %d\n",
                  (unsigned long long)few.window_shared / FEW, FEW,
                  (unsigned long long)many.window_shared / MANY, MANY);
    assert_true(world <= BYTES_A_RANK);
    assert_true(window <= BYTES_A_RANK);
    assert_true(shared <= BYTES_A_RANK);
}

/* And what a rank costs by itself does not run away either. */
static void a_rank_costs_a_few_pages_of_shared_memory(void **state) {
    unsigned ranks = TESTING_SANITIZED ? MANY / 10 : MANY;
    footprint many = run((int)ranks);

    (void)state;
    assert_true(many.world_shared / ranks <= 3ull * HEMI_PAGE);
    assert_true(many.window_shared / ranks <= 6ull * HEMI_PAGE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_unused_rank_costs_little),
        cmocka_unit_test(a_rank_costs_a_few_pages_of_shared_memory),
    };
    mallopt(M_ARENA_MAX, 1); /* an arena per thread would count as used */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
