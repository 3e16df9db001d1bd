/*
 * Many runs back to back on streams, with values that a kernel writes anew for each and that another one
 * checks: nothing of an older or a newer run is ever seen, from what fits into a line to megabytes, with
 * kernels and hosts that nap now and then, and nobody who waits between runs. Owners overwrite their
 * values and readers look at their halos where the stream is, not before and not later.
 *
 * hem-test: ranks=2,3,4 modes=processes,threads timeout=120
 */
#include "halo_ring.h"

#define ROUND 24 /* runs without looking at the stream: the queues of a GPU are not for ever */

typedef struct many {
    hem_world *world;
    int me;
    int left;
    int right;
    harness_rng own;
    device_stream native[2]; /* a run starts on the first, and ends on any */
    hem_stream *stream[2];
    uint64_t *wrong;
} many;

/* The halo of the left, the box, the halo of the right: as many words each. */
typedef struct run_args {
    uint64_t *field;
    uint64_t count;
    uint64_t run;
    uint64_t left;
    uint64_t me;
    uint64_t right;
    uint64_t nap_ns;
    uint64_t *wrong;
} run_args;

HEM_DEV uint64_t value_of(uint64_t rank, uint64_t run, uint64_t i) {
    return (rank * 1000003u + run) * 0x9e3779b97f4a7c15ull + i * 2654435761u;
}

HEM_DEV void nap(uint64_t ns) {
    uint64_t start = hemd_now_ns();
    while (hemd_now_ns() - start < ns)
        hemd_relax();
}

DEVICE_KERNEL(many_fill, run_args) {
    hem_group block = hem_block();
    nap(args->nap_ns);
    for (uint64_t i = block.rank; i < args->count; i += block.size)
        args->field[args->count + i] = value_of(args->me, args->run, i);
}

DEVICE_KERNEL(many_look, run_args) {
    hem_group block = hem_block();
    const uint64_t *field = args->field;
    uint64_t n = args->count, wrong = 0;
    nap(args->nap_ns);
    for (uint64_t i = block.rank; i < n; i += block.size) {
        wrong += field[i] != value_of(args->left, args->run, i);
        wrong += field[n + i] != value_of(args->me, args->run, i);
        wrong += field[2 * n + i] != value_of(args->right, args->run, i);
    }
    if (wrong != 0)
        hemd_add64_relaxed(args->wrong, wrong);
}

/* Somebody is late now and then, by more or less. */
static uint64_t some_nap(many *m) {
    return harness_below(&m->own, 16) == 0 ? harness_below(&m->own, 300000) : 0;
}

static void one_run(many *m, hem_exchange *x, run_args *args) {
    int end = harness_below(&m->own, 4) == 0;
    args->nap_ns = some_nap(m);
    device_launch(many_fill, m->native[0], 1, 2, args);
    CHECK_OK(hem_exchange_start_on(x, NULL, m->stream[0]));
    CHECK_OK(hem_exchange_finish_on(x, m->stream[end]));
    args->nap_ns = some_nap(m);
    device_launch(many_look, m->native[end], 1, 2, args);
    if (end != 0)
        device_stream_order(m->native[1], m->native[0]);
    if (harness_below(&m->own, 64) == 0)
        harness_sleep_ms(1);
    else
        harness_dither(harness_random(&m->own));
}

static void runs(many *m, hem_exchange *x, uint64_t *field, uint64_t cells, int count) {
    run_args args;
    uint64_t wrong = 0;
    args.field = field;
    args.count = cells;
    args.left = (uint64_t)m->left;
    args.me = (uint64_t)m->me;
    args.right = (uint64_t)m->right;
    args.wrong = m->wrong;
    for (int i = 0; i < count; i++) {
        args.run = (uint64_t)i;
        one_run(m, x, &args);
        if (i % ROUND == ROUND - 1)
            device_stream_sync(m->native[0]);
    }
    device_stream_sync(m->native[0]);
    CHECK_OK(hem_exchange_status(x));
    device_copy(&wrong, m->wrong, sizeof wrong);
    CHECK_EQ(wrong, 0);
}

/* Boxes of `rows` rows in a ring, which are all halo to both neighbours. */
static hem_pattern *rows_make(many *m, int64_t rows, int64_t width) {
    hem_grid_options options;
    hem_grid_domain domain;
    hem_pattern *pattern = NULL;
    memset(&options, 0, sizeof options);
    memset(&domain, 0, sizeof domain);
    domain.id = m->me;
    domain.box.start[0] = rows * m->me;
    domain.box.count[0] = rows;
    domain.box.count[1] = width;
    options.struct_size = sizeof options;
    options.dims = 2;
    options.extent[0] = rows * hem_world_size(m->world);
    options.extent[1] = width;
    options.periodic[0] = true;
    options.halo_low[0] = options.halo_high[0] = rows;
    options.domains = &domain;
    options.domain_count = 1;
    CHECK_OK(hem_pattern_grid(m->world, &options, &pattern));
    return pattern;
}

static void back_to_back(many *m, int64_t rows, int64_t width, int count) {
    hem_binding binding;
    hem_pattern *pattern = rows_make(m, rows, width);
    uint64_t cells = (uint64_t)(rows * width);
    uint64_t *field = (uint64_t *)device_alloc((size_t)cells * 3 * sizeof *field);
    memset(&binding, 0, sizeof binding);
    binding.pattern = pattern;
    binding.field.struct_size = sizeof binding.field;
    binding.field.dtype = HEM_U64;
    binding.field.memory = field;
    hem_exchange *x = twin_create(m->world, &binding, 1, 0);
    CHECK_OK(hem_pattern_destroy(pattern));
    runs(m, x, field, cells, count);
    CHECK_OK(hem_exchange_destroy(x));
    device_free(field);
}

int rank_main(hem_world *world) {
    static const int sizes[][3] = {{1, 1, 200},   {1, 5, 200},   {1, 6, 100},
                                   {2, 100, 100}, {4, 1500, 24}, {8, 20000, 4}};
    many m;
    memset(&m, 0, sizeof m);
    m.world = world;
    m.me = hem_world_rank(world);
    m.left = harness_left(world);
    m.right = harness_right(world);
    m.own = harness_rng_of(harness_seed(world), 1, (uint64_t)m.me);
    for (int i = 0; i < 2; i++) {
        m.native[i] = device_stream_create();
        CHECK_OK(hem_stream_cuda(world, m.native[i], &m.stream[i]));
    }
    m.wrong = (uint64_t *)device_alloc(sizeof *m.wrong);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        harness_step("size", i);
        back_to_back(&m, sizes[i][0], sizes[i][1], harness_rounds(sizes[i][2]));
    }
    for (int i = 0; i < 2; i++) {
        CHECK_OK(hem_stream_destroy(m.stream[i]));
        device_stream_destroy(m.native[i]);
    }
    device_free(m.wrong);
    harness_close(world, HEM_OK);
    return 0;
}
