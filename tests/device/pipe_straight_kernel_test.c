/*
 * Kernels of the caller's that send and receive by themselves on a pipe with a window: a thread, a
 * warp, some warps, a block; both directions by one group in turns, short and long messages; several
 * groups as parts of one message; data that the group itself has just written, and takes back at once;
 * mixed with hem_pipe_sendrecv. Buffers inside of the window and not.
 *
 * hem-test: ranks=1,2,3 timeout=120 delayed=2
 */
#include "pipe_straight_kit.h"

#define ROOM 200000

typedef struct talk_args {
    hem_dev_pipe pipe;
    unsigned char *send;
    unsigned char *recv;
    uint64_t bytes;
    uint64_t rounds;
    uint64_t *status; /* and the number of wrong bytes */
    int32_t right;
    int32_t left;
    uint32_t scope; /* hem_scope */
    uint32_t seed;
    uint32_t left_seed;
} talk_args;

HEM_DEV hem_group straight_group(uint32_t scope) {
    if (scope == HEM_SCOPE_THREAD)
        return hem_thread();
    if (scope == HEM_SCOPE_WARP)
        return hem_warp();
    return scope == HEM_SCOPE_WARPS ? hem_warps(0, 2, 3) : hem_block();
}

/* Only the first group of the block takes part. */
HEM_DEV bool straight_takes_part(uint32_t scope, hem_group group) {
    if (scope == HEM_SCOPE_THREAD)
        return hem_block().rank == 0;
    return hem_block().rank < group.size;
}

HEM_DEV void straight_keep(const talk_args *args, hem_group group, hem_status status) {
    if (group.rank == 0 && status != HEM_OK)
        hemd_store64_relaxed(args->status, (uint64_t)-status);
}

HEM_DEV unsigned char straight_byte(uint32_t seed, uint64_t round, uint64_t i) {
    return (unsigned char)(seed * 31u + round * 7u + i * 13u + (i >> 8));
}

/* Everything to the right, in pieces that grow, and from the left, in turns. */
DEVICE_KERNEL(straight_turns, talk_args) {
    hem_group group = straight_group(args->scope);
    if (!straight_takes_part(args->scope, group))
        return;
    uint64_t at = 0;
    for (uint64_t n = 1; at < args->bytes; n = n * 3 + 1) {
        uint64_t length = n < args->bytes - at ? n : args->bytes - at;
        straight_keep(args, group,
                      hem_dev_sendrecv(args->pipe, group, args->right, args->send + at, length,
                                       args->left, args->recv + at, length, HEM_FOREVER));
        at += length;
    }
}

/* The group makes the data of each round in the same place, right after the last send has returned;
 * it looks at what has come, and spoils it, before it receives there again. */
DEVICE_KERNEL(straight_again, talk_args) {
    bool sends = hem_warp_index() == 0;
    hem_group group = sends ? hem_warp() : hem_warps(1, hem_warp_count() - 1, 2);
    for (uint64_t round = 0; round < args->rounds; round++) {
        for (uint64_t i = group.rank; sends && i < args->bytes; i += group.size)
            args->send[i] = straight_byte(args->seed, round, i);
        hem_group_sync(group);
        straight_keep(args, group,
                      sends ? hem_dev_send(args->pipe, group, args->right, args->send, args->bytes,
                                           HEM_FOREVER)
                            : hem_dev_recv(args->pipe, group, args->left, args->recv, args->bytes,
                                           HEM_FOREVER));
        for (uint64_t i = group.rank; !sends && i < args->bytes; i += group.size) {
            if (args->recv[i] != straight_byte(args->left_seed, round, i))
                hemd_add64_relaxed(args->status + 1, 1);
            args->recv[i] = 0;
        }
    }
}

/* Every even warp of the grid is a part that sends, every odd one a part that receives. */
DEVICE_KERNEL(straight_parts, talk_args) {
    uint32_t half = hem_warp_count() / 2;
    uint32_t part = hem_block_index() * half + hem_warp_index() / 2;
    uint32_t parts = hem_block_count() * half;
    hem_group warp = hem_warp();
    if (hem_warp_index() % 2 == 0)
        straight_keep(args, warp,
                      hem_dev_send_part(args->pipe, warp, part, parts, args->right, args->send,
                                        args->bytes, HEM_FOREVER));
    else
        straight_keep(args, warp,
                      hem_dev_recv_part(args->pipe, warp, part, parts, args->left, args->recv,
                                        args->bytes, HEM_FOREVER));
}

static void prepare(straight_kit *it, talk_args *args, uint64_t where, size_t bytes, uint64_t tag) {
    uint64_t zero[2] = {0, 0};
    CHECK_OK(hem_pipe_device(it->kit.pipe, &args->pipe));
    args->send = straight_place(it, (enum straight_where)(where % 2), false, bytes, where % 3);
    args->recv = straight_place(it, (enum straight_where)(where / 2 % 2), true, bytes, where % 5);
    args->bytes = bytes;
    args->rounds = 1;
    args->right = straight_right(it);
    args->left = straight_left(it);
    args->seed = (uint32_t)it->kit.rank;
    args->left_seed = (uint32_t)args->left;
    device_copy(args->status, zero, 16);
    straight_clear(args->recv, bytes);
    pipe_kit_fill(args->send, bytes, pipe_kit_tag(it->kit.rank, 0, tag));
}

static void settle(straight_kit *it, talk_args *args) {
    uint64_t status[2] = {99, 99};
    device_stream_sync(it->kit.native);
    device_copy(status, args->status, 16);
    CHECK_EQ(status[0], 0);
    CHECK_EQ(status[1], 0);
    CHECK_OK(hem_pipe_status(it->kit.pipe));
}

static void finish(straight_kit *it, talk_args *args, size_t bytes, uint64_t tag) {
    settle(it, args);
    pipe_kit_expect(args->recv, bytes, pipe_kit_tag(args->left, 0, tag));
}

static void mixed(straight_kit *it, talk_args *args, uint64_t where, size_t bytes) {
    hem_pipe_how how = pipe_kit_how(2, 2, 1, 0);
    pipe_kit *kit = &it->kit;
    prepare(it, args, where, bytes, 50);
    pipe_kit_call(kit, args->right, args->send, bytes, args->left, args->recv, bytes, &how);
    device_launch(straight_parts, kit->native, 1 + (uint32_t)kit->rank % 2, 4, args);
    pipe_kit_call(kit, args->right, args->send, bytes, args->left, args->recv, bytes, &how);
    finish(it, args, bytes, 50);
}

int rank_main(hem_world *world) {
    static const size_t sizes[] = {100, 4000, 40000};
    hem_pipe_options options = pipe_kit_options(2, 1024, 2, 512);
    straight_kit it = straight_open(world, &options, ROOM);
    talk_args args;
    args.status = (uint64_t *)device_alloc(16);
    args.scope = HEM_SCOPE_BLOCK;

    for (uint64_t where = 0; where < 4; where++) {
        for (uint32_t scope = HEM_SCOPE_THREAD; scope <= HEM_SCOPE_BLOCK; scope++) {
            harness_step("scope", 10 * where + scope);
            prepare(&it, &args, where, 30000, scope);
            args.scope = scope;
            device_launch(straight_turns, it.kit.native, 1, 3, &args);
            finish(&it, &args, 30000, scope);
        }
        for (size_t s = 0; s < 3; s++) {
            harness_step("size", 1000 * where + sizes[s]);
            prepare(&it, &args, where, sizes[s], 10 + s);
            args.rounds = 20;
            device_launch(straight_again, it.kit.native, 1, 3, &args);
            settle(&it, &args);
            mixed(&it, &args, where, sizes[s]);
        }
    }
    device_free(args.status);
    straight_close(&it, HEM_OK);
    harness_close(world, HEM_OK);
    return 0;
}
