/*
 * Kernels of the caller's that send and receive by themselves: a thread, a warp, some warps, a block;
 * both directions by one group in turns, also round a ring with the smallest staging; several groups
 * as parts of one message, other numbers of them on the two sides; mixed with hem_pipe_sendrecv. A peer that
 * was not named when the pipe was made, or that there is not, is refused by every call, and nothing is harmed
 * by that.
 *
 * hem-test: ranks=1,2,3 timeout=120 delayed=2 labels=legacy
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

enum {
    REFUSE_SEND,
    REFUSE_RECV,
    REFUSE_SEND_PART,
    REFUSE_RECV_PART,
    REFUSE_TO,
    REFUSE_FROM,
    REFUSE_CALLS
};

#define REFUSE_PEERS 4
#define REFUSE_BYTES 100

typedef struct refuse_args {
    hem_dev_pipe pipe;
    unsigned char *data;
    uint64_t *statuses; /* REFUSE_CALLS for each peer */
    int32_t peers[REFUSE_PEERS];
    int32_t good; /* a peer that was named, or -1 */
} refuse_args;

HEM_DEV hem_status refuse_call(const refuse_args *args, hem_group group, int call, int peer) {
    const int64_t limit = HEM_SEC(5);
    unsigned char *data = args->data;
    int good = args->good < 0 ? peer : args->good;
    switch (call) {
    case REFUSE_SEND:
        return hem_dev_send(args->pipe, group, peer, data, REFUSE_BYTES, limit);
    case REFUSE_RECV:
        return hem_dev_recv(args->pipe, group, peer, data, REFUSE_BYTES, limit);
    case REFUSE_SEND_PART:
        return hem_dev_send_part(args->pipe, group, 0, 1, peer, data, REFUSE_BYTES, limit);
    case REFUSE_RECV_PART:
        return hem_dev_recv_part(args->pipe, group, 0, 1, peer, data, REFUSE_BYTES, limit);
    case REFUSE_TO:
        return hem_dev_sendrecv(args->pipe, group, peer, data, REFUSE_BYTES, good, data,
                                REFUSE_BYTES, limit);
    default:
        return hem_dev_sendrecv(args->pipe, group, good, data, REFUSE_BYTES, peer, data,
                                REFUSE_BYTES, limit);
    }
}

DEVICE_KERNEL(pipe_refuse, refuse_args) {
    hem_group block = hem_block();
    for (int p = 0; p < REFUSE_PEERS; p++)
        for (int call = 0; call < REFUSE_CALLS; call++) {
            hem_status status = refuse_call(args, block, call, args->peers[p]);
            if (block.rank == 0)
                args->statuses[p * REFUSE_CALLS + call] = (uint64_t)-status;
        }
}

static void check_refused(pipe_kit *kit, refuse_args *args) {
    uint64_t got[REFUSE_PEERS * REFUSE_CALLS];
    device_launch(pipe_refuse, kit->native, 1, 2, args);
    device_stream_sync(kit->native);
    device_copy(got, args->statuses, sizeof got);
    for (int p = 0; p < REFUSE_PEERS; p++)
        for (int call = 0; call < REFUSE_CALLS; call++) {
            harness_step("peer * 100 + call", (uint64_t)(p * 100 + call));
            CHECK_EQ(got[p * REFUSE_CALLS + call], p == 0 ? -HEM_ERR_ARG : -HEM_ERR_RANGE);
        }
    CHECK_OK(hem_pipe_status(kit->pipe));
}

/* Ranks 0 and 1 name each other; nobody names itself or anybody else. */
static void refused(hem_world *world) {
    int rank = hem_world_rank(world), size = hem_world_size(world), other = 1 - rank;
    bool paired = size > 1 && rank < 2;
    hem_pipe_options options = pipe_kit_options(1, 1024, 2, 64);
    options.peers = &other;
    options.peer_count = paired ? 1 : 0;
    pipe_kit kit = pipe_kit_open(world, &options);
    refuse_args args;
    CHECK_OK(hem_pipe_device(kit.pipe, &args.pipe));
    args.data = (unsigned char *)device_alloc(REFUSE_BYTES + 32) + 16;
    args.statuses = (uint64_t *)device_alloc(REFUSE_PEERS * REFUSE_CALLS * sizeof *args.statuses);
    args.peers[0] = rank;
    args.peers[1] = size;
    args.peers[2] = -1;
    args.peers[3] = INT32_MAX;
    args.good = paired ? other : -1;
    check_refused(&kit, &args);
    /* Not even the half with the good peer has begun: the next message is the first. */
    if (paired) {
        unsigned char *send = (unsigned char *)device_alloc(REFUSE_BYTES);
        pipe_kit_fill(send, REFUSE_BYTES, pipe_kit_tag(rank, other, 1));
        pipe_kit_call(&kit, other, send, REFUSE_BYTES, other, args.data, REFUSE_BYTES, NULL);
        device_stream_sync(kit.native);
        CHECK_OK(hem_pipe_status(kit.pipe));
        pipe_kit_expect(args.data, REFUSE_BYTES, pipe_kit_tag(other, rank, 1));
        device_free(send);
    }
    pipe_kit_close(&kit, HEM_OK);
    device_free(args.data - 16);
    device_free(args.statuses);
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
    harness_step("refused", 0);
    refused(world);
    harness_close(world, HEM_OK);
    return 0;
}
