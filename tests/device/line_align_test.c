/*
 * Payloads of lines out of and into device memory of every alignment: they begin 0 to 15 bytes behind a
 * multiple of 16 where they are sent and, by an allocator, where they are received, in each combination;
 * shorter than what rides with a header, around 16 bytes, and longer than a piece. Between device and
 * device, and device and host. Nothing beside them is touched.
 *
 * hem-test: ranks=2,3 modes=threads timeout=120
 */
#include "line_kit.h"

#define GUARD 32

static const size_t sizes[] = {1, 15, 16, 17, 4095, 4097, 70001, 262160, 600003};
#define SIZES (sizeof sizes / sizeof *sizes)

/* Where the next payload is to be received. */
typedef struct place {
    size_t odd;
    bool on_device;
} place;

static hem_status give(void *arg, int peer, const void *meta, size_t meta_bytes, size_t bytes,
                       hem_line_buffer *buffer_p) {
    const place *p = (const place *)arg;
    size_t all = bytes + 2 * GUARD + 16;
    (void)peer;
    (void)meta;
    (void)meta_bytes;
    unsigned char *base = (unsigned char *)(p->on_device ? device_alloc(all)
                                                         : aligned_alloc(16, (all + 15) / 16 * 16));
    CHECK(base != NULL);
    if (!p->on_device)
        memset(base, 0, all);
    buffer_p->own = base;
    buffer_p->data = base + GUARD + p->odd;
    buffer_p->kind = p->on_device ? HEM_MEMORY_DEVICE : HEM_MEMORY_HOST;
    return HEM_OK;
}

static void take_back(void *arg, hem_line_buffer *buffer, size_t bytes) {
    (void)arg;
    (void)bytes;
    if (buffer->kind == HEM_MEMORY_DEVICE)
        device_free(buffer->own);
    else
        free(buffer->own);
}

static void check_came(const hem_delivery *came, size_t bytes, uint64_t tag, size_t odd) {
    size_t all = bytes + 2 * GUARD + 16;
    unsigned char *plain = (unsigned char *)malloc(all);
    CHECK(plain != NULL && came->present);
    CHECK_EQ(came->data_bytes, bytes);
    CHECK_EQ((uintptr_t)came->buffer.data % 16, odd);
    if (came->buffer.kind == HEM_MEMORY_DEVICE)
        device_copy(plain, came->buffer.own, all);
    else
        memcpy(plain, came->buffer.own, all);
    CHECK_ALL(plain, GUARD + odd, 0);
    CHECK_FILLED(plain + GUARD + odd, bytes, tag);
    CHECK_ALL(plain + GUARD + odd + bytes, GUARD + 16 - odd, 0);
    free(plain);
}

/* To the right in a ring. */
static void one_round(hem_world *world, hem_line *line, hem_stream *stream, const place *p,
                      unsigned char *from, size_t bytes, uint64_t number) {
    int left = harness_left(world);
    uint64_t tag = number * 10 + (uint64_t)hem_world_rank(world);
    unsigned char *plain = (unsigned char *)malloc(bytes);
    hem_payload payload;
    hem_line_round round;
    hem_line_result result;
    CHECK(plain != NULL);
    harness_fill(plain, bytes, tag);
    device_copy(from, plain, bytes);
    free(plain);
    memset(&payload, 0, sizeof payload);
    payload.data = from;
    payload.data_bytes = bytes;
    memset(&round, 0, sizeof round);
    round.struct_size = sizeof round;
    round.to_right = &payload;
    round.stream = stream;
    CHECK_OK(hem_line_exchange(line, &round, &result, LIMIT));
    check_came(&result.from_left, bytes, number * 10 + (uint64_t)left, p->odd);
    hem_line_release(&result);
}

int rank_main(hem_world *world) {
    device_stream native = device_stream_create();
    hem_stream *stream = NULL;
    hem_line *line = NULL;
    hem_line_options options;
    place p;
    uint64_t number = 0;
    unsigned char *from = (unsigned char *)device_alloc(sizes[SIZES - 1] + 64);
    CHECK_OK(hem_stream_cuda(world, native, &stream));
    memset(&options, 0, sizeof options);
    options.struct_size = sizeof options;
    options.ring = true;
    options.alloc = give;
    options.release = take_back;
    options.alloc_arg = &p;
    CHECK_OK(hem_line_create(world, &options, &line));
    for (size_t out = 0; out < 16; out++)
        for (size_t in = 0; in < 16; in++) {
            /* All lengths for each distance, some of them for each combination. */
            for (size_t s = (out + in) % 3; s < SIZES; s += harness_sanitized() ? 6 : 3) {
                number++;
                harness_step("round", number);
                p.odd = in;
                p.on_device = number % 4 != 0;
                one_round(world, line, number % 3 == 0 ? NULL : stream, &p, from + out, sizes[s],
                          number);
            }
        }
    CHECK_OK(hem_line_destroy(line));
    CHECK_OK(hem_stream_destroy(stream));
    device_stream_destroy(native);
    device_free(from);
    harness_close(world, HEM_OK);
    return 0;
}
