/* What the tests of pipes share. */
#ifndef HEM_TESTS_DEVICE_PIPE_KIT_H
#define HEM_TESTS_DEVICE_PIPE_KIT_H

#include "device.h"

#include <hem/device/pipe.h>

/** A rank with a pipe and a stream. */
typedef struct pipe_kit {
    hem_world *world;
    int rank;
    int size;
    hem_pipe *pipe;
    device_stream native;
    hem_stream *stream;
} pipe_kit;

static inline hem_pipe_options pipe_kit_options(uint32_t blocks, size_t slot_bytes, uint32_t slots,
                                                size_t short_bytes) {
    hem_pipe_options options;
    memset(&options, 0, sizeof options);
    options.struct_size = sizeof options;
    options.blocks = blocks;
    options.slot_bytes = slot_bytes;
    options.slots = slots;
    options.short_bytes = short_bytes;
    return options;
}

static inline pipe_kit pipe_kit_open(hem_world *world, const hem_pipe_options *options) {
    pipe_kit kit;
    kit.world = world;
    kit.rank = hem_world_rank(world);
    kit.size = hem_world_size(world);
    CHECK_OK(hem_pipe_create(world, options, &kit.pipe));
    kit.native = device_stream_create();
    CHECK_OK(hem_stream_cuda(world, kit.native, &kit.stream));
    return kit;
}

/** `want`: how giving the pipe up goes. */
static inline void pipe_kit_close(pipe_kit *kit, hem_status want) {
    device_stream_sync(kit->native);
    CHECK_OK(hem_stream_destroy(kit->stream));
    device_stream_destroy(kit->native);
    CHECK_STATUS(hem_pipe_destroy(kit->pipe), want);
}

static inline hem_pipe_how pipe_kit_how(uint32_t blocks, uint32_t warps, uint32_t team,
                                        size_t chunk) {
    hem_pipe_how how;
    memset(&how, 0, sizeof how);
    how.struct_size = sizeof how;
    how.blocks = blocks;
    how.warps = warps;
    how.team = team;
    how.chunk_bytes = chunk;
    return how;
}

/** Any way that a call may go in a pipe of these options, with few threads. */
static inline hem_pipe_how pipe_kit_any_how(harness_rng *rng, const hem_pipe_options *options) {
    static const uint32_t forms[6][2] = {{1, 1}, {2, 1}, {2, 2}, {3, 1}, {4, 2}, {3, 3}};
    size_t form = harness_below(rng, 6);
    uint32_t blocks = 1 + (uint32_t)harness_below(rng, options->blocks);
    size_t chunk = harness_below(rng, 2) == 0 ? 0 : 1 + harness_below(rng, options->slot_bytes);
    return pipe_kit_how(blocks, forms[form][0], forms[form][1], chunk);
}

static inline hem_pipe_half pipe_kit_half(int peer, void *data, size_t bytes) {
    hem_pipe_half half;
    half.peer = peer;
    half.data = data;
    half.bytes = bytes;
    return half;
}

/** Put a call on the stream; a negative peer means that there is no such half. */
static inline void pipe_kit_call(pipe_kit *kit, int to, void *send, size_t send_bytes, int from,
                                 void *recv, size_t recv_bytes, const hem_pipe_how *how) {
    hem_pipe_half out = pipe_kit_half(to, send, send_bytes);
    hem_pipe_half in = pipe_kit_half(from, recv, recv_bytes);
    CHECK_OK(hem_pipe_sendrecv(kit->pipe, to < 0 ? NULL : &out, from < 0 ? NULL : &in, how,
                               kit->stream));
}

/** Fill device memory with what `tag` says. */
static inline void pipe_kit_fill(void *device, size_t bytes, uint64_t tag) {
    unsigned char *host = (unsigned char *)malloc(bytes + 1);
    CHECK(host != NULL);
    harness_fill(host, bytes, tag);
    device_copy(device, host, bytes);
    free(host);
}

/** Device memory holds what `tag` says, and the 16 bytes on both sides of it are still zero. */
static inline void pipe_kit_expect(void *device, size_t bytes, uint64_t tag) {
    unsigned char *host = (unsigned char *)malloc(bytes + 32);
    CHECK(host != NULL);
    device_copy(host, (unsigned char *)device - 16, bytes + 32);
    CHECK_ALL(host, 16, 0);
    CHECK_FILLED(host + 16, bytes, tag);
    CHECK_ALL(host + 16 + bytes, 16, 0);
    free(host);
}

static inline uint64_t pipe_kit_tag(int from, int to, uint64_t number) {
    return number * 10000u + (uint64_t)from * 100u + (uint64_t)to;
}

#endif
