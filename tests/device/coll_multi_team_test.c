/*
 * When multicast is used and when it is not: what has that way takes it, the rest does not; a rank
 * that fails in any step of making the team makes all do without, with the same results; and nothing
 * is left behind. After a failure the next plan has multicast again.
 *
 * hem-test: ranks=2,3,5 modes=processes,threads timeout=120 labels=standin
 */
#include "multi_kit.h"

#include "device/standin/standin.h"

typedef struct test {
    coll_kit kit;
    uint64_t seed;
    uint64_t number;
    uint64_t bound; /* members that must have been in this process so far */
} test;

/* One plan, its runs, and whether there was a team. No rank binds in the next one before all are done
 * with this. */
static void one_case(test *t, hem_coll_kind kind, hem_dtype dtype, hem_reduction op, bool team) {
    hem_op *plan = NULL;
    harness_step("case", t->number);
    multi_kit_set(&t->kit, kind, dtype, op, t->number % 2 != 0, 0, t->seed, t->number);
    t->number++;
    hem_coll c = coll_kit_coll(&t->kit, true);
    CHECK_OK(hem_coll_plan(t->kit.world, &c, &plan));
    if (team)
        t->bound += harness_threads() ? (uint64_t)t->kit.size : 1;
    CHECK_EQ(hemi_standin_team_bound(), t->bound);
    coll_kit_run(&t->kit, plan, 0);
    coll_kit_run(&t->kit, plan, 1);
    CHECK_OK(hem_op_free(plan));
    coll_kit_clear(&t->kit);
}

static void choose(test *t) {
    one_case(t, HEM_ALLREDUCE, HEM_F32, HEM_SUM, true);
    one_case(t, HEM_REDUCE_SCATTER, HEM_I32, HEM_MIN, true);
    one_case(t, HEM_ALLGATHER, HEM_U8, (hem_reduction)0, true);
    one_case(t, HEM_BROADCAST, HEM_F64, (hem_reduction)0, true);
    one_case(t, HEM_ALLREDUCE, HEM_F32, HEM_MAX, false);
    one_case(t, HEM_ALLREDUCE, HEM_U64, HEM_PROD, false);
    one_case(t, HEM_REDUCE, HEM_F32, HEM_SUM, false);
    one_case(t, HEM_ALLTOALL, HEM_U32, (hem_reduction)0, false);
}

/* One of the ranks fails. As threads, whichever comes first. */
static void refuse(test *t, hemi_standin_team_step step) {
    int victim = step == HEMI_STANDIN_TEAM_MAKE || harness_threads() ? 0 : t->kit.size - 1;
    bool mine = t->kit.rank == victim;
    uint64_t before = hemi_standin_team_bound();
    CHECK_OK(hem_sync(t->kit.world, LIMIT));
    if (mine)
        hemi_standin_team_refuse(step, false);
    /* Others have been bound where one was not. */
    if (step == HEMI_STANDIN_TEAM_BIND)
        t->bound += harness_threads() ? (uint64_t)t->kit.size - 1 : !mine;
    one_case(t, HEM_ALLREDUCE, HEM_F64, HEM_SUM, false);
    CHECK(hemi_standin_team_bound() == before || step == HEMI_STANDIN_TEAM_BIND);
    one_case(t, HEM_ALLREDUCE, HEM_F64, HEM_SUM, true);
}

/* What this process has, while no rank of it does anything. Counting opens files, so one counts. */
static size_t look(test *t) {
    size_t held = 0;
    CHECK_OK(hem_sync(t->kit.world, LIMIT));
    if (!harness_threads() || t->kit.rank == 0)
        held = hemi_standin_held() + (size_t)harness_open_files();
    CHECK_OK(hem_sync(t->kit.world, LIMIT));
    return held;
}

int rank_main(hem_world *world) {
    test t;
    memset(&t, 0, sizeof t);
    t.kit = coll_kit_open(world);
    t.seed = harness_seed(world);
    size_t held = 0;
    for (int i = 0; i < 3; i++) {
        choose(&t);
        for (int step = HEMI_STANDIN_TEAM_MAKE; step <= HEMI_STANDIN_TEAM_BIND; step++)
            refuse(&t, (hemi_standin_team_step)step);
        if (i == 0)
            held = look(&t);
    }
    CHECK(look(&t) <= held);
    coll_kit_close(&t.kit);
    harness_close(world, HEM_OK);
    return 0;
}
