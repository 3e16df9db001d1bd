/*
 * As much on a GPU as docs/gpu.md says there is room for: two pipes in opposite directions and a
 * collective, then a pipe with a window, an exchange and a collective, each with as many blocks as it takes
 * by itself. Every rank puts them on streams in an order of its own, without waiting for anybody, and all
 * ranks share one GPU. What waits never keeps what it waits for from running, nor the small kernels in
 * between: everything comes to its end, and each step brings what its peers had at that step.
 *
 * A GPU has queues for 32 streams of a process: eight ranks have two streams each, with all four on them.
 *
 * hem-test: ranks=2,4,8 modes=threads timeout=120
 */
#include "all_kit.h"

#define STEPS 6 /* of each part in a round */

/* The part of all_kit.h that this test has no use for is the second pipe's. */
#define OTHER ALL_WINDOW

typedef struct crowd {
    all_kit kit;
    hem_pipe *pipes[2];
    hem_window *window; /* the second pipe's, or NULL */
    uint64_t *out[2];
    uint64_t *in[2];
    uint64_t count;
    uint32_t blocks;
    device_stream second; /* if there are only two */
} crowd;

static uint64_t *make_words(uint64_t count) {
    return (uint64_t *)device_alloc((size_t)count * 8);
}

static hem_pipe *make_pipe(crowd *c, hem_window *window) {
    hem_pipe_options o = pipe_kit_options(c->blocks, 1024, 2, 512);
    hem_pipe *pipe = NULL;
    int peers[2] = {c->kit.left, c->kit.right};
    o.peers = peers;
    o.peer_count = c->kit.left == c->kit.right ? 1 : 2;
    o.window = window;
    CHECK_OK(hem_pipe_create(c->kit.world, &o, &pipe));
    return pipe;
}

static crowd open_crowd(hem_world *world, bool straight) {
    crowd c;
    bool few = hem_world_size(world) > 4;
    memset(&c, 0, sizeof c);
    c.kit = all_open(world, !few);
    c.count = device_stands_in() ? 3000 : 128 * 1024;
    c.blocks = device_stands_in() ? 3 : 0;
    if (straight) {
        hem_window_options o = window_kit_options((size_t)c.count * 16);
        c.window = window_kit_create(world, &o);
    }
    c.pipes[0] = make_pipe(&c, NULL);
    c.pipes[1] = make_pipe(&c, c.window);
    for (int i = 0; i < 2; i++) {
        bool inside = i == 1 && straight;
        c.out[i] = inside ? (uint64_t *)hem_window_memory(c.window) : make_words(c.count);
        c.in[i] = inside ? c.out[i] + c.count : make_words(c.count);
    }
    if (few) {
        /* One pipe and the exchange on the first, the other and the collective on the second. */
        static const int moved[2] = {ALL_PIPE, ALL_COLL};
        c.second = device_stream_create();
        for (int i = 0; i < 2; i++) {
            CHECK_OK(hem_stream_destroy(c.kit.stream[moved[i]]));
            CHECK_OK(hem_stream_cuda(world, c.second, &c.kit.stream[moved[i]]));
            c.kit.native[moved[i]] = c.second;
        }
    }
    return c;
}

static void close_crowd(crowd *c) {
    for (int part = 0; part < ALL_PARTS; part++)
        device_stream_sync(c->kit.native[part]);
    if (c->second != NULL)
        c->kit.native[ALL_COLL] = c->kit.native[0]; /* so that it is destroyed once */
    for (int i = 0; i < 2; i++) {
        CHECK_OK(hem_pipe_destroy(c->pipes[i]));
        if (i == 1 && c->window != NULL)
            continue;
        device_free(c->out[i]);
        device_free(c->in[i]);
    }
    CHECK_OK(hem_window_destroy(c->window));
    all_close(&c->kit, HEM_OK);
}

static all_args words_of(crowd *c, int part, uint64_t *words, int rank) {
    all_args args;
    args.state = c->kit.state + part;
    args.words = words;
    args.count = c->count;
    args.factor = (uint64_t)rank + 1;
    return args;
}

/* A message with all blocks: to the right in the first pipe, to the left in the other. */
static void pipe_step(crowd *c, int part) {
    int i = part == OTHER;
    int to = i == 0 ? c->kit.right : c->kit.left, from = i == 0 ? c->kit.left : c->kit.right;
    uint32_t warps = device_stands_in() ? 1 : 4;
    size_t bytes = (size_t)c->count * 8;
    hem_pipe_half out = pipe_kit_half(to, c->out[i], bytes);
    hem_pipe_half in = pipe_kit_half(from, c->in[i], bytes);
    hem_pipe_how how = pipe_kit_how(c->blocks, device_stands_in() ? 2 : 0, 0, 0);
    all_args next = words_of(c, part, c->out[i], c->kit.rank);
    all_args look = words_of(c, part, c->in[i], from);
    device_launch(all_next, c->kit.native[part], 1, warps, &next);
    CHECK_OK(hem_pipe_sendrecv(c->pipes[i], &out, &in, &how, c->kit.stream[part]));
    device_launch(all_look, c->kit.native[part], 1, warps, &look);
}

static void step(crowd *c, int part, bool brief) {
    if (part == ALL_PIPE || part == OTHER)
        pipe_step(c, part);
    else
        all_step(&c->kit, part, brief);
}

static bool takes_part(const crowd *c, int part) {
    return c->second != NULL || part != (c->window != NULL ? ALL_PIPE : ALL_HALO);
}

/* Parts on one stream are in the same order on all ranks, in pairs; streams are as the rank likes. */
static void put_steps(crowd *c, harness_rng *own) {
    static const int first[2] = {OTHER, ALL_PIPE}, then[2] = {ALL_HALO, ALL_COLL};
    int done[ALL_PARTS] = {0};
    int left = 0;
    for (int part = 0; part < ALL_PARTS; part++)
        left += takes_part(c, part) ? STEPS : 0;
    while (left > 0) {
        int part = (int)harness_below(own, ALL_PARTS);
        if (c->second != NULL) {
            int k = part % 2;
            part = done[first[k]] == done[then[k]] ? first[k] : then[k];
        }
        if (done[part] == STEPS || !takes_part(c, part))
            continue;
        step(c, part, done[part] % 2 != 0);
        done[part]++;
        left--;
        if (harness_below(own, 8) == 0)
            harness_dither(harness_random(own));
    }
}

static void check_crowd(crowd *c, uint64_t steps) {
    for (int part = 0; part < ALL_PARTS; part++) {
        if (!takes_part(c, part))
            continue;
        harness_step("part", (uint64_t)part);
        device_stream_sync(c->kit.native[part]);
        all_state state = all_read(&c->kit, part);
        CHECK_EQ(state.step, steps);
        CHECK_EQ(state.wrong, 0);
    }
    CHECK_OK(hem_pipe_status(c->pipes[0]));
    CHECK_OK(hem_pipe_status(c->pipes[1]));
    CHECK_OK(hem_exchange_status(c->kit.exchange));
}

int rank_main(hem_world *world) {
    uint64_t seed = harness_seed(world);
    uint64_t rounds = (uint64_t)harness_rounds(device_stands_in() ? 4 : 20);
    for (int straight = 0; straight < 2; straight++) {
        crowd c = open_crowd(world, straight != 0);
        harness_rng own = harness_rng_of(seed, (uint64_t)straight, (uint64_t)c.kit.rank);
        for (uint64_t round = 0; round < rounds; round++) {
            harness_step("round", round);
            put_steps(&c, &own);
            /* Now and then nobody is ahead of anybody. */
            if (round % 5 == 4)
                check_crowd(&c, (round + 1) * STEPS);
        }
        check_crowd(&c, rounds * STEPS);
        close_crowd(&c);
    }
    harness_close(world, HEM_OK);
    return 0;
}
