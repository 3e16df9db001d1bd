/* What the tests of the example kernels share: a window, a stream, and the word for failures. */
#ifndef HEM_TESTS_DEVICE_EXAMPLE_KIT_H
#define HEM_TESTS_DEVICE_EXAMPLE_KIT_H

#include "device.h"

#include <hem/device.cuh>

typedef struct example {
    hem_window *window;
    hem_dev_window dev;
    device_stream stream;
    uint64_t *failed;
    int rank;
    int ranks;
} example;

static inline void example_open(example *e, hem_world *world, size_t bytes, uint32_t barriers) {
    hem_window_options options;
    memset(&options, 0, sizeof options);
    options.struct_size = sizeof options;
    options.kind = HEM_MEMORY_DEVICE;
    options.bytes = bytes;
    options.barriers = barriers;
    e->rank = hem_world_rank(world);
    e->ranks = hem_world_size(world);
    e->stream = device_stream_create();
    e->failed = (uint64_t *)device_alloc(sizeof *e->failed);
    CHECK_OK(hem_window_create(world, &options, &e->window));
    CHECK_OK(hem_window_device(e->window, &e->dev));
}

/* All have made their memory; kernels may wait from here on. */
static inline void example_ready(example *e) {
    CHECK_OK(hem_barrier(e->window, 0, LIMIT));
}

/* Copies in the order of the stream would need memory that lives on; the stream is waited for. */
static inline void example_finish(example *e) {
    uint64_t failed = 0;
    device_stream_sync(e->stream);
    device_copy(&failed, e->failed, sizeof failed);
    CHECK_EQ(failed, 0);
}

static inline void example_close(example *e, hem_world *world) {
    CHECK_OK(hem_window_destroy(e->window));
    device_stream_destroy(e->stream);
    device_free(e->failed);
    harness_close(world, HEM_OK);
}

#endif
