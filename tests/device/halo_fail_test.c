/*
 * Runs that cannot end come to an end: a neighbour that does not come within the time limit of a run,
 * runs something else, destroys its exchange, or a world that is revoked while kernels wait or a run is
 * only begun. The kernels end, the first failure is what hem_exchange_status tells, nothing is posted after it, other
 * exchanges go on, and what was started on streams is over.
 *
 * hem-test: ranks=2,3 modes=processes,threads timeout=60
 */
#include "halo_ring.h"

#ifndef LATE_ROUNDS
#define LATE_ROUNDS 2 /* with a time limit that has to pass */
#endif

typedef struct kit {
    ring r;
    hem_exchange_how how;
    uint64_t *memory;
    hem_exchange *other; /* which nothing happens to */
} kit;

static void meet(hem_world *world) {
    uint64_t one = 1;
    CHECK_OK(hem_allreduce(world, &one, &one, 1, HEM_U64, HEM_SUM, LIMIT));
}

static void check_other(kit *k) {
    CHECK_OK(hem_exchange_run(k->other, &k->how, LIMIT));
}

/* All halos of `memory`, and the points that runs back change, are still what they were. */
static void check_untouched(const kit *k, uint64_t value) {
    uint64_t got[RING_CELLS + 2];
    device_copy(got, k->memory, sizeof got);
    CHECK_EQ(got[0], value);
    CHECK_EQ(got[1], value);
    CHECK_EQ(got[RING_CELLS], value);
    CHECK_EQ(got[RING_CELLS + 1], value);
}

static void set_all(const kit *k, uint64_t value) {
    uint64_t cells[RING_CELLS + 2];
    for (size_t i = 0; i < RING_CELLS + 2; i++)
        cells[i] = value;
    device_copy(k->memory, cells, sizeof cells);
}

/* Everybody but the last starts a run, on a stream or by the host. */
static void too_late(kit *k, bool by_stream) {
    hem_exchange *x = ring_bind(&k->r, k->memory, 1,
                                HEM_SEC(2)); /* a good run takes less on a busy machine, too */
    bool late = k->r.me == k->r.size - 1;
    CHECK_OK(hem_exchange_run(x, &k->how, LIMIT));
    meet(k->r.world);
    set_all(k, 77);
    if (!late && by_stream) {
        CHECK_OK(hem_exchange_start_on(x, &k->how, k->r.handle));
        CHECK_OK(hem_exchange_finish_on(x, k->r.handle));
        device_stream_sync(k->r.stream);
        hem_status status = hem_exchange_status(x);
        CHECK(status == HEM_ERR_TIMEOUT || status == HEM_ERR_REVOKED);
        CHECK_STATUS(hem_exchange_start_on(x, &k->how, k->r.handle), HEM_ERR_REVOKED);
        CHECK_STATUS(hem_exchange_finish_on(x, k->r.handle), HEM_ERR_REVOKED);
    } else if (!late) {
        hem_status status = hem_exchange_run(x, &k->how, LIMIT);
        CHECK(status == HEM_ERR_TIMEOUT || status == HEM_ERR_REVOKED);
        CHECK_EQ(hem_exchange_status(x), status);
    }
    meet(k->r.world);
    if (late && by_stream) {
        /* The neighbours have given up: so does the kernel, and at once. */
        CHECK_OK(hem_exchange_start_on(x, &k->how, k->r.handle));
        CHECK_OK(hem_exchange_finish_on(x, k->r.handle));
        device_stream_sync(k->r.stream);
    } else if (late) {
        hem_status status = hem_exchange_run(x, &k->how, LIMIT);
        CHECK(status == HEM_OK || status == HEM_ERR_REVOKED);
    }
    /* Their messages of that run were posted before they failed; the late one's came to nobody. */
    if (!late && k->r.size == 2)
        check_untouched(k, 77);
    CHECK_STATUS(hem_exchange_run(x, &k->how, LIMIT), HEM_ERR_REVOKED);
    check_other(k);
    CHECK_OK(hem_exchange_destroy(x));
}

/* The last rank runs something else. */
static void mismatch(kit *k) {
    hem_exchange *x = ring_bind(&k->r, k->memory, 2, 0);
    hem_exchange_how how = k->how;
    how.fields = k->r.me == k->r.size - 1 ? 2 : 1;
    CHECK_OK(hem_exchange_run(x, &k->how, LIMIT));
    CHECK_OK(hem_exchange_start_on(x, &how, k->r.handle));
    CHECK_OK(hem_exchange_finish_on(x, k->r.handle));
    device_stream_sync(k->r.stream);
    hem_status status = hem_exchange_status(x);
    CHECK(status == HEM_ERR_MISMATCH || status == HEM_ERR_REVOKED);
    CHECK_STATUS(hem_exchange_finish(x, LIMIT), status);
    CHECK_STATUS(hem_exchange_start(x, NULL), HEM_ERR_REVOKED);
    CHECK_STATUS(hem_exchange_prepare(x, NULL), HEM_ERR_REVOKED);
    check_other(k);
    CHECK_OK(hem_exchange_destroy(x));
}

/* The last rank destroys its exchange while kernels of the others wait for it, or have yet to. */
static void destroyed(kit *k) {
    hem_exchange *x = ring_bind(&k->r, k->memory, 1, 0);
    bool leaves = k->r.me == k->r.size - 1;
    CHECK_OK(hem_exchange_run(x, &k->how, LIMIT));
    if (leaves) {
        harness_sleep_ms(20);
        CHECK_OK(hem_exchange_destroy(x));
    } else {
        CHECK_OK(hem_exchange_start_on(x, &k->how, k->r.handle));
        CHECK_OK(hem_exchange_finish_on(x, k->r.handle));
        CHECK_STATUS(hem_exchange_finish(x, LIMIT), HEM_ERR_REVOKED);
        CHECK_OK(hem_exchange_destroy(x));
    }
    check_other(k);
}

/* A run that never ends is given up by its own rank. */
static void given_up(kit *k) {
    hem_exchange_options options;
    hem_binding binding;
    hem_exchange *x = NULL;
    memset(&options, 0, sizeof options);
    memset(&binding, 0, sizeof binding);
    binding.pattern = k->r.pattern;
    binding.field.struct_size = sizeof binding.field;
    binding.field.dtype = HEM_U64;
    binding.field.memory = k->memory;
    options.struct_size = sizeof options;
    options.bindings = &binding;
    options.count = 1;
    options.setup_timeout_ns = HEM_SEC(1);
    CHECK_OK(hem_exchange_create(k->r.world, &options, &x));
    if (k->r.me == 0) {
        CHECK_OK(hem_exchange_start_on(x, &k->how, k->r.handle));
        CHECK_OK(hem_exchange_finish_on(x, k->r.handle));
        CHECK_STATUS(hem_exchange_finish(x, HEM_SEC(1) / 50), HEM_ERR_TIMEOUT);
        CHECK_EQ(hem_exchange_destroy(x), HEM_ERR_TIMEOUT);
        device_stream_sync(k->r.stream);
    }
    meet(k->r.world);
    if (k->r.me != 0)
        CHECK_OK(hem_exchange_destroy(x));
    check_other(k);
}

/* A run is open whose finish is refused. Its stream need not be there any more when the exchange goes. */
static void revoke_and_leave(kit *k, hem_exchange *x) {
    device_stream native = device_stream_create();
    hem_stream *handle = NULL;
    CHECK_OK(hem_stream_cuda(k->r.world, native, &handle));
    CHECK_OK(hem_exchange_start_on(x, &k->how, handle));
    CHECK_OK(hem_world_revoke(k->r.world));
    CHECK_STATUS(hem_exchange_finish_on(x, handle), HEM_ERR_REVOKED);
    device_stream_sync(native);
    CHECK_OK(hem_stream_destroy(handle));
    device_stream_destroy(native);
    CHECK_STATUS(hem_exchange_finish(x, LIMIT), HEM_ERR_REVOKED);
}

/* At the end, since nothing works after it. */
static void revoked(kit *k) {
    hem_exchange *x = ring_bind(&k->r, k->memory, 1, 0);
    hem_exchange *open = ring_bind(&k->r, k->memory + RING_CELLS + 2, 1, 0);
    CHECK_OK(hem_exchange_run(x, &k->how, LIMIT));
    if (k->r.me == k->r.size - 1) {
        harness_sleep_ms(20);
        revoke_and_leave(k, open);
    } else {
        hem_status status = hem_exchange_start_on(x, &k->how, k->r.handle);
        if (status == HEM_OK)
            status = hem_exchange_finish_on(x, k->r.handle);
        CHECK(status == HEM_OK || status == HEM_ERR_REVOKED);
        device_stream_sync(k->r.stream);
        if (status == HEM_OK)
            CHECK_STATUS(hem_exchange_status(x), HEM_ERR_REVOKED);
    }
    (void)hem_exchange_destroy(x);
    (void)hem_exchange_destroy(open);
}

int rank_main(hem_world *world) {
    kit k;
    memset(&k, 0, sizeof k);
    CHECK_OK(hem_device_open(world, NULL));
    k.r = ring_make(world);
    k.how = twin_run();
    k.memory = (uint64_t *)device_alloc(RING_MOST * (RING_CELLS + 2) * sizeof *k.memory);
    k.other = ring_bind(&k.r, k.memory + 4 * (RING_CELLS + 2), 1, 0);
    for (int i = 0; i < harness_rounds(4); i++) {
        harness_step("too late", (uint64_t)i);
        if (i < LATE_ROUNDS)
            too_late(&k, i % 2 == 0);
        harness_step("mismatch", (uint64_t)i);
        mismatch(&k);
        harness_step("destroyed", (uint64_t)i);
        destroyed(&k);
    }
    harness_step("given up", 0);
    given_up(&k);
    harness_step("revoked", 0);
    CHECK_OK(hem_exchange_destroy(k.other));
    meet(world);
    revoked(&k);
    ring_free(&k.r);
    device_free(k.memory);
    harness_close(world, HEM_OK);
    return 0;
}
