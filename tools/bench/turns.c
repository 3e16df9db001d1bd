#include "turns.h"

#include "meet.h"

static const size_t touched_in_passing = 1024;
static const size_t crowded_touched_in_passing = 16384;

static double span(const struct bench_turns *turns, double start) {
    return bench_meet_span(turns->meet, turns->world, turns->help, start, bench_now_ns());
}

static double run_in_passing(const struct bench_turns *turns, uint64_t iters) {
    bench_meet(turns->meet, turns->world, turns->help);
    double start = bench_now_ns();

    for (uint64_t i = 0; i < iters; i++) {
        turns->begin(turns->ctx);
        turns->run(turns->ctx);
        turns->check(turns->ctx);
    }
    return span(turns, start);
}

static double run_apart(const struct bench_turns *turns, uint64_t iters) {
    double ns = 0;

    for (uint64_t i = 0; i < iters; i++) {
        turns->begin(turns->ctx);
        bench_meet(turns->meet, turns->world, turns->help);
        double start = bench_now_ns();
        turns->run(turns->ctx);
        ns += span(turns, start);
        turns->check(turns->ctx);
    }
    return ns;
}

static double batch(void *ctx, uint64_t iters) {
    const struct bench_turns *turns = ctx;

    return turns->passing ? run_in_passing(turns, iters) : run_apart(turns, iters);
}

struct bench_result bench_turns_measure(struct bench_turns *turns) {
    const struct bench_world *world = turns->world;
    size_t most = world->ranks > bench_online() ? crowded_touched_in_passing : touched_in_passing;

    /* Ranks touch different amounts, and must do the same. */
    turns->passing = world->agree(world->ctx, turns->touched <= most) != 0;
    return bench_measure(world, batch, turns);
}
