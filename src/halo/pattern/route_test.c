/* The router over real channels, with ranks as threads. */
#include "halo/pattern/route.h"

#include "base/testing.h"
#include "core/flight.h"
#include "core/wait.h"
#include "halo/pattern/bag.h"
#include "halo/pattern/order.h"

#include <hem/hem.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define LIMIT_NS (40ull * 1000 * 1000 * 1000)

/* A thread that has no memory for more than this at once. */
static __thread size_t most_memory = SIZE_MAX;

#if !TESTING_SANITIZED
void *__libc_malloc(size_t bytes);
void *__libc_realloc(void *old, size_t bytes);

void *malloc(size_t bytes) {
    return bytes > most_memory ? NULL : __libc_malloc(bytes);
}

void *realloc(void *old, size_t bytes) {
    return bytes > most_memory ? NULL : __libc_realloc(old, bytes);
}
#endif

static hemi_router router_of(hem_world *world, uint64_t limit_ns) {
    const hemi_platform *platform = world->root->platform;
    return (hemi_router){.world = world,
                         .call = HEMI_CALL_PATTERN_MESH,
                         .deadline_ns = platform->now(platform->ctx) + limit_ns};
}

/* What a rank sends in a round: any rank can work it out. */
typedef struct mail {
    uint64_t random;
    uint64_t left;
    uint64_t serial;
    uint32_t to;
    size_t bytes;
} mail;

static mail mail_of(uint64_t seed, uint32_t from) {
    mail m = {.random = seed * 1000003 + from};
    m.left = testing_random(&m.random) % 5 == 0 ? 0 : testing_random(&m.random) % 60;
    return m;
}

static bool next_mail(mail *m, uint32_t size) {
    if (m->left == 0)
        return false;
    m->left--;
    m->serial++;
    uint64_t dice = testing_random(&m->random);
    m->to = (uint32_t)(testing_random(&m->random) % size);
    m->bytes = testing_random(&m->random) % (dice % 40 == 0 ? 60000 : dice % 4 == 0 ? 1 : 70);
    return true;
}

static void fill(unsigned char *data, const mail *m, uint32_t from) {
    for (size_t i = 0; i < m->bytes; i++)
        data[i] = (unsigned char)(m->serial * 31 + (uint64_t)from * 7 + i);
}

static hem_status fill_bag(hemi_bag *bag, uint64_t seed, uint32_t me, uint32_t size) {
    unsigned char data[60000];
    mail m = mail_of(seed, me);
    hem_status status = HEM_OK;
    while (status == HEM_OK && next_mail(&m, size)) {
        fill(data, &m, me);
        status = hemi_bag_add(bag, me, m.to, data, m.bytes);
    }
    return status;
}

/* Whether the bag holds exactly what all sent here, in order. */
static bool is_complete(const hemi_bag *bag, uint64_t seed, uint32_t me, uint32_t size) {
    unsigned char data[60000];
    const hemi_record *record = hemi_bag_next(bag, NULL);
    size_t count = 0;
    for (uint32_t from = 0; from < size; from++) {
        mail m = mail_of(seed, from);
        while (next_mail(&m, size)) {
            if (m.to != me)
                continue;
            fill(data, &m, from);
            if (record == NULL || record->from != from || record->to != me ||
                record->bytes != m.bytes || memcmp(hemi_record_data(record), data, m.bytes) != 0)
                return false;
            record = hemi_bag_next(bag, record);
            count++;
        }
    }
    return record == NULL && bag->records == count;
}

typedef struct how {
    uint64_t rounds;
    uint64_t seed;
    uint64_t first; /* number of the first route */
} how;

static uint32_t logarithm(uint32_t size) {
    uint32_t rounds = 0;
    while (1u << rounds < size)
        rounds++;
    return rounds;
}

static int run_rounds(hem_world *world, void *arg) {
    const how *h = arg;
    world->routes_made = h->first;
    for (uint64_t k = 0; k < h->rounds; k++) {
        hemi_router router = router_of(world, LIMIT_NS);
        hemi_bag bag = {0};
        RANK_CHECK(fill_bag(&bag, h->seed + k, world->rank, world->size) == HEM_OK);
        size_t filled = bag.used;
        RANK_CHECK(hemi_route(&router, &bag) == HEM_OK);
        RANK_CHECK(is_complete(&bag, h->seed + k, world->rank, world->size));
        RANK_CHECK(router.held == 0 && router.peak >= filled && router.peak >= bag.used);
        uint32_t most = world->size > HEMI_ROUTE_DIRECT ? 2 * logarithm(world->size) : world->size;
        RANK_CHECK(router.messages <= most);
        hemi_bag_free(&bag);
    }
    return hem_world_close(world) == HEM_OK ? 0 : __LINE__;
}

static void records_come_to_their_ranks(void **state) {
    (void)state;
    int sizes[] = {1, 2, 3, 4, 5, 8, 16, 17, 18, 19, 23, 31, 32, 33, 40};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        how h = {.rounds = sizes[i] > 16 ? 4 : 12, .seed = 100 * i};
        assert_int_equal(hem_world_threads(sizes[i], run_rounds, &h, NULL), HEM_OK);
    }
}

static void numbers_come_around(void **state) {
    (void)state;
    how h = {.rounds = 12, .seed = 77, .first = 65530};
    assert_int_equal(hem_world_threads(17, run_rounds, &h, NULL), HEM_OK);
}

/* One rank stays away from the first route; the next ones do not take its leftovers for theirs. */
static int run_absent(hem_world *world, void *arg) {
    uint32_t absent = *(uint32_t *)arg;
    for (uint64_t k = 0; k < 6; k++) {
        bool fails = k % 2 == 0;
        hemi_router router = router_of(world, fails ? 30000000 : LIMIT_NS);
        hemi_bag bag = {0};
        RANK_CHECK(fill_bag(&bag, k, world->rank, world->size) == HEM_OK);
        if (!fails) {
            RANK_CHECK(hemi_route(&router, &bag) == HEM_OK);
            RANK_CHECK(is_complete(&bag, k, world->rank, world->size));
        } else if (world->rank == absent) {
            world->routes_made++;
        } else {
            hem_status status = hemi_route(&router, &bag);
            RANK_CHECK(status == HEM_OK || status == HEM_ERR_TIMEOUT || status == HEM_ERR_REVOKED);
            RANK_CHECK(status == HEM_OK || bag.used == 0);
        }
        hemi_bag_free(&bag);
        RANK_CHECK(hem_sync(world, HEM_SEC(40)) == HEM_OK);
    }
    return hem_world_close(world) == HEM_OK ? 0 : __LINE__;
}

static void leftovers_are_thrown_away(void **state) {
    (void)state;
    uint32_t absent[] = {0, 8, 9, 16};
    for (size_t i = 0; i < sizeof absent / sizeof absent[0]; i++)
        assert_int_equal(hem_world_threads(17, run_absent, &absent[i], NULL), HEM_OK);
}

/* A rank that ends in the middle: all others come to an end, too. */
static int run_deserted(hem_world *world, void *arg) {
    uint32_t dead = *(uint32_t *)arg;
    hemi_router router = router_of(world, LIMIT_NS);
    hemi_bag bag = {0};
    RANK_CHECK(fill_bag(&bag, 5, world->rank, world->size) == HEM_OK);
    if (world->rank != dead) {
        hem_status status = hemi_route(&router, &bag);
        RANK_CHECK(status == HEM_OK || status == HEM_ERR_PEER);
        RANK_CHECK(world->size > HEMI_ROUTE_DIRECT || status == HEM_ERR_PEER);
    }
    hemi_bag_free(&bag);
    if (world->rank == dead)
        return 0;
    (void)hem_world_close(world);
    return 0;
}

static void a_death_ends_a_route(void **state) {
    (void)state;
    uint32_t dead[] = {0, 1, 2};
    for (size_t i = 0; i < sizeof dead / sizeof dead[0]; i++) {
        assert_int_equal(hem_world_threads(3, run_deserted, &dead[i], NULL), HEM_OK);
        assert_int_equal(hem_world_threads(17, run_deserted, &dead[i], NULL), HEM_OK);
    }
}

/* One rank has no memory for what the others send. Nobody waits in vain, and the next one works. */
static int run_poor(hem_world *world, void *arg) {
    uint32_t poor = *(uint32_t *)arg;
    static const unsigned char data[50000];
    hem_status status = hemi_route_ready(world);
    for (int k = 0; k < 3 && status == HEM_OK; k++) {
        hemi_router router = router_of(world, LIMIT_NS);
        hemi_bag bag = {0};
        for (uint32_t r = 0; r < world->size; r++)
            RANK_CHECK(hemi_bag_add(&bag, world->rank, r, data, sizeof data / world->size) ==
                       HEM_OK);
        most_memory = k == 1 && world->rank == poor ? 10000 : SIZE_MAX;
        status = hemi_route(&router, &bag);
        most_memory = SIZE_MAX;
        if (k == 1 && world->rank == poor)
            RANK_CHECK(status == HEM_ERR_MEMORY && bag.used == 0);
        else if (k == 1)
            RANK_CHECK(status == HEM_OK || status == HEM_ERR_MEMORY);
        else
            RANK_CHECK(status == HEM_OK && bag.records == world->size);
        hemi_bag_free(&bag);
        RANK_CHECK(hem_sync(world, HEM_SEC(40)) == HEM_OK);
        status = HEM_OK;
    }
    return hem_world_close(world) == HEM_OK ? 0 : __LINE__;
}

static void no_memory_is_no_hang(void **state) {
    (void)state;
    if (TESTING_SANITIZED)
        skip();
    uint32_t poor[] = {0, 9, 16};
    for (size_t i = 0; i < sizeof poor / sizeof poor[0]; i++)
        assert_int_equal(hem_world_threads(17, run_poor, &poor[i], NULL), HEM_OK);
}

static void nonsense_is_seen(void **state) {
    (void)state;
    hemi_bag bag = {0};
    hemi_ranks all = {0, 4};
    assert_int_equal(hemi_bag_add(&bag, 1, 3, "abc", 3), HEM_OK);
    assert_int_equal(hemi_bag_add(&bag, 1, 2, "", 0), HEM_OK);
    assert_int_equal(hemi_bag_add(&bag, 1, 2, "12345678", 8), HEM_OK);
    assert_true(hemi_bag_check(bag.bytes, bag.used, 3, all, all));
    assert_false(hemi_bag_check(bag.bytes, bag.used, 2, all, all));
    assert_false(hemi_bag_check(bag.bytes, bag.used, 4, all, all));
    assert_false(hemi_bag_check(bag.bytes, bag.used, 3, (hemi_ranks){0, 3}, all));
    assert_false(hemi_bag_check(bag.bytes, bag.used, 3, all, (hemi_ranks){2, 4}));
    for (size_t cut = 1; cut < bag.used; cut++)
        assert_false(hemi_bag_check(bag.bytes, bag.used - cut, 3, all, all));
    uint64_t lengths[] = {4, 9, 1000, UINT64_MAX, UINT64_MAX - 7, UINT64_MAX - 15, INT64_MAX};
    for (size_t i = 1; i < sizeof lengths / sizeof lengths[0]; i++) {
        memcpy(bag.bytes + offsetof(hemi_record, bytes), &lengths[i], sizeof lengths[i]);
        assert_false(hemi_bag_check(bag.bytes, bag.used, 3, all, all));
    }
    hemi_bag_free(&bag);
    assert_true(hemi_bag_check(NULL, 0, 0, all, all));
    assert_int_equal(hemi_bag_add(&bag, 0, 0, "", SIZE_MAX), HEM_ERR_MEMORY);
    hemi_bag_free(&bag);
}

static void numbers_are_ordered(void **state) {
    (void)state;
    uint64_t random = 1;
    static hemi_keyed items[6000];
    for (size_t count = 0; count <= 3000; count = count < 100 ? count + 1 : count * 2)
        for (int bits = 1; bits <= 64; bits += 9) {
            for (size_t i = 0; i < count; i++)
                items[i] = (hemi_keyed){testing_random(&random) >> (64 - bits), i};
            hemi_order(items, items + 3000, count);
            for (size_t i = 1; i < count; i++)
                assert_true(
                    items[i - 1].key < items[i].key ||
                    (items[i - 1].key == items[i].key && items[i - 1].value < items[i].value));
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nonsense_is_seen),
        cmocka_unit_test(numbers_are_ordered),
        cmocka_unit_test(records_come_to_their_ranks),
        cmocka_unit_test(numbers_come_around),
        cmocka_unit_test(leftovers_are_thrown_away),
        cmocka_unit_test(a_death_ends_a_route),
        cmocka_unit_test(no_memory_is_no_hang),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
