/* hem-test: ranks=1,2,3,5,14 modes=processes,threads timeout=60
 *
 * Device memory is shown to those who want it, in any pattern; what one rank fails at, all fail at,
 * and nothing stays open or mapped. With 14 ranks more descriptors are under way at once than the
 * queue of a socket holds. With HEM_TEST_VICTIM=r rank r dies meanwhile: see
 * tests/script/device-share-death.sh.
 */
#include "device/testing.h"
#include "harness.h"

#include "core/flight.h"

#include <hem/hem.h>
#include <signal.h>

#define BYTES 65536
#define CALL  HEMI_CALL_WINDOW_CREATE

static hemi_device_memory make(hem_world *world, uint64_t tag) {
    hemi_device *device = NULL;
    hemi_device_memory memory = {.address = NULL};
    CHECK_OK(hemi_device_get(world->root, &device));
    CHECK_OK(device->module->memory->alloc(device->context, BYTES, &memory));
    harness_fill(memory.address, BYTES, tag);
    return memory;
}

static void drop(hem_world *world, hemi_device_memory *maps) {
    for (int r = 0; r < hem_world_size(world); r++)
        if (r != hem_world_rank(world))
            fake_release(NULL, &maps[r]);
}

/* Whether rank a wants the memory of rank b in this round, if b shows any. */
static bool is_wanted(uint64_t seed, int round, int a, int b) {
    harness_rng rng = harness_rng_of(seed, (uint64_t)round, (uint64_t)a * 64 + (uint64_t)b);
    return round == 0 || harness_below(&rng, 3) != 0;
}

static bool is_shown(uint64_t seed, int round, int a) {
    harness_rng rng = harness_rng_of(seed, (uint64_t)round, 100000 + (uint64_t)a);
    return round == 0 || harness_below(&rng, 4) != 0;
}

static void check_maps(hem_world *world, uint64_t seed, int round, const hemi_device_memory *mine,
                       const hemi_device_memory *maps) {
    int rank = hem_world_rank(world);
    for (int r = 0; r < hem_world_size(world); r++) {
        bool expected = is_wanted(seed, round, rank, r) && is_shown(seed, round, r);
        CHECK_EQ(maps[r].address != NULL, expected);
        if (!expected)
            continue;
        CHECK_EQ(maps[r].bytes, BYTES);
        CHECK_FILLED(maps[r].address, BYTES, (uint64_t)(round * 100 + r));
        if (r == rank)
            CHECK(maps[r].address == mine->address);
    }
}

static void share_round(hem_world *world, uint64_t seed, int round) {
    int rank = hem_world_rank(world);
    int size = hem_world_size(world);
    bool wants[64] = {false};
    hemi_device_memory maps[64];
    memset(maps, 0, sizeof maps);
    hemi_device_memory mine = make(world, (uint64_t)(round * 100 + rank));
    for (int r = 0; r < size; r++)
        wants[r] = is_wanted(seed, round, rank, r);
    harness_step("round", (uint64_t)round);
    CHECK_OK(hemi_device_share(world, CALL, HEM_OK, is_shown(seed, round, rank) ? &mine : NULL,
                               wants, maps, LIMIT));
    check_maps(world, seed, round, &mine, maps);
    CHECK_OK(hem_sync(world, LIMIT));
    drop(world, maps);
    fake_release(NULL, &mine);
}

/* One rank brings an error, or cannot map: all get it, with the sentence. */
static void fail_together(hem_world *world, int at, bool early) {
    int rank = hem_world_rank(world);
    bool wants[64];
    hemi_device_memory maps[64];
    hem_status status = HEM_OK;
    memset(wants, 1, sizeof wants);
    memset(maps, 0, sizeof maps);
    hemi_device_memory mine = make(world, 1);
    if (rank == at && early)
        status = hemi_fail(HEM_ERR_RANGE, "the one at fault");
    CHECK_OK(hem_sync(world, LIMIT));
    /* Threads share what the fake does; all of them fail then. */
    if (rank == at && !early)
        hemi_store32_release(&fake.refuse_map, (uint32_t)-HEM_ERR_MEMORY);
    CHECK_OK(hem_sync(world, LIMIT));
    CHECK_STATUS(hemi_device_share(world, CALL, status, &mine, wants, maps, LIMIT),
                 early ? HEM_ERR_RANGE : HEM_ERR_MEMORY);
    CHECK_SENTENCE(early ? "the one at fault" : "the fake refuses to map");
    if (early || !harness_threads())
        CHECK_NAMES_RANK(at);
    for (int r = 0; r < hem_world_size(world); r++)
        CHECK(maps[r].address == NULL);
    CHECK_OK(hem_sync(world, LIMIT));
    hemi_store32_release(&fake.refuse_map, 0);
    fake_release(NULL, &mine);
    CHECK_OK(hem_sync(world, LIMIT));
}

/* Out of reach is no error. */
static void reach_nobody(hem_world *world) {
    bool wants[64];
    hemi_device_memory maps[64];
    memset(wants, 1, sizeof wants);
    memset(maps, 0, sizeof maps);
    hemi_device_memory mine = make(world, 1);
    CHECK_OK(hem_sync(world, LIMIT));
    hemi_store32_release(&fake.refuse_map, (uint32_t)-HEM_ERR_UNSUPPORTED);
    CHECK_OK(hem_sync(world, LIMIT));
    CHECK_OK(hemi_device_share(world, CALL, HEM_OK, &mine, wants, maps, LIMIT));
    for (int r = 0; r < hem_world_size(world); r++)
        CHECK_EQ(maps[r].address != NULL, r == hem_world_rank(world));
    CHECK_OK(hem_sync(world, LIMIT));
    hemi_store32_release(&fake.refuse_map, 0);
    fake_release(NULL, &mine);
    CHECK_OK(hem_sync(world, LIMIT));
}

/* Rank `silent` says that a descriptor comes, and sends none. */
static void wait_in_vain(hem_world *world, int silent, int64_t limit, hem_status want) {
    bool wants[64];
    hemi_device_memory maps[64];
    memset(wants, 1, sizeof wants);
    memset(maps, 0, sizeof maps);
    hemi_device_memory mine = make(world, 1);
    hemi_store32_release(&fake.no_fd, hem_world_rank(world) == silent);
    int64_t start = harness_now();
    CHECK_STATUS(hemi_device_share(world, CALL, HEM_OK, &mine, wants, maps, limit), want);
    CHECK_NAMES_RANK(silent);
    CHECK(harness_now() - start < HEM_SEC(2) + harness_slack());
    hemi_store32_release(&fake.no_fd, 0);
    fake_release(NULL, &mine);
}

static void *die_soon(void *arg) {
    (void)arg;
    harness_sleep_ms(300);
    raise(SIGKILL);
    return NULL;
}

/* The rank dies whose descriptor the others wait for. Nothing else would end that for LIMIT. */
static void lose_one(hem_world *world, int victim) {
    pthread_t killer;
    if (hem_world_rank(world) == victim)
        CHECK_EQ(pthread_create(&killer, NULL, die_soon, NULL), 0);
    wait_in_vain(world, victim, LIMIT, HEM_ERR_PEER);
    CHECK_EQ(hemi_load32_acquire(&fake.held), 0);
    int rank = hem_world_rank(world);
    harness_close(world, HEM_ERR_PEER);
    printf("survived %d\n", rank);
}

static void share_all(hem_world *world) {
    uint64_t seed = harness_seed(world);
    int files = harness_open_files();
    int last = hem_world_size(world) - 1;
    for (int round = 0; round < harness_rounds(20); round++)
        share_round(world, seed, round);
    fail_together(world, last, true);
    if (last > 0) {
        fail_together(world, 0, false);
        reach_nobody(world);
        fail_together(world, last, false);
    }
    if (last > 0 && !harness_threads())
        wait_in_vain(world, last, HEM_MS(300), HEM_ERR_TIMEOUT);
    CHECK_EQ(hemi_load32_acquire(&fake.held), 0);
    if (!harness_threads())
        CHECK_EQ(harness_open_files(), files);
}

int rank_main(hem_world *world) {
    const char *victim = getenv("HEM_TEST_VICTIM");
    CHECK_OK(hemi_device_use(world->root, &fake_module));
    CHECK_OK(hem_sync(world, LIMIT));
    if (victim != NULL) {
        lose_one(world, atoi(victim));
        return 0;
    }
    share_all(world);
    harness_close(world, HEM_OK);
    return 0;
}
