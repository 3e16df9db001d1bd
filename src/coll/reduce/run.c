/* Walking over the sources: in one pass where there are few, else block by block. */
#include "coll/reduce/kernel.h"

#include <string.h>

/* Room for elements of the caller while `out` still holds one of the sources. */
#define USER_BYTES 8192

/* Where out is not aligned, a short first piece makes the rest so, if there is at least this much.
 * Vectors then do not straddle cache lines where all buffers are placed alike, as malloc does. */
#define ALIGN_FROM_BYTES 2048
#define LINE             64

static const unsigned char *at(const void *from, size_t bytes) {
    return (const unsigned char *)from + bytes;
}

/* The widest of the loops that takes at most `most` inputs; all have one of 3. */
static unsigned widest(const hemi_reduce_loops *loops, size_t most) {
    unsigned width = most < HEMI_REDUCE_WIDEST ? (unsigned)most : HEMI_REDUCE_WIDEST;

    while (loops->of[width] == NULL)
        width--;
    return width;
}

static const void *const *inputs_at(const void **in, const void *const *sources, size_t count,
                                    size_t offset) {
    for (size_t k = 0; k < count; k++)
        in[k] = at(sources[k], offset);
    return in;
}

/* Combine `n` elements, at most a block, of four sources or more, from byte `offset` on. At least
 * one source is left to each further pass, as the result is written by `close`. */
static void run_block(const hemi_reduce_kernel *k, unsigned char *out, const void *const *sources,
                      size_t source_count, size_t offset, size_t n) {
    unsigned char block[HEMI_REDUCE_BLOCK] __attribute__((aligned(LINE)));
    const void *in[HEMI_REDUCE_WIDEST];
    size_t units = n * k->units;
    size_t width = widest(&k->open, source_count - 1);
    size_t left = source_count - width;

    k->open.of[width](block, inputs_at(in, sources, width, offset), units);
    in[0] = block;
    while (left >= HEMI_REDUCE_WIDEST || k->close.of[left + 1] == NULL) {
        width = widest(&k->more, left);
        (void)inputs_at(in + 1, sources + source_count - left, width - 1, offset);
        k->more.of[width](block, in, units);
        left -= width - 1;
    }
    (void)inputs_at(in + 1, sources + source_count - left, left, offset);
    k->close.of[left + 1](out + offset, in, units);
}

static void run_piece(const hemi_reduce_kernel *k, unsigned char *out, const void *const *sources,
                      size_t source_count, size_t offset, size_t count) {
    const void *in[HEMI_REDUCE_WIDEST];
    size_t most;

    if (source_count <= HEMI_REDUCE_WIDEST && k->direct.of[source_count] != NULL) {
        k->direct.of[source_count](out + offset, inputs_at(in, sources, source_count, offset),
                                   count * k->units);
        return;
    }
    most = HEMI_REDUCE_BLOCK / k->accumulator;
    for (size_t done = 0; done < count; done += most) {
        size_t n = count - done < most ? count - done : most;
        run_block(k, out, sources, source_count, offset + done * k->element, n);
    }
}

/* Elements before the first one of `out` that begins a cache line, or 0 if that is not worth it. */
static size_t before_line(const hemi_reduce_kernel *k, const void *out, size_t count) {
    uint32_t bytes = (uint32_t)(-(uintptr_t)out % LINE);

    if (bytes == 0 || count * k->element < ALIGN_FROM_BYTES || bytes % k->element != 0)
        return 0;
    return bytes / k->element;
}

void hemi_reduce_run_kernel(const hemi_reducer *reducer, void *out, const void *const *sources,
                            size_t source_count, size_t count) {
    const hemi_reduce_kernel *k = reducer->kernel;
    size_t head = before_line(k, out, count);

    if (source_count == 0 || count == 0)
        return;
    if (source_count == 1 && k->direct.of[1] == NULL) {
        if (out != sources[0])
            memcpy(out, sources[0], count * k->element);
        return;
    }
    if (head > 0)
        run_piece(k, out, sources, source_count, 0, head);
    run_piece(k, out, sources, source_count, head * k->element, count - head);
}

/* Whether `out` is a source that is read after the first was copied over it. */
static bool is_later_source(const void *out, const void *const *sources, size_t source_count) {
    for (size_t s = 1; s < source_count; s++) {
        if (sources[s] == out)
            return true;
    }
    return false;
}

/* Combine elements of the caller in `into`, which is no source but perhaps the first one. */
static void user_block(const hemi_reducer *reducer, void *into, const void *const *sources,
                       size_t source_count, size_t offset, size_t n) {
    const unsigned char *first = at(sources[0], offset);

    if (into != first)
        memcpy(into, first, n * reducer->element);
    for (size_t s = 1; s < source_count; s++)
        reducer->user(into, at(sources[s], offset), n, reducer->user_arg);
}

/* As user_block, in `room`, where `out` is a later source. */
static void user_block_aside(const hemi_reducer *reducer, void *room, unsigned char *out,
                             const void *const *sources, size_t source_count, size_t offset,
                             size_t n) {
    user_block(reducer, room, sources, source_count, offset, n);
    memcpy(out + offset, room, n * reducer->element);
}

static void run_user_aside(const hemi_reducer *reducer, unsigned char *out,
                           const void *const *sources, size_t source_count, size_t count) {
    unsigned char room[USER_BYTES] __attribute__((aligned(64)));
    size_t most = sizeof room / reducer->element;

    for (size_t done = 0; done < count; done += most) {
        size_t n = count - done < most ? count - done : most;
        user_block_aside(reducer, room, out, sources, source_count, done * reducer->element, n);
    }
}

/* One large element at a time. A function of its own, for the stack that it takes. */
static __attribute__((noinline)) void run_large_aside(const hemi_reducer *reducer,
                                                      unsigned char *out,
                                                      const void *const *sources,
                                                      size_t source_count, size_t count) {
    unsigned char room[HEMI_REDUCE_USER_MAX] __attribute__((aligned(64)));

    for (size_t i = 0; i < count; i++)
        user_block_aside(reducer, room, out, sources, source_count, i * reducer->element, 1);
}

void hemi_reduce_run_user(const hemi_reducer *reducer, void *out, const void *const *sources,
                          size_t source_count, size_t count) {
    size_t most = reducer->element < USER_BYTES ? USER_BYTES / reducer->element : 1;

    if (source_count == 0)
        return;
    if (is_later_source(out, sources, source_count)) {
        if (reducer->element <= USER_BYTES)
            run_user_aside(reducer, out, sources, source_count, count);
        else
            run_large_aside(reducer, out, sources, source_count, count);
        return;
    }
    for (size_t done = 0; done < count; done += most) {
        size_t offset = done * reducer->element;
        size_t n = count - done < most ? count - done : most;
        user_block(reducer, (unsigned char *)out + offset, sources, source_count, offset, n);
    }
}
