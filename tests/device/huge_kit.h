/* What the tests that move much in one piece share. */
#ifndef HEM_TESTS_DEVICE_HUGE_KIT_H
#define HEM_TESTS_DEVICE_HUGE_KIT_H

#include "pipe_kit.h"
#include "window_kit.h"

#include <hem/coll.h>

/** One of two ranks, with a stream and two buffers. */
typedef struct huge {
    hem_world *world;
    device_stream stream;
    hem_stream *handle;
    uint64_t *wrong;
    unsigned char *from;
    unsigned char *to;
    uint64_t bytes;
    int rank;
    int other;
} huge;

typedef struct huge_args {
    unsigned char *bytes;
    uint64_t count;
    uint64_t tag;
    uint64_t *wrong; /* NULL: write them */
} huge_args;

/** Tag 0 is nothing but zeros. */
HEM_DEV unsigned char huge_byte(uint64_t tag, uint64_t i) {
    return tag == 0
               ? 0
               : (unsigned char)((i * 0x9e3779b97f4a7c15ull + tag * 0xbf58476d1ce4e5b9ull) >> 56);
}

DEVICE_KERNEL(huge_bytes, huge_args) {
    const uint64_t step = (uint64_t)hem_block().size * hem_block_count();
    uint64_t wrong = 0;
    for (uint64_t i = hem_block_index() * (uint64_t)hem_block().size + hem_block().rank;
         i < args->count; i += step) {
        if (args->wrong == NULL)
            args->bytes[i] = huge_byte(args->tag, i);
        else
            wrong += args->bytes[i] != huge_byte(args->tag, i);
    }
    if (wrong != 0)
        hemd_add64_relaxed(args->wrong, wrong);
}

/** Of kernels that write or check much. */
static inline uint32_t huge_blocks(void) {
    return device_stands_in() ? 2 : 64;
}

static inline uint32_t huge_warps(void) {
    return device_stands_in() ? 1 : 8;
}

/** Write what `tag` says, or look whether it is there. */
static inline void huge_run(huge *t, unsigned char *bytes, uint64_t count, uint64_t tag,
                            bool check) {
    huge_args args;
    args.bytes = bytes;
    args.count = count;
    args.tag = tag;
    args.wrong = check ? t->wrong : NULL;
    device_launch(huge_bytes, t->stream, huge_blocks(), huge_warps(), &args);
}

/** What was on the stream has found nothing wrong. */
static inline void huge_check(huge *t, const char *what) {
    uint64_t wrong = 1;
    device_stream_sync(t->stream);
    device_copy(&wrong, t->wrong, sizeof wrong);
    if (wrong != 0)
        harness_fail(__FILE__, __LINE__, "%s: %llu are wrong", what, (unsigned long long)wrong);
}

/** The bytes are what `tag` says. */
static inline void huge_expect(huge *t, unsigned char *bytes, uint64_t count, uint64_t tag,
                               const char *what) {
    huge_run(t, bytes, count, tag, true);
    huge_check(t, what);
}

/** `gpu` bytes on a GPU, a few MiB on the stand-in, which copies no faster than a core does. */
static inline huge huge_open(hem_world *world, uint64_t gpu) {
    huge t;
    memset(&t, 0, sizeof t);
    t.world = world;
    t.rank = hem_world_rank(world);
    t.other = 1 - t.rank;
    t.bytes = device_stands_in() ? (harness_sanitized() ? 300001 : 3 * 1024 * 1024 + 7) : gpu;
    t.stream = device_stream_create();
    CHECK_OK(hem_stream_cuda(world, t.stream, &t.handle));
    t.wrong = (uint64_t *)device_alloc(8);
    t.from = (unsigned char *)device_alloc((size_t)t.bytes + 64);
    t.to = (unsigned char *)device_alloc((size_t)t.bytes + 64);
    return t;
}

static inline void huge_close(huge *t) {
    CHECK_OK(hem_stream_destroy(t->handle));
    device_stream_destroy(t->stream);
    device_free(t->from);
    device_free(t->to);
    device_free(t->wrong);
}

/** Start a collective twice in stream order. */
static inline void huge_coll(huge *t, hem_coll_kind kind, hem_dtype dtype, hem_reduction reduction,
                             void *send, void *recv, size_t count) {
    hem_coll c;
    hem_op *op = NULL;
    memset(&c, 0, sizeof c);
    c.struct_size = sizeof c;
    c.kind = kind;
    c.dtype = dtype;
    c.op = reduction;
    c.send = send;
    c.recv = recv;
    c.count = count;
    CHECK_OK(hem_coll_plan(t->world, &c, &op));
    for (int i = 0; i < 2; i++)
        CHECK_OK(hem_op_start_on(op, t->handle));
    device_stream_sync(t->stream);
    CHECK_OK(hem_op_status(op));
    CHECK_OK(hem_op_free(op));
}

#endif
