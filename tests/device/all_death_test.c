/*
 * A rank dies at a random moment while a window, a pipe, an exchange and collectives are busy on all
 * ranks, each on a stream of its own, with steps waiting behind each other. Kernels that wait for it end
 * soon, and say HEM_ERR_PEER. Whoever finds that revokes the world, which ends those who wait for the
 * living. The device works on, and so do the survivors in a world without the dead, in which the same
 * happens again until one is left.
 *
 * As threads, a rank that returns without closing is dead. As processes, HEM_TEST_DIE=kill makes it die
 * by a signal, from a thread of its own, at any instruction: tests/script/device-all-death.sh does that.
 * HEM_TEST_VICTIM=n chooses who dies, once; nobody else does then.
 *
 * hem-test: ranks=2,4 modes=threads timeout=120
 */
#include "all_kit.h"

#include <signal.h>

#define DEPTH 6 /* steps of a part that may wait behind each other */

static bool kills(void) {
    const char *manner = getenv("HEM_TEST_DIE");
    return manner != NULL && strcmp(manner, "kill") == 0;
}

/* How each part has ended here: a call was refused, or a kernel gave up. */
typedef struct outcome {
    hem_status of[ALL_PARTS];
    int64_t when;
    bool found; /* who has died, and not only that somebody gave up */
} outcome;

/* Random steps until `until`, or until nothing can go on. */
static outcome keep_busy(all_kit *kit, harness_rng *rng, int64_t until) {
    outcome o;
    int left = ALL_PARTS;
    memset(&o, 0, sizeof o);
    while (left > 0 && harness_now() < until) {
        int part = (int)harness_below(rng, ALL_PARTS);
        if (o.of[part] != HEM_OK || !device_stream_done(kit->native[part])) {
            harness_dither(harness_random(rng));
            continue;
        }
        o.of[part] = all_status(kit, part);
        for (int i = 0; i < DEPTH && o.of[part] == HEM_OK; i++)
            o.of[part] = all_try_step(kit, part, i % 3 != 0);
        left -= o.of[part] != HEM_OK;
        if (o.when == 0 && o.of[part] != HEM_OK)
            o.when = harness_now();
        if (o.of[part] != HEM_ERR_PEER || o.found)
            continue;
        o.found = true;
        if (kit->size > 2) /* of two, nobody waits for the living */
            CHECK_OK(hem_world_revoke(kit->world));
    }
    return o;
}

/* Everything has ended, soon after the first that did, and says why. */
static void check_ended(all_kit *kit, const outcome *o) {
    for (int part = 0; part < ALL_PARTS; part++) {
        harness_step("part", (uint64_t)part);
        device_stream_sync(kit->native[part]);
        /* With two there is nobody to be told by, but for kernels of the dying, which give exchanges up. */
        if ((kit->size == 2 && part != ALL_HALO) || o->of[part] != HEM_ERR_REVOKED)
            CHECK_EQ(o->of[part], HEM_ERR_PEER);
        /* What comes later comes to an end, too. */
        (void)all_try_step(kit, part, true);
        device_stream_sync(kit->native[part]);
    }
    CHECK(harness_now() - o->when < HEM_SEC(15));
}

/* In a world that is revoked nobody waits for the others. */
static void give_up(all_kit *kit) {
    all_close_streams(kit);
    for (int i = 0; i < 2; i++)
        CHECK_OK(hem_op_free(kit->ops[i]));
    (void)hem_exchange_destroy(kit->exchange);
    CHECK_OK(hem_pattern_destroy(kit->pattern));
    hem_status status = all_destroy_pipe(kit);
    CHECK(status == HEM_ERR_REVOKED || status == HEM_ERR_PEER);
    status = hem_window_destroy(kit->window);
    CHECK(status == HEM_ERR_REVOKED || status == HEM_ERR_PEER);
    /* A kernel of a rank that is dead, but whose process is not, may be writing there still. */
}

static void *kill_self(void *arg) {
    harness_sleep_ms(*(int *)arg);
    (void)raise(SIGKILL);
    return NULL;
}

/* It goes with kernels of its own that wait, run, and are still to come. */
static void die(all_kit *kit, harness_rng *rng) {
    int64_t until = harness_now() + HEM_MS(10) + (int64_t)harness_below(rng, (size_t)HEM_MS(30));
    if (kills()) {
        int ms = 10 + (int)harness_below(rng, 30);
        pthread_t killer;
        CHECK_EQ(pthread_create(&killer, NULL, kill_self, &ms), 0);
        (void)keep_busy(kit, rng, INT64_MAX);
        pthread_join(killer, NULL);
    }
    (void)keep_busy(kit, rng, until);
    /* The device's memory stays, as that of a process would not: kernels of others still read it. */
    for (int part = 0; part < ALL_PARTS; part++)
        device_stream_destroy(kit->native[part]);
    harness_forget();
}

/* @return Whether this rank lives on. */
static bool one_death(hem_world *world, int victim, harness_rng *rng, uint64_t *found_p) {
    all_kit kit = all_open(world, true);
    for (int part = 0; part < ALL_PARTS; part++)
        all_step(&kit, part, true);
    all_check(&kit, 1);
    kit.blind = true;
    CHECK_OK(hem_barrier(kit.window, 0, LIMIT));
    if (kit.rank == victim) {
        die(&kit, rng);
        return false;
    }
    outcome o = keep_busy(&kit, rng, harness_now() + LIMIT);
    check_ended(&kit, &o);
    give_up(&kit);
    *found_p = o.found;
    return true;
}

static void check_works(hem_world *world) {
    all_kit kit = all_open(world, true);
    for (int i = 0; i < 5; i++)
        for (int part = 0; part < ALL_PARTS; part++)
            all_step(&kit, part, i % 2 == 0);
    all_check(&kit, 5);
    all_close(&kit, HEM_OK);
}

int rank_main(hem_world *world) {
    const char *chosen = getenv("HEM_TEST_VICTIM");
    uint64_t seed = harness_seed(world);
    harness_rng all = harness_rng_of(seed, 1, 2);
    harness_rng own = harness_rng_of(seed, 3, (uint64_t)hem_world_rank(world));
    int rank = hem_world_rank(world);
    hem_world *now = world;
    bool dies = true;
    for (uint64_t turn = 0; dies && hem_world_size(now) > 1; turn++) {
        hem_world *rest = NULL;
        uint64_t found = 0;
        size_t size = (size_t)hem_world_size(now);
        int victim = chosen != NULL ? atoi(chosen) : (int)harness_below(&all, size);
        harness_step("death", turn);
        if (!one_death(now, victim, &own, &found))
            return 0;
        CHECK_OK(hem_world_shrink(now, &rest));
        if (now != world)
            CHECK_STATUS(hem_world_close(now), HEM_ERR_PEER);
        now = rest;
        CHECK_OK(hem_allreduce(now, &found, &found, 1, HEM_U64, HEM_MAX, LIMIT));
        CHECK_EQ(found, 1); /* nobody has revoked the world for any other reason */
        check_works(now);
        dies = chosen == NULL;
    }
    CHECK_OK(hem_world_close(now));
    harness_close(world, HEM_ERR_PEER);
    if (!harness_threads()) {
        printf("survived %d\n", rank);
        fflush(stdout);
    }
    return 0;
}
