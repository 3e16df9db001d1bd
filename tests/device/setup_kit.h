/*
 * Every kind of device object between all ranks of a world: how it is set up, used and given up, for tests
 * of what all of them have in common.
 */
#ifndef HEM_TESTS_DEVICE_SETUP_KIT_H
#define HEM_TESTS_DEVICE_SETUP_KIT_H

#include "coll_kit.h"
#include "halo_ring.h"
#include "window_kit.h"

#define SETUP_UNITS 50
#define SETUP_LONG  17000
#define SETUP_BYTES ((size_t)SETUP_LONG * 8)

enum {
    SETUP_WINDOW = 0,
    SETUP_OWN_WINDOW,
    SETUP_COLL_UNITS,
    SETUP_COLL_LONG,
    SETUP_STAGED,
    SETUP_DIRECT,
    SETUP_PIPE,
    SETUP_LINE,
    SETUP_OBJECTS
};

/* What a rank has in a world before it sets anything up. */
typedef struct setup_site {
    ring ring;
    uint64_t *memory;
} setup_site;

/* One of them is there. */
typedef struct setup_object {
    hem_window *window;
    hem_op *op;
    hem_exchange *exchange;
    hem_pipe *pipe;
    hem_line *line;
} setup_object;

static inline setup_site setup_open(hem_world *world, uint64_t *memory) {
    setup_site s;
    CHECK_OK(hem_device_open(world, NULL));
    s.ring = ring_make(world);
    s.memory = memory;
    return s;
}

static inline void setup_close(setup_site *s) {
    ring_free(&s->ring);
}

/* Making. */

static inline hem_status setup_make_window(const setup_site *s, void *memory,
                                           hem_window **window_p) {
    hem_window_options options = window_kit_options(4096);
    options.memory = memory;
    return hem_window_create(s->ring.world, &options, window_p);
}

static inline hem_status setup_make_coll(const setup_site *s, size_t count, hem_op **op_p) {
    hem_coll c = coll_kit_sum(s->memory, count);
    c.memory = HEM_MEMORY_DEVICE;
    return hem_coll_plan(s->ring.world, &c, op_p);
}

static inline hem_status setup_make_exchange(const setup_site *s, hem_exchange_way way,
                                             hem_exchange **exchange_p) {
    hem_exchange_options options;
    hem_binding binding;
    memset(&options, 0, sizeof options);
    memset(&binding, 0, sizeof binding);
    binding.pattern = s->ring.pattern;
    binding.field.struct_size = sizeof binding.field;
    binding.field.dtype = HEM_U64;
    binding.field.memory = s->memory;
    options.struct_size = sizeof options;
    options.bindings = &binding;
    options.count = 1;
    options.way = way;
    return hem_exchange_create(s->ring.world, &options, exchange_p);
}

static inline hem_status setup_make_pipe(const setup_site *s, hem_pipe **pipe_p) {
    hem_pipe_options options;
    memset(&options, 0, sizeof options);
    options.struct_size = sizeof options;
    options.blocks = 2;
    options.slot_bytes = 4096;
    options.slots = 2;
    return hem_pipe_create(s->ring.world, &options, pipe_p);
}

static inline hem_status setup_make_line(const setup_site *s, hem_line **line_p) {
    hem_line_options options;
    memset(&options, 0, sizeof options);
    options.struct_size = sizeof options;
    options.ring = true;
    return hem_line_create(s->ring.world, &options, line_p);
}

static inline hem_status setup_make(const setup_site *s, int which, setup_object *o) {
    memset(o, 0, sizeof *o);
    harness_step("object", (uint64_t)which);
    switch (which) {
    case SETUP_WINDOW:
    case SETUP_OWN_WINDOW:
        return setup_make_window(s, which == SETUP_WINDOW ? NULL : s->memory, &o->window);
    case SETUP_COLL_UNITS:
    case SETUP_COLL_LONG:
        return setup_make_coll(s, which == SETUP_COLL_UNITS ? SETUP_UNITS : SETUP_LONG, &o->op);
    case SETUP_STAGED:
    case SETUP_DIRECT:
        return setup_make_exchange(
            s, which == SETUP_STAGED ? HEM_EXCHANGE_STAGED : HEM_EXCHANGE_DIRECT, &o->exchange);
    case SETUP_PIPE:
        return setup_make_pipe(s, &o->pipe);
    default:
        return setup_make_line(s, &o->line);
    }
}

static inline bool setup_is_there(const setup_object *o) {
    return o->window != NULL || o->op != NULL || o->exchange != NULL || o->pipe != NULL ||
           o->line != NULL;
}

/* How giving it up goes, of whatever is there. */
static inline hem_status setup_drop(setup_object *o) {
    hem_status all[5] = {hem_window_destroy(o->window), HEM_OK, hem_exchange_destroy(o->exchange),
                         hem_pipe_destroy(o->pipe), hem_line_destroy(o->line)};
    if (o->op != NULL)
        all[1] = hem_op_free(o->op);
    for (int i = 0; i < 5; i++)
        if (all[i] != HEM_OK)
            return all[i];
    return HEM_OK;
}

/* Using. */

/* All words of the memory are the rank's number plus 1. */
static inline void setup_number(const setup_site *s) {
    uint64_t words[SETUP_UNITS];
    for (size_t i = 0; i < SETUP_UNITS; i++)
        words[i] = (uint64_t)s->ring.me + 1;
    device_copy(s->memory, words, sizeof words);
}

static inline uint64_t setup_word(const void *device) {
    uint64_t word = 0;
    device_copy(&word, device, sizeof word);
    return word;
}

static inline void setup_use_window(const setup_site *s, hem_window *window) {
    uint64_t word = 100 + (uint64_t)s->ring.me, got = 0;
    int right = (s->ring.me + 1) % s->ring.size;
    int left = (s->ring.me + s->ring.size - 1) % s->ring.size;
    CHECK_OK(hem_put(window, right, 64, &word, sizeof word));
    harness_barrier(window);
    CHECK_OK(hem_get(window, s->ring.me, 64, &got, sizeof got));
    CHECK_EQ(got, 100 + left);
    harness_barrier(window);
}

static inline void setup_use_coll(const setup_site *s, hem_op *op) {
    uint64_t size = (uint64_t)s->ring.size;
    CHECK_OK(hem_op_start_on(op, s->ring.handle));
    device_stream_sync(s->ring.stream);
    CHECK_OK(hem_op_status(op));
    CHECK_EQ(setup_word(s->memory), size * (size + 1) / 2);
}

static inline void setup_use_exchange(const setup_site *s, hem_exchange *x) {
    CHECK_OK(hem_exchange_start_on(x, NULL, s->ring.handle));
    CHECK_OK(hem_exchange_finish_on(x, s->ring.handle));
    device_stream_sync(s->ring.stream);
    CHECK_OK(hem_exchange_status(x));
    CHECK_EQ(setup_word(s->memory), (s->ring.me + s->ring.size - 1) % s->ring.size + 1);
    CHECK_EQ(setup_word(s->memory + RING_CELLS + 1), (s->ring.me + 1) % s->ring.size + 1);
}

static inline void setup_use_pipe(const setup_site *s, hem_pipe *pipe) {
    hem_pipe_half out, in;
    int left = (s->ring.me + s->ring.size - 1) % s->ring.size;
    out.peer = (s->ring.me + 1) % s->ring.size;
    out.data = s->memory;
    out.bytes = 8 * SETUP_UNITS;
    in.peer = left;
    in.data = s->memory + SETUP_UNITS;
    in.bytes = 8 * SETUP_UNITS;
    CHECK_OK(hem_pipe_sendrecv(pipe, &out, &in, NULL, s->ring.handle));
    device_stream_sync(s->ring.stream);
    CHECK_OK(hem_pipe_status(pipe));
    CHECK_EQ(setup_word(s->memory + 2 * SETUP_UNITS - 1), left + 1);
}

static inline void setup_use_line(const setup_site *s, hem_line *line) {
    hem_line_round round;
    hem_line_result result;
    hem_payload payload;
    memset(&round, 0, sizeof round);
    memset(&payload, 0, sizeof payload);
    payload.data = s->memory;
    payload.data_bytes = 8 * SETUP_UNITS;
    round.struct_size = sizeof round;
    round.to_right = &payload;
    CHECK_OK(hem_line_exchange(line, &round, &result, LIMIT));
    if (s->ring.size > 1) {
        CHECK_EQ(result.from_left.buffer.kind, HEM_MEMORY_DEVICE);
        CHECK_EQ(setup_word(result.from_left.buffer.data),
                 (s->ring.me + s->ring.size - 1) % s->ring.size + 1);
    }
    hem_line_release(&result);
}

static inline void setup_use(const setup_site *s, const setup_object *o) {
    if (o->window != NULL)
        setup_use_window(s, o->window);
    if (o->op != NULL)
        setup_use_coll(s, o->op);
    if (o->exchange != NULL)
        setup_use_exchange(s, o->exchange);
    if (o->pipe != NULL && s->ring.size > 1)
        setup_use_pipe(s, o->pipe);
    if (o->line != NULL)
        setup_use_line(s, o->line);
}

/* Everything can be set up in this world, and does what it is for. */
static inline void setup_use_all(hem_world *world, uint64_t *memory) {
    setup_site s = setup_open(world, memory);
    for (int which = 0; which < SETUP_OBJECTS; which++) {
        setup_object o;
        setup_number(&s);
        CHECK_OK(hem_sync(world, LIMIT));
        CHECK_OK(setup_make(&s, which, &o));
        setup_use(&s, &o);
        CHECK_OK(hem_sync(world, LIMIT)); /* nobody is in a round, or reads memory */
        CHECK_OK(setup_drop(&o));
    }
    setup_close(&s);
}

#endif
