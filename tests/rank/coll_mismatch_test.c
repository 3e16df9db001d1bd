/*
 * Without HEM_CHECK, ranks that disagree run into the time limit: no rank gets a result as if all
 * were well, none hangs, and the flight records of those who wait name the call that they are in.
 * Where a rank only came too late, the next collective works.
 *
 * hem-test: ranks=2,3,5 modes=processes,threads timeout=60
 */
#include "coll_reference.h"
#include "core/flight.h"
#include "core/world.h"

struct rank {
    hem_world *world;
    hem_window *gate;
    int me;
    int size;
    double *in;
    double *out;
};

static size_t counts[COLL_RANKS];

/* What most ranks call, what the odd one calls (kind 0: nothing), and what the record says. */
static const struct difference {
    hem_coll common;
    hem_coll odd;
    const char *name;
} differences[] = {
    {{.kind = HEM_BARRIER}, {0}, "hem_sync"},
    {{.kind = HEM_ALLREDUCE, .dtype = HEM_F64, .op = HEM_SUM, .count = 1}, {0}, "hem_allreduce"},
    {{.kind = HEM_ALLREDUCE, .dtype = HEM_F64, .op = HEM_SUM, .count = 50000},
     {0},
     "hem_allreduce"},
    {{.kind = HEM_ALLGATHER, .dtype = HEM_F64, .count = 3}, {0}, "hem_allgather"},
    {{.kind = HEM_ALLTOALLV, .dtype = HEM_F64, .counts = counts, .send_counts = counts},
     {0},
     "hem_alltoallv"},
    {{.kind = HEM_REDUCE_SCATTER, .dtype = HEM_F64, .op = HEM_SUM, .count = 700},
     {0},
     "hem_reduce_scatter"},
    {{.kind = HEM_ALLREDUCE, .dtype = HEM_F64, .op = HEM_SUM, .count = 10},
     {.kind = HEM_ALLREDUCE, .dtype = HEM_F64, .op = HEM_SUM, .count = 11},
     NULL},
    {{.kind = HEM_ALLREDUCE, .dtype = HEM_F64, .op = HEM_SUM, .count = 10},
     {.kind = HEM_ALLREDUCE, .dtype = HEM_F64, .op = HEM_SUM, .count = 100000},
     NULL},
    {{.kind = HEM_BARRIER},
     {.kind = HEM_ALLREDUCE, .dtype = HEM_F64, .op = HEM_SUM, .count = 3},
     NULL},
    {{.kind = HEM_ALLGATHER, .dtype = HEM_F64, .count = 8},
     {.kind = HEM_ALLTOALL, .dtype = HEM_F64, .count = 8},
     NULL},
};

/* Whether a flight record of some other rank says that it is in a call of this name. */
static bool somebody_is_in(struct rank *r, const char *name) {
    const hemi_arena *arena = &r->world->root->arena;

    for (int rank = 0; rank < r->size; rank++)
        for (uint32_t slot = 0; rank != r->me && slot < HEMI_FLIGHTS; slot++) {
            uint64_t seen = 0;
            hemi_flight copy;
            char text[256];

            if (!hemi_flight_read(arena, r->world->members[rank], slot, &copy, &seen))
                continue;
            hemi_flight_describe(&copy, seen, (uint64_t)harness_now(), text, sizeof text);
            if (strstr(text, name))
                return true;
        }
    return false;
}

static void look(struct rank *r, const char *name) {
    int64_t limit = harness_now() + HEM_SEC(5);

    while (!somebody_is_in(r, name)) {
        if (harness_now() > limit)
            harness_fail(__FILE__, __LINE__, "no flight record says %s", name);
        harness_sleep_ms(1);
    }
}

static hem_status call(struct rank *r, const hem_coll *from, int64_t limit) {
    hem_coll coll = *from;

    coll.struct_size = sizeof coll;
    coll.send = r->in;
    coll.recv = coll.kind == HEM_BROADCAST ? r->in : r->out;
    return hem_coll_run(r->world, &coll, limit);
}

static void works(struct rank *r, uint64_t seed) {
    coll_case c = {.kind = HEM_ALLREDUCE,
                   .dtype = HEM_I32,
                   .op = HEM_SUM,
                   .count = 1000,
                   .size = r->size,
                   .seed = seed};

    harness_barrier(r->gate);
    coll_run_checked(r->world, &c);
    c.kind = HEM_ALLGATHERV;
    c.op = (hem_reduction)0;
    coll_run_checked(r->world, &c);
}

/* The odd rank does not come; it looks at what the others do, and then it comes too late. */
static void missing(struct rank *r, const struct difference *d, int odd) {
    hem_status status;

    if (r->me == odd) {
        look(r, d->name);
        CHECK_OK(hem_barrier(r->gate, 1, LIMIT));
    }
    status = call(r, &d->common, r->me == odd ? LIMIT : HEM_MS(100));
    if (status != HEM_ERR_TIMEOUT)
        harness_fail(__FILE__, __LINE__, "%s gave %s: %s", d->name, hem_status_name(status),
                     hem_last_error());
    if (r->me != odd) {
        CHECK_NAMES_RANK(odd);
        CHECK_SENTENCE(d->name);
        CHECK_OK(hem_barrier(r->gate, 1, LIMIT));
    }
}

/* A world in which ranks disagreed may be of no more use: take one for the purpose. */
static void different(const struct rank *r, const struct difference *d, int odd) {
    struct rank inner = *r;
    hem_status status;

    CHECK_OK(hem_world_split(r->world, 0, 0, &inner.world));
    status = call(&inner, r->me == odd ? &d->odd : &d->common, HEM_MS(60));
    if (status != HEM_ERR_TIMEOUT && status != HEM_ERR_MISMATCH)
        harness_fail(__FILE__, __LINE__, "got %s: %s", hem_status_name(status), hem_last_error());
    CHECK_OK(hem_world_close(inner.world));
}

int rank_main(hem_world *world) {
    struct rank r = {.world = world, .me = hem_world_rank(world), .size = hem_world_size(world)};
    size_t room = 100000 * sizeof(double) * (size_t)r.size;

    r.gate = harness_window(world, 64);
    r.in = calloc(1, room);
    r.out = calloc(1, room);
    CHECK(r.in && r.out);
    CHECK_OK(hem_sync(world, LIMIT));
    for (size_t i = 0; i < sizeof differences / sizeof *differences; i++)
        for (int odd = 0; odd < r.size; odd += r.size - 1) {
            harness_step("difference", i);
            if (differences[i].name)
                missing(&r, &differences[i], odd);
            else
                different(&r, &differences[i], odd);
            works(&r, (uint64_t)odd);
        }
    free(r.in);
    free(r.out);
    harness_destroy(r.gate);
    harness_close(world, HEM_OK);
    return 0;
}

static int thread_rank(hem_world *world, void *unused) {
    (void)unused;
    return harness_run(world, rank_main);
}

int main(int argc, char **argv) {
    hem_world *world = NULL;

    CHECK_EQ(setenv("HEM_CHECK", "0", 1), 0);
    for (size_t i = 0; i < COLL_RANKS; i++)
        counts[i] = i % 2;
    if (argc == 3 && strcmp(argv[1], "--threads") == 0) {
        harness_set_threads();
        CHECK_OK(hem_world_threads(atoi(argv[2]), thread_rank, NULL, NULL));
        return 0;
    }
    CHECK_OK(hem_world_open(NULL, &world));
    return harness_run(world, rank_main);
}
