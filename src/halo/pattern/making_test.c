/*
 * Patterns in the making when something goes wrong on one rank, with ranks as threads: memory that runs
 * out anywhere, a death between any two steps, nonsense from a peer.
 *
 * hem-test: timeout=180
 */
#include "halo/pattern/making.h"

#include "base/testing.h"
#include "core/flight.h"
#include "halo/pattern/half.h"

#include <hem/hem.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define RANKS_MOST 20

/* Allocations of this thread before one fails; negative: all succeed. */
static __thread int64_t allocations_left = -1;
static uint32_t has_failed;
/* Blocks that are in use. */
static uint64_t blocks;

#if !TESTING_SANITIZED
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *old, size_t bytes);
void __libc_free(void *block);

static bool fails_now(void) {
    if (allocations_left < 0 || allocations_left-- > 0)
        return false;
    hemi_store32_release(&has_failed, 1);
    return true;
}

static void *count_block(void *block) {
    hemi_add64_acq_rel(&blocks, block != NULL);
    return block;
}

void *malloc(size_t bytes) {
    return fails_now() ? NULL : count_block(__libc_malloc(bytes));
}

void *calloc(size_t count, size_t bytes) {
    return fails_now() ? NULL : count_block(__libc_calloc(count, bytes));
}

void *realloc(void *old, size_t bytes) {
    if (fails_now())
        return NULL;
    return old == NULL ? count_block(__libc_malloc(bytes)) : __libc_realloc(old, bytes);
}

void free(void *block) {
    hemi_add64_acq_rel(&blocks, block != NULL ? UINT64_MAX : 0);
    __libc_free(block);
}
#endif

typedef struct trial {
    uint32_t culprit;
    int64_t allocations;
    bool known;
    hem_status results[RANKS_MOST];
    char sentences[RANKS_MOST][HEMI_ERROR_MAX];
} trial;

enum {
    OWN = 100,
    HALO = 30
};

/* Each rank owns OWN points and has HALO of each of the next three in its halo. */
static hem_status make_mesh(hem_world *world, bool known, int64_t timeout_ns,
                            hem_pattern **pattern_p) {
    int64_t points[OWN + 3 * HALO];
    int64_t halo_ids[3 * HALO];
    int owners[3 * HALO];
    for (int i = 0; i < OWN; i++)
        points[i] = (int64_t)world->rank * OWN + i;
    for (int i = 0; i < 3 * HALO; i++) {
        owners[i] = (int)((world->rank + 1 + (uint32_t)(i / HALO)) % world->size);
        halo_ids[i] = points[OWN + i] = owners[i] * OWN + i % HALO;
    }
    hem_mesh_domain domain = {1,        points,           OWN + 3 * HALO,       NULL,
                              halo_ids, (size_t)3 * HALO, known ? owners : NULL};
    hem_mesh_options options = {.struct_size = sizeof options,
                                .domains = &domain,
                                .domain_count = 1,
                                .timeout_ns = timeout_ns};
    return hem_pattern_mesh(world, &options, pattern_p);
}

static int run_poor(hem_world *world, void *arg) {
    trial *t = arg;
    hem_pattern *pattern = NULL;
    RANK_CHECK(hem_sync(world, HEM_SEC(20)) == HEM_OK);
    if (world->rank == t->culprit)
        allocations_left = t->allocations;
    t->results[world->rank] = make_mesh(world, t->known, HEM_SEC(20), &pattern);
    allocations_left = -1;
    (void)snprintf(t->sentences[world->rank], HEMI_ERROR_MAX, "%s", hem_last_error());
    RANK_CHECK((pattern != NULL) == (t->results[world->rank] == HEM_OK));
    RANK_CHECK(hem_pattern_destroy(pattern) == HEM_OK);
    /* Whatever happened, the next one works. */
    RANK_CHECK(make_mesh(world, t->known, HEM_SEC(20), &pattern) == HEM_OK);
    RANK_CHECK(hem_pattern_destroy(pattern) == HEM_OK);
    return hem_world_close(world) == HEM_OK ? 0 : __LINE__;
}

static void starve(int size, uint32_t culprit, bool known, int64_t step) {
    size_t failures = 0;
    for (int64_t allocations = 0; allocations < 2000; allocations += step) {
        trial t = {.culprit = culprit, .allocations = allocations, .known = known};
        has_failed = 0;
        uint64_t before = blocks;
        assert_int_equal(hem_world_threads(size, run_poor, &t, NULL), HEM_OK);
        for (int r = 1; r < size; r++) {
            assert_int_equal(t.results[r], t.results[0]);
            if (t.results[0] != HEM_OK)
                assert_string_equal(t.sentences[r], t.sentences[0]);
        }
        /* The first one leaves something behind that the C library keeps. */
        if (allocations > 0)
            assert_int_equal(blocks, before);
        if (has_failed == 0) {
            assert_int_equal(t.results[0], HEM_OK);
            assert_true(failures > 5);
            return;
        }
        /* What is kept for later uses may do without. */
        if (t.results[0] != HEM_ERR_MEMORY && t.results[0] != HEM_OK)
            print_error("%d ranks, allocation %lld: %s\n", size, (long long)allocations,
                        t.sentences[0]);
        assert_true(t.results[0] == HEM_ERR_MEMORY || t.results[0] == HEM_OK);
        failures++;
    }
    fail();
}

static void memory_that_runs_out_is_told_to_all(void **state) {
    (void)state;
    if (TESTING_SANITIZED)
        skip();
    starve(4, 1, false, 1);
    starve(17, 0, false, 3);
    starve(17, 9, false, 2);
    starve(17, 16, true, 3);
}

/* A set-up by hand, that one rank leaves after some of its steps. */
typedef struct leaving {
    uint32_t who;
    int after;
} leaving;

static int run_deserted(hem_world *world, void *arg) {
    const leaving *l = arg;
    hemi_making making;
    hem_pattern *pattern = NULL;
    if (world->rank == l->who && l->after == 0)
        return 0;
    RANK_CHECK(hemi_making_begin(&making, world, HEMI_CALL_PATTERN_MESH, HEMI_PATTERN_MESH, 1, 1,
                                 HEM_OK, HEM_SEC(30)) == (l->after == 0 ? HEM_ERR_PEER : HEM_OK));
    for (int step = 1; making.pattern != NULL; step++) {
        hemi_bag bag = {0};
        if (world->rank == l->who && l->after == step) {
            hemi_pattern_drop(making.pattern);
            return 0;
        }
        if (step == 3) {
            hem_status status = hemi_making_finish(&making, &pattern);
            RANK_CHECK(status == HEM_ERR_PEER && pattern == NULL);
            RANK_CHECK(strstr(hem_last_error(), "rank") != NULL);
            break;
        }
        for (uint32_t r = 0; r < world->size; r++)
            RANK_CHECK(hemi_bag_add(&bag, world->rank, r, &r, sizeof r) == HEM_OK);
        hemi_making_route(&making, &bag);
        hemi_bag_free(&bag);
    }
    (void)hem_world_close(world);
    return 0;
}

static void a_death_between_steps_is_told_to_all(void **state) {
    (void)state;
    for (int size = 3; size <= 18; size += 15)
        for (int after = 0; after <= 3; after++)
            for (uint32_t who = 0; who < 3; who++) {
                leaving l = {who, after};
                assert_int_equal(hem_world_threads(size, run_deserted, &l, NULL), HEM_OK);
            }
}

/* What an owner is asked for must exist there. */
static hem_status unpack(const hemi_want *want, hem_pattern *pattern) {
    hemi_making making = {.pattern = pattern};
    hemi_bag bag = {0};
    hemi_link link = {0};
    hem_status status = hemi_half_pack(&bag, 1, want);
    if (status == HEM_OK)
        status = hemi_half_unpack(&making, hemi_bag_next(&bag, NULL), &link);
    if (status == HEM_OK && (link.peer != 1 || link.here != want->there ||
                             link.there != want->here || link.points.total != want->theirs.total))
        status = HEM_ERR_SYSTEM;
    free(link.points.list);
    hemi_bag_free(&bag);
    return status;
}

static void boxes_are_checked_by_their_owner(void **state) {
    (void)state;
    hemi_domain domain = {.box = {.count = {4, 5}}};
    hem_pattern pattern = {.dims = 2, .domains = &domain, .domain_count = 1};
    const hemi_want good = {
        .theirs = {.total = 6, .start = {1, 2}, .count = {2, 3}, .axis = {0, 1}, .step = {1, 1}}};
    assert_int_equal(unpack(&good, &pattern), HEM_OK);
    hemi_want want = good;
    want.theirs.axis[0] = 1;
    want.theirs.axis[1] = 0;
    want.theirs.step[1] = -1;
    assert_int_equal(unpack(&want, &pattern), HEM_OK);
    for (int which = 0; which < 12; which++) {
        want = good;
        hemi_points *p = &want.theirs;
        switch (which) {
        case 0:
            p->total = 7;
            break;
        case 1:
            p->start[0] = -1;
            break;
        case 2:
            p->start[0] = 3;
            break;
        case 3:
            p->start[1] = 3;
            break;
        case 4:
            p->step[1] = -1;
            p->start[1] = 1;
            break;
        case 5:
            p->step[0] = 0;
            break;
        case 6:
            p->axis[0] = 1;
            break;
        case 7:
            p->axis[0] = 2;
            break;
        case 8:
            want.there = 1;
            break;
        case 9:
            p->count[0] = INT64_MAX;
            break;
        case 10:
            p->count[0] = -2;
            p->count[1] = -3;
            break;
        default:
            p->start[0] = INT64_MAX;
            break;
        }
        assert_int_equal(unpack(&want, &pattern), HEM_ERR_MISMATCH);
    }
}

static void lists_are_checked_by_their_owner(void **state) {
    (void)state;
    hemi_domain domain = {.points = 10};
    hem_pattern pattern = {.dims = 1, .domains = &domain, .domain_count = 1};
    int64_t list[] = {0, 9, 5, 5};
    hemi_want want = {.theirs = {.total = 4, .list = list}};
    assert_int_equal(unpack(&want, &pattern), HEM_OK);
    list[2] = 10;
    assert_int_equal(unpack(&want, &pattern), HEM_ERR_MISMATCH);
    list[2] = -1;
    assert_int_equal(unpack(&want, &pattern), HEM_ERR_MISMATCH);
}

static void records_may_be_anything(void **state) {
    (void)state;
    uint64_t random = 3;
    hemi_domain domains[2] = {{.points = 10, .box = {.count = {3, 3}}}, {.points = 2}};
    hem_pattern pattern = {.dims = 2, .domains = domains, .domain_count = 2};
    hemi_making making = {.pattern = &pattern};
    int64_t list[] = {0, 9, 5, 5};
    hemi_want want = {.theirs = {.total = 4, .list = list}};
    for (int i = 0; i < 20000; i++) {
        hemi_bag bag = {0};
        hemi_link link = {0};
        want.theirs.list = i % 2 == 0 ? list : NULL;
        assert_int_equal(hemi_half_pack(&bag, 1, &want), HEM_OK);
        hemi_record *record = (hemi_record *)(void *)bag.bytes;
        for (uint64_t k = testing_random(&random) % 4; k > 0; k--)
            bag.bytes[sizeof *record + testing_random(&random) % record->bytes] ^=
                (unsigned char)(1u << testing_random(&random) % 8);
        record->bytes -=
            testing_random(&random) % 3 == 0 ? testing_random(&random) % record->bytes : 0;
        if (hemi_half_unpack(&making, record, &link) == HEM_OK) {
            assert_true(link.here < 2);
            for (uint64_t k = 0; link.points.list != NULL && k < link.points.total; k++)
                assert_true((uint64_t)link.points.list[k] < domains[link.here].points);
        }
        free(link.points.list);
        hemi_bag_free(&bag);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(boxes_are_checked_by_their_owner),
        cmocka_unit_test(lists_are_checked_by_their_owner),
        cmocka_unit_test(records_may_be_anything),
        cmocka_unit_test(a_death_between_steps_is_told_to_all),
        cmocka_unit_test(memory_that_runs_out_is_told_to_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
