/*
 * Nobody writes into a halo that was not given free. A neighbour that comes late finds its halos as they
 * were, however long ago the others have started, and whatever reads them before the start on its
 * stream is not overtaken. A run that is something else than the neighbour's touches none of its
 * fields. A field may be freed as soon as its exchange was destroyed, although neighbours are about to
 * write there. Ways that are not possible, or not the same on all ranks, are refused on all.
 *
 * hem-test: ranks=2,3,5 modes=processes,threads timeout=120
 */
#ifndef TWIN_WAY
#define TWIN_WAY HEM_EXCHANGE_DIRECT
#endif
#include "halo_ring.h"

#include <hem/window.h>

static void meet(hem_world *world) {
    uint64_t one = 1;
    CHECK_OK(hem_allreduce(world, &one, &one, 1, HEM_U64, HEM_SUM, LIMIT));
}

/* Look at the halos for some time: whether they change. */
typedef struct look_args {
    const uint64_t *cells;
    uint64_t ns;
    uint64_t value;
    uint64_t *changed;
} look_args;

DEVICE_KERNEL(look, look_args) {
    uint64_t start = hemd_now_ns();
    if (hem_block().rank != 0)
        return;
    do {
        /* Plain words to the kernels that write them: what is read here must not be written. */
        if (hemd_load64_relaxed(&args->cells[0]) != args->value ||
            hemd_load64_relaxed(&args->cells[RING_CELLS + 1]) != args->value)
            *args->changed = 1;
        hemd_relax();
    } while (hemd_now_ns() - start < args->ns);
}

static void set_cells(uint64_t *memory, uint64_t halo, uint64_t inside) {
    uint64_t cells[RING_CELLS + 2];
    for (size_t i = 0; i < RING_CELLS + 2; i++)
        cells[i] = inside;
    cells[0] = cells[RING_CELLS + 1] = halo;
    device_copy(memory, cells, sizeof cells);
}

static void check_halos(const ring *r, const uint64_t *memory, uint64_t round) {
    uint64_t cells[RING_CELLS + 2];
    device_copy(cells, memory, sizeof cells);
    CHECK_EQ(cells[0], 100 * round + (uint64_t)((r->me + r->size - 1) % r->size));
    CHECK_EQ(cells[RING_CELLS + 1], 100 * round + (uint64_t)((r->me + 1) % r->size));
}

/* A different rank is late each time; the others have long begun. */
static void late(const ring *r, uint64_t *memory, bool by_host) {
    hem_exchange *x = ring_bind(r, memory, 1, 0);
    uint64_t *changed = (uint64_t *)device_alloc(sizeof *changed);
    for (int i = 0; i < harness_rounds(6); i++) {
        uint64_t round = (uint64_t)i + 1;
        uint64_t none = 0;
        set_cells(memory, 7777, 100 * round + (uint64_t)r->me);
        device_copy(changed, &none, sizeof none);
        meet(r->world);
        if (i % r->size == r->me) {
            look_args args = {memory, 20000000, 7777, changed};
            device_launch(look, r->stream, 1, 1, &args);
            if (by_host)
                device_stream_sync(r->stream);
        }
        if (by_host) {
            CHECK_OK(hem_exchange_run(x, NULL, LIMIT));
        } else {
            CHECK_OK(hem_exchange_start_on(x, NULL, r->handle));
            CHECK_OK(hem_exchange_finish_on(x, r->handle));
            device_stream_sync(r->stream);
            CHECK_OK(hem_exchange_status(x));
        }
        check_halos(r, memory, round);
        device_copy(&none, changed, sizeof none);
        CHECK_EQ(none, 0);
        meet(r->world);
    }
    device_free(changed);
    CHECK_OK(hem_exchange_destroy(x));
}

/* Rank 0 runs both fields, the others the first one only: nobody's second one is touched. */
static void mismatch(const ring *r, uint64_t *memory) {
    hem_exchange *x = ring_bind(r, memory, 2, 0);
    hem_exchange_how how;
    uint64_t cells[RING_CELLS + 2];
    memset(&how, 0, sizeof how);
    how.struct_size = sizeof how;
    how.fields = r->me == 0 ? 3 : 1;
    set_cells(memory, 1, 2);
    set_cells(memory + RING_CELLS + 2, 3, 4);
    meet(r->world);
    hem_status status = hem_exchange_run(x, &how, LIMIT);
    CHECK(status == HEM_ERR_MISMATCH || status == HEM_ERR_REVOKED ||
          (status == HEM_OK && r->size > 3));
    meet(r->world);
    device_copy(cells, memory + RING_CELLS + 2, sizeof cells);
    CHECK_EQ(cells[0], 3);
    CHECK_EQ(cells[RING_CELLS + 1], 3);
    (void)hem_exchange_destroy(x);
}

/* Forward here, reverse there: all hear of it. */
static void turned(const ring *r, uint64_t *memory) {
    hem_exchange *x = ring_bind(r, memory, 1, 0);
    hem_exchange_how how;
    memset(&how, 0, sizeof how);
    how.struct_size = sizeof how;
    how.combine = r->me == 0 ? HEM_COMBINE_SUM : (hem_combine)0;
    set_cells(memory, 5, 6);
    meet(r->world);
    hem_status status = hem_exchange_run(x, &how, LIMIT);
    while (status == HEM_OK) /* far away it is heard of some runs later */
        status = hem_exchange_run(x, &how, LIMIT);
    CHECK(status == HEM_ERR_MISMATCH || status == HEM_ERR_REVOKED);
    meet(r->world);
    (void)hem_exchange_destroy(x);
}

/* The field goes with its exchange, whatever the neighbours are about to do. */
static void freed(const ring *r, int i) {
    uint64_t *memory = (uint64_t *)device_alloc((RING_CELLS + 2) * sizeof *memory);
    hem_exchange *x = ring_bind(r, memory, 1, 0);
    CHECK_OK(hem_exchange_run(x, NULL, LIMIT));
    if (TWIN_WAY == HEM_EXCHANGE_ENGINES)
        meet(r->world); /* that it is broken gets around faster than runs do */
    if (r->me == i % r->size) {
        if (i % 2 == 0) { /* it has begun, too */
            CHECK_OK(hem_exchange_start_on(x, NULL, r->handle));
            device_stream_sync(r->stream);
        }
        (void)hem_exchange_destroy(x);
        device_free(memory);
        memory = NULL;
    } else {
        hem_status status = hem_exchange_start_on(x, NULL, r->handle);
        CHECK(status == HEM_OK || TWIN_WAY == HEM_EXCHANGE_ENGINES);
        if (status == HEM_OK)
            status = hem_exchange_finish_on(x, r->handle);
        CHECK(status == HEM_OK || TWIN_WAY == HEM_EXCHANGE_ENGINES);
        if (status == HEM_OK)
            status = hem_exchange_finish(x, LIMIT);
        CHECK(status == HEM_OK || status == HEM_ERR_REVOKED);
        (void)hem_exchange_destroy(x);
    }
    meet(r->world);
    device_stream_sync(r->stream);
    if (memory != NULL)
        device_free(memory);
}

#define WIDE (1 << 22)

/* Ranks in a row, each with a wide halo that the one below it fills. */
static hem_pattern *row_make(hem_world *world) {
    hem_grid_options options;
    hem_grid_domain domain;
    hem_pattern *pattern = NULL;
    memset(&options, 0, sizeof options);
    memset(&domain, 0, sizeof domain);
    domain.id = hem_world_rank(world);
    domain.box.start[0] = (int64_t)WIDE * domain.id;
    domain.box.count[0] = WIDE;
    options.struct_size = sizeof options;
    options.dims = 1;
    options.extent[0] = (int64_t)WIDE * hem_world_size(world);
    options.halo_low[0] = WIDE;
    options.domains = &domain;
    options.domain_count = 1;
    CHECK_OK(hem_pattern_grid(world, &options, &pattern));
    return pattern;
}

/* The last rank runs out of time while its neighbour is writing, and its field goes with it. */
static void freed_meanwhile(const ring *r) {
    hem_pattern *pattern = row_make(r->world);
    bool hasty = r->me == r->size - 1;
    hem_binding binding;
    memset(&binding, 0, sizeof binding);
    binding.pattern = pattern;
    binding.field.struct_size = sizeof binding.field;
    binding.field.dtype = HEM_U8;
    binding.field.stride[0] = 2; /* byte by byte, which takes its time */
    binding.field.memory = device_alloc(4 * (size_t)WIDE);
    hem_exchange *x = twin_create(r->world, &binding, 1, hasty ? HEM_SEC(1) / 200 : 0);
    meet(r->world);
    if (hasty)
        harness_sleep_ms(5); /* the others wait for it */
    hem_status status = hem_exchange_run(x, NULL, LIMIT);
    CHECK(status == HEM_OK || status == HEM_ERR_TIMEOUT || status == HEM_ERR_REVOKED);
    (void)hem_exchange_destroy(x);
    device_free(binding.field.memory);
    meet(r->world);
    CHECK_OK(hem_pattern_destroy(pattern));
}

/* A field of rank 0 is in memory of rank 1, mapped there: it cannot be shown once more. */
static void unreachable(const ring *r) {
    hem_window_options options;
    hem_window *window = NULL;
    hem_exchange *x = NULL;
    void *memory = NULL;
    memset(&options, 0, sizeof options);
    options.struct_size = sizeof options;
    options.bytes = 2 * (RING_CELLS + 2) * sizeof(uint64_t);
    options.kind = HEM_MEMORY_DEVICE;
    CHECK_OK(hem_window_create(r->world, &options, &window));
    memory = hem_window_memory(window);
    if (r->me == 0) {
        memory = hem_window_peer_address(window, 1, 0);
        memory = (uint64_t *)memory + RING_CELLS + 2;
    }
    hem_status status = ring_try(r, (uint64_t *)memory, 1, HEM_EXCHANGE_DIRECT, &x);
    if (harness_threads()) {
        CHECK_OK(status); /* there it is anybody's memory */
    } else {
        CHECK_STATUS(status, HEM_ERR_UNSUPPORTED);
        CHECK_SENTENCE("of rank 0");
        CHECK_OK(ring_try(r, (uint64_t *)memory, 1, HEM_EXCHANGE_BEST, &x));
    }
    for (uint64_t round = 1; round < 4; round++) {
        set_cells((uint64_t *)memory, 0, 100 * round + (uint64_t)r->me);
        meet(r->world);
        CHECK_OK(hem_exchange_run(x, NULL, LIMIT));
        check_halos(r, (uint64_t *)memory, round);
        meet(r->world);
    }
    CHECK_OK(hem_exchange_destroy(x));
    CHECK_OK(hem_window_destroy(window));
}

static void refusals(const ring *r, uint64_t *memory) {
    uint64_t plain[RING_CELLS + 2];
    hem_exchange *x = NULL;
    memset(plain, 0, sizeof plain);
    CHECK_STATUS(ring_try(r, plain, 1, HEM_EXCHANGE_DIRECT, &x), HEM_ERR_UNSUPPORTED);
    CHECK_STATUS(ring_try(r, memory, 1, (hem_exchange_way)99, &x), HEM_ERR_ARG);
    CHECK_STATUS(ring_try(r, memory, 1, r->me == 0 ? HEM_EXCHANGE_STAGED : HEM_EXCHANGE_DIRECT, &x),
                 HEM_ERR_MISMATCH);
    CHECK_OK(
        ring_try(r, r->me == 0 ? plain : memory, 1, HEM_EXCHANGE_DIRECT, &x)); /* it is staged */
    CHECK_OK(hem_exchange_run(x, NULL, LIMIT));
    CHECK_OK(hem_exchange_destroy(x));
}

int rank_main(hem_world *world) {
    CHECK_OK(hem_device_open(world, NULL));
    ring r = ring_make(world);
    uint64_t *memory = (uint64_t *)device_alloc(2 * (RING_CELLS + 2) * sizeof *memory);
    harness_step("late", 0);
    late(&r, memory, false);
    harness_step("late", 1);
    late(&r, memory, true);
    if (TWIN_WAY == HEM_EXCHANGE_DIRECT) {
        harness_step("refusals", 0);
        refusals(&r, memory);
        harness_step("unreachable", 0);
        unreachable(&r);
        harness_step("mismatch", 0);
        mismatch(&r, memory);
        harness_step("turned", 0);
        turned(&r, memory);
    }
    for (int i = 0; i < harness_rounds(8); i++) {
        harness_step("freed", (uint64_t)i);
        freed(&r, i);
    }
    for (int i = 0; i < harness_rounds(6); i++) {
        harness_step("freed meanwhile", (uint64_t)i);
        freed_meanwhile(&r);
    }
    ring_free(&r);
    device_free(memory);
    harness_close(world, HEM_OK);
    return 0;
}
