/*
 * The kernel of a collective in units (coll.h) with several words of a rank for each thread: few blocks
 * and much data. The protocol is the same, word by word; here a thread loads and looks at several of
 * them together. It is a kernel of its own because code that is not needed makes the other one slower.
 */
#ifndef HEMD_KERNELS_COLL_DEEP_H
#define HEMD_KERNELS_COLL_DEEP_H

#include "device/kernels/coll.h"

/** `deep` words i, i + step, ... of `from`, if they are there; together where they lie well. */
HEM_DEV void hemd_coll_get_some(const unsigned char *from, uint64_t bytes, uint64_t i,
                                uint64_t step, uint32_t deep, uint64_t *words) {
    const uint64_t count = hemd_coll_words(bytes);
    const bool well = (uint64_t)(uintptr_t)from % 8u == 0 && bytes % 8u == 0 && bytes != 0;
    HEMD_UNROLL
    for (uint32_t k = 0; k < deep; k++)
        words[k] = well && i + k * step < count ? hemd_unit_get(from + 8u * (i + k * step), 8) : 0;
    if (well)
        return;
    HEMD_UNROLL
    for (uint32_t k = 0; k < deep; k++)
        if (i + k * step < count)
            words[k] = hemd_coll_get(from, bytes, i + k * step);
}

/** As hemd_coll_send_same. */
HEM_DEV void hemd_coll_send_some(const hemd_coll_args *args, const hemd_coll_run *run) {
    const uint32_t own = (uint32_t)args->window.rank;
    const hemd_coll_post mine = hemd_coll_post_of(args, own);
    const uint64_t count = hemd_coll_words(mine.send_bytes), step = run->step;
    for (uint64_t i = run->first; i < count; i += HEMD_COLL_DEEP * step) {
        uint64_t words[HEMD_COLL_DEEP];
        hemd_coll_get_some(mine.send, mine.send_bytes, i, step, HEMD_COLL_DEEP, words);
        for (uint32_t r = 0; r < (uint32_t)args->window.size; r++) {
            hemd_unit *out = hemd_coll_post_of(args, r).out + run->half;
            HEMD_UNROLL
            for (uint32_t k = 0; k < HEMD_COLL_DEEP; k++)
                if (r != own && i + k * step < count)
                    hemd_unit_store(out + i + k * step, words[k], run->number);
        }
    }
}

/** `deep` words i, i + step, ... of the `count` of rank r. */
HEM_DEV void hemd_coll_take_some(const hemd_coll_args *args, hemd_coll_run *run, uint32_t r,
                                 uint64_t i, uint64_t count, uint32_t deep, uint64_t *words) {
    const hemd_coll_post post = hemd_coll_post_of(args, r);
    const hemd_unit *units[HEMD_COLL_DEEP];
    if (r == (uint32_t)args->window.rank) {
        hemd_coll_get_some(post.send, post.send_bytes, i, run->step, deep, words);
        return;
    }
    HEMD_UNROLL
    for (uint32_t k = 0; k < HEMD_COLL_DEEP; k++) {
        words[k] = 0;
        units[k] =
            k < deep && i + k * run->step < count ? post.in + run->half + i + k * run->step : NULL;
    }
    hemd_coll_take(args, run, units, words, r, false);
}

/** As hemd_coll_take_sums, two words together in a vector, of one rank after the other. */
HEM_DEV void hemd_coll_sum_some(const hemd_coll_args *args, hemd_coll_run *run) {
    const uint64_t count = hemd_coll_words(args->recv_bytes), step = run->step;
    for (uint64_t i = run->first; i < count && run->status == HEM_OK; i += 2u * step) {
        hemd_coll_sum sum;
        sum.low = sum.high = hemd_vector_of(0, 0);
        for (uint32_t r = 0; r < (uint32_t)args->window.size && run->status == HEM_OK; r++) {
            uint64_t words[HEMD_COLL_DEEP];
            hemd_coll_take_some(args, run, r, i, count, 2, words);
            const hemd_vector pair = hemd_vector_of(words[0], words[1]);
            sum = r == 0 ? hemd_coll_open(args->code, pair) : hemd_coll_more(args->code, sum, pair);
        }
        if (run->status != HEM_OK)
            return;
        const hemd_vector pair = hemd_coll_close(args->code, sum);
        hemd_coll_put(args->recv, args->recv_bytes, i, hemd_vector_low(pair));
        if (i + step < count)
            hemd_coll_put(args->recv, args->recv_bytes, i + step, hemd_vector_high(pair));
    }
}

/** As hemd_coll_take_each, of one rank after the other. */
HEM_DEV void hemd_coll_take_ranks(const hemd_coll_args *args, hemd_coll_run *run) {
    const uint64_t step = run->step;
    for (uint32_t r = 0; r < (uint32_t)args->window.size; r++) {
        const hemd_coll_post post = hemd_coll_post_of(args, r);
        const uint64_t count = hemd_coll_words(post.recv_bytes);
        if (r == (uint32_t)args->window.rank && post.recv == post.send)
            continue;
        for (uint64_t i = run->first; i < count && run->status == HEM_OK;
             i += HEMD_COLL_DEEP * step) {
            uint64_t words[HEMD_COLL_DEEP];
            hemd_coll_take_some(args, run, r, i, count, HEMD_COLL_DEEP, words);
            HEMD_UNROLL
            for (uint32_t k = 0; k < HEMD_COLL_DEEP; k++)
                if (run->status == HEM_OK && i + k * step < count)
                    hemd_coll_put(post.recv, post.recv_bytes, i + k * step, words[k]);
        }
    }
}

HEM_DEV void hemd_kernel_coll_deep(const struct hemd_coll_args *args) {
    hem_group block = hem_block();
    hemd_coll_run run = hemd_coll_begin(args, block);
    if (run.status == HEM_OK && args->same != 0)
        hemd_coll_send_some(args, &run);
    else if (run.status == HEM_OK)
        hemd_coll_send_each(args, &run);
    hem_group_sync(hem_warp());
    if (run.status == HEM_OK && args->form == HEMD_COLL_UNITS_REDUCE)
        hemd_coll_sum_some(args, &run);
    else if (run.status == HEM_OK)
        hemd_coll_take_ranks(args, &run);
    hem_status status = hemd_coll_end(args, block, &run);
    if (status != HEM_OK && block.rank == 0)
        hemd_coll_give_up(args, status);
}

#endif
