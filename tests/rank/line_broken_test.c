/*
 * A line that is broken ends everywhere, and never hangs: a round that runs into its time limit, that is
 * freed under way, a line that is destroyed with rounds in flight, at any length of payload. The one who
 * gave up gets its own error, the neighbours HEM_ERR_REVOKED, and so on down the line; later rounds get
 * HEM_ERR_REVOKED at once. Handles that are dropped while a transfer runs do no harm: buffers are the
 * caller's again as soon as the call has returned. Other lines and the world work on, and all memory
 * comes back.
 *
 * hem-test: ranks=2,3,5 modes=processes,threads timeout=60
 */
#include "core/heap.h"
#include "core/world.h"
#include "line_kit.h"

#include <stdatomic.h>

static const size_t sizes[] = {0, 30, 4000, 30000, 2000000};

enum {
    SIZES = sizeof sizes / sizeof *sizes,
    AHEAD = 3
};

typedef struct load {
    unsigned char *data;
    hem_payload payload;
    hem_line_round round;
} load;

static void fill(load *l, size_t bytes) {
    l->data = malloc(bytes + 1);
    harness_fill(l->data, bytes, bytes);
    l->payload = (hem_payload){"m", 1, l->data, bytes};
    l->round = (hem_line_round){
        .struct_size = sizeof(hem_line_round), .to_left = &l->payload, .to_right = &l->payload};
}

/* The buffer is the caller's again: nobody may read it. */
static void spoil(load *l, size_t bytes) {
    memset(l->data, 0xdd, bytes);
    free(l->data);
}

static void expect_end(hem_line *line, const load *l, hem_status first) {
    hem_line_result result;
    hem_status status = first;

    while (status == HEM_OK) {
        status = hem_line_exchange(line, &l->round, &result, LIMIT);
        if (status == HEM_OK)
            hem_line_release(&result);
    }
    CHECK_EQ(status, HEM_ERR_REVOKED);
    for (int i = 0; i < 2; i++) {
        hem_op *op = NULL;
        CHECK_STATUS(hem_line_exchange(line, &l->round, &result, LIMIT), HEM_ERR_REVOKED);
        CHECK_STATUS(hem_line_start(line, &l->round, &op), HEM_ERR_REVOKED);
    }
}

static void works(hem_world *world, hem_line *line, uint64_t *round) {
    line_plan plan = {17, 100, 20000, true};

    for (int i = 0; i < 3; i++)
        CHECK(!line_pass(world, line, &plan, ++*round, false));
}

/* The last rank does not come in time; its neighbours give up, the others hear of it. */
static void time_limit(hem_world *world, size_t bytes, bool ring) {
    int me = hem_world_rank(world);
    int last = hem_world_size(world) - 1;
    hem_line *line = line_make(world, ring);
    hem_line_result result;
    load l;

    fill(&l, bytes);
    if (me == last) {
        CHECK_OK(hem_recv(world, last - 1, 0, NULL, 0, NULL, LIMIT));
        expect_end(line, &l, HEM_OK);
    } else {
        bool near = me == last - 1 || (ring && me == 0);
        int64_t began = harness_now();
        hem_status status = hem_line_exchange(line, &l.round, &result, near ? HEM_MS(30) : LIMIT);
        int64_t took = harness_now() - began;
        CHECK(me != last - 1 || status == HEM_ERR_TIMEOUT || status == HEM_ERR_REVOKED);
        CHECK(!near || took < HEM_MS(30) + harness_slack());
        if (me == last - 1)
            CHECK_OK(hem_send(world, last, 0, NULL, 0, LIMIT));
        if (status == HEM_OK)
            hem_line_release(&result);
        expect_end(line, &l, status == HEM_OK ? HEM_OK : HEM_ERR_REVOKED);
    }
    spoil(&l, bytes);
    CHECK_OK(hem_line_destroy(line));
}

static void on_done(hem_op *op, hem_status status, void *arg) {
    (void)op;
    atomic_store((atomic_int *)arg, status);
}

/* Rank 0 drops the handle of a round under way; those behind it end, too, and are called back. Its
 * neighbour takes part in the first round only until then. */
static void freed(hem_world *world, size_t bytes) {
    int me = hem_world_rank(world);
    hem_line *line = line_make(world, false);
    hem_line_result result;
    hem_op *ops[AHEAD];
    atomic_int called = 1;
    load l;

    fill(&l, bytes);
    if (me == 0) {
        for (int i = 0; i < AHEAD; i++)
            CHECK_OK(hem_line_start(line, &l.round, &ops[i]));
        CHECK_OK(hem_op_on_done(ops[AHEAD - 1], on_done, &called));
        CHECK_OK(hem_op_wait(ops[0], LIMIT));
        CHECK_OK(hem_op_free(ops[1]));
        spoil(&l, bytes);
        CHECK_STATUS(hem_op_wait(ops[AHEAD - 1], LIMIT), HEM_ERR_REVOKED);
        CHECK_EQ(atomic_load(&called), HEM_ERR_REVOKED);
        CHECK_STATUS(hem_line_take(ops[AHEAD - 1], &result), HEM_ERR_REVOKED);
        CHECK_OK(hem_op_free(ops[0]));
        CHECK_OK(hem_op_free(ops[AHEAD - 1]));
        CHECK_STATUS(hem_line_exchange(line, NULL, &result, LIMIT), HEM_ERR_REVOKED);
        /* That the line is broken is told, and not only that it is destroyed. */
        CHECK_OK(hem_send(world, 1, 0, NULL, 0, LIMIT));
        CHECK_OK(hem_recv(world, 1, 0, NULL, 0, NULL, LIMIT));
    } else {
        CHECK_OK(hem_line_exchange(line, &l.round, &result, LIMIT));
        hem_line_release(&result);
        if (me == 1)
            CHECK_OK(hem_recv(world, 0, 0, NULL, 0, NULL, LIMIT));
        expect_end(line, &l, HEM_OK);
        spoil(&l, bytes);
        if (me == 1)
            CHECK_OK(hem_send(world, 0, 0, NULL, 0, LIMIT));
    }
    CHECK_OK(hem_line_destroy(line));
}

/* Rank 0 destroys the line with rounds in flight, and drops their handles only later. */
static void destroyed(hem_world *world, size_t bytes, bool ring) {
    hem_line *line = line_make(world, ring);
    hem_line_result result;
    hem_op *ops[AHEAD];
    load l;

    fill(&l, bytes);
    if (hem_world_rank(world) == 0) {
        for (int i = 0; i < AHEAD; i++)
            CHECK_OK(hem_line_start(line, &l.round, &ops[i]));
        CHECK_OK(hem_op_wait(ops[0], LIMIT));
        CHECK_OK(hem_line_destroy(line));
        spoil(&l, bytes);
        CHECK_STATUS(hem_op_wait(ops[AHEAD - 1], LIMIT), HEM_ERR_REVOKED);
        for (int i = 0; i < AHEAD; i++)
            CHECK_OK(hem_op_free(ops[i]));
        CHECK_OK(hem_send(world, 1, 0, NULL, 0, LIMIT));
        return;
    }
    CHECK_OK(hem_line_exchange(line, &l.round, &result, LIMIT));
    hem_line_release(&result);
    if (hem_world_rank(world) == 1)
        CHECK_OK(hem_recv(world, 0, 0, NULL, 0, NULL, LIMIT));
    expect_end(line, &l, HEM_OK);
    spoil(&l, bytes);
    CHECK_OK(hem_line_destroy(line));
}

/* Rounds that all had finished count, although a neighbour destroys its line at once. */
static void left_early(hem_world *world, size_t bytes) {
    hem_line *line = line_make(world, true);
    hem_line_result result;
    load l;

    fill(&l, bytes);
    if (hem_world_rank(world) % 2 == 1)
        harness_sleep_ms(2);
    CHECK_OK(hem_line_exchange(line, &l.round, &result, LIMIT));
    CHECK_FILLED(result.from_left.buffer.data, bytes, bytes);
    CHECK_FILLED(result.from_right.buffer.data, bytes, bytes);
    hem_line_release(&result);
    spoil(&l, bytes);
    CHECK_OK(hem_line_destroy(line));
}

static void arguments(hem_world *world) {
    hem_line *line = line_make(world, false);
    hem_line_result result;
    hem_op *op = NULL;
    hem_payload huge = {"x", (1u << 20) + 1, NULL, 0};
    hem_payload null = {NULL, 0, NULL, 3};
    hem_line_round bad = {.struct_size = 3};
    hem_line_round round = {.struct_size = sizeof round, .to_left = &huge};

    CHECK_STATUS(hem_line_exchange(NULL, NULL, &result, LIMIT), HEM_ERR_ARG);
    CHECK_STATUS(hem_line_exchange(line, NULL, NULL, LIMIT), HEM_ERR_ARG);
    CHECK_STATUS(hem_line_exchange(line, NULL, &result, -7), HEM_ERR_ARG);
    CHECK_STATUS(hem_line_exchange(line, &bad, &result, LIMIT), HEM_ERR_ARG);
    CHECK_STATUS(hem_line_exchange(line, &round, &result, LIMIT), HEM_ERR_ARG);
    round.to_left = &null;
    CHECK_STATUS(hem_line_start(line, &round, &op), HEM_ERR_ARG);
    CHECK_STATUS(hem_line_start(line, NULL, NULL), HEM_ERR_ARG);
    CHECK_STATUS(hem_line_take(NULL, &result), HEM_ERR_ARG);
    CHECK_OK(hem_line_exchange(line, NULL, &result, LIMIT));
    CHECK_EQ(result.round, 1);
    CHECK_OK(hem_line_destroy(line));
    CHECK_OK(hem_line_destroy(NULL));
}

/* Ranks that disagree, or that may not have it, all get an error. */
static void refused(hem_world *world) {
    int me = hem_world_rank(world);
    hem_line_options options = {.struct_size = sizeof options, .ring = me == 0};
    hem_line *line = NULL;

    CHECK_STATUS(hem_line_create(world, &options, &line), HEM_ERR_MISMATCH);
    options.ring = false;
    options.release = me == 1 ? (hem_line_free_fn)(void (*)(void))free : NULL;
    CHECK_STATUS(hem_line_create(world, &options, &line), HEM_ERR_ARG);
    CHECK_NAMES_RANK(1);
    CHECK(line == NULL);
}

static uint64_t used(const hem_world *world) {
    const hemi_root *root = world->root;

    return hemi_heap_used(&root->arena, root->platform, root->rank);
}

int rank_main(hem_world *world) {
    hem_line *other = line_make(world, true);
    uint64_t round = 0;

    works(world, other, &round);
    CHECK_OK(hem_sync(world, LIMIT));
    uint64_t before = used(world);
    for (size_t i = 0; i < SIZES; i++) {
        harness_step("bytes", sizes[i]);
        time_limit(world, sizes[i], i % 2 == 1);
        freed(world, sizes[i]);
        destroyed(world, sizes[i], i % 2 == 0);
        for (int k = 0; k < 5; k++)
            left_early(world, sizes[i]);
        works(world, other, &round);
    }
    arguments(world);
    refused(world);
    works(world, other, &round);
    CHECK_OK(hem_sync(world, LIMIT));
    /* The next line to be made finds the memory of those before. */
    hem_line *last = line_make(world, false);
    CHECK_OK(hem_line_destroy(last));
    CHECK_OK(hem_sync(world, LIMIT));
    CHECK_OK(hem_line_destroy(line_make(world, false)));
    CHECK(used(world) <= before + (2u << 20));
    /* One that is left to the world, with a round under way. */
    hem_op *op = NULL;
    if (hem_world_rank(world) == 0)
        CHECK_OK(hem_line_start(other, NULL, &op));
    CHECK_OK(hem_world_close(world));
    harness_forget();
    CHECK_STATUS(hem_line_start(other, NULL, &op), HEM_ERR_CLOSED);
    CHECK_OK(hem_op_free(op));
    CHECK_OK(hem_line_destroy(other));
    return 0;
}
