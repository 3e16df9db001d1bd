/*
 * Much in one piece, once more: sums of 512 MiB of f32, f16 and bf16 on a GPU, all-reduced and scattered, of
 * which every element is checked; 64 MiB that a CPU puts into the other's device memory and gets from it;
 * a line's payload of 256 MiB, from device to device. A few MiB on the stand-in.
 *
 * hem-test: ranks=2 modes=processes,threads timeout=120
 */
#include "huge_kit.h"

#include <hem/line.h>

typedef struct sum_args {
    void *elements;
    uint64_t count;
    uint64_t first;    /* number of the first element */
    uint32_t ranks;    /* of which the sum is */
    uint32_t rank;     /* the first of them */
    uint32_t fraction; /* bits of it; 23: f32, 10: f16, 7: bf16 */
    uint32_t bias;
    uint64_t *wrong; /* NULL: write them */
} sum_args;

/* Whole numbers whose sums are exact in all three types: below 128 each. */
HEM_DEV uint32_t number_of(uint64_t i, uint32_t rank) {
    return (uint32_t)((i * 0x9e3779b97f4a7c15ull + rank * 0xbf58476d1ce4e5b9ull) >> 57);
}

HEM_DEV uint32_t bits_of(uint32_t number, uint32_t fraction, uint32_t bias) {
    uint32_t power = 0;
    if (number == 0)
        return 0;
    while (number >> power > 1)
        power++;
    uint32_t shifted =
        fraction >= power ? number << (fraction - power) : number >> (power - fraction);
    return (power + bias) << fraction | (shifted & ((1u << fraction) - 1));
}

DEVICE_KERNEL(sums, sum_args) {
    const uint64_t step = (uint64_t)hem_block().size * hem_block_count();
    uint64_t wrong = 0;
    for (uint64_t i = hem_block_index() * (uint64_t)hem_block().size + hem_block().rank;
         i < args->count; i += step) {
        uint32_t number = 0;
        for (uint32_t r = 0; r < args->ranks; r++)
            number += number_of(args->first + i, args->rank + r);
        uint32_t bits = bits_of(number, args->fraction, args->bias);
        uint32_t *word = (uint32_t *)args->elements + i;
        uint16_t *half = (uint16_t *)args->elements + i;
        if (args->wrong != NULL)
            wrong += args->fraction == 23 ? *word != bits : *half != bits;
        else if (args->fraction == 23)
            *word = bits;
        else
            *half = (uint16_t)bits;
    }
    if (wrong != 0)
        hemd_add64_relaxed(args->wrong, wrong);
}

/* The numbers of this rank, or the sums of both. */
static void run_sums(huge *t, hem_dtype dtype, void *elements, uint64_t first, uint64_t count,
                     bool check) {
    sum_args args;
    args.elements = elements;
    args.first = first;
    args.count = count;
    args.ranks = check ? 2 : 1;
    args.rank = check ? 0 : (uint32_t)t->rank;
    args.fraction = dtype == HEM_F32 ? 23 : dtype == HEM_F16 ? 10 : 7;
    args.bias = dtype == HEM_F16 ? 15 : 127;
    args.wrong = check ? t->wrong : NULL;
    device_launch(sums, t->stream, huge_blocks(), huge_warps(), &args);
}

/* One buffer aligned, the other off by an element. */
static void check_sums(huge *t, hem_dtype dtype) {
    const size_t element = hem_dtype_size(dtype);
    const uint64_t count = t->bytes / element - 3, half = count / 2;
    harness_step("sums", (uint64_t)dtype);
    run_sums(t, dtype, t->from + element, 0, count, false);
    huge_coll(t, HEM_ALLREDUCE, dtype, HEM_SUM, t->from + element, t->to, (size_t)count);
    run_sums(t, dtype, t->to, 0, count, true);
    huge_check(t, "all-reduce");
    run_sums(t, dtype, t->from, 0, 2 * half, false);
    huge_coll(t, HEM_REDUCE_SCATTER, dtype, HEM_SUM, t->from, t->to + element, (size_t)half);
    run_sums(t, dtype, t->to + element, half * (uint64_t)t->rank, half, true);
    huge_check(t, "reduce-scatter");
    /* In place. */
    run_sums(t, dtype, t->from, 0, count, false);
    device_stream_sync(t->stream);
    hem_coll c;
    memset(&c, 0, sizeof c);
    c.struct_size = sizeof c;
    c.kind = HEM_ALLREDUCE;
    c.dtype = dtype;
    c.op = HEM_SUM;
    c.send = c.recv = t->from;
    c.count = (size_t)count;
    CHECK_OK(hem_coll_run(t->world, &c, LIMIT));
    run_sums(t, dtype, t->from, 0, count, true);
    huge_check(t, "all-reduce in place");
}

/* A CPU puts, signals and gets; kernels make the bytes and look at them. */
static void check_cpu(huge *t) {
    const size_t bytes = device_stands_in() ? (size_t)t->bytes : 64u << 20;
    hem_window_options o = window_kit_options(bytes + 16);
    hem_window *window = window_kit_create(t->world, &o);
    unsigned char *own = (unsigned char *)hem_window_memory(window);
    unsigned char *host = (unsigned char *)malloc(bytes);
    CHECK(host != NULL);
    harness_step("CPU", 0);
    for (uint64_t odd = 0; odd < 14; odd += 13) {
        uint64_t tag = 500 + odd * 4;
        huge_run(t, t->from, bytes, tag + (uint64_t)t->rank, false);
        device_stream_sync(t->stream);
        device_copy(host, t->from, bytes);
        CHECK_OK(hem_put_signal(window, t->other, odd, host, bytes, 13, 1));
        CHECK_OK(hem_wait_signal_from(window, t->other, 13, HEM_GE, odd == 0 ? 1 : 2, LIMIT));
        huge_expect(t, own + odd, bytes, tag + (uint64_t)t->other, "what a CPU put");
        CHECK_OK(hem_barrier(window, 0, LIMIT));
        huge_run(t, own + odd, bytes, tag + 2 + (uint64_t)t->rank, false);
        device_stream_sync(t->stream);
        CHECK_OK(hem_barrier(window, 0, LIMIT));
        CHECK_OK(hem_get(window, t->other, odd, host, bytes));
        device_copy(t->to, host, bytes);
        huge_expect(t, t->to, bytes, tag + 2 + (uint64_t)t->other, "what a CPU got");
        CHECK_OK(hem_barrier(window, 0, LIMIT));
    }
    free(host);
    CHECK_OK(hem_window_destroy(window));
}

/* Both ways at once, in the order of the stream. */
static void check_line(huge *t) {
    const uint64_t bytes = device_stands_in() ? t->bytes : 256ull << 20;
    hem_line_options options;
    hem_payload payload;
    hem_line_round round;
    hem_line_result result;
    hem_line *line = NULL;
    harness_step("line", 0);
    memset(&options, 0, sizeof options);
    options.struct_size = sizeof options;
    CHECK_OK(hem_line_create(t->world, &options, &line));
    for (uint64_t odd = 0; odd < 4; odd += 3) {
        uint64_t tag = 700 + odd * 4;
        memset(&payload, 0, sizeof payload);
        memset(&round, 0, sizeof round);
        payload.data = t->from + odd;
        payload.data_bytes = (size_t)bytes;
        round.struct_size = sizeof round;
        round.stream = t->handle;
        round.to_left = t->rank == 1 ? &payload : NULL;
        round.to_right = t->rank == 0 ? &payload : NULL;
        huge_run(t, t->from + odd, bytes, tag + (uint64_t)t->rank, false);
        CHECK_OK(hem_line_exchange(line, &round, &result, LIMIT));
        const hem_delivery *came = t->rank == 0 ? &result.from_right : &result.from_left;
        CHECK_EQ(came->data_bytes, bytes);
        CHECK_EQ(came->buffer.kind, HEM_MEMORY_DEVICE);
        huge_expect(t, (unsigned char *)came->buffer.data, bytes, tag + (uint64_t)t->other, "line");
        hem_line_release(&result);
    }
    CHECK_OK(hem_line_destroy(line));
}

int rank_main(hem_world *world) {
    huge t = huge_open(world, 512ull << 20);
    if (device_stands_in()) /* a CPU's share of what waits for all of its warps takes long */
        t.bytes /= 4;
    check_sums(&t, HEM_F32);
    check_sums(&t, HEM_F16);
    check_sums(&t, HEM_BF16);
    check_cpu(&t);
    check_line(&t);
    huge_close(&t);
    harness_close(world, HEM_OK);
    return 0;
}
