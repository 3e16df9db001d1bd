/*
 * A rank that does not come: the runs of the others end at their time limit, that breaks the exchange
 * for all, and nobody hangs: not those who wait for ranks that gave up, nor the late one when it comes.
 * In set-up, all that came get the same error. Afterwards everything else works.
 *
 * hem-test: ranks=2,3,4,5 modes=processes,threads timeout=60
 */
#include "halo_bad.h"

struct rank {
    hem_world *world;
    hem_window *window;
    int me;
    int size;
    int late; /**< who does not come */
    halo_grid g;
    halo_case c;
    halo_set s;
    hem_pattern *pattern;
};

static const int64_t limit = HEM_MS(60);

static void begin(struct rank *r) {
    harness_rng rng = {7};
    halo_spec spec = halo_spec_plain(5);

    r->g = halo_ring(r->size);
    r->c = halo_grid_case(&r->g, r->size);
    r->pattern = halo_grid_pattern(r->world, &r->g, &r->c);
    r->s = (halo_set){.world = r->world};
    halo_set_add(&r->s, r->pattern, &r->c, &spec, HALO_C, HALO_MIXED, &rng);
}

static void end(struct rank *r) {
    hem_pattern_destroy(r->pattern);
    halo_set_free(&r->s);
    halo_case_free(&r->c);
    halo_grid_free(&r->g);
}

static void check_broken(hem_status status) {
    if (status != HEM_ERR_TIMEOUT && status != HEM_ERR_REVOKED)
        harness_fail(__FILE__, __LINE__, "a run without its neighbour gave %s: %s",
                     hem_status_name(status), hem_last_error());
    CHECK(hem_last_error()[0] != 0);
}

/* Those who are no neighbours of the late one may have a few runs that work. */
static void run_until_broken(struct rank *r, hem_exchange *exchange) {
    int64_t began = harness_now();
    hem_status status;

    do {
        status = hem_exchange_run(exchange, NULL, LIMIT);
        CHECK(harness_now() - began < 4 * limit + 10 * harness_slack());
    } while (status == HEM_OK);
    check_broken(status);
    (void)r;
}

/* With `one_limit` only the late rank's right neighbour has a time limit, and all others learn of it:
 * its left one, too, which waits for the late rank alone. */
static void late_for_run(struct rank *r, bool on_stream, bool one_limit) {
    hem_exchange_options options;
    hem_exchange *exchange = NULL;
    hem_stream *stream = NULL;
    int64_t began;

    begin(r);
    options = halo_set_options(&r->s);
    if (!one_limit || harness_left(r->world) == r->late)
        options.run_timeout_ns = limit;
    CHECK_OK(hem_exchange_create(r->world, &options, &exchange));
    for (uint64_t round = 0; round < 3; round++)
        halo_set_run(&r->s, exchange, NULL, round);
    if (r->me != r->late && on_stream) {
        CHECK_OK(hem_stream_create(r->world, &stream));
        for (int i = 0; i < 2 * r->size; i++) {
            hem_status status = hem_exchange_start_on(exchange, NULL, stream);

            if (status == HEM_OK)
                CHECK_OK(hem_exchange_finish_on(exchange, stream));
            else
                CHECK_EQ((uint64_t)status, (uint64_t)HEM_ERR_REVOKED);
        }
        began = harness_now();
        check_broken(hem_stream_sync(stream, LIMIT));
        CHECK(harness_now() - began < 4 * limit + 10 * harness_slack());
        CHECK_OK(hem_stream_destroy(stream));
    } else if (r->me != r->late) {
        run_until_broken(r, exchange);
    }
    harness_barrier(r->window);
    CHECK_STATUS(hem_exchange_run(exchange, NULL, LIMIT), HEM_ERR_REVOKED);
    CHECK_STATUS(hem_exchange_start(exchange, NULL), HEM_ERR_REVOKED);
    CHECK_OK(hem_exchange_destroy(exchange));
    end(r);
    halo_works(r->world);
}

/* Destroyed by one rank while the others run it. With `quiet` it does nothing else for a while that
 * could wake the others. */
static void given_up(struct rank *r, bool quiet) {
    hem_exchange *exchange;
    int64_t began = harness_now();

    begin(r);
    exchange = halo_set_exchange(&r->s);
    halo_set_run(&r->s, exchange, NULL, 1);
    if (r->me == r->late)
        harness_sleep_ms(20); /* so that the others sleep when it happens, and must be woken */
    if (r->me != r->late) {
        hem_status status;

        do
            status = hem_exchange_run(exchange, NULL, LIMIT);
        while (status == HEM_OK);
        CHECK_EQ((uint64_t)status, (uint64_t)HEM_ERR_REVOKED);
        CHECK(!quiet || harness_now() - began < HEM_MS(500) + harness_slack());
    }
    CHECK_OK(hem_exchange_destroy(exchange));
    if (quiet && r->me == r->late)
        harness_sleep_ms(500 + (int)(2 * harness_slack() / HEM_MS(1)));
    end(r);
    halo_works(r->world);
}

/* Set-up without one rank: all who come get the same, also the one that comes too late. */
static void late_for_setup(struct rank *r) {
    hem_grid_options o;
    hem_pattern *pattern = NULL;
    hem_exchange *exchange = NULL;
    hem_exchange_options options;

    begin(r);
    o = halo_grid_options(&r->g, r->me);
    options = halo_set_options(&r->s);
    o.timeout_ns = options.setup_timeout_ns = limit;
    if (r->me == r->late)
        harness_sleep_ms(150);
    CHECK_STATUS(hem_pattern_grid(r->world, &o, &pattern), HEM_ERR_TIMEOUT);
    CHECK(pattern == NULL);
    harness_barrier(r->window);
    if (r->me == r->late)
        harness_sleep_ms(150);
    CHECK_STATUS(hem_exchange_create(r->world, &options, &exchange), HEM_ERR_TIMEOUT);
    CHECK(exchange == NULL);
    harness_barrier(r->window);
    free((void *)(uintptr_t)o.domains);
    end(r);
    halo_works(r->world);
}

int rank_main(hem_world *world) {
    struct rank r = {.world = world, .me = hem_world_rank(world), .size = hem_world_size(world)};

    r.window = harness_window(world, 64);
    for (int i = 0; i < harness_rounds(8); i++) {
        r.late = i % r.size;
        harness_step("late for a run", (uint64_t)i);
        late_for_run(&r, false, i % 4 > 1);
        harness_step("late for a run on a stream", (uint64_t)i);
        late_for_run(&r, true, i % 2);
        harness_step("given up", (uint64_t)i);
        given_up(&r, i == 0);
        harness_step("late for set-up", (uint64_t)i);
        late_for_setup(&r);
    }
    harness_destroy(r.window);
    harness_close(world, HEM_OK);
    return 0;
}
