/*
 * Barriers and signals between the kernels of real ranks can be used for ever, by several ids in an order
 * that is random but the same everywhere: over launches by threads, warps, several warps of a
 * block and blocks, and replays of graphs among them. Nobody leaves a barrier before all have entered, whole or in halves; one between two
 * ranks concerns those two alone; a signal is never taken for an earlier one; no addition is lost.
 *
 * hem-test: ranks=1,2,3,5,8 timeout=120 delayed=2
 */
#include "group_kit.h"
#include "window_kit.h"

#include <hem/device/barrier.h>

enum {
    IDS = 3,
    TURN = 0,            /* offsets of words in the window: how far its rank is */
    HEARD = 8,           /* IDS of them: what the left one has put */
    SUM = 8 + 8 * IDS,   /* at rank 0 */
    STEPS = 16 + 8 * IDS /* at rank 0 */
};

typedef struct reuse_state {
    uint64_t round;
    uint64_t wrong;
    uint64_t status;
    uint64_t uses[IDS];
} reuse_state;

typedef struct reuse_args {
    hem_dev_window w;
    reuse_state *state;
    uint64_t rounds;
    uint64_t seed;
    uint32_t scope;
    int32_t left;
    int32_t right;
} reuse_args;

HEM_DEV uint64_t dice_of(uint64_t seed, uint64_t round) {
    uint64_t z = seed + round * 0x9e3779b97f4a7c15ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

HEM_DEV uint64_t turn_of(hem_dev_window w, int rank) {
    return hemd_load64_relaxed((const uint64_t *)hem_dev_address(w, rank, TURN));
}

/* All have come as far as this. */
HEM_DEV void expect_all(const reuse_args *args, hem_group g, uint64_t round) {
    for (uint32_t r = g.rank; r < (uint32_t)args->w.size; r += g.size)
        if (turn_of(args->w, (int)r) < round)
            hemd_add64_relaxed(&args->state->wrong, 1);
}

HEM_DEV hem_status meet(const reuse_args *args, hem_group g, uint64_t round, uint64_t dice) {
    hem_dev_window w = args->w;
    uint32_t id = (uint32_t)(dice % IDS);
    int partner = w.rank ^ 1;
    hem_status status = HEM_OK;
    if (g.rank == 0)
        hemd_store64_relaxed((uint64_t *)hem_dev_address(w, w.rank, TURN), round);
    switch (dice / IDS % 4) {
    case 0:
        status = hem_dev_barrier_arrive(w, g, id);
        if (status == HEM_OK)
            status = hem_dev_barrier_wait(w, g, id, HEM_FOREVER);
        break;
    case 1:
        if (partner >= w.size)
            return HEM_OK;
        status = hem_dev_barrier_peer(w, g, partner, id, HEM_FOREVER);
        if (status == HEM_OK && g.rank == 0 && turn_of(w, partner) < round)
            hemd_add64_relaxed(&args->state->wrong, 1);
        return status;
    default:
        status = hem_dev_barrier(w, g, id, HEM_FOREVER);
    }
    if (status == HEM_OK)
        expect_all(args, g, round);
    return status;
}

HEM_DEV hem_status tell(const reuse_args *args, hem_group g, uint64_t round, uint64_t dice) {
    hem_dev_window w = args->w;
    uint32_t id = (uint32_t)(dice / 64 % IDS);
    uint64_t uses = args->state->uses[id] + 1;
    const uint64_t *heard = (const uint64_t *)hem_dev_address(w, w.rank, HEARD + 8 * id);
    /* The right one has read what was there. */
    hem_status status =
        hem_dev_wait_signal_from(w, g, args->right, IDS + id, HEM_GE, uses - 1, HEM_FOREVER);
    if (status == HEM_OK)
        status = hem_dev_put_signal(w, g, args->right, HEARD + 8 * id, &round, 8, id, 1);
    if (status == HEM_OK)
        status = hem_dev_wait_signal_from(w, g, args->left, id, HEM_GE, uses, HEM_FOREVER);
    if (status != HEM_OK)
        return status;
    if (*heard != round)
        hemd_add64_relaxed(&args->state->wrong, 1);
    hem_group_sync(g);
    if (g.rank == 0)
        args->state->uses[id] = uses;
    return hem_dev_signal(w, g, args->left, IDS + id, HEM_SIGNAL_ADD, 1);
}

/* By one thread: added, and added by exchanging. */
HEM_DEV hem_status add(const reuse_args *args) {
    uint64_t old = 0, seen = 0;
    hem_status status = hem_dev_fetch_add(args->w, 0, SUM, 3, &old);
    if (old % 3 != 0)
        hemd_add64_relaxed(&args->state->wrong, 1);
    do {
        old = seen;
        if (status == HEM_OK)
            status = hem_dev_compare_swap(args->w, 0, STEPS, old, old + 1, &seen);
    } while (status == HEM_OK && seen != old);
    return status;
}

DEVICE_KERNEL(reuse, reuse_args) {
    hem_group g = group_kit_of(args->scope);
    if (!group_kit_takes_part(args->scope))
        return;
    hem_status status = HEM_OK;
    uint64_t round = args->state->round;
    hem_group_sync(g);
    for (uint64_t i = 0; i < args->rounds && status == HEM_OK; i++) {
        round++;
        uint64_t dice = dice_of(args->seed, round);
        status = meet(args, g, round, dice);
        if (status == HEM_OK)
            status = tell(args, g, round, dice);
        if (status == HEM_OK && g.rank == 0)
            status = add(args);
        status = hem_group_agree(g, status);
    }
    if (g.rank != 0)
        return;
    args->state->round = round;
    args->state->status = (uint64_t)-status;
}

typedef struct test {
    hem_world *world;
    hem_window *window;
    device_stream stream;
    reuse_args args;
} test;

static void put(test *t, uint32_t scope, uint64_t rounds) {
    t->args.scope = scope;
    t->args.rounds = rounds;
    device_launch(reuse, t->stream, 1, scope < GROUP_KIT_WARPS ? 1 : GROUP_KIT_WIDTH, &t->args);
}

static void check(test *t, uint64_t rounds) {
    reuse_state state;
    uint64_t words[2] = {0, 0};
    device_stream_sync(t->stream);
    device_copy(&state, t->args.state, sizeof state);
    CHECK_EQ(state.status, 0);
    CHECK_EQ(state.wrong, 0);
    CHECK_EQ(state.round, rounds);
    harness_barrier(t->window);
    CHECK_OK(hem_get(t->window, 0, SUM, words, sizeof words));
    CHECK_EQ(words[0], 3 * rounds * (uint64_t)hem_world_size(t->world));
    CHECK_EQ(words[1], rounds * (uint64_t)hem_world_size(t->world));
    harness_barrier(t->window);
}

int rank_main(hem_world *world) {
    uint64_t total = device_stands_in() ? (uint64_t)harness_rounds(2500) : 10000;
    harness_rng rng = harness_rng_of(harness_seed(world), 1, 2);
    hem_window_options o = window_kit_options(STEPS + 8);
    uint64_t rounds = 0;
    test t;
    memset(&t, 0, sizeof t);
    t.world = world;
    t.window = window_kit_create(world, &o);
    t.stream = device_stream_create();
    t.args.w = window_kit_dev(t.window);
    t.args.state = (reuse_state *)device_alloc(sizeof *t.args.state);
    t.args.seed = harness_random(&rng);
    t.args.left = harness_left(world);
    t.args.right = harness_right(world);
    device_capture_begin(t.stream);
    put(&t, GROUP_KIT_BLOCK, 5);
    put(&t, GROUP_KIT_WARPS, 4);
    put(&t, GROUP_KIT_WARP, 3);
    put(&t, GROUP_KIT_THREAD, 1);
    device_graph graph = device_capture_end(t.stream);
    while (rounds < total) {
        for (size_t i = 1 + harness_below(&rng, 6); i > 0; i--, rounds += 13)
            device_graph_launch(graph, t.stream);
        uint64_t more = 1 + harness_below(&rng, 20);
        put(&t, (uint32_t)harness_below(&rng, GROUP_KITS), more);
        rounds += more;
        if (harness_below(&rng, 8) == 0)
            check(&t, rounds);
    }
    check(&t, rounds);
    device_graph_destroy(graph);
    CHECK_OK(hem_window_destroy(t.window));
    device_stream_destroy(t.stream);
    device_free(t.args.state);
    harness_close(world, HEM_OK);
    return 0;
}
