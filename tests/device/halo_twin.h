/*
 * Exchanges on a device, each beside its twin on the host: the same pattern, the same fields, byte for
 * byte. The twin's result is what the kernels must leave, everywhere in the allocations, so what they
 * must not touch is compared as well.
 */
#ifndef HEM_TESTS_DEVICE_HALO_TWIN_H
#define HEM_TESTS_DEVICE_HALO_TWIN_H

#include "halo_ring.h"

#ifdef __cplusplus
extern "C" {
#endif
#include "../rank/halo_kit.h"
#ifdef __cplusplus
}
#endif

/** Kinds of patterns. */
enum {
    TWIN_GRID,
    TWIN_MESH,
    TWIN_CUBE,
    TWIN_LISTS,
    TWIN_ROWS /**< a grid of few rows of many points */
};

/** Where the fields of the device's exchange are. */
enum {
    TWIN_DEVICE, /**< all on the device */
    TWIN_MIXED,  /**< some in plain host memory */
    TWIN_FIRST,  /**< only those of rank 0 are on the device */
    TWIN_PLACES
};

typedef struct twin_case {
    halo_grid g;
    halo_mesh m;
    halo_cube cube;
    halo_lists lists;
    halo_case c;
    hem_pattern *pattern;
} twin_case;

typedef struct twin {
    hem_world *world;
    halo_set host; /**< the fields of the twin, which give the values, too */
    hem_exchange *reference;
    hem_exchange *exchange;
    unsigned char **places; /**< one per field: the other one's */
    bool *on_device;
    hem_binding *bindings;
    unsigned char *scratch;
    bool is_device; /**< some rank has a field on the device */
} twin;

/** Few rows of many points. */
static inline halo_grid twin_long_grid(int ranks, harness_rng *rng) {
    halo_grid g;
    memset(&g, 0, sizeof g);
    g.dims = 2;
    g.extent[0] = 1 + (int64_t)harness_below(rng, 6);
    g.extent[1] = 200 + (int64_t)harness_below(rng, 700);
    for (int i = 0; i < 2; i++) {
        g.periodic[i] = harness_below(rng, 4) != 0;
        g.low[i] = (int64_t)harness_below(rng, 4);
        g.high[i] = (int64_t)harness_below(rng, 4);
    }
    halo_grid_cut(&g, 1 + harness_below(rng, 6), rng);
    halo_grid_deal(&g, ranks, harness_below(rng, 2) != 0, 0, rng);
    return g;
}

/** A random pattern of a kind. */
static inline twin_case twin_case_make(hem_world *world, int kind, harness_rng *rng) {
    twin_case t;
    int size = hem_world_size(world);
    memset(&t, 0, sizeof t);
    if (kind == TWIN_GRID || kind == TWIN_ROWS) {
        int dims = 1 + (int)harness_below(rng, 4);
        t.g = kind == TWIN_ROWS ? twin_long_grid(size, rng)
                                : halo_grid_random(dims, dims < 4 ? 12 : 5, 8, size, rng);
        t.c = halo_grid_case(&t.g, size);
        t.pattern = halo_grid_pattern(world, &t.g, &t.c);
    } else if (kind == TWIN_MESH) {
        t.m = halo_mesh_ball(1 + (int)harness_below(rng, 3));
        halo_mesh_deal(&t.m, 1 + (int)harness_below(rng, 12), size, harness_below(rng, 2) != 0,
                       rng);
        t.c = halo_mesh_case(&t.m, size, *rng);
        t.pattern = halo_mesh_pattern(world, &t.c, HALO_BY_POSITION);
    } else if (kind == TWIN_LISTS) {
        t.lists = halo_lists_random(100, 100, size, &t.c, rng);
        t.pattern = halo_lists_pattern(world, &t.lists, &t.c);
    } else {
        t.cube = halo_cube_random(1 + (int64_t)harness_below(rng, 9), 4, size, rng);
        t.c = halo_cube_case(&t.cube, size);
        t.pattern = halo_cube_pattern(world, &t.cube, &t.c);
    }
    return t;
}

static inline void twin_case_free(twin_case *t) {
    CHECK_OK(hem_pattern_destroy(t->pattern));
    halo_case_free(&t->c);
    halo_grid_free(&t->g);
    halo_mesh_free(&t->m);
    halo_cube_free(&t->cube);
    halo_lists_free(&t->lists);
}

/** Add a field of some layout to both. */
static inline void twin_add(twin *t, const twin_case *c, const halo_spec *spec, harness_rng *own) {
    halo_set_add(&t->host, c->pattern, &c->c, spec, (int)harness_below(own, HALO_LAYOUTS),
                 HALO_PRIVATE, own);
}

/** Let a rank only read some of its fields, on both sides: before they are bound. */
static inline void twin_freeze(twin *t, harness_rng *own) {
    bool some = harness_below(own, 3) == 0;
    for (size_t i = 0; i < t->host.count && some; i++) {
        if (harness_below(own, 2) != 0)
            continue;
        t->host.fields[i].spec.flags |= HEM_FIELD_READ_ONLY;
        t->host.bindings[i].field.flags |= HEM_FIELD_READ_ONLY;
    }
}

/** All fields are there: bind them twice. */
static inline void twin_bind(twin *t, int place, harness_rng *own) {
    size_t count = t->host.count;
    size_t most = 1;
    t->places = (unsigned char **)calloc(count + 1, sizeof *t->places);
    t->on_device = (bool *)calloc(count + 1, sizeof *t->on_device);
    t->bindings = (hem_binding *)calloc(count + 1, sizeof *t->bindings);
    for (size_t i = 0; i < count; i++) {
        const halo_field *f = &t->host.fields[i];
        t->on_device[i] = place == TWIN_DEVICE ||
                          (place == TWIN_MIXED && harness_below(own, 2) != 0) ||
                          (place == TWIN_FIRST && hem_world_rank(t->world) == 0);
        t->places[i] = (unsigned char *)(t->on_device[i] ? device_alloc(f->size) : malloc(f->size));
        most = f->size > most ? f->size : most;
        t->bindings[i] = t->host.bindings[i];
        t->bindings[i].field.memory = t->places[i] + ((unsigned char *)f->field.memory - f->base);
    }
    uint64_t some = 0;
    for (size_t i = 0; i < count; i++)
        some += t->on_device[i];
    CHECK_OK(hem_allreduce(t->world, &some, &some, 1, HEM_U64, HEM_SUM, LIMIT));
    t->is_device = some > 0;
    t->scratch = (unsigned char *)malloc(most);
    t->reference = halo_set_exchange(&t->host);
    t->exchange = twin_create(t->world, t->bindings, count, 0);
}

static inline void twin_free(twin *t) {
    /* Fields in host memory are unpinned, which on a GPU waits for the kernels of all threads, and lets
     * them launch none meanwhile: so all are done with theirs before anybody does that. */
    if (harness_threads() && !device_stands_in())
        CHECK_OK(hem_sync(t->world, LIMIT));
    CHECK_OK(hem_exchange_destroy(t->exchange));
    CHECK_OK(hem_exchange_destroy(t->reference));
    for (size_t i = 0; i < t->host.count; i++) {
        if (t->on_device[i])
            device_free(t->places[i]);
        else
            free(t->places[i]);
    }
    free(t->places);
    free(t->on_device);
    free(t->bindings);
    free(t->scratch);
    halo_set_free(&t->host);
}

static inline void twin_copy(unsigned char *to, const unsigned char *from, size_t bytes,
                             bool device) {
    if (device)
        device_copy(to, from, bytes);
    else
        memcpy(to, from, bytes);
}

/** The same new bytes everywhere. */
static inline void twin_fill(twin *t, uint64_t round) {
    halo_set_fill(&t->host, round);
    for (size_t i = 0; i < t->host.count; i++)
        twin_copy(t->places[i], t->host.fields[i].base, t->host.fields[i].size, t->on_device[i]);
}

/** Run the twin, and compare. What is only read is as it was filled, whatever the twin does. */
static inline void twin_check(twin *t, const hem_exchange_how *how) {
    CHECK_OK(hem_exchange_run(t->reference, how, LIMIT));
    for (size_t i = 0; i < t->host.count; i++) {
        const halo_field *f = &t->host.fields[i];
        bool only_read = (t->bindings[i].field.flags & HEM_FIELD_READ_ONLY) != 0;
        const unsigned char *want = only_read ? f->image : f->base;
        twin_copy(t->scratch, t->places[i], f->size, t->on_device[i]);
        for (size_t b = 0; b < f->size; b++)
            if (t->scratch[b] != want[b])
                harness_fail(__FILE__, __LINE__, "field %zu, byte %zu of %zu: %#x and not %#x", i,
                             b, f->size, t->scratch[b], want[b]);
    }
}

/** Some of the fields, some of the sides, or everything. The same on all ranks. */
static inline hem_exchange_how twin_how(hem_combine combine, harness_rng *rng) {
    hem_exchange_how how;
    memset(&how, 0, sizeof how);
    how.struct_size = sizeof how;
    how.combine = combine;
    if (harness_below(rng, 2) != 0)
        how.fields = 1 + harness_below(rng, 15);
    if (harness_below(rng, 2) != 0)
        how.sides = (uint32_t)(1 + harness_below(rng, 63));
    return how;
}

/** So many values at all points together are soon compared. */
#define TWIN_VALUES 8192u
#define TWIN_LEVELS 80u

/** A spec of any type or element. Of few points it has many levels now and then, or many components. */
static inline halo_spec twin_plain_spec(const twin_case *c, harness_rng *rng) {
    halo_spec spec = halo_spec_random(rng, 3);
    size_t points = 1;
    if (harness_below(rng, 4) != 0)
        return spec;
    for (size_t i = 0; i < c->c.count; i++)
        points += c->c.domains[i].count;
    size_t most = TWIN_VALUES / points < TWIN_LEVELS ? TWIN_VALUES / points : TWIN_LEVELS;
    if (most > 3)
        *(harness_below(rng, 4) != 0 ? &spec.levels : &spec.components) =
            1 + harness_below(rng, most);
    return spec;
}

/** The same, with vectors on cubes. */
static inline halo_spec twin_spec(const twin_case *c, int kind, harness_rng *rng) {
    halo_spec spec = twin_plain_spec(c, rng);
    if (kind == TWIN_CUBE && harness_below(rng, 2) != 0) {
        const hem_dtype types[] = {HEM_F32, HEM_F64, HEM_I16, HEM_I64, HEM_C64, HEM_F16};
        spec.dtype = types[harness_below(rng, 6)];
        spec.element = 0;
        spec.components = 2;
        spec.flags = HEM_FIELD_VECTOR;
    }
    return spec;
}

#endif
