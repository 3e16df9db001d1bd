/*
 * A window over the callers' own memory: puts and gets reach it, from processes by system call and
 * from threads directly, at every size and alignment; barriers order them; signals and atomics are
 * refused clearly.
 *
 * hem-test: ranks=1,2,3,4,5,8 modes=processes,threads timeout=60
 */
#include "harness.h"

#include <sys/mman.h>

enum {
    BYTES = 3 << 20,
    EDGE = 64
};

static hem_window *over(hem_world *world, void *memory, size_t bytes) {
    hem_window_options options = {.struct_size = sizeof options, .bytes = bytes, .memory = memory};
    hem_window *window = NULL;

    CHECK_OK(hem_window_create(world, &options, &window));
    CHECK(hem_window_memory(window) == memory);
    return window;
}

static void one_size(hem_world *world, hem_window *window, uint8_t *memory, size_t offset,
                     size_t n) {
    int right = harness_right(world);
    uint64_t tag = n * 3 + (uint64_t)hem_world_rank(world);
    uint8_t *buf = malloc(n + 1);

    CHECK(buf != NULL);
    harness_fill(buf, n, tag);
    CHECK_OK(hem_put(window, right, offset, buf, n));
    memset(buf, 0, n);
    CHECK_OK(hem_get(window, right, offset, buf, n));
    CHECK_FILLED(buf, n, tag);
    harness_barrier(window);
    CHECK_FILLED(memory + offset, n, n * 3 + (uint64_t)harness_left(world));
    CHECK_ALL(memory - EDGE, EDGE, 0);
    CHECK_ALL(memory, offset, 0);
    CHECK_ALL(memory + offset + n, EDGE, 0);
    memset(memory + offset, 0, n);
    harness_barrier(window);
    free(buf);
}

static void sizes(hem_world *world, hem_window *window, uint8_t *memory) {
    static const size_t lengths[] = {0, 1, 7, 8, 33, 64, 4095, 4097, 65536, 100003, BYTES - 64};

    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (size_t offset = 0; offset <= 64; offset += i > 6 ? 61 : 9)
            if (offset + lengths[i] <= BYTES)
                one_size(world, window, memory, offset, lengths[i]);
    CHECK_STATUS(hem_put(window, harness_right(world), BYTES, memory, 1), HEM_ERR_RANGE);
    CHECK_STATUS(hem_get(window, harness_right(world), 1, memory, SIZE_MAX), HEM_ERR_RANGE);
}

static void started(hem_world *world, hem_window *window) {
    uint64_t word = 77;
    uint64_t back = 0;

    CHECK_OK(hem_put_start(window, harness_right(world), 128, &word, 8, 1));
    CHECK_OK(hem_wait_counter(window, 1, 1, LIMIT));
    CHECK_OK(hem_get_start(window, harness_right(world), 128, &back, 8, 1));
    CHECK_OK(hem_wait_counter(window, 1, 2, LIMIT));
    CHECK_EQ(back, 77);
    CHECK_OK(hem_flush(window, harness_right(world)));
    CHECK_OK(hem_flush_all(window));
    harness_barrier(window);
}

#define REFUSED(call) CHECK_STATUS(call, HEM_ERR_UNSUPPORTED)

static void refused(hem_world *world, hem_window *w) {
    uint64_t value = 3;
    bool done = true;

    for (int peer = 0; peer < hem_world_size(world); peer++) {
        REFUSED(hem_fetch_add(w, peer, 0, 1, &value));
        REFUSED(hem_compare_swap(w, peer, 0, 0, 1, &value));
        REFUSED(hem_put_value(w, peer, 0, 1));
        REFUSED(hem_signal(w, peer, 0, HEM_SIGNAL_ADD, 1));
        REFUSED(hem_put_signal(w, peer, 0, &value, 8, 0, 1));
        REFUSED(hem_put_signal_op(w, peer, 0, &value, 8, 0, HEM_SIGNAL_SET, 1));
        REFUSED(hem_put_signal_start(w, peer, 0, &value, 8, 0, 1, 0));
        REFUSED(hem_wait_signal_from(w, peer, 0, HEM_EQ, 0, LIMIT));
    }
    REFUSED(hem_wait_signal(w, 0, HEM_EQ, 0, LIMIT));
    REFUSED(hem_test_signal(w, 0, HEM_EQ, 0, &done));
    CHECK(value == 3 && done);
    harness_barrier(w);
    CHECK_ALL(hem_window_memory(w), 64, 0);
    harness_barrier(w);
}

/* Memory that its owner gave back: a status, not a fault. Threads share the fault, so not there. */
static void unmapped(hem_world *world) {
    size_t bytes = 1 << 16;
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    hem_window *window;
    uint64_t word = 1;

    if (harness_threads() || hem_world_size(world) == 1)
        return;
    window = over(world, memory, bytes);
    CHECK_OK(hem_put(window, harness_right(world), 4096, &word, 8));
    harness_barrier(window);
    munmap(memory, bytes);
    harness_barrier(window);
    CHECK_STATUS(hem_put(window, harness_right(world), 4096, &word, 8), HEM_ERR_SYSTEM);
    CHECK_STATUS(hem_get(window, harness_right(world), 4096, &word, 8), HEM_ERR_SYSTEM);
    harness_barrier(window);
    harness_destroy(window);
}

int rank_main(hem_world *world) {
    uint8_t *memory = calloc(1, BYTES + 3 * EDGE);
    hem_window *window;
    void *mapped;

    CHECK(memory != NULL);
    window = over(world, memory + EDGE, BYTES);
    sizes(world, window, memory + EDGE);
    mapped = hem_window_peer_address(window, harness_right(world), 8);
    CHECK(mapped != NULL || !harness_threads());
    refused(world, window);
    started(world, window);
    harness_destroy(window);
    free(memory);
    unmapped(world);
    harness_close(world, HEM_OK);
    return 0;
}
