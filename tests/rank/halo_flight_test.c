/*
 * Eight exchanges are in flight at a time, four of them of one pattern, started and finished in
 * another order on each rank: by finish, test, waiting for any, callbacks, or by a progress thread
 * alone. Everything they were made of has been dropped by then. A time limit of a finish leaves the
 * run under way; starting it again then is an error; giving an exchange up waits for its run.
 *
 * hem-test: ranks=1,2,3,4,5,8 modes=processes,threads timeout=90
 */
#include "halo_kit.h"

#include <sched.h>
#include <stdatomic.h>

enum {
    FLIGHT = 8
};

struct rank {
    hem_world *world;
    hem_window *window;
    int me;
    int size;
    uint64_t seed;
    harness_rng own;
    halo_grid g[2];
    halo_mesh m;
    halo_case c[3];
    halo_set s[FLIGHT];
    hem_exchange *exchange[FLIGHT];
    atomic_int calls[FLIGHT];
    atomic_int bad;
};

/* Exchanges 0 to 3 share the first pattern, 4 and 5 the second, 6 and 7 that of the mesh. */
static int case_of(int i) {
    return i < 4 ? 0 : i < 6 ? 1 : 2;
}

static void make_all(struct rank *r, harness_rng *rng) {
    hem_pattern *pattern[3];

    for (int i = 0; i < 2; i++) {
        r->g[i] = halo_grid_random(2 + i, 10, 3 * (size_t)r->size, r->size, rng);
        r->c[i] = halo_grid_case(&r->g[i], r->size);
        pattern[i] = halo_grid_pattern(r->world, &r->g[i], &r->c[i]);
    }
    r->m = halo_mesh_ball(2);
    halo_mesh_deal(&r->m, 2 * r->size, r->size, true, rng);
    r->c[2] = halo_mesh_case(&r->m, r->size, *rng);
    pattern[2] = halo_mesh_pattern(r->world, &r->c[2], HALO_BY_ID);
    for (int i = 0; i < FLIGHT; i++) {
        halo_spec spec = halo_spec_random(rng, 4);

        r->s[i] = (halo_set){.world = r->world};
        halo_set_add(&r->s[i], pattern[case_of(i)], &r->c[case_of(i)], &spec,
                     (int)harness_below(&r->own, HALO_LAYOUTS), HALO_MIXED, &r->own);
        r->exchange[i] = halo_set_exchange(&r->s[i]);
        if (r->s[i].count)
            memset(r->s[i].bindings, 0xee, r->s[i].count * sizeof *r->s[i].bindings);
    }
    for (int i = 0; i < 3; i++)
        hem_pattern_destroy(pattern[i]);
}

static void free_all(struct rank *r) {
    for (int i = 0; i < FLIGHT; i++) {
        CHECK_OK(hem_exchange_destroy(r->exchange[i]));
        halo_set_free(&r->s[i]);
    }
    for (int i = 0; i < 3; i++)
        halo_case_free(&r->c[i]);
    halo_grid_free(&r->g[0]);
    halo_grid_free(&r->g[1]);
    halo_mesh_free(&r->m);
}

static void shuffle(struct rank *r, int *order) {
    for (int i = 0; i < FLIGHT; i++)
        order[i] = i;
    for (int i = FLIGHT - 1; i > 0; i--) {
        int j = (int)harness_below(&r->own, (size_t)i + 1);
        int kept = order[i];

        order[i] = order[j];
        order[j] = kept;
    }
}

/* Ways to learn that all are done. */

static void by_finish(struct rank *r) {
    int order[FLIGHT];

    shuffle(r, order);
    for (int i = 0; i < FLIGHT; i++)
        CHECK_OK(hem_exchange_finish(r->exchange[order[i]], LIMIT));
}

static void by_test(struct rank *r) {
    int64_t limit = harness_now() + LIMIT;
    bool done = false;

    for (int i = FLIGHT - 1; i >= 0; i -= done) {
        CHECK(harness_now() < limit);
        CHECK_OK(hem_exchange_test(r->exchange[i], &done));
        if (!done)
            sched_yield();
    }
}

static void by_any(struct rank *r) {
    hem_op *ops[FLIGHT];

    for (int i = 0; i < FLIGHT; i++) {
        ops[i] = hem_exchange_op(r->exchange[i]);
        CHECK(ops[i] != NULL);
    }
    for (int left = FLIGHT; left > 0; left--) {
        size_t which = FLIGHT;

        CHECK_OK(hem_op_wait_any(ops, FLIGHT, &which, LIMIT));
        CHECK(which < FLIGHT && ops[which]);
        ops[which] = NULL;
    }
}

static void by_all(struct rank *r) {
    hem_op *ops[FLIGHT];

    for (int i = 0; i < FLIGHT; i++)
        ops[i] = hem_exchange_op(r->exchange[FLIGHT - 1 - i]);
    CHECK_OK(hem_op_wait_all(ops, FLIGHT, LIMIT));
}

static void wait_for_calls(struct rank *r, int want, bool progress) {
    int64_t limit = harness_now() + LIMIT;

    for (int i = 0; i < FLIGHT; i++) {
        while (atomic_load(&r->calls[i]) < want) {
            CHECK(harness_now() < limit);
            if (progress)
                CHECK_OK(hem_progress(r->world));
            sched_yield();
        }
    }
}

static void note(hem_op *op, hem_status status, void *arg) {
    if (!op || status != HEM_OK)
        atomic_fetch_add((atomic_int *)arg, 1000);
    atomic_fetch_add((atomic_int *)arg, 1);
}

static void start_all(struct rank *r, uint64_t round) {
    int order[FLIGHT];

    shuffle(r, order);
    for (int i = 0; i < FLIGHT; i++)
        halo_set_fill(&r->s[order[i]], round);
    shuffle(r, order);
    for (int i = 0; i < FLIGHT; i++) {
        harness_dither(harness_random(&r->own));
        CHECK_OK(hem_exchange_start(r->exchange[order[i]], NULL));
    }
}

static void check_all(struct rank *r, uint64_t round) {
    for (int i = 0; i < FLIGHT; i++) {
        halo_set_expect(&r->s[i], NULL, round);
        halo_set_check(&r->s[i]);
    }
}

static void with_callbacks(struct rank *r, bool thread) {
    for (int i = 0; i < FLIGHT; i++) {
        atomic_store(&r->calls[i], 0);
        CHECK_OK(hem_op_on_done(hem_exchange_op(r->exchange[i]), NULL, NULL));
    }
    if (thread)
        CHECK_OK(hem_progress_start(r->world));
    for (int round = 1; round <= 6; round++) {
        start_all(r, 500 + (uint64_t)round);
        for (int i = 0; i < FLIGHT && round == 1; i++)
            CHECK_OK(hem_op_on_done(hem_exchange_op(r->exchange[i]), note, &r->calls[i]));
        wait_for_calls(r, round, !thread);
        check_all(r, 500 + (uint64_t)round);
    }
    for (int i = 0; i < FLIGHT; i++)
        CHECK_EQ(atomic_load(&r->calls[i]), 6);
    for (int i = 0; i < FLIGHT; i++)
        CHECK_OK(hem_op_on_done(hem_exchange_op(r->exchange[i]), NULL, NULL));
    if (thread)
        CHECK_OK(hem_progress_stop(r->world));
}

/* A callback that checks, changes the owners' values and starts the next run. */
struct link {
    struct rank *r;
    int which;
    atomic_int left;
};

static bool as_image(const halo_set *s) {
    for (size_t i = 0; i < s->count; i++)
        if (memcmp(s->fields[i].base, s->fields[i].image, s->fields[i].size) != 0)
            return false;
    return true;
}

static void next_link(hem_op *op, hem_status status, void *arg) {
    struct link *l = arg;
    halo_set *s = &l->r->s[l->which];
    int left = atomic_load(&l->left);

    (void)op;
    halo_set_expect(s, NULL, (uint64_t)left);
    if (status != HEM_OK || !as_image(s))
        atomic_fetch_add(&l->r->bad, 1);
    if (left > 1) {
        halo_set_fill(s, (uint64_t)left - 1);
        atomic_store(&l->left, left - 1);
        if (hem_exchange_start(l->r->exchange[l->which], NULL) != HEM_OK)
            atomic_fetch_add(&l->r->bad, 1);
    } else {
        atomic_store(&l->left, 0);
    }
}

static void chain(struct rank *r, bool thread) {
    struct link links[FLIGHT];
    int64_t limit = harness_now() + LIMIT;

    if (thread)
        CHECK_OK(hem_progress_start(r->world));
    for (int i = 0; i < FLIGHT; i++) {
        links[i] = (struct link){r, i, 20};
        halo_set_fill(&r->s[i], 20);
        CHECK_OK(hem_exchange_start(r->exchange[i], NULL));
        CHECK_OK(hem_op_on_done(hem_exchange_op(r->exchange[i]), next_link, &links[i]));
    }
    for (int i = 0; i < FLIGHT; i++) {
        while (atomic_load(&links[i].left) > 0) {
            CHECK(harness_now() < limit);
            CHECK_OK(hem_progress(r->world));
            sched_yield();
        }
    }
    if (thread)
        CHECK_OK(hem_progress_stop(r->world));
    for (int i = 0; i < FLIGHT; i++)
        CHECK_OK(hem_op_on_done(hem_exchange_op(r->exchange[i]), NULL, NULL));
    CHECK_EQ(atomic_load(&r->bad), 0);
}

/* Rank 1 starts before the others: its run is under way until they come. */
static void start_early(struct rank *r, hem_exchange *exchange) {
    bool done = true;

    if (r->me != 1) {
        harness_barrier(r->window);
        CHECK_OK(hem_exchange_start(exchange, NULL));
        return;
    }
    CHECK_OK(hem_exchange_start(exchange, NULL));
    CHECK_STATUS(hem_exchange_finish(exchange, HEM_MS(20)), HEM_ERR_TIMEOUT);
    CHECK_STATUS(hem_exchange_finish(exchange, 0), HEM_ERR_TIMEOUT);
    CHECK_STATUS(hem_exchange_start(exchange, NULL), HEM_ERR_ARG);
    CHECK_OK(hem_exchange_test(exchange, &done));
    CHECK(!done);
    harness_barrier(r->window);
}

static void patience(struct rank *r) {
    halo_grid g = {.dims = 1, .extent = {4 * r->size}, .low = {1}, .high = {1}};
    halo_spec spec = halo_spec_plain(3);
    halo_set s = {.world = r->world};
    hem_pattern *pattern;
    hem_exchange *exchange;
    halo_case c;

    g.periodic[0] = true;
    for (int i = 0; i < r->size; i++)
        halo_grid_add(&g, &(hem_box){{4 * i}, {4}}, i);
    c = halo_grid_case(&g, r->size);
    pattern = halo_grid_pattern(r->world, &g, &c);
    halo_set_add(&s, pattern, &c, &spec, HALO_C, HALO_PRIVATE, &r->own);
    exchange = halo_set_exchange(&s);
    CHECK_OK(hem_exchange_finish(exchange, 0));
    halo_set_fill(&s, 1);
    start_early(r, exchange);
    CHECK_OK(hem_exchange_finish(exchange, LIMIT));
    CHECK_OK(hem_exchange_finish(exchange, 0));
    halo_set_expect(&s, NULL, 1);
    halo_set_check(&s);
    /* Giving up waits for the run, whoever else still has to finish. */
    halo_set_fill(&s, 2);
    CHECK_OK(hem_exchange_start(exchange, NULL));
    hem_pattern_destroy(pattern);
    if (r->me % 2)
        CHECK_OK(hem_exchange_finish(exchange, LIMIT));
    CHECK_OK(hem_exchange_destroy(exchange));
    halo_set_expect(&s, NULL, 2);
    halo_set_check(&s);
    halo_set_free(&s);
    halo_case_free(&c);
    halo_grid_free(&g);
}

static void fly(struct rank *r, uint64_t number) {
    harness_rng rng = harness_rng_of(r->seed, number, 0);

    make_all(r, &rng);
    for (uint64_t round = 0; round < 12; round++) {
        start_all(r, round);
        if (round % 4 == 0)
            by_finish(r);
        else if (round % 4 == 1)
            by_test(r);
        else if (round % 4 == 2)
            by_any(r);
        else
            by_all(r);
        check_all(r, round);
    }
    with_callbacks(r, false);
    with_callbacks(r, true);
    chain(r, false);
    chain(r, true);
    free_all(r);
}

int rank_main(hem_world *world) {
    struct rank *r = calloc(1, sizeof *r);

    CHECK(r != NULL);
    r->world = world;
    r->me = hem_world_rank(world);
    r->size = hem_world_size(world);
    r->seed = harness_seed(world);
    r->window = harness_window(world, 64);
    r->own = harness_rng_of(r->seed, (uint64_t)r->me, 77);
    for (int i = 0; i < harness_rounds(8); i++) {
        harness_step("flight", (uint64_t)i);
        fly(r, (uint64_t)i);
        patience(r);
    }
    harness_destroy(r->window);
    free(r);
    harness_close(world, HEM_OK);
    return 0;
}
