/*
 * A rank dies, or leaves the world, while the others set a device object up with it: a window in the
 * library's memory or their own, a collective in units or between barriers, an exchange that is staged
 * or straight, a pipe, a line. All get HEM_ERR_PEER with its number and no object; so they do when they
 * try again, be it something else; and all of these work in a world of the survivors.
 *
 * Who leaves does so in a copy of the world, for every object. Deaths go on until one rank is left, each
 * in another object. As threads, a rank that returns without closing is dead, and has not come at
 * all. As processes, HEM_TEST_DIE=kill makes HEM_TEST_VICTIM die by a signal in the middle of setting
 * object HEM_TEST_CASE up, when HEM_TEST_PART eighths of the time are over that it took before: all
 * survivors hear the same of it, and hold no memory when all is closed:
 * tests/script/device-setup-death.sh.
 *
 * hem-test: ranks=2,3,5,8 modes=threads timeout=60
 */
#include "setup_kit.h"

#include <sched.h>
#include <signal.h>
#include <unistd.h>

/* A rank has died or left, or will in a moment: this object first, then the others. `dead` is its number;
 * negative: those who are through with this may leave, too. */
static void fail_all(const setup_site *s, int first, int dead) {
    int64_t begun = harness_now();
    for (int i = 0; i <= SETUP_OBJECTS; i++) {
        setup_object o;
        CHECK_STATUS(setup_make(s, (first + i) % SETUP_OBJECTS, &o), HEM_ERR_PEER);
        if (dead >= 0)
            CHECK_NAMES_RANK(dead);
        CHECK(!setup_is_there(&o));
    }
    CHECK(harness_now() - begun < HEM_SEC(15));
}

static void leave(hem_world *world, uint64_t *memory, int which) {
    hem_world *copy = NULL;
    int gone = which % hem_world_size(world);
    CHECK_OK(hem_world_split(world, 0, 0, &copy));
    setup_site s = setup_open(copy, memory);
    CHECK_OK(hem_sync(copy, LIMIT));
    if (s.ring.me == gone)
        harness_sleep_ms(3);
    else
        fail_all(&s, which, -1);
    setup_close(&s);
    CHECK_OK(hem_world_close(copy));
}

/* As threads. @return Whether this rank lives on. */
static bool one_death(hem_world *world, uint64_t *memory, int which, int victim) {
    setup_site s = setup_open(world, memory);
    bool lives = s.ring.me != victim;
    CHECK_OK(hem_sync(world, LIMIT));
    if (lives)
        fail_all(&s, which, victim);
    else
        harness_sleep_ms(5);
    setup_close(&s);
    return lives;
}

static int deaths(hem_world *world, uint64_t *memory) {
    int all = hem_world_size(world);
    hem_world *now = world;
    for (int turn = 0; turn < all - 1; turn++) {
        hem_world *rest = NULL;
        int size = hem_world_size(now);
        /* Seven of eight objects with 8 ranks, the last one and others with fewer. */
        int which = ((all == 8 ? 0 : all + 2) + turn) % SETUP_OBJECTS;
        if (!one_death(now, memory, which, turn % 2 == 0 ? size - 1 : 0)) {
            device_free(memory);
            harness_forget();
            return 0;
        }
        CHECK_OK(hem_world_shrink(now, &rest));
        if (now != world)
            CHECK_STATUS(hem_world_close(now), HEM_ERR_PEER);
        now = rest;
        setup_use_all(now, memory);
    }
    device_free(memory);
    CHECK_OK(hem_world_close(now));
    harness_close(world, HEM_ERR_PEER);
    return 0;
}

/* As processes. */

static int number_of(const char *name) {
    const char *text = getenv(name);
    return text != NULL && *text != '\0' ? atoi(text) : 0;
}

/* Waits for a time to be told, then for it to come. */
static void *kill_at(void *arg) {
    int64_t at = 0;
    do {
        sched_yield();
        at = __atomic_load_n((int64_t *)arg, __ATOMIC_ACQUIRE);
    } while (at == 0 || harness_now() < at);
    (void)raise(SIGKILL);
    return NULL;
}

/* All have heard the same. */
static void check_same(hem_world *world, hem_status status) {
    uint64_t said[2] = {(uint64_t)-status, (uint64_t)(100 + status)};
    CHECK(status == HEM_OK || status == HEM_ERR_PEER);
    CHECK_OK(hem_allreduce(world, said, said, 2, HEM_U64, HEM_MAX, LIMIT));
    CHECK_EQ(said[0] + said[1], 100);
}

/* How long it takes to set an object up, once all that is made once is there. */
static int64_t time_of(const setup_site *s, int which) {
    hem_world *copy = NULL;
    setup_object o;
    CHECK_OK(hem_world_split(s->ring.world, 0, 0, &copy));
    setup_use_all(copy, s->memory);
    CHECK_OK(hem_world_close(copy));
    CHECK_OK(hem_sync(s->ring.world, LIMIT));
    int64_t begun = harness_now();
    CHECK_OK(setup_make(s, which, &o));
    int64_t took = harness_now() - begun;
    CHECK_OK(setup_drop(&o));
    return took;
}

/* Descriptors of the stand-in's memory. */
static int count_memory(void) {
    int count = 0;
    for (int fd = 0; fd < 1024; fd++) {
        char path[64], target[64] = "";
        (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        if (readlink(path, target, sizeof target - 1) > 0 && strstr(target, "hem-standin") != NULL)
            count++;
    }
    return count;
}

/* What peers may have been told of goes with the world, and that of streams in a moment. */
static void check_nothing_held(void) {
    int64_t until = harness_now() + HEM_SEC(2);
    while (count_memory() > 0 && harness_now() < until)
        harness_sleep_ms(1);
    CHECK_EQ(count_memory(), 0);
}

/* Who dies is ready to do so before anybody begins: it takes longer to make a thread than an object. */
static hem_status make_and_die(const setup_site *s, int which, int64_t after, bool dies,
                               setup_object *o) {
    int64_t at = 0;
    pthread_t killer;
    if (dies) {
        CHECK_EQ(pthread_create(&killer, NULL, kill_at, &at), 0);
        harness_sleep_ms(2);
    }
    CHECK_OK(hem_sync(s->ring.world, LIMIT));
    __atomic_store_n(&at, harness_now() + after, __ATOMIC_RELEASE);
    hem_status status = setup_make(s, which, o);
    if (dies)
        pthread_join(killer, NULL);
    CHECK(setup_is_there(o) == (status == HEM_OK));
    return status;
}

static int killed(hem_world *world) {
    uint64_t *memory = (uint64_t *)device_alloc(SETUP_BYTES);
    int which = number_of("HEM_TEST_CASE");
    bool dies = hem_world_rank(world) == number_of("HEM_TEST_VICTIM");
    hem_world *rest = NULL;
    setup_object o;
    setup_site s = setup_open(world, memory);
    int64_t took = time_of(&s, which);
    hem_status status = make_and_die(&s, which, took * number_of("HEM_TEST_PART") / 8, dies, &o);
    CHECK_OK(hem_world_shrink(world, &rest)); /* waits for the death, if it is still to come */
    (void)setup_drop(&o);
    check_same(rest, status);
    setup_close(&s);
    setup_use_all(rest, memory);
    device_free(memory);
    CHECK_OK(hem_world_close(rest));
    int rank = hem_world_rank(world);
    harness_close(world, HEM_ERR_PEER);
    check_nothing_held();
    printf("survived %d\n", rank);
    return 0;
}

int rank_main(hem_world *world) {
    if (getenv("HEM_TEST_DIE") != NULL)
        return killed(world);
    uint64_t *memory = (uint64_t *)device_alloc(SETUP_BYTES);
    for (int which = 0; which < SETUP_OBJECTS; which++)
        leave(world, memory, which);
    return deaths(world, memory);
}
