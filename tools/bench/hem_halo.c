/*
 * Halo exchange over Hem: hem_exchange_run of all fields at once. With `--memory library` they
 * lie in memory of hem_memory_alloc, and after each size the memcpy of as many bytes as an exchange
 * moves is measured too, by no library, out of memory that the peers have just written.
 */
#include "hem_halo.h"

#include "halo_copy.h"
#include "meet.h"

#include <stdlib.h>
#include <string.h>

/* Just below the limit of the driver, so that a hang ends with a sentence. */
static const int64_t limit_ns = HEM_SEC(100);

static hem_world *ranks_of_run;

void bench_hem_need(hem_status status, const char *what) {
    if (status != HEM_OK)
        bench_die("%s: %s: %s", what, hem_status_name(status), hem_last_error());
}

static hem_pattern *grid_pattern(hem_world *ranks, const struct bench_halo *halo) {
    const struct bench_box *box = &halo->box;
    hem_grid_domain domain = {.id = halo->world->rank};
    hem_grid_options options = {
        .struct_size = sizeof(options), .dims = box->dims, .domains = &domain, .domain_count = 1};
    hem_pattern *pattern;

    for (int d = 0; d < box->dims; d++) {
        options.extent[d] = box->extent[d];
        options.periodic[d] = halo->shape.value[HEMT_PERIODIC] != 0;
        options.halo_low[d] = halo->shape.value[HEMT_HALO];
        options.halo_high[d] = halo->shape.value[HEMT_HALO];
        domain.box.start[d] = box->start[d];
        domain.box.count[d] = box->count[d];
    }
    bench_hem_need(hem_pattern_grid(ranks, &options, &pattern), "hem_pattern_grid");
    return pattern;
}

/* Halo points are those after the rank's own. */
static hem_pattern *mesh_pattern(hem_world *ranks, const struct bench_halo *halo) {
    size_t count = halo->points - halo->part.owned;
    size_t *places = bench_get(count, sizeof(*places));
    hem_mesh_domain domain = {.id = halo->world->rank,
                              .points = halo->part.ids,
                              .count = halo->points,
                              .halo = places,
                              .halo_count = count};
    hem_mesh_options options = {
        .struct_size = sizeof(options), .domains = &domain, .domain_count = 1};
    hem_pattern *pattern;

    for (size_t i = 0; i < count; i++)
        places[i] = halo->part.owned + i;
    bench_hem_need(hem_pattern_mesh(ranks, &options, &pattern), "hem_pattern_mesh");
    free(places);
    return pattern;
}

hem_pattern *bench_hem_pattern(hem_world *ranks, const struct bench_halo *halo) {
    return halo->kind == BENCH_MESH ? mesh_pattern(ranks, halo) : grid_pattern(ranks, halo);
}

static void place_fields(struct hem_halo *hem, bool library) {
    if (!library) {
        bench_halo_alloc(&hem->halo);
        return;
    }
    for (size_t f = 0; f < hem->halo.fields; f++) {
        struct bench_field *field = &hem->halo.field[f];
        bench_hem_need(
            hem_memory_alloc(hem->ranks, bench_halo_bytes(&hem->halo, field), &hem->memory[f]),
            "hem_memory_alloc");
        field->memory = hem_memory_address(hem->memory[f]);
    }
}

static void bind_fields(struct hem_halo *hem) {
    static const hem_dtype types[] = {
        [BENCH_F64] = HEM_F64, [BENCH_F32] = HEM_F32, [BENCH_I32] = HEM_I32};
    hem_binding bindings[BENCH_MOST_FIELDS];
    hem_exchange_options options = {
        .struct_size = sizeof(options), .bindings = bindings, .count = hem->halo.fields};

    for (size_t f = 0; f < hem->halo.fields; f++) {
        const struct bench_field *field = &hem->halo.field[f];
        bindings[f] = (hem_binding){.pattern = hem->pattern};
        bindings[f].field = (hem_field){.struct_size = sizeof(hem_field),
                                        .memory = field->memory,
                                        .bytes = bench_halo_bytes(&hem->halo, field),
                                        .dtype = types[field->type],
                                        .levels = hem->halo.levels};
    }
    bench_hem_need(hem_exchange_create(hem->ranks, &options, &hem->exchange),
                   "hem_exchange_create");
}

void bench_hem_halo_open(struct hem_halo *hem, const struct bench_args *args, size_t size) {
    bench_halo_make(&hem->halo, args->kind, &args->shape, size);
    hem->pattern = bench_hem_pattern(hem->ranks, &hem->halo);
    place_fields(hem, args->library);
    bind_fields(hem);
    bench_hem_need(hem_pattern_destroy(hem->pattern), "hem_pattern_destroy");
}

void bench_hem_halo_close(struct hem_halo *hem) {
    bench_hem_need(hem_exchange_destroy(hem->exchange), "hem_exchange_destroy");
    for (size_t f = 0; f < hem->halo.fields; f++) {
        bench_hem_need(hem_memory_free(hem->memory[f]), "hem_memory_free");
        if (hem->memory[f] != NULL)
            hem->halo.field[f].memory = NULL;
        hem->memory[f] = NULL;
    }
    bench_halo_release(&hem->halo);
    bench_halo_free(&hem->halo);
}

static void run(void *ctx) {
    struct hem_halo *hem = ctx;

    bench_hem_need(hem_exchange_run(hem->exchange, NULL, limit_ns), "hem_exchange_run");
}

static void help(void *ctx) {
    (void)ctx;
    bench_hem_need(hem_progress(ranks_of_run), "hem_progress");
}

void bench_hem_halo(const struct bench_world *world, const struct bench_args *args,
                    hem_world *ranks) {
    struct hem_halo hem = {.halo = {.world = world, .help = help}, .ranks = ranks};

    ranks_of_run = ranks;
    hem.halo.meet = bench_meet_open(world);
    hem.halo.run = run;
    hem.halo.ctx = &hem;
    for (size_t i = 0; i < args->sizes.count; i++) {
        bench_hem_halo_open(&hem, args, args->sizes.bytes[i]);
        bench_halo_measure(&hem.halo, NULL);
        if (args->library)
            bench_copy_measure(&hem.halo);
        bench_hem_halo_close(&hem);
    }
}
