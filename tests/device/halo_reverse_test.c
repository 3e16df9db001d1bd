/*
 * Reverse runs on device memory give the bits that those of the host give: sum, minimum, maximum and
 * replacement of every type that has them, NaNs and infinities among the values, points that several
 * halos come back to, also such as overlap in part of long rows, vectors that turn, lists that name a
 * point again, some fields and sides; with forward runs in between.
 *
 * hem-test: ranks=1,2,3,4 modes=processes,threads timeout=180 delayed=3
 */
#include "halo_twin.h"

/* A type that can be combined, or any bytes for what is only replaced. */
static halo_spec pick_spec(const twin_case *c, int kind, hem_combine combine, harness_rng *rng) {
    halo_spec spec = twin_spec(c, kind, rng);
    bool plain = spec.dtype == 0 || spec.dtype == HEM_BYTE;
    bool complex = spec.dtype == HEM_C64 || spec.dtype == HEM_C128;
    if (combine != HEM_COMBINE_REPLACE && (plain || (complex && combine != HEM_COMBINE_SUM))) {
        spec.dtype = (spec.flags & HEM_FIELD_VECTOR) != 0 ? HEM_F32 : HEM_BF16;
        spec.element = 0;
    }
    return spec;
}

static void one_case(hem_world *world, uint64_t seed, int number) {
    harness_rng rng = harness_rng_of(seed, (uint64_t)number, 1);
    harness_rng own = harness_rng_of(seed, (uint64_t)number, 100 + (uint64_t)hem_world_rank(world));
    int kind = number % 5;
    hem_combine combine = (hem_combine)(1 + number / 5 % HEM_COMBINE_REPLACE);
    twin_case c = twin_case_make(world, kind, &rng);
    twin t;

    memset(&t, 0, sizeof t);
    t.world = t.host.world = world;
    for (size_t f = 1 + harness_below(&rng, 4); f > 0; f--) {
        halo_spec spec = pick_spec(&c, kind, combine, &rng);
        twin_add(&t, &c, &spec, &own);
    }
    int place = (int)harness_below(&rng, TWIN_PLACES);
    twin_freeze(&t, &own);
    twin_bind(&t, place, &own);
    for (uint64_t round = 0; round < 5; round++) {
        hem_exchange_how how = twin_how(round == 2 ? (hem_combine)0 : combine, &rng);
        twin_fill(&t, round);
        CHECK_OK(hem_exchange_run(t.exchange, &how, LIMIT));
        twin_check(&t, &how);
    }
    twin_free(&t);
    twin_case_free(&c);
}

/* Lists that name a point of the owner several times, from several domains and ranks. */
static void many_copies(hem_world *world, hem_combine combine, uint64_t seed) {
    enum {
        POINTS = 40,
        LISTS = 3,
        LENGTH = 300
    };
    harness_rng rng = harness_rng_of(seed, (uint64_t)combine, 7);
    int me = hem_world_rank(world);
    int size = hem_world_size(world);
    size_t points = POINTS + (size_t)size * LISTS * LENGTH;
    int64_t *sent = (int64_t *)calloc((size_t)size * LISTS * LENGTH, sizeof *sent);
    int64_t *got = (int64_t *)calloc((size_t)size * LISTS * LENGTH, sizeof *got);
    hem_point_list *sends = (hem_point_list *)calloc((size_t)size * LISTS, sizeof *sends);
    hem_point_list *gets = (hem_point_list *)calloc((size_t)size * LISTS, sizeof *gets);
    float *values = (float *)malloc(points * sizeof *values);
    float *device = (float *)device_alloc(points * sizeof *values);
    float *result = (float *)malloc(points * sizeof *values);
    for (int n = 0; n < size * LISTS; n++) {
        for (int k = 0; k < LENGTH; k++) {
            sent[n * LENGTH + k] = (int64_t)harness_below(&rng, POINTS);
            got[n * LENGTH + k] = POINTS + n * LENGTH + k;
        }
        sends[n].peer = gets[n].peer = n / LISTS;
        sends[n].points = sent + n * LENGTH;
        gets[n].points = got + n * LENGTH;
        sends[n].count = gets[n].count = LENGTH;
    }
    hem_explicit_options options;
    memset(&options, 0, sizeof options);
    options.struct_size = sizeof options;
    options.domain_points = &points;
    options.domain_count = 1;
    options.sends = sends;
    options.send_count = options.receive_count = (size_t)(size * LISTS);
    options.receives = gets;
    hem_pattern *pattern = NULL;
    CHECK_OK(hem_pattern_explicit(world, &options, &pattern));
    hem_binding binding;
    memset(&binding, 0, sizeof binding);
    binding.pattern = pattern;
    binding.field.struct_size = sizeof binding.field;
    binding.field.dtype = HEM_F32;
    binding.field.memory = values;
    hem_exchange *reference = twin_create(world, &binding, 1, 0);
    binding.field.memory = device;
    hem_exchange *exchange = twin_create(world, &binding, 1, 0);
    hem_exchange_how how;
    memset(&how, 0, sizeof how);
    how.struct_size = sizeof how;
    how.combine = combine;
    harness_rng own = harness_rng_of(seed, (uint64_t)me, 8);
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < points; i++)
            values[i] = (float)(int64_t)harness_random(&own) *
                        (harness_below(&own, 2) != 0 ? 1e-9f : 1e-19f);
        device_copy(device, values, points * sizeof *values);
        CHECK_OK(hem_exchange_run(exchange, &how, LIMIT));
        CHECK_OK(hem_exchange_run(reference, &how, LIMIT));
        device_copy(result, device, points * sizeof *values);
        CHECK(memcmp(result, values, points * sizeof *values) == 0);
    }
    CHECK_OK(hem_exchange_destroy(exchange));
    CHECK_OK(hem_exchange_destroy(reference));
    CHECK_OK(hem_pattern_destroy(pattern));
    device_free(device);
    free(result);
    free(values);
    free(gets);
    free(sends);
    free(got);
    free(sent);
}

int rank_main(hem_world *world) {
    uint64_t seed = harness_seed(world);
    CHECK_OK(hem_device_open(world, NULL));
    for (int i = 0; i < harness_rounds(48); i++) {
        harness_step("case", (uint64_t)i);
        one_case(world, seed, i);
    }
    for (int i = 1; i <= HEM_COMBINE_REPLACE; i++) {
        harness_step("copies", (uint64_t)i);
        many_copies(world, (hem_combine)i, seed);
    }
    harness_close(world, HEM_OK);
    return 0;
}
