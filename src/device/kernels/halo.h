/*
 * The two kernels of an exchange: one packs and posts for all neighbours, one waits and unpacks; the latter in
 * a form of its own for reverse runs.
 *
 * How this works. For each neighbour S of rank R there is a hemd_halo_area in R's device memory that S
 * alone writes: two notes, and two landing buffers behind it. Every run sends a message to every
 * neighbour, if only an empty one. Runs are counted from 1 in `state`, in the rank's own memory, where
 * both kernels load them as they begin and the last block stores them as it ends; so launches, graph
 * replays and eager runs mix. Kernels of one exchange follow each other, by stream order.
 *
 *   start, run e = started + 1:
 *     each block   packs its tiles into landing e % 2 of the peers; barrier; one thread counts itself
 *                  in `arrived` (acquire and release)
 *     last block   for every lane: fence; notes[e % 2] at the peer = {check, e}; started = e
 *   finish, run e = finished + 1 = started:
 *     each block   waits for the notes of the lanes of its tiles, of all lanes in a reverse run
 *                  (relaxed polls, one fence, one barrier); compares the checks; unpacks; barrier;
 *                  counts itself in `arrived`
 *     last block   finished = e
 *
 * Where the neighbour's field is mapped here, a start writes straight into its halo (`direct`), and
 * the neighbour has nothing to unpack. R's halo is free for run e when R's start of run e runs: all
 * that R has put on its stream before, and that still read the halo, has ended. So each block of a
 * start, before anything else, says so at all neighbours: begun = {check of what R expects, e}. It does
 * what goes through landing buffers. Then, and only if it has direct tiles, it waits for `begun` of
 * those neighbours, compares the checks, looks whether they are gone, and writes. Notes are as above; the
 * finish waits for them and finds nothing to unpack.
 *
 *   Nothing is written early: S writes to R's halo after it has acquired begun = e, which R released
 *   after its readers. Nothing is missed: R says e + 1 after it has finished run e, so it has seen
 *   S's note of run e, which S posted when all its blocks had seen begun = e. There is no cycle of
 *   waits: who waits has told all its neighbours, in the same block, so it does not matter which
 *   blocks run first. Every run tells on a lane that is direct, also those that move nothing there and
 *   reverse ones: so a neighbour that does something else is found by the check, before it writes.
 *
 *   Who gives up frees its fields soon. So `begun` also says that its sender may write here from now
 *   on, until its note of that run or its `gone`. A start tells `begun`, fences fully, and looks at
 *   the neighbour's `gone` words when it has seen begun; who gives up stores `gone`, fences fully and
 *   looks at begun: hemi_halo_device_drain. At least one of the two sees the other.
 *   models/direct.pml checks all this.
 *
 * Why start need not wait until landing and note e % 2 were used. S packs run e after it has finished
 * run e - 1, for which it has seen R's note of run e - 1. R posted that after it had finished run
 * e - 2, since its kernels follow each other; so all that was in landing and note e % 2 has been read.
 * A rank is at most one run ahead of a neighbour, and the fences of R's start and S's finish order
 * the reads there before the writes here. For the same reason no note is missed by being overwritten.
 *
 * Nobody waits for a block of its own grid, so any number of blocks may be launched. The host caps
 * those that wait, so that all ranks that share a GPU have room for their starts.
 *
 * Failure. A wait looks now and then at `gone` of its lane, at `failed` and at the clock, and more rarely
 * (hem/device/wait.h says why), but always before it gives up, at the words that the host raises; what
 * has come beats all that. A block whose wait fails sets `failed`, once, and does no work, but counts
 * itself. The last block then posts nothing: it sets `gone` at all neighbours and tells the host. Kernels
 * that come later do nothing.
 */
#ifndef HEMD_KERNELS_HALO_H
#define HEMD_KERNELS_HALO_H

#include "device/kernels/halo_move.h"

#include <hem/device/wait.h>

/** What a block knows of the run. */
typedef struct hemd_halo_run {
    uint64_t number;   /**< of the run; 0: there is nothing to do */
    uint64_t began_ns; /**< if there is a time limit */
    uint64_t first;    /**< of its tiles */
    uint64_t end;
    bool finishes;
} hemd_halo_run;

/** The exchange is broken from now on. The first who says so is believed. */
HEM_DEV void hemd_halo_fail(const hemd_halo_args *args, hem_status status, uint32_t peer_plus_1) {
    uint64_t word = (uint64_t)peer_plus_1 << 32 | (uint32_t)-status;
    (void)hemd_compare_swap64(&args->state->failed, 0, word);
}

/** Whether the neighbour has given the exchange up. */
HEM_DEV bool hemd_halo_has_gone(const hemd_halo_lane *lane) {
    return hemd_load64_relaxed(&lane->in->gone) != 0 ||
           hemd_load64_relaxed(&lane->in->gone_cpu) != 0;
}

/** Why nothing can come of this lane any more, or HEM_OK. */
HEM_DEV hem_status hemd_halo_trouble(const hemd_halo_args *args, const hemd_halo_lane *lane,
                                     const hemd_halo_run *run, uint32_t polls, uint64_t *since_p) {
    const uint64_t now = hemd_now_ns();
    if (*since_p == 0)
        *since_p = now;
    bool over = hemd_halo_has_gone(lane) || hemd_load64_relaxed(&args->state->failed) != 0;
    bool late = args->timeout_ns != 0 && now - run->began_ns > args->timeout_ns;
    if (!over && !late && !hemd_asks_host(polls))
        return HEM_OK;
    hemd_want want = hemd_want_of(run->finishes ? HEMD_WHAT_HALO_FINISH : HEMD_WHAT_HALO_START,
                                  (int)lane->peer, 0, HEM_GE, run->number);
    want.since_ns = *since_p;
    const hem_status status = hemd_look_at_host(args->trouble, (int)lane->peer, 0, &want);
    if (status != HEM_OK)
        return status;
    return over ? HEM_ERR_REVOKED : late ? HEM_ERR_TIMEOUT : HEM_OK;
}

/** Whether the message of the run is here, or, for a start, the neighbour's halos are free for it;
 *  acquires it. */
HEM_DEV bool hemd_halo_is_there(const hemd_halo_lane *lane, const hemd_halo_run *run,
                                uint64_t *check_p) {
    const hemd_unit *word =
        run->finishes ? &lane->in->notes[run->number % 2].note : &lane->in->begun;
    if (hemd_unit_load(word, check_p) != run->number)
        return false;
    hemd_acquire(&word->stamp, lane->near != 0);
    return true;
}

/** Wait for one lane. One thread. */
HEM_DEV hem_status hemd_halo_await(const hemd_halo_args *args, const hemd_halo_lane *lane,
                                   const hemd_halo_run *run, uint64_t *check_p) {
    hem_status why = HEM_OK;
    uint64_t since = 0;
    for (uint32_t polls = 1;; polls++) {
        if (hemd_halo_is_there(lane, run, check_p))
            return HEM_OK;
        if (why != HEM_OK)
            return why;
        if (polls % HEMD_POLLS == 0)
            why = hemd_halo_trouble(args, lane, run, polls, &since);
        if (why != HEM_OK)
            hemd_fence(false); /* the look after this must not have been before */
        hemd_relax();
    }
}

/** Wait for lanes from `low` to before `end`, a thread for each. Whether all is well. */
HEM_DEV bool hemd_halo_await_lanes(const hemd_halo_args *args, const hemd_halo_run *run,
                                   uint32_t low, uint32_t end) {
    hem_group block = hem_block();
    /* One thread asks for all: what it hears may change at any time, and they must go together. */
    bool bad = block.rank == 0 && hemd_load64_relaxed(&args->state->failed) != 0;
    for (uint32_t l = low + block.rank; l < end; l += block.size) {
        const hemd_halo_lane *lane = &args->lanes[l];
        uint64_t check = 0;
        if (lane->out == NULL || (!run->finishes && lane->direct == 0))
            continue;
        hem_status status = hemd_halo_await(args, lane, run, &check);
        if (status == HEM_OK && check != args->checks[l])
            status = HEM_ERR_MISMATCH;
        /* What has come counts, but a field may be gone. After `begun` was told: see above. */
        if (status == HEM_OK && !run->finishes && hemd_halo_has_gone(lane))
            status = HEM_ERR_REVOKED;
        if (status != HEM_OK) {
            hemd_halo_fail(args, status, lane->peer + 1);
            bad = true;
        }
    }
    return !hem_group_any(block, bad);
}

/** Where the message of the run with a lane is, on the side of this kernel. */
HEM_DEV unsigned char *hemd_halo_message(const hemd_halo_lane *lane, const hemd_halo_run *run) {
    return run->finishes ? lane->landing_in + (run->number % 2) * lane->in_bytes
                         : lane->landing_out + (run->number % 2) * lane->out_bytes;
}

/** The tiles of this block, a warp for each. */
HEM_DEV void hemd_halo_work(const hemd_halo_args *args, const hemd_halo_run *run) {
    hem_group warp = hem_warp();
    for (uint64_t t = run->first + hem_warp_index(); t < run->end; t += hem_warp_count()) {
        hemd_halo_tile tile = args->tiles[t];
        hemd_halo_copy(warp, &args->parts[tile.part], tile.first,
                       hemd_halo_message(&args->lanes[tile.lane], run), run->finishes ? 2 : 4);
    }
}

/** The same of cells and stretches. */
HEM_DEV void hemd_halo_work_back(const hemd_halo_args *args, const hemd_halo_run *run) {
    hem_group warp = hem_warp();
    for (uint64_t t = run->first + hem_warp_index(); t < run->end; t += hem_warp_count()) {
        hemd_halo_tile tile = args->tiles[t];
        const hemd_halo_group *cells = &args->groups[tile.part];
        if (cells->stretches == NULL)
            hemd_halo_gather(warp, cells, args->sources, tile.first, run->number);
        else
            hemd_halo_gather_stretch(warp, cells, &cells->stretches[tile.lane], args->sources,
                                     tile.first, run->number);
    }
}

/** What this thread has stored is seen before what it loads from now on. */
HEM_DEV void hemd_halo_fence_full(bool near) {
#if defined(__CUDACC__)
    if (near)
        asm volatile("fence.sc.gpu;" : : : "memory");
    else
        asm volatile("fence.sc.sys;" : : : "memory");
#elif defined(__SANITIZE_THREAD__)
    /* ThreadSanitizer does not know fences; a read-modify-write orders the same on x86. */
    uint32_t word = 0;
    (void)near;
    __atomic_fetch_add(&word, 1, __ATOMIC_SEQ_CST);
#else
    (void)near;
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

/** Tell the neighbours that this run has begun: halos here are free. Whether all is well. A block. */
HEM_DEV bool hemd_halo_begin(const hemd_halo_args *args, const hemd_halo_run *run) {
    hem_group block = hem_block();
    bool bad = block.rank == 0 && hemd_load64_relaxed(&args->state->failed) != 0;
    if (hem_group_any(block, bad))
        return false;
    for (uint32_t l = block.rank; l < args->lane_count; l += block.size) {
        const hemd_halo_lane *lane = &args->lanes[l];
        if (lane->direct == 0)
            continue;
        /* Pairs with the acquire in hemd_halo_is_there: whatever read the halos has ended. */
        hemd_fence(lane->near != 0);
        hemd_unit_store(&lane->out->begun, args->expects[l], run->number);
        hemd_halo_fence_full(lane->near != 0); /* pairs with that in hemi_halo_device_drain */
    }
    hem_group_sync(block);
    return true;
}

/** The work of a start, of this block: what waits for nobody first. */
HEM_DEV void hemd_halo_send(const hemd_halo_args *args, const hemd_halo_run *run) {
    hemd_halo_run share = *run;
    if (args->direct == 0) {
        if (hemd_load64_relaxed(&args->state->failed) == 0)
            hemd_halo_work(args, run);
        return;
    }
    if (!hemd_halo_begin(args, run))
        return;
    share.end = run->end < args->direct_first ? run->end : args->direct_first;
    hemd_halo_work(args, &share);
    share.first = run->first > args->direct_first ? run->first : args->direct_first;
    share.end = run->end;
    if (share.first < share.end &&
        hemd_halo_await_lanes(args, &share, args->tiles[share.first].lane,
                              args->tiles[share.end - 1].lane + 1))
        hemd_halo_work(args, &share);
}

/** The kernel went well: tell all neighbours that the messages are there. A warp. */
HEM_DEV void hemd_halo_post(const hemd_halo_args *args, const hemd_halo_run *run) {
    hem_group warp = hem_warp();
    for (uint32_t l = warp.rank; l < args->lane_count && !run->finishes; l += warp.size) {
        const hemd_halo_lane *lane = &args->lanes[l];
        if (lane->out == NULL)
            continue;
        /* All blocks' work is seen before: they have counted themselves, with release. */
        hemd_fence(lane->near != 0);
        hemd_unit_store(&lane->out->notes[run->number % 2].note, args->checks[l], run->number);
    }
    if (warp.rank == 0 && run->finishes)
        args->state->finished = run->number;
    else if (warp.rank == 0)
        args->state->started = run->number;
}

/** Tell all neighbours, and the host, that this rank has given up. A warp. */
HEM_DEV void hemd_halo_give_up(const hemd_halo_args *args) {
    hem_group warp = hem_warp();
    for (uint32_t l = warp.rank; l < args->lane_count; l += warp.size) {
        if (args->lanes[l].out == NULL)
            continue;
        hemd_fence(false); /* all that was written into the neighbour's halo comes before */
        hemd_store64_relaxed(&args->lanes[l].out->gone, 1);
    }
    if (warp.rank == 0)
        hemd_store64_relaxed(&args->host->failed, hemd_load64_relaxed(&args->state->failed));
}

/** The last block is done with everything: count the kernel for the host. One thread. */
HEM_DEV void hemd_halo_tell(const hemd_halo_args *args) {
    args->state->arrived = 0;
    if (args->tell == 0)
        return;
    args->state->counted++;
    hemd_store64_release(&args->host->counted, args->state->counted, false);
}

/** The end of a block's share, by its first warp. */
HEM_DEV void hemd_halo_leave(const hemd_halo_args *args, const hemd_halo_run *run) {
    hem_group warp = hem_warp();
    bool last = true;
    if (warp.rank == 0 && hem_block_count() > 1) {
        if (args->near == 0)
            hemd_fence(false); /* what is near is released by counting */
        last = hemd_fetch_add64_near(&args->state->arrived, 1) + 1 == hem_block_count();
    }
    if (warp.rank != 0)
        last = false;
    if (!hem_group_any(warp, last))
        return;
    bool failed = warp.rank == 0 && hemd_load64_relaxed(&args->state->failed) != 0;
    if (hem_group_any(warp, failed))
        hemd_halo_give_up(args);
    else if (run->number != 0)
        hemd_halo_post(args, run);
    hem_group_sync(warp);
    if (warp.rank == 0)
        hemd_halo_tell(args);
}

/** The tiles of this block follow each other, so that it waits for few lanes. */
HEM_DEV hemd_halo_run hemd_halo_enter(const hemd_halo_args *args, bool finishes) {
    hemd_halo_state *state = args->state;
    uint64_t started = state->started;
    uint64_t finished = state->finished;
    hemd_halo_run run = {0, 0, 0, 0, finishes};
    run.first = args->tile_count * hem_block_index() / hem_block_count();
    run.end = args->tile_count * (hem_block_index() + 1) / hem_block_count();
    if (finishes)
        run.number = started != finished ? started : 0;
    else
        run.number = started + 1;
    if (args->timeout_ns != 0)
        run.began_ns = finishes ? state->began_ns : hemd_now_ns();
    /* The run before has not finished: whoever put the two on streams did not order them. */
    if (!finishes && started != finished) {
        run.number = 0;
        hemd_halo_fail(args, HEM_ERR_ARG, 0);
    }
    return run;
}

/** `back`: a finish of a reverse run. Both are constants. */
HEM_DEV void hemd_halo_kernel(const hemd_halo_args *args, bool finishes, bool back) {
    hemd_halo_run run = hemd_halo_enter(args, finishes);
    hem_group block = hem_block();
    if (run.number != 0 && !finishes) {
        hemd_halo_send(args, &run);
    } else if (run.number != 0 && run.first < run.end && back) {
        if (hemd_halo_await_lanes(args, &run, 0, args->lane_count))
            hemd_halo_work_back(args, &run);
    } else if (run.number != 0 && run.first < run.end) {
        uint32_t low = args->tiles[run.first].lane;
        uint32_t end = args->tiles[run.end - 1].lane + 1;
        if (hemd_halo_await_lanes(args, &run, low, end))
            hemd_halo_work(args, &run);
    }
    hem_group_sync(block);
    if (hem_block_index() == 0 && block.rank == 0 && !finishes && args->timeout_ns != 0)
        args->state->began_ns = run.began_ns;
    if (hem_warp_index() == 0)
        hemd_halo_leave(args, &run);
}

HEM_DEV void hemd_kernel_halo_start(const struct hemd_halo_args *args) {
    hemd_halo_kernel(args, false, false);
}

HEM_DEV void hemd_kernel_halo_finish(const struct hemd_halo_args *args) {
    hemd_halo_kernel(args, true, false);
}

/** A kernel of its own, since a finish that copies must not pay for its registers. */
HEM_DEV void hemd_kernel_halo_back(const struct hemd_halo_args *args) {
    hemd_halo_kernel(args, true, true);
}

#endif
