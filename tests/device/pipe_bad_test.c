/*
 * What is refused, with a sentence that says what is allowed: options of pipes, on all ranks alike,
 * and of calls; peers that were not named, or by one side only.
 *
 * hem-test: ranks=2,3 timeout=60
 */
#include "pipe_kit.h"

static hem_pipe_options plain(void) {
    return pipe_kit_options(1, 1024, 2, 64);
}

static void refused(hem_world *world, const hem_pipe_options *options, hem_status want,
                    const char *part) {
    hem_pipe *pipe = NULL;
    CHECK_STATUS(hem_pipe_create(world, options, &pipe), want);
    CHECK(pipe == NULL);
    CHECK_SENTENCE(part);
}

static void bad_numbers(hem_world *world) {
    static const size_t slot_bytes[] = {1, 128, 896, 1000, 1025, (1u << 20) + 128};
    hem_pipe_options o = plain();
    o.blocks = 65;
    refused(world, &o, HEM_ERR_RANGE, "1 to 64");
    for (size_t i = 0; i < sizeof slot_bytes / sizeof slot_bytes[0]; i++) {
        o = plain();
        o.slot_bytes = slot_bytes[i];
        refused(world, &o, HEM_ERR_RANGE, "multiples of 128 from 1024 to 1048576");
    }
    o = plain();
    o.slots = 65;
    refused(world, &o, HEM_ERR_RANGE, "1 to 64");
    o = plain();
    o.short_bytes = (1u << 20) + 1;
    refused(world, &o, HEM_ERR_RANGE, "at most 1048576");
    o = plain();
    o.timeout_ns = -2;
    refused(world, &o, HEM_ERR_ARG, "hem_pipe_create");
    o = plain();
    o.struct_size = 0;
    refused(world, &o, HEM_ERR_ARG, "struct_size");
}

static void bad_peers(hem_world *world) {
    int size = hem_world_size(world), rank = hem_world_rank(world);
    int twice[2] = {0, 0}, out[1] = {size}, zero[1] = {0};
    hem_pipe_options o = plain();
    o.peer_count = 1;
    refused(world, &o, HEM_ERR_ARG, "list is NULL");
    o.peers = out;
    refused(world, &o, HEM_ERR_RANGE, size == 2 ? "0 to 1" : "0 to 2");
    o.peers = twice;
    o.peer_count = 2;
    refused(world, &o, HEM_ERR_ARG, "twice");
    /* Rank 1 names rank 0, which names nobody. */
    o.peers = zero;
    o.peer_count = rank == 1 ? 1 : 0;
    refused(world, &o, HEM_ERR_MISMATCH, "not the other way round");
    /* What one rank asks differs from what the others do. */
    o = plain();
    o.slots = rank == 0 ? 3 : 2;
    hem_pipe *pipe = NULL;
    CHECK_STATUS(hem_pipe_create(world, &o, &pipe), HEM_ERR_MISMATCH);
    CHECK_STATUS(hem_pipe_create(NULL, &o, &pipe), HEM_ERR_ARG);
    CHECK_STATUS(hem_pipe_create(world, NULL, NULL), HEM_ERR_ARG);
    CHECK_OK(hem_pipe_destroy(NULL));
}

static void bad_call(pipe_kit *kit, const hem_pipe_half *send, const hem_pipe_half *recv,
                     const hem_pipe_how *how, hem_status want, const char *part) {
    CHECK_STATUS(hem_pipe_sendrecv(kit->pipe, send, recv, how, kit->stream), want);
    CHECK_SENTENCE(part);
}

static void bad_how(pipe_kit *kit, const hem_pipe_half *half) {
    hem_pipe_how how = pipe_kit_how(2, 1, 1, 0);
    bad_call(kit, half, NULL, &how, HEM_ERR_RANGE, "made for 1 to 1");
    how = pipe_kit_how(1, 17, 1, 0);
    bad_call(kit, half, NULL, &how, HEM_ERR_RANGE, "1 to 16");
    how = pipe_kit_how(1, 4, 3, 0);
    bad_call(kit, half, NULL, &how, HEM_ERR_RANGE, "divisors");
    how = pipe_kit_how(1, 16, 2, 0);
    bad_call(kit, half, half, &how, HEM_ERR_RANGE, "at most 15 teams");
    how = pipe_kit_how(1, 1, 1, 1025);
    bad_call(kit, half, NULL, &how, HEM_ERR_RANGE, "at most the 1024 of a slot");
    how = pipe_kit_how(1, 1, 1, 0);
    how.timeout_ns = -7;
    bad_call(kit, half, NULL, &how, HEM_ERR_ARG, "hem_pipe_sendrecv");
    how.struct_size = 3;
    bad_call(kit, half, NULL, &how, HEM_ERR_ARG, "struct_size");
}

static void bad_calls(hem_world *world) {
    /* Ranks 0 and 1 name each other; nobody names itself or anybody else. */
    int rank = hem_world_rank(world), other = 1 - rank;
    hem_pipe_options o = plain();
    o.peers = rank < 2 ? &other : &rank;
    o.peer_count = rank < 2 ? 1 : 0;
    pipe_kit kit = pipe_kit_open(world, &o);
    void *data = device_alloc(64);
    hem_pipe_half far = pipe_kit_half(kit.size, data, 8), self = pipe_kit_half(rank, data, 8);
    hem_pipe_half null = pipe_kit_half(other, NULL, 8), good = pipe_kit_half(other, data, 8);
    hem_pipe_half none = pipe_kit_half(-1, NULL, 0);
    hem_stream *host = NULL;
    bad_call(&kit, &far, NULL, NULL, HEM_ERR_RANGE, "are allowed");
    bad_call(&kit, NULL, &self, NULL, HEM_ERR_ARG, "was not named");
    CHECK_OK(hem_pipe_sendrecv(kit.pipe, &none, NULL, NULL, kit.stream));
    if (rank < 2) {
        bad_call(&kit, &null, NULL, NULL, HEM_ERR_ARG, "NULL");
        bad_how(&kit, &good);
        CHECK_STATUS(hem_pipe_sendrecv(kit.pipe, &good, NULL, NULL, NULL), HEM_ERR_ARG);
        CHECK_STATUS(hem_pipe_sendrecv(NULL, &good, NULL, NULL, kit.stream), HEM_ERR_ARG);
        CHECK_OK(hem_stream_create(world, &host));
        CHECK_STATUS(hem_pipe_sendrecv(kit.pipe, &good, NULL, NULL, host), HEM_ERR_ARG);
        CHECK_SENTENCE("host stream");
        CHECK_OK(hem_stream_destroy(host));
        pipe_kit_call(&kit, other, data, 8, other, (char *)data + 32, 8, NULL);
        device_stream_sync(kit.native);
    }
    CHECK_OK(hem_pipe_status(kit.pipe));
    CHECK_STATUS(hem_pipe_status(NULL), HEM_ERR_ARG);
    CHECK_STATUS(hem_pipe_device(kit.pipe, NULL), HEM_ERR_ARG);
    pipe_kit_close(&kit, HEM_OK);
    device_free(data);
}

int rank_main(hem_world *world) {
    bad_numbers(world);
    bad_peers(world);
    bad_calls(world);
    harness_close(world, HEM_OK);
    return 0;
}
