/*
 * The kernel of a collective on device buffers. One launch is one run.
 *
 * How this works. All ranks launch as many blocks; block b of a rank waits for blocks b of the
 * other ranks only, and for none of its own grid. There are two forms.
 *
 * Between barriers: each rank reads the others' `send` and writes the others' `recv` itself.
 *   1. barrier b among blocks b of all ranks (window's arrivals; release, acquire). Who has come has
 *      its `send` ready and its `recv` free, all of it, since its stream has come so far.
 *   2. This block's share of this rank's moves. Every byte of a result is written by one thread of one
 *      rank; where it works in place, that thread is also the only one that reads it. Where that is
 *      not so the host has results written aside and copied after the kernel.
 *   3. barrier b again. When the kernel has ended, all blocks of all ranks have done their moves, and
 *      nobody touches this rank's buffers any more.
 *
 * In units: for little data. A rank writes words of 8 bytes, each with a stamp in the same store,
 * into every other rank's staging, and takes what the others wrote into its own: no barrier and no
 * fence. The stamp is the number of the run, counted per block in `runs`, so that launches, graph
 * replays and eager runs mix. Every rank sends to and hears from every other one in every run, if
 * only an empty unit.
 *   Why two halves of staging are enough. Run e writes half e % 2 at rank Q, where the units of run
 *   e - 2 were. This rank is in run e, so its run e - 1 has ended, in which it took a unit with
 *   stamp e - 1 from Q. Q wrote that in its run e - 1, which began after all of its run e - 2 had
 *   ended: Q has taken everything of run e - 2. And a stamp that is waited for is never there from
 *   before: what is in the half is older by two.
 *
 * Failure. A wait ends when the host says that a rank is dead or the world is revoked, when a rank has
 * given up, when its host cancels it, or at its time limit; what has come beats all that. The first
 * block that fails says so in `failed`, in HEMD_COLL_GONE at all ranks for their kernels, and in
 * HEMD_COLL_SAID for their CPUs. Later runs do nothing.
 */
#ifndef HEMD_KERNELS_COLL_H
#define HEMD_KERNELS_COLL_H

#include "device/kernels/coll_reduce.h"

#include <hem/device/barrier.h>
#include <hem/device/copy.h>

/** Why this run cannot come to its end, or HEM_OK. */
HEM_DEV_SLOW hem_status hemd_coll_given_up(const hemd_coll_args *args) {
    uint64_t code = hemd_load64_relaxed(&args->state->failed);
    if (code == 0)
        code = hemd_load64_relaxed(&args->state->cancel);
    for (int r = 0; code == 0 && r < args->window.size; r++)
        if (r != args->window.rank)
            code = hemd_load64_relaxed(&hemd_in(&args->window.peers[r], HEMD_COLL_GONE)->kernel);
    if (code != 0)
        hemd_fence(false); /* the poll after this must not have been before */
    return (hem_status)(-(int32_t)code);
}

/** After a poll in vain of run `number`; `missing` has not come. @return as hemd_patience_poll. */
HEM_DEV hem_status hemd_coll_poll(const hemd_coll_args *args, hemd_patience *patience,
                                  uint64_t number, int missing) {
    hem_status status =
        hemd_patience_poll(patience, args->window, HEMD_ANYBODY,
                           hemd_want_of(HEMD_WHAT_COLL, missing, 0, HEM_GE, number), 0);
    if (status == HEM_OK && patience->polls % HEMD_POLLS == 0)
        status = hemd_coll_given_up(args);
    return status;
}

/** Tell everybody, once. One thread. */
HEM_DEV_SLOW void hemd_coll_give_up(const hemd_coll_args *args, hem_status status) {
    const uint64_t code = (uint64_t)(uint32_t)-status;
    /* To the others a rank whose world is closed, or that has ended without closing it, is gone. */
    const uint64_t told = status == HEM_ERR_CLOSED ? (uint64_t)(uint32_t)-HEM_ERR_PEER : code;
    const hem_dev_window w = args->window;
    if (hemd_compare_swap64(&args->state->failed, 0, code) != 0)
        return;
    for (int r = 0; r < w.size; r++) {
        if (r != w.rank)
            hemd_store64_relaxed(hemd_out(w, &w.peers[r], HEMD_COLL_GONE), told);
        hemd_store64_relaxed(hemd_out(w, &w.peers[r], HEMD_COLL_SAID), r == w.rank ? code : told);
    }
}

/** hem_dev_barrier with the reasons of a collective to give up. */
HEM_DEV hem_status hemd_coll_meet(const hemd_coll_args *args, hem_group block) {
    const hem_dev_window w = args->window;
    uint64_t epoch = 0;
    hem_status status = hemd_barrier_enter(w, block, hem_block_index(), args->timeout_ns, &epoch);
    if (status != HEM_OK)
        return status;
    hemd_patience patience = hemd_patience_begin(args->timeout_ns);
    const uint64_t number =
        args->form == HEMD_COLL_MEET ? epoch : (epoch + 1u) / 2u; /* of the run */
    for (uint32_t r = block.rank; r < (uint32_t)w.size && status == HEM_OK; r += block.size) {
        const uint64_t *word =
            HEMD_FIXED64(const uint64_t *, w.peers[r].in_arrivals) + hem_block_index();
        if ((int)r == w.rank)
            continue;
        while ((int64_t)(hemd_load64_relaxed(word) - epoch) < 0 && status == HEM_OK) {
            status = hemd_coll_poll(args, &patience, number, (int)r);
            if (status != HEM_OK && (int64_t)(hemd_load64_relaxed(word) - epoch) >= 0)
                status = HEM_OK;
        }
        if (status == HEM_OK)
            hemd_acquire(word, hemd_near(&w.peers[r]));
    }
    return hemd_agree_all(block, status);
}

/** One source to several places that are aligned alike, vectors first. */
HEM_DEV void hemd_coll_spread(const hemd_coll_args *args, const hemd_coll_move *move,
                              uint64_t begin, uint64_t end) {
    hem_group block = hem_block();
    const uint64_t step = block.size;
    const uint64_t vectors = (end - begin) / 16u;
    for (uint64_t i = block.rank; i < vectors; i += HEMD_COLL_DEEP * step) {
        const uint64_t offset = begin + 16u * i;
        hemd_vector some[HEMD_COLL_DEEP];
        hemd_coll_load_some(move->from + offset, step, vectors - i, some);
        for (uint32_t d = 0; d < move->to_count; d++) {
            unsigned char *to = hemd_coll_to(args, move->first_to + d, offset);
            HEMD_UNROLL
            for (uint32_t k = 0; k < HEMD_COLL_DEEP; k++)
                if (k * step < vectors - i)
                    hemd_vector_store(to + 16ull * k * step, some[k]);
        }
    }
    for (uint64_t at = begin + 16u * vectors + block.rank; at < end; at += step)
        for (uint32_t d = 0; d < move->to_count; d++)
            *hemd_coll_to(args, move->first_to + d, at) = move->from[at];
}

/** This block's share of all moves. Shares begin on lines. */
HEM_DEV void hemd_coll_copy(const hemd_coll_args *args) {
    const uint64_t block = hem_block_index(), blocks = hem_block_count();
    for (uint64_t m = 0; m < args->move_count; m++) {
        const hemd_coll_move *move = &args->moves[m];
        const uint64_t lines = (move->bytes + HEM_DEV_LINE - 1u) / HEM_DEV_LINE;
        const uint64_t begin = lines * block / blocks * HEM_DEV_LINE;
        uint64_t end = lines * (block + 1u) / blocks * HEM_DEV_LINE;
        end = end < move->bytes ? end : move->bytes;
        if (begin >= end)
            continue;
        if (move->even != 0 && move->to_count > 1) {
            hemd_coll_spread(args, move, begin, end);
            continue;
        }
        for (uint32_t d = 0; d < move->to_count; d++)
            hemd_copy_long(hem_block(), hemd_coll_to(args, move->first_to + d, begin),
                           move->from + begin, end - begin);
    }
}

HEM_DEV hem_status hemd_coll_between(const hemd_coll_args *args, hem_group block) {
    /* The leader's answer counts: another block may be about to fail. */
    const uint64_t failed = block.rank == 0 ? hemd_load64_relaxed(&args->state->failed) : 0;
    hem_status status = hem_group_agree(block, (hem_status)(-(int32_t)failed));
    if (status == HEM_OK)
        status = hemd_coll_meet(args, block);
    if (status != HEM_OK || args->form == HEMD_COLL_MEET)
        return status;
    if (args->form == HEMD_COLL_REDUCE)
        hemd_coll_reduce(args);
    else
        hemd_coll_copy(args);
    return hemd_coll_meet(args, block);
}

/* Units. */

/** What a thread of the unit form knows. */
typedef struct hemd_coll_run {
    uint64_t number;
    uint64_t half;  /**< units before this run's half */
    uint64_t first; /**< of this thread, of all blocks */
    uint64_t step;
    hem_status status;
    hemd_patience patience;
} hemd_coll_run;

HEM_DEV uint64_t hemd_coll_words(uint64_t bytes) {
    return bytes == 0 ? 1 : (bytes + 7u) / 8u;
}

HEM_DEV uint64_t hemd_coll_get(const unsigned char *from, uint64_t bytes, uint64_t i) {
    const uint64_t left = bytes - 8u * i;
    return bytes == 0 ? 0 : hemd_coll_load_word(from + 8u * i, left < 8 ? (uint32_t)left : 8u);
}

HEM_DEV void hemd_coll_put(unsigned char *to, uint64_t bytes, uint64_t i, uint64_t word) {
    const uint64_t left = bytes - 8u * i;
    if (bytes != 0)
        hemd_coll_store_word(to + 8u * i, left < 8 ? (uint32_t)left : 8u, word);
}

HEM_DEV hemd_coll_post hemd_coll_post_of(const hemd_coll_args *args, uint32_t r) {
    return (uint32_t)args->window.size <= HEMD_COLL_FEW ? args->few[r] : args->posts[r];
}

/** The same to everybody, a word per thread: where it works in place the same thread writes it. */
HEM_DEV void hemd_coll_send_same(const hemd_coll_args *args, const hemd_coll_run *run) {
    const uint32_t own = (uint32_t)args->window.rank;
    const hemd_coll_post mine = hemd_coll_post_of(args, own);
    const uint64_t count = hemd_coll_words(mine.send_bytes);
    for (uint64_t i = run->first; i < count; i += run->step) {
        const uint64_t word = hemd_coll_get(mine.send, mine.send_bytes, i);
        for (uint32_t r = 0; r < (uint32_t)args->window.size; r++)
            if (r != own)
                hemd_unit_store(hemd_coll_post_of(args, r).out + run->half + i, word, run->number);
    }
}

HEM_DEV void hemd_coll_send_each(const hemd_coll_args *args, const hemd_coll_run *run) {
    const uint64_t count = args->words * (uint64_t)args->window.size;
    for (uint64_t j = run->first; j < count; j += run->step) {
        const uint32_t r = (uint32_t)j / (uint32_t)args->words;
        const uint64_t i = j - r * args->words;
        const hemd_coll_post post = hemd_coll_post_of(args, r);
        if (r != (uint32_t)args->window.rank && i < hemd_coll_words(post.send_bytes))
            hemd_unit_store(post.out + run->half + i, hemd_coll_get(post.send, post.send_bytes, i),
                            run->number);
    }
}

/** Look at units, all of them together. NULL has come. @return one that has not, or -1. */
HEM_DEV int hemd_coll_look(const hemd_unit *const *units, uint64_t number, uint64_t *words) {
    int missing = -1;
    HEMD_UNROLL
    for (uint32_t k = 0; k < HEMD_COLL_DEEP; k++)
        if (units[k] != NULL && hemd_unit_load(units[k], &words[k]) != number)
            missing = (int)k;
    return missing;
}

/** Wait for units: of ranks from `first` on, if they are of `several`, else all of that one. */
HEM_DEV void hemd_coll_take(const hemd_coll_args *args, hemd_coll_run *run,
                            const hemd_unit *const *units, uint64_t *words, uint32_t first,
                            bool several) {
    for (;;) {
        const int missing = hemd_coll_look(units, run->number, words);
        if (missing < 0 || run->status != HEM_OK)
            return;
        run->status =
            hemd_coll_poll(args, &run->patience, run->number, (int)first + (several ? missing : 0));
        if (run->status != HEM_OK && hemd_coll_look(units, run->number, words) < 0)
            run->status = HEM_OK;
    }
}

/** Word i of a few ranks from `first` on, one's own among them. */
HEM_DEV void hemd_coll_take_word(const hemd_coll_args *args, hemd_coll_run *run, uint32_t first,
                                 uint64_t i, uint64_t *words) {
    const hemd_unit *units[HEMD_COLL_DEEP];
    HEMD_UNROLL
    for (uint32_t k = 0; k < HEMD_COLL_DEEP; k++) {
        const uint32_t r = first + k;
        units[k] = NULL;
        words[k] = 0;
        if (r >= (uint32_t)args->window.size)
            continue;
        const hemd_coll_post post = hemd_coll_post_of(args, r);
        if (r == (uint32_t)args->window.rank)
            words[k] = hemd_coll_get(post.send, post.send_bytes, i);
        else
            units[k] = post.in + run->half + i;
    }
    hemd_coll_take(args, run, units, words, first, true);
}

/** Combine what came, a word per thread. Who receives nothing hears that all have come. */
HEM_DEV void hemd_coll_take_sums(const hemd_coll_args *args, hemd_coll_run *run) {
    const uint32_t size = (uint32_t)args->window.size;
    const uint64_t count = hemd_coll_words(args->recv_bytes);
    for (uint64_t i = run->first; i < count && run->status == HEM_OK; i += run->step) {
        hemd_coll_sum sum;
        sum.low = sum.high = hemd_vector_of(0, 0);
        for (uint32_t first = 0; first < size; first += HEMD_COLL_DEEP) {
            uint64_t words[HEMD_COLL_DEEP];
            hemd_coll_take_word(args, run, first, i, words);
            HEMD_UNROLL
            for (uint32_t k = 0; k < HEMD_COLL_DEEP; k++)
                if (first + k < size)
                    sum = first + k == 0
                              ? hemd_coll_open(args->code, hemd_vector_of(words[k], 0))
                              : hemd_coll_more(args->code, sum, hemd_vector_of(words[k], 0));
        }
        if (run->status == HEM_OK)
            hemd_coll_put(args->recv, args->recv_bytes, i,
                          hemd_vector_low(hemd_coll_close(args->code, sum)));
    }
}

/** Word `j` of what all ranks have for this one. */
HEM_DEV void hemd_coll_take_one(const hemd_coll_args *args, hemd_coll_run *run, uint64_t j) {
    const uint32_t r = (uint32_t)j / (uint32_t)args->words;
    const uint64_t i = j - r * args->words;
    const hemd_coll_post post = hemd_coll_post_of(args, r);
    const bool own = r == (uint32_t)args->window.rank;
    if (i >= hemd_coll_words(post.recv_bytes) || (own && post.recv == post.send))
        return;
    const hemd_unit *units[HEMD_COLL_DEEP] = {own ? NULL : post.in + run->half + i};
    uint64_t words[HEMD_COLL_DEEP] = {own ? hemd_coll_get(post.send, post.send_bytes, i) : 0};
    hemd_coll_take(args, run, units, words, r, false);
    if (run->status == HEM_OK)
        hemd_coll_put(post.recv, post.recv_bytes, i, words[0]);
}

HEM_DEV void hemd_coll_take_each(const hemd_coll_args *args, hemd_coll_run *run) {
    const uint64_t count = args->words * (uint64_t)args->window.size;
    for (uint64_t j = run->first; j < count && run->status == HEM_OK; j += run->step)
        hemd_coll_take_one(args, run, j);
}

HEM_DEV void hemd_coll_exchange(const hemd_coll_args *args, hemd_coll_run *run) {
    if (args->same != 0)
        hemd_coll_send_same(args, run);
    else
        hemd_coll_send_each(args, run);
    hem_group_sync(hem_warp());
    if (args->form == HEMD_COLL_UNITS_REDUCE)
        hemd_coll_take_sums(args, run);
    else
        hemd_coll_take_each(args, run);
}

HEM_DEV hemd_coll_run hemd_coll_begin(const hemd_coll_args *args, hem_group block) {
    hemd_coll_run run;
    /* Both are loaded at once; threads need not see the same failure. */
    const uint64_t failed = hemd_load64_relaxed(&args->state->failed);
    run.number = hemd_load64_relaxed(&args->state->runs[hem_block_index()].count) + 1u;
    run.half = run.number % 2u * args->turn;
    run.first = (uint64_t)hem_block_index() * block.size + block.rank;
    run.step = (uint64_t)hem_block_count() * block.size;
    run.status = (hem_status)(-(int32_t)failed);
    run.patience = hemd_patience_begin(args->timeout_ns);
    return run;
}

HEM_DEV hem_status hemd_coll_end(const hemd_coll_args *args, hem_group block,
                                 const hemd_coll_run *run) {
    hem_status status = hemd_agree_all(block, run->status);
    if (status == HEM_OK && block.rank == 0)
        hemd_store64_relaxed(&args->state->runs[hem_block_index()].count, run->number);
    return status;
}

HEM_DEV hem_status hemd_coll_in_units(const hemd_coll_args *args, hem_group block) {
    hemd_coll_run run = hemd_coll_begin(args, block);
    if (run.status == HEM_OK)
        hemd_coll_exchange(args, &run);
    return hemd_coll_end(args, block, &run);
}

HEM_DEV void hemd_kernel_coll(const struct hemd_coll_args *args) {
    hem_group block = hem_block();
    hem_status status = args->form >= HEMD_COLL_UNITS ? hemd_coll_in_units(args, block)
                                                      : hemd_coll_between(args, block);
    if (status != HEM_OK && block.rank == 0)
        hemd_coll_give_up(args, status);
}

#endif
