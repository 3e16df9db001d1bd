/* Running an exchange: see lane.h for who writes what. */
#include "halo/exchange/device.h"
#include "halo/exchange/message.h"

#include <stdio.h>
#include <string.h>

static hem_exchange *of_task(hemi_task *task) {
    return (hem_exchange *)(void *)((unsigned char *)task - offsetof(struct hem_exchange, task));
}

uint64_t hemi_exchange_hash(const hem_exchange_how *how) {
    uint64_t hash = how->fields * 0x9e3779b97f4a7c15u;
    hash = (hash ^ hash >> 29 ^ how->sides) * 0xbf58476d1ce4e5b9u;
    hash = (hash ^ hash >> 32 ^ (uint64_t)how->combine) * 0x94d049bb133111ebu;
    return (hash ^ hash >> 31) << 48; /* above any length */
}

/* Look for what can be packed. */
static bool pack_lanes(hem_exchange *x) {
    bool all = true;
    for (size_t l = 0; l < x->lane_count; l++) {
        hemi_halo_lane *lane = &x->lanes[l];
        if (lane->packed)
            continue;
        if (hemi_way_may_pack(&lane->way, x->run))
            hemi_message_pack(x, lane);
        else
            all = false;
    }
    return all;
}

/* What a message may bring with it: its first lines, asked for while it is awaited. */
#define AHEAD 8

static void ask_ahead(const hem_exchange *x, const hemi_halo_lane *lane) {
    uint64_t bytes = x->how.combine == 0 ? lane->recvs.bytes : lane->sends.all;
    if (bytes <= HEMI_NOTE_BYTES)
        return;
    const unsigned char *in = hemi_way_in(&lane->way, x->run, bytes);
    for (uint64_t at = 0; at < bytes && at < (uint64_t)AHEAD * HEMI_LINE; at += HEMI_LINE)
        __builtin_prefetch(in + at);
}

/*
 * Look for what has come. Forward, in whatever order it comes; reverse, in the order of ranks, since
 * the order of a sum is seen in its result.
 */
static hem_status take_lanes(hem_exchange *x, bool *all_p) {
    bool all = true;
    for (size_t l = 0; l < x->lane_count; l++) {
        hemi_halo_lane *lane = &x->lanes[l];
        if (lane->taken)
            continue;
        if (!all && x->how.combine != 0)
            break;
        if (hemi_lane_is_own(x, lane)) {
            hemi_message_copy_own(x, lane);
        } else if (hemi_way_arrived(&lane->way, x->run)) {
            hem_status status = hemi_message_take(x, lane);
            if (status != HEM_OK)
                return status;
        } else {
            ask_ahead(x, lane);
            all = false;
        }
    }
    *all_p = all;
    return HEM_OK;
}

/* Owners' points are free when nobody copies from them any more. */
static bool all_copied(hem_exchange *x) {
    for (size_t l = 0; l < x->lane_count; l++)
        if (x->lanes[l].waits && !hemi_way_taken(&x->lanes[l].way, x->run))
            return false;
    return true;
}

void hemi_exchange_end(hem_exchange *x, hem_status status) {
    if (status == HEM_OK)
        hemi_store64_relaxed(&x->good, x->begun);
    /* Pairs with the acquires in calls.c. */
    hemi_store64_release(&x->ended, x->begun);
    hemi_op_complete(&x->op, status);
}

/* A run that failed ends when no neighbour that lives is in the middle of reading our fields. */
static hem_status drain(hem_exchange *x) {
    for (size_t l = 0; l < x->lane_count; l++) {
        const hemi_halo_lane *lane = &x->lanes[l];
        if (lane->waits && hemi_way_is_pulled(&lane->way) &&
            hemi_liveness_may_come(&x->world->root->arena, x->world->members[lane->way.peer]))
            return HEMI_AGAIN;
    }
    hemi_fail(x->ending, "%s", x->text);
    hemi_exchange_end(x, x->ending);
    return HEM_OK;
}

/* Whether a neighbour has done all that this run needs of it, but for what we have yet to take. */
static bool has_left_all(const hem_exchange *x, const hemi_halo_lane *lane) {
    return lane->packed && !lane->waits && hemi_way_arrived(&lane->way, x->run) &&
           !hemi_message_pulls(x, lane);
}

static hem_status advance(hemi_task *task) {
    hem_exchange *x = of_task(task);
    if (__builtin_expect(x->device != NULL, 0))
        return hemi_halo_device_advance(x);
    if (__builtin_expect(x->broken, 0))
        return drain(x);
    bool packed = pack_lanes(x);
    bool taken = false;
    hem_status status = x->begun <= x->allowed ? take_lanes(x, &taken) : HEM_OK;
    if (__builtin_expect(status != HEM_OK, 0)) {
        hemi_exchange_break(x, status);
        return drain(x);
    }
    if (!packed || !taken || !all_copied(x))
        return HEMI_AGAIN;
    hemi_exchange_end(x, HEM_OK);
    return HEM_OK;
}

void hemi_exchange_break(hem_exchange *x, hem_status status) {
    const hemi_root *root = x->world->root;
    if (x->broken)
        return;
    x->broken = true;
    x->ending = status;
    snprintf(x->text, sizeof x->text, "%s", hem_last_error());
    for (size_t l = 0; l < x->lane_count; l++)
        if (!hemi_lane_is_own(x, &x->lanes[l]))
            hemi_store64_release(&x->lanes[l].way.out->credit.gone, HEMI_GONE_BROKEN);
    hemi_fence_seq_cst(); /* pairs with that in hemi_way_pull */
    if (x->device != NULL)
        hemi_halo_device_break(x, HEMI_GONE_BROKEN);
    hemi_liveness_alarm(&root->arena, root->platform);
}

/* Whether nothing is left to do with this neighbour. */
static bool is_done(const hem_exchange *x, hemi_halo_lane *lane) {
    return lane->packed && lane->taken && (!lane->waits || hemi_way_taken(&lane->way, x->run));
}

/* Why nothing can come of a lane any more, if so. */
static hem_status find_lost(const hem_exchange *x, const hemi_halo_lane *lane) {
    if (hemi_lane_is_own(x, lane))
        return HEM_OK;
    if (hemi_way_gone(&lane->way) != HEMI_GONE_NOT)
        return hemi_exchange_fail_gone(x, lane);
    return hemi_world_may_come(x->world, lane->way.peer)
               ? HEM_OK
               : hemi_world_fail_peer(x->world, lane->way.peer, "hem_exchange_finish");
}

/* Why the run as a whole is over, if so; `now_ns` may be past its time limit. */
static hem_status find_end(const hem_exchange *x, uint64_t now_ns) {
    if (hemi_load32_acquire(&x->world->team->revoked) != 0)
        return hemi_world_fail_revoked(x->world, "hem_exchange_finish");
    if (now_ns >= x->task.deadline_ns)
        return hemi_fail(HEM_ERR_TIMEOUT,
                         "hem_exchange_finish: run %llu took longer than the time "
                         "limit of a run",
                         (unsigned long long)x->run);
    return HEM_OK;
}

/* Whether this rank does not depend on its neighbour any more, but for what has come already. Of an
 * exchange that a neighbour has broken nothing more will come, whoever else this rank waits for. */
static bool is_spared(const hem_exchange *x, hemi_halo_lane *lane) {
    return hemi_lane_is_own(x, lane) || ((hemi_way_gone(&lane->way) & HEMI_GONE_BROKEN) == 0 &&
                                         (is_done(x, lane) || has_left_all(x, lane)));
}

/*
 * What has come counts, although its sender is gone: so look whether a neighbour is gone first, and
 * then once more at what it has left.
 */
static hem_status find_reason(hem_exchange *x, uint64_t now_ns) {
    hem_status status = HEM_OK;
    for (size_t l = 0; l < x->lane_count && status == HEM_OK && !x->broken; l++) {
        hemi_halo_lane *lane = &x->lanes[l];
        if (is_spared(x, lane) || (status = find_lost(x, lane)) == HEM_OK)
            continue;
        char sentence[HEMI_ERROR_MAX];
        hemi_error_save(sentence);
        if (advance(&x->task) != HEMI_AGAIN)
            return HEM_OK;
        if (is_spared(x, lane))
            status = HEM_OK;
        else
            hemi_error_restore(sentence);
    }
    return status == HEM_OK ? find_end(x, now_ns) : status;
}

static void trouble(hemi_task *task, uint64_t now_ns) {
    hem_exchange *x = of_task(task);
    if (x->device != NULL)
        return; /* kernels find that out by themselves */
    hem_status reason = x->broken ? HEM_OK : find_reason(x, now_ns);
    if (reason != HEM_OK && !x->broken && !hemi_op_is_done(&x->op))
        hemi_exchange_break(x, reason);
    hem_status status = hemi_op_is_done(&x->op) ? HEM_OK : advance(task);
    if (status != HEMI_AGAIN)
        hemi_engine_unlist(x->world, task);
}

/* A neighbour that gave up before this run will not be heard of again. */
static hem_status find_gone(const hem_exchange *x) {
    for (size_t l = 0; l < x->lane_count; l++)
        if (!hemi_lane_is_own(x, &x->lanes[l]) &&
            (hemi_way_gone(&x->lanes[l].way) & HEMI_GONE_BROKEN) != 0)
            return hemi_exchange_fail_gone(x, &x->lanes[l]);
    return HEM_OK;
}

static void start(struct hem_op *op) {
    hem_exchange *x = (hem_exchange *)(void *)op;
    const hemi_platform *platform = x->world->root->platform;
    x->run++;
    if (x->device != NULL) {
        hemi_halo_device_begin(x);
        if (advance(&x->task) == HEMI_AGAIN)
            hemi_engine_list(x->world, &x->task);
        return;
    }
    for (size_t l = 0; l < x->lane_count; l++) {
        hemi_halo_lane *lane = &x->lanes[l];
        lane->packed = hemi_lane_is_own(x, lane);
        lane->taken = false;
        lane->waits = false;
    }
    x->task.deadline_ns = UINT64_MAX;
    if (x->run_timeout_ns > 0)
        x->task.deadline_ns = platform->now(platform->ctx) + (uint64_t)x->run_timeout_ns;
    hem_status status = find_gone(x);
    if (status != HEM_OK)
        hemi_exchange_break(x, status);
    if (advance(&x->task) == HEMI_AGAIN)
        hemi_engine_list(x->world, &x->task);
}

/* The world is being closed, or the caller frees what is not his. */
static void cancel(struct hem_op *op) {
    hem_exchange *x = (hem_exchange *)(void *)op;
    hem_world *world = x->world;
    const hemi_platform *platform = world->root->platform;
    hemi_exchange_break(x, hemi_fail(HEM_ERR_REVOKED, "hem_exchange_finish: run %llu was cancelled",
                                     (unsigned long long)x->run));
    while (!hemi_op_is_done(op) &&
           (x->device != NULL ? hemi_halo_device_advance(x) : drain(x)) == HEMI_AGAIN) {
        hemi_engine_unlock(world);
        platform->yield(platform->ctx);
        hemi_engine_lock(world);
    }
    hemi_engine_unlist(world, &x->task);
}

/* After its last callback, if it was given up in one; or its rank has ended without closing. */
static void destroy(struct hem_op *op) {
    hemi_exchange_leave((hem_exchange *)(void *)op);
}

static void where(struct hem_op *op, hemi_flight_note *note) {
    const hem_exchange *x = (const hem_exchange *)(const void *)op;
    note->id = (uint32_t)x->run;
    for (size_t l = 0; l < x->lane_count && x->device == NULL; l++) {
        const hemi_halo_lane *lane = &x->lanes[l];
        if (hemi_lane_is_own(x, lane) || (lane->packed && lane->taken && !lane->waits))
            continue;
        bool arrives = lane->packed && !lane->taken;
        note->peer = (int32_t)x->world->members[lane->way.peer];
        note->word =
            arrives ? &lane->way.in->notes[x->run % 2].note.epoch : &lane->way.in->credit.taken;
        note->wanted = arrives || lane->packed ? x->run : x->run - 2;
        return;
    }
}

static const hemi_op_type type = {
    .call = HEMI_CALL_EXCHANGE,
    .start = start,
    .cancel = cancel,
    .destroy = destroy,
    .where = where,
};

void hemi_exchange_init(hem_exchange *x, hem_world *world) {
    x->task.advance = advance;
    x->task.trouble = trouble;
    x->task.deadline_ns = UINT64_MAX;
    hemi_op_init(&x->op, world, &type, false, true);
}

void hemi_exchange_begin(hem_exchange *x, const hem_exchange_how *how) {
    x->how = *how;
    x->how_hash = hemi_exchange_hash(how);
    x->whole = how->combine == 0 && how->fields == 0 && how->sides == 0;
    hemi_store64_release(&x->begun, x->begun + 1);
    hemi_op_begin(&x->op);
}
