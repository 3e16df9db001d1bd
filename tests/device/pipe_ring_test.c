/*
 * Rings of ranks: everybody sends to the right and receives from the left in one call, with the
 * smallest staging, of one slot; a ring of one sends to itself. An all-gather on top of it. Then each
 * rank sends to one and receives from another that is not its neighbour, and a chain where the ends do
 * one half.
 *
 * hem-test: ranks=1,2,3,4,5,6,7,8,9 timeout=120 delayed=3
 */
#include "pipe_kit.h"

static unsigned char *block_of(unsigned char *all, size_t each, int rank) {
    return all + 16 + (size_t)rank * each;
}

/* In step k everybody passes on the block that came in step k - 1. */
static void all_gather(pipe_kit *kit, unsigned char *all, size_t each, const hem_pipe_how *how) {
    int right = (kit->rank + 1) % kit->size, left = (kit->rank + kit->size - 1) % kit->size;
    for (int step = 0; step < kit->size - 1; step++) {
        int out = (kit->rank - step + kit->size) % kit->size;
        int in = (kit->rank - step - 1 + kit->size) % kit->size;
        pipe_kit_call(kit, right, block_of(all, each, out), each, left, block_of(all, each, in),
                      each, how);
    }
}

static void gather_rounds(pipe_kit *kit, size_t each, uint64_t round) {
    unsigned char *all = (unsigned char *)device_alloc((size_t)kit->size * each + 32);
    hem_pipe_how how = pipe_kit_how(2, 2, 1 + (uint32_t)(round % 2), 0);
    unsigned char *host = (unsigned char *)malloc(each + 1);
    CHECK(host != NULL);
    pipe_kit_fill(block_of(all, each, kit->rank), each, pipe_kit_tag(kit->rank, 0, round));
    all_gather(kit, all, each, &how);
    device_stream_sync(kit->native);
    CHECK_OK(hem_pipe_status(kit->pipe));
    for (int r = 0; r < kit->size; r++) {
        device_copy(host, block_of(all, each, r), each);
        CHECK_FILLED(host, each, pipe_kit_tag(r, 0, round));
    }
    free(host);
    device_free(all);
}

/* `by`: how far to the right the message goes. */
static void shift(pipe_kit *kit, int by, size_t bytes, uint64_t number) {
    int to = (kit->rank + by) % kit->size;
    int from = (kit->rank + kit->size - by % kit->size) % kit->size;
    unsigned char *send = (unsigned char *)device_alloc(bytes + 32);
    unsigned char *recv = (unsigned char *)device_alloc(bytes + 32);
    hem_pipe_how how = pipe_kit_how(1 + (uint32_t)(kit->rank + by) % 2, 2, 1, 0);
    harness_step("shift", number);
    pipe_kit_fill(send + 16, bytes, pipe_kit_tag(kit->rank, to, number));
    pipe_kit_call(kit, to, send + 16, bytes, from, recv + 16, bytes, &how);
    device_stream_sync(kit->native);
    CHECK_OK(hem_pipe_status(kit->pipe));
    pipe_kit_expect(recv + 16, bytes, pipe_kit_tag(from, kit->rank, number));
    device_free(send);
    device_free(recv);
}

/* The first rank only sends, the last only receives; who comes first does not matter. */
static void chain(pipe_kit *kit, size_t bytes) {
    unsigned char *data = (unsigned char *)device_alloc(bytes + 32);
    bool first = kit->rank == 0, last = kit->rank == kit->size - 1;
    hem_pipe_how how = pipe_kit_how(2, 2, 2, 512);
    if (first)
        pipe_kit_fill(data + 16, bytes, 77);
    if (!first)
        pipe_kit_call(kit, -1, NULL, 0, kit->rank - 1, data + 16, bytes, &how);
    if (!last)
        pipe_kit_call(kit, kit->rank + 1, data + 16, bytes, -1, NULL, 0, &how);
    device_stream_sync(kit->native);
    CHECK_OK(hem_pipe_status(kit->pipe));
    pipe_kit_expect(data + 16, bytes, 77);
    device_free(data);
}

int rank_main(hem_world *world) {
    /* A slot that sender and receiver take in turns is slow under a sanitizer. */
    const size_t longest = harness_sanitized() ? 100001 : 200001;
    const size_t sizes[] = {8, 1000, 5000, longest / 3, longest};
    hem_pipe_options options = pipe_kit_options(2, 1024, 1, 1024);
    pipe_kit kit = pipe_kit_open(world, &options);
    uint64_t number = 0;

    chain(&kit, 150000);
    for (int by = 0; by < kit.size || by < 2; by++)
        for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
            shift(&kit, by, sizes[s], number++);
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
        gather_rounds(&kit, sizes[s], s);
    chain(&kit, 300);
    pipe_kit_close(&kit, HEM_OK);
    harness_close(world, HEM_OK);
    return 0;
}
