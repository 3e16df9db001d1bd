/*
 * Puts of kernels of random lengths up to several MiB, by threads, warps, several warps of a block and blocks,
 * among all ranks at once, at random places and alignments, arrive whole with their signal and touch nothing
 * else; also in one's own window, and with peers that are reached through their hosts. In one piece or two, with
 * the signal or before it, after a flush, and after a get that gives the same back. A kernel or the CPU of the
 * receiver looks at every byte, also where nothing was put. Where host threads stand in for the GPU, up to 1 MiB.
 *
 * hem-test: ranks=1,2,3,4 modes=processes,threads timeout=120 delayed=2
 */
#include "group_kit.h"
#include "proxy_kit.h"

#define BLOCKS 3
#if defined(__CUDACC__)
#define PART       (6u << 20) /* of a window, for one block of one rank */
#define MAGNITUDES 22
#else
#define PART       (1u << 20)
#define MAGNITUDES 20
#endif
#define SHIFTS 4096u /* by how much the source may begin later */

enum {
    WITH,  /* one put, with the signal */
    AFTER, /* a put, then the signal */
    SPLIT, /* a put of a part; one of the rest, with the signal */
    FLUSHED,
    GOT, /* what was put is got before the signal */
    HOWS
};

/* What a block of a rank does in a round. Whoever knows the seed knows it. */
typedef struct message {
    int32_t peer;
    uint32_t group; /* group_kit.h */
    uint32_t how;
    uint32_t id;
    uint64_t offset; /* in the part */
    uint64_t n;
    uint64_t cut;  /* bytes of the first piece */
    uint64_t from; /* in the source */
    uint64_t tag;
    uint64_t count; /* of the signal, of which the receiver waits; 0: nothing comes */
} message;

typedef struct test {
    hem_world *world;
    hem_window *window;
    proxy_kit_who who;
    int rank;
    int size;
    uint64_t seed;
    device_stream streams[2];
    unsigned char *source; /* PART and SHIFTS for each block */
    unsigned char *got;
    unsigned char *host; /* PART, for the CPU */
    unsigned char *zeros;
    uint64_t *wrong;
    message *sent;     /* BLOCKS, where kernels have them */
    message *expected; /* BLOCKS for each rank */
    uint64_t *counts;  /* signals so far: of each rank, by each id */
} test;

/* Bytes that differ with the place, so that what is moved by some is seen. */
DEVICE_BOTH unsigned char byte_of(uint64_t tag, uint64_t i) {
    return (unsigned char)(((uint32_t)(tag + i) * 2654435761u) >> 24);
}

/* How many bytes of a part are not as they should be after the message: outside of it they are zero. */
DEVICE_BOTH uint64_t count_wrong(const unsigned char *part, const message *m, uint64_t begin,
                                 uint64_t end) {
    uint64_t wrong = 0;
    for (uint64_t at = begin; at < end; at++) {
        uint64_t i = at - m->offset;
        bool inside = m->count != 0 && at >= m->offset && i < m->n;
        wrong += part[at] != (inside ? byte_of(m->tag, i) : 0);
    }
    return wrong;
}

/* Kernels. */

typedef struct send_args {
    hem_dev_window w;
    const message *messages;
    unsigned char *source;
    unsigned char *got;
    uint64_t *wrong;
} send_args;

HEM_DEV hem_status get_back(const send_args *args, hem_group g, const message *m, uint64_t offset) {
    unsigned char *got = args->got + (uint64_t)hem_block_index() * (PART + SHIFTS) + m->from;
    hem_status status = hem_dev_get(args->w, g, m->peer, offset, got, m->n);
    for (uint64_t i = g.rank; i < m->n && status == HEM_OK; i += g.size)
        if (got[i] != byte_of(m->tag, i))
            hemd_add64_relaxed(args->wrong, 1);
    return status;
}

HEM_DEV hem_status send_one(const send_args *args, hem_group g, const message *m,
                            const unsigned char *from) {
    hem_dev_window w = args->w;
    const uint64_t offset = ((uint64_t)w.rank * BLOCKS + hem_block_index()) * PART + m->offset;
    hem_status status = HEM_OK;
    if (m->how == WITH)
        return hem_dev_put_signal(w, g, m->peer, offset, from, m->n, m->id, 1);
    if (m->how == SPLIT) {
        status = hem_dev_put(w, g, m->peer, offset, from, m->cut);
        return status != HEM_OK ? status
                                : hem_dev_put_signal(w, g, m->peer, offset + m->cut, from + m->cut,
                                                     m->n - m->cut, m->id, 1);
    }
    status = hem_dev_put(w, g, m->peer, offset, from, m->n);
    if (status == HEM_OK && m->how == FLUSHED)
        status = hem_dev_flush(w, g, m->peer);
    if (status == HEM_OK && m->how == GOT)
        status = get_back(args, g, m, offset);
    return status != HEM_OK ? status : hem_dev_signal(w, g, m->peer, m->id, HEM_SIGNAL_ADD, 1);
}

DEVICE_KERNEL(send_all, send_args) {
    hem_group block = hem_block();
    const message *m = args->messages + hem_block_index();
    unsigned char *from = args->source + (uint64_t)hem_block_index() * (PART + SHIFTS) + m->from;
    for (uint64_t i = block.rank; i < m->n; i += block.size)
        from[i] = byte_of(m->tag, i);
    hem_group_sync(block);
    if (!group_kit_takes_part(m->group))
        return;
    hem_group g = group_kit_of(m->group);
    hem_status status = send_one(args, g, m, from);
    if (status != HEM_OK && g.rank == 0)
        hemd_add64_relaxed(args->wrong, 1000000000);
}

typedef struct receive_args {
    hem_dev_window w;
    const message *messages;
    uint64_t *wrong;
} receive_args;

/* A block for each block of each rank. What has come is wiped out, for the next round. */
DEVICE_KERNEL(receive_all, receive_args) {
    hem_group block = hem_block();
    const message *m = args->messages + hem_block_index();
    unsigned char *part =
        (unsigned char *)hem_dev_address(args->w, args->w.rank, (uint64_t)hem_block_index() * PART);
    hem_status status = HEM_OK;
    if (m->count != 0)
        status =
            hem_dev_wait_signal_from(args->w, block, m->peer, m->id, HEM_GE, m->count, HEM_FOREVER);
    uint64_t wrong = status == HEM_OK ? 0 : 1000000000;
    for (uint64_t at = 8 * (uint64_t)block.rank; at < PART; at += 8 * (uint64_t)block.size)
        wrong += count_wrong(part, m, at, at + 8);
    if (wrong != 0)
        hemd_add64_relaxed(args->wrong, wrong);
    hem_group_sync(block);
    for (uint64_t i = block.rank; i < m->n && m->count != 0; i += block.size)
        part[m->offset + i] = 0;
}

/* Rounds. */

/* Lengths are even in magnitude, and now and then about as large as can be. */
static uint64_t pick_length(harness_rng *rng) {
    if (harness_below(rng, 6) == 0)
        return PART / 2 + harness_below(rng, PART / 2 + 1);
    uint64_t n = harness_below(rng, (size_t)2 << harness_below(rng, MAGNITUDES));
    return n < PART ? n : PART;
}

/* Whether a kernel of that rank receives in a round. */
static bool by_kernel(const test *t, int rank, uint64_t round) {
    harness_rng rng = harness_rng_of(t->seed, 1000 + (uint64_t)rank, round);
    return harness_below(&rng, 3) != 0;
}

static message message_of(const test *t, int sender, uint32_t b, uint64_t round) {
    harness_rng rng = harness_rng_of(t->seed, (uint64_t)sender, round * BLOCKS + b);
    message m;
    memset(&m, 0, sizeof m);
    m.peer = (int32_t)harness_below(&rng, (size_t)t->size);
    m.group = (uint32_t)harness_below(&rng, GROUP_KITS);
    m.how = (uint32_t)harness_below(&rng, HOWS);
    if (m.how == GOT && proxy_kit_proxied(t->who, sender, m.peer))
        m.how = AFTER;
    m.id = by_kernel(t, m.peer, round) ? b : BLOCKS + b;
    m.n = pick_length(&rng);
    m.cut = harness_below(&rng, (size_t)m.n + 1);
    m.offset = harness_below(&rng, PART - (size_t)m.n + 1);
    m.from = harness_below(&rng, SHIFTS + 1);
    m.tag = harness_random(&rng);
    return m;
}

/* What comes from all ranks; peers are the senders. */
static void expect(test *t, message *expected, uint64_t round) {
    for (int sender = 0; sender < t->size; sender++)
        for (uint32_t b = 0; b < BLOCKS; b++) {
            message m = message_of(t, sender, b, round);
            if (m.peer == t->rank)
                m.count = ++t->counts[(uint32_t)sender * 2 * BLOCKS + m.id];
            m.peer = sender;
            expected[(uint32_t)sender * BLOCKS + b] = m;
        }
}

static void launch_send(test *t, uint64_t round) {
    message messages[BLOCKS];
    send_args args;
    for (uint32_t b = 0; b < BLOCKS; b++)
        messages[b] = message_of(t, t->rank, b, round);
    device_copy(t->sent, messages, sizeof messages);
    args.w = window_kit_dev(t->window);
    args.messages = t->sent;
    args.source = t->source;
    args.got = t->got;
    args.wrong = t->wrong;
    device_launch(send_all, t->streams[0], BLOCKS, GROUP_KIT_WIDTH, &args);
}

static void launch_receive(test *t) {
    receive_args args;
    args.w = window_kit_dev(t->window);
    args.messages = t->expected;
    args.wrong = t->wrong;
    device_launch(receive_all, t->streams[1], (uint32_t)t->size * BLOCKS, device_wide_block(),
                  &args);
}

static void receive_by_cpu(test *t, const message *expected) {
    for (uint32_t i = 0; i < (uint32_t)t->size * BLOCKS; i++) {
        const message *m = &expected[i];
        size_t begin = (size_t)i * PART;
        if (m->count != 0)
            CHECK_OK(hem_wait_signal_from(t->window, m->peer, m->id, HEM_GE, m->count, LIMIT));
        /* Also by a copy that is not the library's, and comes after none of its copies by itself. */
        if (i % 2 == 0)
            device_copy(t->host, (unsigned char *)hem_window_memory(t->window) + begin, PART);
        else
            CHECK_OK(hem_get(t->window, t->rank, begin, t->host, PART));
        CHECK_EQ(count_wrong(t->host, m, 0, PART), 0);
        if (m->count != 0)
            CHECK_OK(
                hem_put(t->window, t->rank, begin + (size_t)m->offset, t->zeros, (size_t)m->n));
    }
}

static void one_round(test *t, message *expected, uint64_t round) {
    uint64_t wrong = 1;
    bool kernel = by_kernel(t, t->rank, round);
    expect(t, expected, round);
    device_copy(t->expected, expected, (size_t)t->size * BLOCKS * sizeof *expected);
    if (kernel)
        launch_receive(t);
    launch_send(t, round);
    if (!kernel)
        receive_by_cpu(t, expected);
    device_stream_sync(t->streams[0]);
    device_stream_sync(t->streams[1]);
    device_copy(&wrong, t->wrong, sizeof wrong);
    CHECK_EQ(wrong, 0);
    /* Nobody puts into what is not wiped out yet. */
    harness_barrier(t->window);
}

static void all_rounds(test *t, proxy_kit_who who, uint64_t seed, uint64_t rounds) {
    size_t messages = (size_t)t->size * BLOCKS;
    message *expected = (message *)malloc(messages * sizeof *expected);
    hem_window_options o = window_kit_options(messages * PART);
    o.signals = 2 * BLOCKS;
    o.device_signals = BLOCKS;
    CHECK(expected != NULL);
    memset(t->counts, 0, 2 * messages * sizeof *t->counts);
    t->who = who;
    t->seed = seed;
    t->window = proxy_kit_create_with(t->world, o, who);
    for (uint64_t round = 0; round < rounds; round++) {
        harness_step(who == PROXY_KIT_NONE ? "mapped" : "through hosts", round);
        one_round(t, expected, round);
    }
    CHECK_OK(hem_window_destroy(t->window));
    free(expected);
}

int rank_main(hem_world *world) {
    test t;
    uint64_t seed = harness_seed(world);
    uint64_t rounds = (uint64_t)harness_rounds(40);
    memset(&t, 0, sizeof t);
    t.world = world;
    t.rank = hem_world_rank(world);
    t.size = hem_world_size(world);
    size_t messages = (size_t)t.size * BLOCKS;
    t.source = (unsigned char *)device_alloc((size_t)BLOCKS * (PART + SHIFTS));
    t.got = (unsigned char *)device_alloc((size_t)BLOCKS * (PART + SHIFTS));
    t.wrong = (uint64_t *)device_alloc(8);
    t.sent = (message *)device_alloc(BLOCKS * sizeof *t.sent);
    t.expected = (message *)device_alloc(messages * sizeof *t.expected);
    t.host = (unsigned char *)malloc(PART);
    t.zeros = (unsigned char *)calloc(1, PART);
    t.counts = (uint64_t *)malloc(2 * messages * sizeof *t.counts);
    CHECK(t.host != NULL && t.zeros != NULL && t.counts != NULL);
    t.streams[0] = device_stream_create();
    t.streams[1] = device_stream_create();
    all_rounds(&t, PROXY_KIT_NONE, seed, rounds);
    all_rounds(&t, PROXY_KIT_ODD, seed + 1000, rounds);
    device_stream_destroy(t.streams[0]);
    device_stream_destroy(t.streams[1]);
    device_free(t.source);
    device_free(t.got);
    device_free(t.wrong);
    device_free(t.sent);
    device_free(t.expected);
    free(t.host);
    free(t.zeros);
    free(t.counts);
    harness_close(world, HEM_OK);
    return 0;
}
