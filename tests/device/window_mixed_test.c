/*
 * Mixed barriers: a rank enters each time by its CPU or by a kernel, at random, and leaves by the same or the other
 * one; of all ranks and of two, several ids in an order that is random but the same everywhere; by launches,
 * graph replays and calls of the CPU in any order; where all peers are mapped, and where some or all are
 * reached through their hosts; and by kernels alone into ids that are not mixed. Nobody leaves before all have
 * entered, and what was put before is there; of what different ranks have put to one place, with a barrier of
 * all between, the last.
 *
 * hem-test: ranks=1,2,3,5,8 timeout=180 delayed=2
 */
#include "group_kit.h"
#include "proxy_kit.h"

#include <hem/device/barrier.h>

enum {
    IDS = 3, /* the last of them is not mixed: by CPUs only */
    MIXED = 2,
    MOST = 64 /* ranks */
};

/* What a rank does in a round; the same for all that take part. */
typedef struct mixed_round {
    uint32_t id;
    int32_t partner; /* -1: all */
    bool idle;       /* it has no partner */
    /* Where others write what round it is: not again before they have met once more. */
    uint32_t place;
    /* Where one of them does so, another one each time; and how many ranks before it the owner is. */
    uint32_t last;
    uint32_t shift;
} mixed_round;

typedef struct mixed_state {
    uint64_t round;
    uint64_t wrong;
    uint64_t status;
    uint64_t number[MOST]; /* the round, to put from */
} mixed_state;

/* What a kernel does of its rounds. */
enum {
    ENTERS = 1,
    LEAVES = 2
};

typedef struct mixed_args {
    hem_dev_window w;
    mixed_state *state;
    const mixed_round *plan; /* by round */
    uint64_t rounds;
    uint32_t scope;
    uint32_t does;
} mixed_args;

#define CONCERNS(r, rank, other) ((other) != (rank) && ((r).partner < 0 || (r).partner == (other)))
/* Whether `rank` is the one of `size` that writes to `last` of `other`. */
#define IS_LAST(r, rank, other, size)                                                              \
    ((r).partner < 0 && ((uint32_t)(other) + (r).shift) % (uint32_t)(size) == (uint32_t)(rank))

/* The round, in my word at everybody whom it concerns. */
HEM_DEV hem_status tell(const mixed_args *args, hem_group g, const mixed_round *r, uint64_t round) {
    const hem_dev_window w = args->w;
    uint64_t *number = &args->state->number[w.rank];
    hem_status status = HEM_OK;
    hem_group_sync(g);
    if (g.rank == 0)
        *number = round;
    hem_group_sync(g);
    for (int other = 0; other < w.size && status == HEM_OK; other++) {
        if (CONCERNS(*r, w.rank, other))
            status = hem_dev_put(w, g, other, r->place + 8u * (uint32_t)w.rank, number, 8);
        /* The owner may look at what came before. */
        if (status == HEM_OK && g.rank == 0 && IS_LAST(*r, w.rank, other, w.size))
            status = hem_dev_put_value(w, other, r->last, round);
        status = hem_group_agree(g, status);
    }
    return status;
}

HEM_DEV void expect(const mixed_args *args, hem_group g, const mixed_round *r, uint64_t round) {
    const hem_dev_window w = args->w;
    const uint64_t *words = (const uint64_t *)hem_dev_address(w, w.rank, r->place);
    for (int other = (int)g.rank; other < w.size; other += (int)g.size)
        if (CONCERNS(*r, w.rank, other) && words[other] != round)
            hemd_add64_relaxed(&args->state->wrong, 1);
    /* The next one may be there already. */
    if (g.rank == 0 && r->partner < 0 &&
        hemd_load64_relaxed((const uint64_t *)hem_dev_address(w, w.rank, r->last)) < round)
        hemd_add64_relaxed(&args->state->wrong, 1);
    hem_group_sync(g);
}

HEM_DEV hem_status meet(const mixed_args *args, hem_group g, const mixed_round *r) {
    const hem_dev_window w = args->w;
    if (r->partner >= 0 && args->does == ENTERS)
        return hem_dev_barrier_peer_arrive(w, g, r->partner, r->id);
    if (r->partner >= 0 && args->does == LEAVES)
        return hem_dev_barrier_peer_wait(w, g, r->partner, r->id, HEM_FOREVER);
    if (r->partner >= 0)
        return hem_dev_barrier_peer(w, g, r->partner, r->id, HEM_FOREVER);
    if (args->does == ENTERS)
        return hem_dev_barrier_arrive(w, g, r->id);
    if (args->does == LEAVES)
        return hem_dev_barrier_wait(w, g, r->id, HEM_FOREVER);
    return hem_dev_barrier(w, g, r->id, HEM_FOREVER);
}

DEVICE_KERNEL(mixed_run, mixed_args) {
    hem_group g = group_kit_of(args->scope);
    if (!group_kit_takes_part(args->scope))
        return;
    hem_status status = HEM_OK;
    uint64_t round = args->state->round;
    hem_group_sync(g);
    for (uint64_t i = 0; i < args->rounds && status == HEM_OK; i++) {
        round += args->does == LEAVES ? 0 : 1;
        const mixed_round r = args->plan[round];
        if (r.idle)
            continue;
        if ((args->does & ENTERS) != 0)
            status = tell(args, g, &r, round);
        if (status == HEM_OK)
            status = meet(args, g, &r);
        if (status == HEM_OK && (args->does & LEAVES) != 0)
            expect(args, g, &r, round);
    }
    hem_group_sync(g);
    if (g.rank != 0)
        return;
    args->state->round = round;
    args->state->status += (uint64_t)-status;
}

typedef struct test {
    hem_world *world;
    hem_window *window;
    device_stream stream;
    device_graph graph; /* of four rounds */
    mixed_args args;
    mixed_round *plan;
    harness_rng rng;
    uint64_t round;
    bool behind; /* kernels are under way */
} test;

static void put(test *t, uint32_t scope, uint64_t rounds, uint32_t does) {
    t->args.scope = scope;
    t->args.rounds = rounds;
    t->args.does = does;
    device_launch(mixed_run, t->stream, 1, scope < GROUP_KIT_WARPS ? 1 : GROUP_KIT_WIDTH, &t->args);
    t->behind = true;
}

/* Wait for the kernels, so that what the CPU does comes after them. */
static void catch_up(test *t) {
    mixed_state state;
    device_stream_sync(t->stream);
    t->behind = false;
    device_copy(&state, t->args.state, sizeof state);
    CHECK_EQ(state.status, 0);
    CHECK_EQ(state.wrong, 0);
    CHECK_EQ(state.round, t->round);
}

static void cpu_tell(test *t, const mixed_round *r) {
    const int me = t->args.w.rank;
    for (int other = 0; other < t->args.w.size; other++) {
        if (CONCERNS(*r, me, other))
            CHECK_OK(hem_put(t->window, other, r->place + 8u * (size_t)me, &t->round, 8));
        if (IS_LAST(*r, me, other, t->args.w.size))
            CHECK_OK(hem_put(t->window, other, r->last, &t->round, 8));
    }
}

static void cpu_expect(test *t, const mixed_round *r) {
    uint64_t words[MOST];
    const int me = t->args.w.rank;
    CHECK_OK(hem_get(t->window, me, r->place, words, 8u * (size_t)t->args.w.size));
    for (int other = 0; other < t->args.w.size; other++)
        if (CONCERNS(*r, me, other))
            CHECK_EQ(words[other], t->round);
    if (r->partner >= 0)
        return;
    CHECK_OK(hem_get(t->window, me, r->last, words, sizeof words[0]));
    CHECK(words[0] >= t->round);
}

static void cpu_leave(test *t, const mixed_round *r) {
    const bool pair = r->partner >= 0;
    bool done = false;
    if (harness_below(&t->rng, 2) == 0) {
        CHECK_OK(pair ? hem_barrier_peer_wait(t->window, r->partner, r->id, LIMIT)
                      : hem_barrier_wait(t->window, r->id, LIMIT));
        return;
    }
    while (!done)
        CHECK_OK(pair ? hem_barrier_peer_test(t->window, r->partner, r->id, &done)
                      : hem_barrier_test(t->window, r->id, &done));
}

static void cpu_enter(test *t, const mixed_round *r) {
    CHECK_OK(r->partner >= 0 ? hem_barrier_peer_arrive(t->window, r->partner, r->id)
                             : hem_barrier_arrive(t->window, r->id));
}

static void cpu_meet(test *t, const mixed_round *r) {
    if (harness_below(&t->rng, 2) == 0) {
        CHECK_OK(r->partner >= 0 ? hem_barrier_peer(t->window, r->partner, r->id, LIMIT)
                                 : hem_barrier(t->window, r->id, LIMIT));
    } else {
        cpu_enter(t, r);
        cpu_leave(t, r);
    }
}

static void set_round(test *t) {
    device_copy(&t->args.state->round, &t->round, sizeof t->round);
}

/* One round by the CPU, or by it and a kernel. */
static void cpu_round(test *t) {
    const uint64_t who = harness_below(&t->rng, 3);
    catch_up(t);
    t->round++;
    const mixed_round r = t->plan[t->round];
    if (who == 1 && !r.idle) {
        put(t, GROUP_KIT_BLOCK, 1, ENTERS);
        catch_up(t);
        cpu_leave(t, &r);
        cpu_expect(t, &r);
        return;
    }
    set_round(t);
    if (r.idle)
        return;
    cpu_tell(t, &r);
    if (who == 2) {
        cpu_enter(t, &r);
        put(t, GROUP_KIT_WARP, 1, LEAVES);
        return;
    }
    cpu_meet(t, &r);
    cpu_expect(t, &r);
}

/* One round by two kernels. */
static void halves_round(test *t) {
    t->round++;
    put(t, (uint32_t)harness_below(&t->rng, GROUP_KITS), 1, ENTERS);
    put(t, (uint32_t)harness_below(&t->rng, GROUP_KITS), 1, LEAVES);
}

static void kernel_rounds(test *t, uint64_t left) {
    const uint64_t most = left < 6 ? left : 6;
    if (left >= 4 && harness_below(&t->rng, 3) == 0) {
        device_graph_launch(t->graph, t->stream);
        t->round += 4;
        t->behind = true;
        return;
    }
    const uint64_t rounds = 1 + harness_below(&t->rng, most);
    put(t, (uint32_t)harness_below(&t->rng, GROUP_KITS), rounds, ENTERS | LEAVES);
    t->round += rounds;
}

/* An entry that is not there is not waited for; one that nobody follows is taken up again. */
static void refuse(test *t) {
    CHECK_OK(hem_sync(t->world, LIMIT));
    if (t->args.w.size > 1) {
        CHECK_STATUS(hem_barrier_wait(t->window, IDS - 1, LIMIT), HEM_ERR_ARG);
        CHECK_OK(hem_barrier(t->window, 0, LIMIT));
        CHECK_STATUS(hem_barrier_wait(t->window, 0, LIMIT), HEM_ERR_ARG);
        CHECK_OK(hem_sync(t->world, LIMIT));
        if (t->args.w.rank == 0)
            CHECK_STATUS(hem_barrier(t->window, 0, 1000000), HEM_ERR_TIMEOUT);
        CHECK_OK(hem_sync(t->world, LIMIT));
    }
    CHECK_OK(t->args.w.size > 1 && t->args.w.rank == 0 ? hem_barrier_wait(t->window, 0, LIMIT)
                                                       : hem_barrier(t->window, 0, LIMIT));
    CHECK_OK(hem_barrier(t->window, IDS - 1, LIMIT));
}

/* The same everywhere, but for the partner. */
static void make_plan(test *t, harness_rng *common, uint64_t total) {
    const size_t bytes = (total + 1) * sizeof *t->plan;
    const uint32_t size = (uint32_t)t->args.w.size;
    uint32_t times[2] = {0, 0};
    t->plan = (mixed_round *)calloc(total + 1, sizeof *t->plan);
    CHECK(t->plan != NULL);
    for (uint64_t round = 0; round <= total; round++) {
        mixed_round *r = &t->plan[round];
        r->id = (uint32_t)harness_below(common, MIXED);
        r->partner = harness_below(common, 3) == 0 ? t->args.w.rank ^ 1 : -1;
        r->idle = r->partner >= t->args.w.size;
        const uint32_t pair = r->partner < 0 ? 0 : 1;
        r->place = 8u * size * (2u * pair + times[pair]++ % 2u);
        r->last = 8u * size * 4u;
        r->shift = size == 1 ? 0 : 1u + times[0] % (size - 1u);
    }
    mixed_round *there = (mixed_round *)device_alloc(bytes);
    device_copy(there, t->plan, bytes);
    t->args.plan = there;
}

static void run(hem_world *world, proxy_kit_who who, bool mixed, uint64_t total) {
    test t;
    memset(&t, 0, sizeof t);
    hem_window_options o = window_kit_options(8u + 4u * 8u * (size_t)hem_world_size(world));
    harness_rng common = harness_rng_of(harness_seed(world), 1, (uint64_t)who);
    CHECK(hem_world_size(world) <= MOST);
    o.barriers = IDS;
    o.mixed_barriers = mixed ? MIXED : 0;
    t.world = world;
    t.window = proxy_kit_create_with(world, o, who);
    t.stream = device_stream_create();
    t.args.w = window_kit_dev(t.window);
    t.args.state = (mixed_state *)device_alloc(sizeof *t.args.state);
    make_plan(&t, &common, total);
    t.rng = harness_rng_of(harness_seed(world), 2 + (uint64_t)t.args.w.rank, (uint64_t)who);
    device_capture_begin(t.stream);
    put(&t, GROUP_KIT_BLOCK, 3, ENTERS | LEAVES);
    put(&t, GROUP_KIT_THREAD, 1, ENTERS | LEAVES);
    t.graph = device_capture_end(t.stream);
    while (t.round < total) {
        harness_step("round", t.round);
        if (harness_below(&t.rng, 2) != 0)
            kernel_rounds(&t, total - t.round);
        else if (mixed)
            cpu_round(&t);
        else
            halves_round(&t);
    }
    catch_up(&t);
    if (mixed)
        refuse(&t);
    device_graph_destroy(t.graph);
    CHECK_OK(hem_window_destroy(t.window));
    device_stream_destroy(t.stream);
    device_free((void *)(uintptr_t)t.args.plan);
    device_free(t.args.state);
    free(t.plan);
}

int rank_main(hem_world *world) {
    const uint64_t most = device_stands_in() ? (uint64_t)harness_rounds(600) : 2000;
    const uint64_t total = hem_world_size(world) > 8 ? most / 20 : most;
    run(world, PROXY_KIT_NONE, true, total);
    run(world, PROXY_KIT_ODD, true, total / 4);
    run(world, PROXY_KIT_ALL, true, total / 4);
    run(world, PROXY_KIT_OUT, true, total / 4);
    run(world, PROXY_KIT_NONE, false, total / 4);
    run(world, PROXY_KIT_ODD, false, total / 4);
    run(world, PROXY_KIT_OUT, false, total / 4);
    harness_close(world, HEM_OK);
    return 0;
}
