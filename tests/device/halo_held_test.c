/*
 * An exchange is destroyed while a run of it is on a stream that does not get on: something that was put
 * there before takes its time. The kernels of that run come later, when the neighbours have destroyed
 * theirs, too, and have made new ones. Nothing of that is touched.
 *
 * hem-test: ranks=2 modes=processes,threads timeout=90
 */
#include "halo_ring.h"

/* How long destroying waits for a run, and creating for the others. */
#define SHORT HEM_SEC(4)

typedef struct held_args {
    uint64_t *open;
} held_args;

DEVICE_KERNEL(held_wait, held_args) {
    while (hemd_load64_relaxed(args->open) == 0)
        hemd_relax();
}

static void meet(hem_world *world) {
    uint64_t one = 1;
    CHECK_OK(hem_allreduce(world, &one, &one, 1, HEM_U64, HEM_SUM, LIMIT));
}

static hem_exchange *bind(const ring *r, uint64_t *memory, int64_t setup_timeout_ns) {
    hem_exchange_options options;
    hem_binding binding;
    hem_exchange *x = NULL;
    memset(&binding, 0, sizeof binding);
    binding.pattern = r->pattern;
    binding.field.struct_size = sizeof binding.field;
    binding.field.dtype = HEM_U64;
    binding.field.memory = memory;
    memset(&options, 0, sizeof options);
    options.struct_size = sizeof options;
    options.bindings = &binding;
    options.count = 1;
    options.setup_timeout_ns = setup_timeout_ns;
    CHECK_OK(hem_exchange_create(r->world, &options, &x));
    return x;
}

static void start(const ring *r, hem_exchange *x) {
    CHECK_OK(hem_exchange_start_on(x, NULL, r->handle));
    CHECK_OK(hem_exchange_finish_on(x, r->handle));
}

int rank_main(hem_world *world) {
    enum {
        NEW = 6
    };
    ring r = ring_make(world);
    uint64_t *open = (uint64_t *)device_host_alloc(sizeof *open);
    uint64_t *memory = (uint64_t *)device_alloc((RING_CELLS + 2) * sizeof *memory);
    held_args args;
    hem_exchange *news[NEW];
    bool holds = r.me == 0;
    args.open = open;
    *open = 0;
    hem_exchange *x = bind(&r, memory, SHORT);
    CHECK_OK(hem_exchange_run(x, NULL, LIMIT));
    if (holds)
        device_launch(held_wait, r.stream, 1, 1, &args);
    start(&r, x);
    meet(world);
    hem_status status = hem_exchange_destroy(x);
    CHECK(status == HEM_ERR_TIMEOUT || status == HEM_ERR_REVOKED);
    meet(world);
    /* They come to lie where the old one was, if that was given back. */
    for (int i = 0; i < NEW; i++) {
        news[i] = bind(&r, memory, 0);
        CHECK_OK(hem_exchange_run(news[i], NULL, LIMIT));
    }
    meet(world);
    __atomic_store_n(open, 1, __ATOMIC_RELEASE);
    device_stream_sync(r.stream);
    meet(world);
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < NEW; i++)
            CHECK_OK(hem_exchange_run(news[i], NULL, LIMIT));
    for (int i = 0; i < NEW; i++)
        CHECK_OK(hem_exchange_destroy(news[i]));
    ring_free(&r);
    device_free(memory);
    device_host_free(open);
    harness_close(world, HEM_OK);
    return 0;
}
