/*
 * A rank that ends as a thread without closing is dead to the others while it still puts its affairs in
 * order: its streams end, and then what it had offered is withdrawn, in memory of its neighbours. Those
 * have left the line by then and made another one. Here the dead rank's stream takes its time, and what
 * it withdraws is a later message than any that is under way in the new line.
 *
 * hem-test: ranks=3,4 modes=threads timeout=60
 */
#include "line_kit.h"

#define BYTES ((size_t)1 << 20)
#define PIECE ((size_t)64 << 10)

enum {
    BEFORE = 20, /* rounds of the line that the victim breaks */
    AFTER = 5,
    PIECES = 512,
    MARK = 0x5a
};

static unsigned char data[BYTES];
static uint32_t busy;  /* the victim's stream has begun */
static uint32_t ready; /* survivors that use all their memory again */

/* Until the word is at least that, or the test has failed anyway. */
static void await(const uint32_t *word, uint32_t least) {
    int64_t until = harness_now() + LIMIT;
    while (__atomic_load_n(word, __ATOMIC_ACQUIRE) < least && harness_now() < until)
        harness_sleep_ms(1);
}

/* What follows in the dead rank waits until all survivors are ready for it. */
static void be_busy(hem_status status, void *arg) {
    const uint32_t *survivors = arg;
    (void)status;
    __atomic_store_n(&busy, 1, __ATOMIC_RELEASE);
    await(&ready, *survivors);
}

static hem_status pass(hem_line *line) {
    hem_payload payload = {.data = data, .data_bytes = BYTES};
    hem_line_round round = {.struct_size = sizeof round, .to_left = &payload, .to_right = &payload};
    hem_line_result result;
    hem_status status = hem_line_exchange(line, &round, &result, LIMIT);
    if (status == HEM_OK) {
        CHECK(memcmp(result.from_left.buffer.data, data, BYTES) == 0);
        CHECK(memcmp(result.from_right.buffer.data, data, BYTES) == 0);
        hem_line_release(&result);
    }
    return status;
}

/* It has offered its payload to both neighbours, who do not look. */
static int die(hem_world *world, hem_line *line) {
    hem_payload payload = {.data = data, .data_bytes = BYTES};
    hem_line_round round = {.struct_size = sizeof round, .to_left = &payload, .to_right = &payload};
    static uint32_t survivors; /* stays when this rank has gone */
    hem_stream *stream = NULL;
    hem_op *op = NULL;
    survivors = (uint32_t)hem_world_size(world) - 1;
    CHECK_OK(hem_stream_create(world, &stream));
    CHECK_OK(hem_stream_call(stream, be_busy, &survivors));
    await(&busy, 1);
    CHECK_OK(hem_line_start(line, &round, &op));
    for (int i = 0; i < 10; i++)
        CHECK_OK(hem_progress(world));
    harness_forget();
    return 0;
}

/* Shared memory in many pieces, so that what was given back is among it. */
static void take_all(hem_world *world, hem_memory *pieces[PIECES]) {
    for (int i = 0; i < PIECES; i++) {
        CHECK_OK(hem_memory_alloc(world, PIECE, &pieces[i]));
        memset(hem_memory_address(pieces[i]), MARK, PIECE);
    }
}

static void check_all(hem_memory *pieces[PIECES]) {
    for (int i = 0; i < PIECES; i++) {
        const unsigned char *bytes = hem_memory_address(pieces[i]);
        CHECK(bytes[0] == MARK && memcmp(bytes, bytes + 1, PIECE - 1) == 0);
        CHECK_OK(hem_memory_free(pieces[i]));
    }
}

/* All is in use again before the dead rank has done everything, and is looked at after it. */
static void go_on(hem_world *world) {
    hem_memory *pieces[PIECES];
    hem_world *rest = NULL;
    CHECK_OK(hem_world_shrink(world, &rest));
    take_all(rest, pieces);
    hem_line *line = line_make(rest, true);
    CHECK_OK(pass(line));
    __atomic_fetch_add(&ready, 1, __ATOMIC_ACQ_REL);
    await(&ready, (uint32_t)hem_world_size(rest));
    harness_sleep_ms(50); /* now it withdraws */
    for (int i = 0; i < AFTER; i++)
        CHECK_OK(pass(line));
    check_all(pieces);
    CHECK_OK(hem_line_destroy(line));
    CHECK_OK(hem_world_close(rest));
}

int rank_main(hem_world *world) {
    int victim = hem_world_size(world) - 1;
    hem_line *line = line_make(world, true);
    for (int i = 0; i < BEFORE; i++)
        CHECK_OK(pass(line));
    if (hem_world_rank(world) == victim)
        return die(world, line);
    hem_status status = HEM_OK;
    harness_sleep_ms(20); /* the offers are there before anybody looks */
    while (status == HEM_OK)
        status = pass(line);
    CHECK(status == HEM_ERR_PEER || status == HEM_ERR_REVOKED);
    CHECK_OK(hem_line_destroy(line));
    go_on(world);
    harness_close(world, HEM_ERR_PEER);
    return 0;
}
