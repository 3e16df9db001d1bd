/*
 * Memory without a window: allocated memory is zeroed, mapped by every peer that imports it, and
 * can be read and written by call; registered memory can be read and written; routes say truly what
 * can be done. Wrong lengths, ranks and pointers are refused.
 *
 * hem-test: ranks=1,2,3,5 modes=processes,threads timeout=60
 */
#include "harness.h"

enum {
    BYTES = 100000,
    RANKS = 16
};

#define ARG(call)   CHECK_STATUS(call, HEM_ERR_ARG)
#define RANGE(call) CHECK_STATUS(call, HEM_ERR_RANGE)

/* Everybody learns everybody's handle. */
static void exchange(hem_window *window, int size, int rank, const hem_memory_handle *mine,
                     hem_memory_handle *all) {
    for (int peer = 0; peer < size; peer++)
        CHECK_OK(hem_put(window, peer, (size_t)rank * sizeof *mine, mine, sizeof *mine));
    harness_barrier(window);
    memcpy(all, hem_window_memory(window), (size_t)size * sizeof *all);
    harness_barrier(window);
}

static void check_route(unsigned route, bool near, bool library) {
    unsigned mapped = HEM_ROUTE_MAPPED | HEM_ROUTE_ATOMIC | HEM_ROUTE_SIGNAL;

    CHECK(route & HEM_ROUTE_COPY);
    CHECK(!(route & HEM_ROUTE_DEVICE));
    CHECK(!(route & HEM_ROUTE_SAME_PROCESS) == !near);
    if (library)
        CHECK_EQ(route & mapped, mapped);
    else if (!near)
        CHECK_EQ(route & mapped, 0);
}

/* Reads what the owner wrote, and writes back for the owner to see, at odd places. */
static void touch(hem_memory *memory, int me, int owner) {
    uint8_t *buf = malloc(BYTES);
    size_t place = 1 + (size_t)me * 600;

    CHECK(buf != NULL);
    CHECK_EQ(hem_memory_size(memory), BYTES);
    CHECK_OK(hem_memory_read(memory, 50000, buf, 50000));
    CHECK_FILLED(buf, 50000, (uint64_t)owner);
    harness_fill(buf, 555, (uint64_t)(me * 100 + owner));
    CHECK_OK(hem_memory_write(memory, place, buf, 555));
    memset(buf, 0, 555);
    CHECK_OK(hem_memory_read(memory, place, buf, 555));
    CHECK_FILLED(buf, 555, (uint64_t)(me * 100 + owner));
    if (hem_memory_address(memory))
        CHECK_FILLED((uint8_t *)hem_memory_address(memory) + place, 555,
                     (uint64_t)(me * 100 + owner));
    CHECK_OK(hem_memory_read(memory, BYTES, NULL, 0));
    RANGE(hem_memory_read(memory, BYTES, buf, 1));
    RANGE(hem_memory_read(memory, 1, buf, BYTES));
    RANGE(hem_memory_write(memory, SIZE_MAX, buf, 2));
    RANGE(hem_memory_write(memory, 2, buf, SIZE_MAX));
    ARG(hem_memory_write(memory, 0, NULL, 1));
    ARG(hem_memory_read(memory, 0, NULL, 1));
    free(buf);
}

static void import_all(hem_world *world, hem_window *window, hem_memory *own, bool library) {
    int rank = hem_world_rank(world);
    int size = hem_world_size(world);
    hem_memory_handle mine;
    hem_memory_handle all[RANKS];
    hem_memory *theirs;

    CHECK_OK(hem_memory_export(own, &mine));
    exchange(window, size, rank, &mine, all);
    for (int peer = 0; peer < size; peer++) {
        bool near = harness_threads() || peer == rank;

        CHECK_OK(hem_memory_import(world, peer, &all[peer], &theirs));
        check_route(hem_memory_route(theirs), near, library);
        CHECK(!hem_memory_address(theirs) == !(near || library));
        touch(theirs, rank, peer);
        ARG(hem_memory_export(theirs, &mine));
        CHECK_OK(hem_memory_free(theirs));
        theirs = NULL;
        RANGE(hem_memory_import(world, -1, &all[peer], &theirs));
        RANGE(hem_memory_import(world, size, &all[peer], &theirs));
        if (size > 1)
            RANGE(hem_memory_import(world, (peer + 1) % size, &all[peer], &theirs));
        CHECK(theirs == NULL);
    }
    harness_barrier(window);
}

static void check_written(const uint8_t *bytes, int rank, int size) {
    for (int peer = 0; peer < size; peer++)
        CHECK_FILLED(bytes + 1 + (size_t)peer * 600, 555, (uint64_t)(peer * 100 + rank));
    CHECK_FILLED(bytes + 50000, 50000, (uint64_t)rank);
}

static void allocated(hem_world *world, hem_window *window) {
    int rank = hem_world_rank(world);
    hem_memory *own;
    uint8_t *bytes;

    for (int round = 0; round < 20; round++) {
        CHECK_OK(hem_memory_alloc(world, BYTES, &own));
        bytes = hem_memory_address(own);
        CHECK(bytes != NULL);
        CHECK_EQ((uintptr_t)bytes % 4096, 0);
        CHECK_ALL(bytes, BYTES, 0);
        harness_fill(bytes + 50000, 50000, (uint64_t)rank);
        import_all(world, window, own, true);
        check_written(bytes, rank, hem_world_size(world));
        harness_barrier(window);
        CHECK_OK(hem_memory_free(own));
    }
}

static void registered(hem_world *world, hem_window *window) {
    int rank = hem_world_rank(world);
    uint8_t *bytes = calloc(1, BYTES + 8);
    hem_memory *own;

    CHECK(bytes != NULL);
    CHECK_OK(hem_memory_register(world, bytes + 3, BYTES, &own));
    CHECK(hem_memory_address(own) == bytes + 3);
    harness_fill(bytes + 3 + 50000, 50000, (uint64_t)rank);
    import_all(world, window, own, false);
    check_written(bytes + 3, rank, hem_world_size(world));
    harness_barrier(window);
    CHECK_OK(hem_memory_free(own));
    free(bytes);
}

static void refused(hem_world *world) {
    hem_memory *own = NULL;
    hem_memory *empty = NULL;
    hem_memory_handle handle;
    uint8_t byte = 0;

    CHECK_STATUS(hem_memory_alloc(world, (size_t)1 << 50, &own), HEM_ERR_MEMORY);
    CHECK_STATUS(hem_memory_alloc(world, SIZE_MAX, &own), HEM_ERR_MEMORY);
    ARG(hem_memory_alloc(NULL, 8, &own));
    ARG(hem_memory_alloc(world, 8, NULL));
    ARG(hem_memory_register(world, NULL, 8, &own));
    ARG(hem_memory_register(NULL, &byte, 1, &own));
    ARG(hem_memory_register(world, &byte, 1, NULL));
    RANGE(hem_memory_register(world, &byte, SIZE_MAX, &own));
    CHECK(own == NULL);
    CHECK_OK(hem_memory_alloc(world, 0, &empty));
    CHECK_EQ(hem_memory_size(empty), 0);
    RANGE(hem_memory_read(empty, 0, &byte, 1));
    ARG(hem_memory_export(empty, NULL));
    ARG(hem_memory_export(NULL, &handle));
    ARG(hem_memory_import(world, 0, NULL, &own));
    ARG(hem_memory_read(NULL, 0, &byte, 1));
    ARG(hem_memory_write(NULL, 0, &byte, 1));
    CHECK_OK(hem_memory_free(empty));
    CHECK_OK(hem_memory_free(NULL));
    CHECK_EQ(hem_route_query(world, -1), HEM_ERR_RANGE);
    CHECK_EQ(hem_route_query(world, hem_world_size(world)), HEM_ERR_RANGE);
}

int rank_main(hem_world *world) {
    int rank = hem_world_rank(world);
    hem_window *window = harness_window(world, RANKS * sizeof(hem_memory_handle));
    hem_memory *left_over;
    uint8_t byte = 1;
    hem_status status;

    for (int peer = 0; peer < hem_world_size(world); peer++)
        check_route((unsigned)hem_route_query(world, peer), harness_threads() || peer == rank,
                    true);
    allocated(world, window);
    registered(world, window);
    refused(world);
    harness_barrier(window);
    harness_destroy(window);
    CHECK_OK(hem_memory_alloc(world, 5000, &left_over));
    harness_close(world, HEM_OK);
    status = hem_memory_read(left_over, 0, &byte, 1);
    CHECK(status == HEM_ERR_CLOSED && byte == 1);
    CHECK_STATUS(hem_memory_free(left_over), HEM_ERR_CLOSED);
    return 0;
}
