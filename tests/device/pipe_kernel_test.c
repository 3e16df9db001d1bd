/*
 * Kernels of the caller's that send and receive by themselves: a thread, a warp, some warps, a block;
 * both directions by one group in turns, also round a ring with the smallest staging; several groups
 * as parts of one message, other numbers of them on the two sides; mixed with hem_pipe_sendrecv.
 *
 * hem-test: ranks=1,2,3 timeout=120 delayed=2
 */
#include "pipe_kit.h"

typedef struct talk_args {
    hem_dev_pipe pipe;
    unsigned char *send;
    unsigned char *recv;
    uint64_t bytes;
    uint64_t rounds;
    uint64_t *status;
    int32_t right;
    int32_t left;
    uint32_t scope; /* hem_scope */
} talk_args;

HEM_DEV hem_group group_of(uint32_t scope) {
    if (scope == HEM_SCOPE_THREAD)
        return hem_thread();
    if (scope == HEM_SCOPE_WARP)
        return hem_warp();
    return scope == HEM_SCOPE_WARPS ? hem_warps(0, 2, 3) : hem_block();
}

/* Only the first group of the block takes part. */
HEM_DEV bool takes_part(uint32_t scope, hem_group group) {
    if (scope == HEM_SCOPE_THREAD)
        return hem_block().rank == 0;
    return hem_block().rank < group.size;
}

HEM_DEV void keep(const talk_args *args, hem_group group, hem_status status) {
    if (group.rank == 0 && status != HEM_OK)
        hemd_store64_relaxed(args->status, (uint64_t)-status);
}

/* Everything to the right, in pieces that grow, and from the left, in turns. */
DEVICE_KERNEL(pipe_turns, talk_args) {
    hem_group group = group_of(args->scope);
    if (!takes_part(args->scope, group))
        return;
    uint64_t at = 0;
    for (uint64_t n = 1; at < args->bytes; n = n * 3 + 1) {
        uint64_t length = n < args->bytes - at ? n : args->bytes - at;
        keep(args, group,
             hem_dev_sendrecv(args->pipe, group, args->right, args->send + at, length, args->left,
                              args->recv + at, length, HEM_FOREVER));
        at += length;
    }
}

/* A warp sends while the others receive. */
DEVICE_KERNEL(pipe_roles, talk_args) {
    uint32_t warps = hem_warp_count();
    bool sends = hem_warp_index() == 0;
    hem_group group = sends ? hem_warp() : hem_warps(1, warps - 1, 2);
    for (uint64_t round = 0; round < args->rounds; round++) {
        uint64_t at = round * args->bytes;
        keep(args, group,
             sends ? hem_dev_send(args->pipe, group, args->right, args->send + at, args->bytes,
                                  HEM_FOREVER)
                   : hem_dev_recv(args->pipe, group, args->left, args->recv + at, args->bytes,
                                  HEM_FOREVER));
    }
}

/* Every even warp of the grid is a part that sends, every odd one a part that receives. */
DEVICE_KERNEL(pipe_parts, talk_args) {
    uint32_t half = hem_warp_count() / 2;
    uint32_t part = hem_block_index() * half + hem_warp_index() / 2;
    uint32_t parts = hem_block_count() * half;
    hem_group warp = hem_warp();
    if (hem_warp_index() % 2 == 0)
        keep(args, warp,
             hem_dev_send_part(args->pipe, warp, part, parts, args->right, args->send, args->bytes,
                               HEM_FOREVER));
    else
        keep(args, warp,
             hem_dev_recv_part(args->pipe, warp, part, parts, args->left, args->recv, args->bytes,
                               HEM_FOREVER));
}

static void prepare(pipe_kit *kit, talk_args *args, size_t bytes, uint64_t tag) {
    uint64_t zero = 0;
    CHECK_OK(hem_pipe_device(kit->pipe, &args->pipe));
    args->send = (unsigned char *)device_alloc(bytes + 64) + 16;
    args->recv = (unsigned char *)device_alloc(bytes + 64) + 16;
    args->bytes = bytes;
    args->rounds = 1;
    args->right = (kit->rank + 1) % kit->size;
    args->left = (kit->rank + kit->size - 1) % kit->size;
    device_copy(args->status, &zero, 8);
    pipe_kit_fill(args->send, bytes, pipe_kit_tag(kit->rank, 0, tag));
}

static void finish(pipe_kit *kit, talk_args *args, size_t bytes, uint64_t tag) {
    uint64_t status = 99;
    device_stream_sync(kit->native);
    device_copy(&status, args->status, 8);
    CHECK_EQ(status, 0);
    CHECK_OK(hem_pipe_status(kit->pipe));
    pipe_kit_expect(args->recv, bytes, pipe_kit_tag(args->left, 0, tag));
    device_free(args->send - 16);
    device_free(args->recv - 16);
}

static void mixed(pipe_kit *kit, talk_args *args, size_t bytes) {
    hem_pipe_how how = pipe_kit_how(2, 2, 1, 0);
    prepare(kit, args, bytes, 50);
    pipe_kit_call(kit, args->right, args->send, bytes, args->left, args->recv, bytes, &how);
    device_launch(pipe_parts, kit->native, 1 + (uint32_t)kit->rank % 2, 4, args);
    pipe_kit_call(kit, args->right, args->send, bytes, args->left, args->recv, bytes, &how);
    finish(kit, args, bytes, 50);
}

int rank_main(hem_world *world) {
    static const size_t sizes[] = {100, 4000, 40000};
    hem_pipe_options options = pipe_kit_options(2, 1024, 2, 512);
    pipe_kit kit = pipe_kit_open(world, &options);
    talk_args args;
    args.status = (uint64_t *)device_alloc(8);

    for (uint32_t scope = HEM_SCOPE_THREAD; scope <= HEM_SCOPE_BLOCK; scope++) {
        harness_step("scope", scope);
        prepare(&kit, &args, 30000, scope);
        args.scope = scope;
        device_launch(pipe_turns, kit.native, 1, 3, &args);
        finish(&kit, &args, 30000, scope);
    }
    for (size_t s = 0; s < 3; s++) {
        harness_step("size", sizes[s]);
        prepare(&kit, &args, 4 * sizes[s], 10 + s);
        args.bytes = sizes[s];
        args.rounds = 4;
        device_launch(pipe_roles, kit.native, 1, 3, &args);
        finish(&kit, &args, 4 * sizes[s], 10 + s);
        mixed(&kit, &args, sizes[s]);
    }
    device_free(args.status);
    pipe_kit_close(&kit, HEM_OK);
    harness_close(world, HEM_OK);
    return 0;
}
