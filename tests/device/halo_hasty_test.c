/*
 * Who is told that its run has ended may change its own points at once, also if it was told that the run timed
 * out, though neighbours may be in the middle of theirs: whoever is told that its run went well has all values of
 * that run, and nothing of what came after. Of its halos only who is told so knows what is in them.
 *
 * hem-test: ranks=2 modes=processes,threads timeout=90
 */
#include "halo_ring.h"

#include <hem/window.h>
#include <time.h>

typedef struct test {
    hem_world *world;
    hem_window *window;
    hem_pattern *pattern;
    device_stream stream;
    uint64_t *field; /* as many halos as points of its own, which come behind them */
    uint64_t *wrong;
    uint64_t points;
    int me;
} test;

typedef struct words_args {
    uint64_t *words;
    uint64_t count;
    uint64_t value;
    uint64_t *wrong; /* NULL: write them */
} words_args;

DEVICE_KERNEL(words, words_args) {
    const uint64_t step = (uint64_t)hem_block().size * hem_block_count();
    uint64_t wrong = 0;
    for (uint64_t i = hem_block_index() * (uint64_t)hem_block().size + hem_block().rank;
         i < args->count; i += step) {
        if (args->wrong == NULL)
            args->words[i] = args->value;
        else
            wrong += args->words[i] != args->value;
    }
    if (wrong != 0)
        hemd_add64_relaxed(args->wrong, wrong);
}

static void put_words(test *t, uint64_t *first, uint64_t value, bool check) {
    words_args args;
    args.words = first;
    args.count = t->points;
    args.value = value;
    args.wrong = check ? t->wrong : NULL;
    device_launch(words, t->stream, device_stands_in() ? 1 : 16, device_stands_in() ? 1 : 8, &args);
}

/* The halo of each rank is all that the other one has. */
static void make_pattern(test *t) {
    const int64_t points = (int64_t)t->points;
    hem_grid_domain domain;
    hem_grid_options options;
    memset(&domain, 0, sizeof domain);
    memset(&options, 0, sizeof options);
    domain.id = t->me;
    domain.box.start[0] = points * t->me;
    domain.box.count[0] = points;
    options.struct_size = sizeof options;
    options.dims = 1;
    options.extent[0] = 2 * points;
    options.periodic[0] = true;
    options.halo_low[0] = points;
    options.domains = &domain;
    options.domain_count = 1;
    CHECK_OK(hem_pattern_grid(t->world, &options, &t->pattern));
}

static hem_exchange *make_exchange(test *t, int64_t limit) {
    hem_binding binding;
    memset(&binding, 0, sizeof binding);
    binding.pattern = t->pattern;
    binding.field.struct_size = sizeof binding.field;
    binding.field.dtype = HEM_U64;
    binding.field.memory = t->field;
    return twin_create(t->world, &binding, 1, limit);
}

static void expect_words(test *t, uint64_t value) {
    uint64_t wrong = 1;
    put_words(t, t->field, value, true);
    device_stream_sync(t->stream);
    device_copy(&wrong, t->wrong, sizeof wrong);
    if (wrong != 0)
        harness_fail(__FILE__, __LINE__,
                     "%llu of %llu words of a run that went well are not what it sent",
                     (unsigned long long)wrong, (unsigned long long)t->points);
}

/* One of both has a limit, about when the other one comes. @return how its run ended. */
static hem_status hurry(test *t, harness_rng *rng, uint64_t round) {
    const int64_t limit = HEM_US(100 + (int64_t)harness_below(rng, 2000));
    /* Kernels of the stand-in look at the clock now and then only, and need a core for that. */
    const bool slow = device_stands_in() && TWIN_WAY != HEM_EXCHANGE_ENGINES;
    const int64_t late =
        limit / 2 + (int64_t)harness_below(rng, slow ? (size_t)HEM_MS(30) : (size_t)limit);
    const struct timespec nap = {0, (long)late};
    const bool hasty = t->me == (int)(round % 2);
    hem_exchange *exchange = make_exchange(t, hasty ? limit : 0);
    put_words(t, t->field, 0, false);
    put_words(t, t->field + t->points, 4 * round + (uint64_t)t->me, false);
    device_stream_sync(t->stream);
    harness_barrier(t->window);
    if (!hasty)
        (void)nanosleep(&nap, NULL);
    hem_status status = hem_exchange_run(exchange, NULL, LIMIT);
    put_words(t, t->field + t->points, 4 * round + 2 + (uint64_t)t->me, false);
    if (status == HEM_OK)
        expect_words(t, 4 * round + 1 - (uint64_t)t->me);
    else if (status != HEM_ERR_REVOKED && status != HEM_ERR_TIMEOUT)
        harness_fail(__FILE__, __LINE__, "a run gave %s: %s", hem_status_name(status),
                     hem_last_error());
    device_stream_sync(t->stream);
    harness_barrier(t->window);
    CHECK_OK(hem_exchange_destroy(exchange));
    return status;
}

int rank_main(hem_world *world) {
    uint64_t seed = harness_seed(world);
    int ended[3] = {0, 0, 0};
    test t;
    memset(&t, 0, sizeof t);
    CHECK_OK(hem_device_open(world, NULL));
    t.world = world;
    t.me = hem_world_rank(world);
    t.points = device_stands_in() ? 1 << 13 : 1 << 18;
    t.window = harness_window(world, 64);
    t.stream = device_stream_create();
    t.field = (uint64_t *)device_alloc(2 * (size_t)t.points * sizeof *t.field);
    t.wrong = (uint64_t *)device_alloc(sizeof *t.wrong);
    make_pattern(&t);
    for (int i = 0; i < harness_rounds(device_stands_in() ? 30 : 100); i++) {
        harness_rng rng = harness_rng_of(seed, (uint64_t)i, 0);
        harness_step("hurry", (uint64_t)i);
        hem_status status = hurry(&t, &rng, (uint64_t)i + 1);
        ended[status == HEM_OK ? 0 : status == HEM_ERR_TIMEOUT ? 1 : 2]++;
    }
    printf("rank %d: %d runs went well, %d timed out, %d were given up by the other\n", t.me,
           ended[0], ended[1], ended[2]);
    CHECK_OK(hem_pattern_destroy(t.pattern));
    device_stream_destroy(t.stream);
    device_free(t.field);
    device_free(t.wrong);
    harness_destroy(t.window);
    harness_close(world, HEM_OK);
    return 0;
}
