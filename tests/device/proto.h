/*
 * Windows of several ranks in one kernel, for tests of hem/device.cuh alone: rank r is what block r
 * says it is. Words lie as hem/device/types.h says, in memory of one device; the tests play the
 * host's part.
 */
#ifndef HEM_TESTS_DEVICE_PROTO_H
#define HEM_TESTS_DEVICE_PROTO_H

#include "device.h"

#include <hem/device.cuh>

enum {
    PROTO_RANKS = 8,
    PROTO_SIGNALS = 12,
    PROTO_DEVICE_SIGNALS = 10,
    PROTO_BARRIERS = 5,
    PROTO_MIXED = 2, /* the most of them that are */
    PROTO_COUNTERS = 3,
    PROTO_BYTES = 1 << 16,
    PROTO_WORDS = 2048 /* that tests keep what they find in */
};

/* The words of one ordered pair, in the memory of who waits. Rows begin on lines of their own. */
typedef struct proto_row {
    hemd_slot slots[PROTO_DEVICE_SIGNALS + HEMD_MIXED_KINDS * PROTO_MIXED];
    uint64_t arrivals[16];
} proto_row;

typedef struct proto_rank {
    unsigned char data[PROTO_BYTES];
    proto_row rows[PROTO_RANKS]; /* by source */
    uint64_t epochs[16];
    uint64_t counters[16];
    uint64_t pair_epochs[PROTO_RANKS][16];
    hemd_peer peers[PROTO_RANKS];
    hemd_home home;
    uint64_t words[PROTO_WORDS];
} proto_rank;

/* In memory of the host. */
typedef struct proto_host {
    hemd_slot slots[PROTO_RANKS][PROTO_RANKS]
                   [PROTO_SIGNALS - PROTO_DEVICE_SIGNALS + HEMD_MIXED_KINDS * PROTO_MIXED];
    uint32_t trouble[HEMD_TROUBLE_RANKS + PROTO_RANKS];
} proto_host;

typedef struct proto {
    proto_rank *ranks; /* of the device */
    proto_host *host;
    int size;
    device_stream stream;
} proto;

/* What every kernel here is given. */
typedef struct proto_args {
    proto_rank *ranks;
    int size;
    uint32_t rounds;
    uint64_t from; /* the first round */
    uint32_t scope;
    uint32_t what;
    uint32_t mixed; /* barriers */
    int64_t timeout_ns;
} proto_args;

HEM_DEV hem_dev_window proto_window(const proto_args *args, int rank) {
    hem_dev_window w;
    w.rank = rank;
    w.size = args->size;
    w.peers = args->ranks[rank].peers;
    w.home = &args->ranks[rank].home;
    w.device_signals = PROTO_DEVICE_SIGNALS;
    w.mixed_barriers = args->mixed;
    return w;
}

/* The group that a test asks for. Of threads and warps the first one of the block plays. */
HEM_DEV hem_group proto_group(uint32_t scope) {
    if (scope == HEM_SCOPE_THREAD)
        return hem_thread();
    if (scope == HEM_SCOPE_WARP)
        return hem_warp();
    return scope == HEM_SCOPE_WARPS ? hem_warps(0, 2, 3) : hem_block();
}

HEM_DEV bool proto_plays(uint32_t scope) {
    hem_group block = hem_block();
    if (scope == HEM_SCOPE_THREAD)
        return block.rank == 0;
    if (scope == HEM_SCOPE_WARP)
        return hem_warp_index() == 0;
    return scope == HEM_SCOPE_WARPS ? hem_warp_index() < 2 : true;
}

/* A rank's errors are counted in its last word. */
HEM_DEV void proto_expect(const proto_args *args, int rank, bool good) {
    if (!good)
        hemd_add64_relaxed(&args->ranks[rank].words[PROTO_WORDS - 1], 1);
}

HEM_DEV unsigned char proto_byte(uint64_t tag, uint64_t i) {
    return (unsigned char)(tag * 31u + i * 7u + i / 256u);
}

static inline void proto_fill_peer(proto *p, proto_rank *shadow, int me, int you) {
    hemd_peer *peer = &shadow[me].peers[you];
    peer->route = me == you ? HEMD_ROUTE_SELF : HEMD_ROUTE_DIRECT;
    peer->near = 1;
    peer->data = p->ranks[you].data;
    peer->bytes = PROTO_BYTES;
    peer->out = p->ranks[you].rows[me].slots;
    peer->out_host = p->host->slots[you][me];
    peer->in = p->ranks[me].rows[you].slots;
    peer->in_host = p->host->slots[me][you];
    peer->out_arrivals = p->ranks[you].rows[me].arrivals;
    peer->in_arrivals = p->ranks[me].rows[you].arrivals;
    peer->pair_epochs = p->ranks[me].pair_epochs[you];
}

static inline void proto_fill_home(proto *p, proto_rank *shadow, int me) {
    hemd_home *home = &shadow[me].home;
    home->trouble = p->host->trouble;
    home->epochs = p->ranks[me].epochs;
    home->counters = p->ranks[me].counters;
    home->signals = PROTO_SIGNALS;
    home->device_signals = PROTO_DEVICE_SIGNALS;
    home->barriers = PROTO_BARRIERS;
    home->counter_count = PROTO_COUNTERS;
    home->proxy_limit_ns = HEM_FOREVER;
}

/* Change the table of one rank by a function, or only send it to the device. */
static inline void proto_send(proto *p, proto_rank *shadow) {
    device_copy(p->ranks, shadow, (size_t)p->size * sizeof *shadow);
}

static inline proto_rank *proto_shadow(proto *p) {
    proto_rank *shadow = (proto_rank *)calloc((size_t)p->size, sizeof *shadow);
    CHECK(shadow != NULL);
    for (int me = 0; me < p->size; me++) {
        proto_fill_home(p, shadow, me);
        for (int you = 0; you < p->size; you++)
            proto_fill_peer(p, shadow, me, you);
    }
    return shadow;
}

static inline void proto_open(proto *p, int size) {
    p->size = size;
    p->ranks = (proto_rank *)device_alloc((size_t)size * sizeof *p->ranks);
    p->host = (proto_host *)device_host_alloc(sizeof *p->host);
    p->stream = device_stream_create();
    proto_rank *shadow = proto_shadow(p);
    proto_send(p, shadow);
    free(shadow);
}

static inline void proto_close(proto *p) {
    device_stream_sync(p->stream);
    device_stream_destroy(p->stream);
    device_free(p->ranks);
    device_host_free(p->host);
}

static inline proto_args proto_begin(proto *p, uint32_t rounds) {
    proto_args args;
    memset(&args, 0, sizeof args);
    args.ranks = p->ranks;
    args.size = p->size;
    args.rounds = rounds;
    args.from = 1;
    args.scope = HEM_SCOPE_BLOCK;
    args.timeout_ns = HEM_FOREVER;
    return args;
}

static inline uint64_t proto_word(proto *p, int rank, uint32_t word) {
    uint64_t value;
    device_copy(&value, &p->ranks[rank].words[word], sizeof value);
    return value;
}

/* Wait for the kernel; no rank may have found an error. */
static inline void proto_end(proto *p) {
    device_stream_sync(p->stream);
    for (int rank = 0; rank < p->size; rank++)
        CHECK_EQ(proto_word(p, rank, PROTO_WORDS - 1), 0);
}

/* The host raises a word, while kernels wait. */
static inline void proto_raise(proto *p, uint32_t word, hem_status status) {
    __atomic_store_n(&p->host->trouble[word], (uint32_t)-status, __ATOMIC_RELEASE);
}

#endif
