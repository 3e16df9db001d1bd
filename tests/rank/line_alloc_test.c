/*
 * Buffers from the caller's allocator: it hears from whom, with which metadata and how much; what it
 * gave comes back in the result, is kept when the caller takes it out, and goes back to it otherwise,
 * also after the line and the world have gone. It is called without a lock, so it may call Hem. If it
 * refuses, the round fails with HEM_ERR_MEMORY here and at the sender, whatever the size, and everybody
 * else hears that the line is broken.
 *
 * hem-test: ranks=1,2,3,5 modes=processes,threads timeout=60
 */
#include "line_kit.h"

#include <stdatomic.h>

typedef struct pool {
    hem_world *world;
    const line_plan *plan;
    atomic_int given;
    atomic_int back;
    size_t refuse; /* payloads of this length; 0: none */
    bool library;  /* memory that peers can write straight into */
} pool;

typedef struct piece {
    hem_memory *memory;
    size_t bytes;
} piece;

static hem_status give(void *arg, int peer, const void *meta, size_t meta_bytes, size_t bytes,
                       hem_line_buffer *buffer_p) {
    pool *p = arg;
    piece *own = malloc(sizeof *own);
    uint64_t ignored = 0;

    CHECK(peer >= 0 && peer < hem_world_size(p->world) && bytes > 0 && own != NULL);
    CHECK(meta_bytes == 0 || meta != NULL);
    /* It would hang, or deadlock, if a lock were held. */
    CHECK_OK(hem_world_event_read(p->world, &ignored));
    CHECK_OK(hem_progress(p->world));
    *own = (piece){NULL, bytes};
    if (bytes == p->refuse) {
        free(own);
        return HEM_ERR_LIMIT;
    }
    if (p->library) {
        CHECK_OK(hem_memory_alloc(p->world, bytes, &own->memory));
        buffer_p->data = hem_memory_address(own->memory);
    } else {
        buffer_p->data = malloc(bytes);
    }
    buffer_p->own = own;
    memset(buffer_p->data, 0xee, bytes);
    atomic_fetch_add(&p->given, 1);
    return HEM_OK;
}

static void take_back(void *arg, hem_line_buffer *buffer, size_t bytes) {
    pool *p = arg;
    piece *own = buffer->own;

    CHECK_EQ(own->bytes, bytes);
    if (own->memory != NULL)
        CHECK_OK(hem_memory_free(own->memory));
    else
        free(buffer->data);
    free(own);
    atomic_fetch_add(&p->back, 1);
}

static hem_line *make(hem_world *world, pool *p, bool ring) {
    hem_line_options options = {.struct_size = sizeof options,
                                .ring = ring,
                                .alloc = give,
                                .release = take_back,
                                .alloc_arg = p};
    hem_line *line = NULL;

    CHECK_OK(hem_line_create(world, &options, &line));
    return line;
}

static void keep(hem_delivery *delivery, pool *p) {
    piece *own = delivery->buffer.own;
    hem_line_buffer mine = delivery->buffer;

    if (mine.data == NULL)
        return;
    CHECK_EQ(own->bytes, delivery->data_bytes);
    delivery->buffer.data = NULL; /* now it is the caller's */
    (void)p;
    if (own->memory != NULL)
        CHECK_OK(hem_memory_free(own->memory));
    else
        free(mine.data);
    free(own);
}

static void passes(hem_world *world, uint64_t seed, bool ring, bool library) {
    line_plan plan = {seed, 5000, 200000, ring};
    pool p = {.world = world, .plan = &plan, .library = library};
    hem_line *line = make(world, &p, ring);
    int kept = 0;

    for (uint64_t round = 1; round <= (uint64_t)harness_rounds(40); round++) {
        line_packet packet;
        hem_line_result result;
        int before = atomic_load(&p.back);

        harness_step("round", round);
        line_pack(&packet, world, &plan, round);
        CHECK_OK(hem_line_exchange(line, &packet.round, &result, LIMIT));
        line_check(world, &plan, round, &result);
        CHECK_EQ(atomic_load(&p.back), before);
        if (round % 3 == 0) {
            kept +=
                (result.from_left.buffer.data != NULL) + (result.from_right.buffer.data != NULL);
            keep(&result.from_left, &p);
            keep(&result.from_right, &p);
        }
        hem_line_release(&result);
        line_unpack(&packet);
        CHECK_EQ(atomic_load(&p.given), atomic_load(&p.back) + kept);
    }
    CHECK_OK(hem_line_destroy(line));
    CHECK_EQ(atomic_load(&p.given), atomic_load(&p.back) + kept);
}

/* Rank 0's right neighbour refuses. */
static void refusal(hem_world *world, size_t bytes, bool started) {
    pool p = {.world = world};
    int me = hem_world_rank(world);
    int size = hem_world_size(world);
    hem_line *line = make(world, &p, false);
    hem_line_result result;
    unsigned char *data = calloc(1, bytes);
    hem_payload payload = {NULL, 0, data, bytes};
    hem_line_round none = {.struct_size = sizeof none};
    hem_line_round round = {.struct_size = sizeof round, .to_right = me == 0 ? &payload : NULL};
    hem_status status;
    hem_op *op = NULL;

    p.refuse = me == 1 ? bytes : 0;
    CHECK_OK(hem_line_exchange(line, &none, &result, LIMIT));
    if (started) {
        CHECK_OK(hem_line_start(line, &round, &op));
        status = hem_op_wait(op, LIMIT);
        CHECK(size == 1 || hem_line_take(op, &result) == status);
        CHECK_OK(hem_op_free(op));
    } else {
        status = hem_line_exchange(line, &round, &result, LIMIT);
    }
    if (size == 1) {
        CHECK_EQ(status, HEM_OK);
    } else if (me <= 1) {
        CHECK_EQ(status, HEM_ERR_MEMORY);
        CHECK_SENTENCE("memory");
        CHECK_NAMES_RANK(1 - me);
    } else if (status == HEM_OK) {
        /* It may have had all of that round before the news came. */
        status = hem_line_exchange(line, &none, &result, LIMIT);
        while (status == HEM_OK)
            status = hem_line_exchange(line, &none, &result, LIMIT);
        CHECK_EQ(status, HEM_ERR_REVOKED);
    } else {
        CHECK_EQ(status, HEM_ERR_REVOKED);
    }
    if (size > 1)
        for (int i = 0; i < 2; i++)
            CHECK_STATUS(hem_line_exchange(line, &none, &result, LIMIT), HEM_ERR_REVOKED);
    CHECK_OK(hem_line_destroy(line));
    CHECK_EQ(atomic_load(&p.given), 0);
    free(data);
}

/* What was handed out outlives line and world. */
static void outlives(hem_world *world, uint64_t seed) {
    line_plan plan = {seed, 100, 60000, true};
    pool p = {.world = world, .plan = &plan};
    hem_world *copy = NULL;
    line_packet packet;
    hem_line_result taken;
    hem_op *ops[2];

    CHECK_OK(hem_world_split(world, 0, 0, &copy));
    p.world = world;
    hem_line *line = make(copy, &p, true);
    line_pack(&packet, copy, &plan, 1);
    CHECK_OK(hem_line_start(line, &packet.round, &ops[0]));
    CHECK_OK(hem_op_wait(ops[0], LIMIT));
    CHECK_OK(hem_line_start(line, &packet.round, &ops[1]));
    CHECK_OK(hem_op_wait(ops[1], LIMIT));
    CHECK_OK(hem_line_take(ops[0], &taken));
    line_check(copy, &plan, 1, &taken);
    CHECK_OK(hem_line_destroy(line));
    CHECK_OK(hem_world_close(copy));
    line_check(world, &plan, 1, &taken);
    hem_line_release(&taken);
    CHECK_OK(hem_op_free(ops[0]));
    CHECK_OK(hem_op_free(ops[1]));
    CHECK_EQ(atomic_load(&p.given), atomic_load(&p.back));
    line_unpack(&packet);
}

int rank_main(hem_world *world) {
    uint64_t seed = harness_seed(world);
    static const size_t sizes[] = {1, 4000, 5000, 20000, 3000000};

    passes(world, seed, false, false);
    passes(world, seed + 1, true, false);
    passes(world, seed + 2, true, true);
    outlives(world, seed + 3);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        harness_step("refused bytes", sizes[i]);
        refusal(world, sizes[i], false);
        refusal(world, sizes[i], true);
    }
    /* With a thread that makes progress, and so calls the allocator. */
    CHECK_OK(hem_progress_start(world));
    passes(world, seed + 4, true, false);
    refusal(world, 20000, true);
    CHECK_OK(hem_progress_stop(world));
    harness_close(world, HEM_OK);
    return 0;
}
