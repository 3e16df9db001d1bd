/* Copy engines: what the host does for a stream that cannot look for itself. See engine.h. */
#include "halo/exchange/engine.h"

#include <hem/device/note.h>

#include <stdlib.h>

/* Onlookers are told of a wait that has lasted NOTE_AFTER_NS, again and again. */
#define NOTE_AFTER_NS 2000000u
#define NOTE_EVERY_NS 50000000u

static bool is_dead(const hem_exchange *x, uint32_t peer) {
    const hem_world *world = x->world;
    return !hemi_liveness_may_come(&world->root->arena, world->members[peer]) &&
           hemi_load32_acquire(&world->cells[peer].closed) == 0;
}

/* It has done all that it had to, and does nothing more. */
static bool has_left(const hem_exchange *x, const hemi_halo_way *way) {
    return hemi_load64_acquire(&way->in->credit.leaving) != 0 ||
           hemi_load32_acquire(&x->world->cells[way->peer].closed) != 0;
}

static bool is_out(const hem_exchange *x, const hemi_halo_way *way) {
    return hemi_load64_acquire(&way->in->credit.raised) != 0 || has_left(x, way) ||
           is_dead(x, way->peer);
}

static bool all_are_out(const hem_exchange *x) {
    bool out = true;
    for (size_t l = 0; l < x->lane_count; l++)
        out = out && (x->lanes[l].way.peer == x->world->rank || is_out(x, &x->lanes[l].way));
    return out;
}

static bool some_have_left(const hem_exchange *x) {
    bool left = false;
    for (size_t l = 0; l < x->lane_count; l++)
        left = left || (x->lanes[l].way.peer != x->world->rank && has_left(x, &x->lanes[l].way));
    return left;
}

static uint64_t *word_of(const hemi_halo_device *d, size_t lane, uint64_t at) {
    hemd_halo_area *in = hemi_halo_engine_in(d, lane);
    return at == HEMI_HALO_ENGINE_STARTS ? &in->ready : &in->filled;
}

static bool waits(uint64_t at) {
    return at == HEMI_HALO_ENGINE_STARTS || at == HEMI_HALO_ENGINE_FINISHES;
}

/* Whether the stream waits for this neighbour. The flag first, then `at` once more: engine.h. */
static bool waits_for(const hemi_halo_device *d, size_t lane, uint64_t at) {
    const hemi_device *device = d->device;
    uint64_t flag = 1;
    return device->module->memory->copy(device->context, &flag, word_of(d, lane, at),
                                        sizeof flag) == HEM_OK &&
           flag == 0 && hemi_load64_acquire(&d->words->at) == at;
}

/* Keep when the stream was first seen where it is, and since when its run waits. A start sets `since` to 0, but
 * for one of a run without a limit that is counted. */
static void watch_turn(hemi_halo_engine *engine, uint64_t at, uint64_t now) {
    hemd_halo_host *words = engine->x->device->words;
    uint64_t turn = hemi_load64_relaxed(&words->counted) << 8 | at;
    bool begins = waits(at) && hemi_load64_acquire(&words->since) == 0;
    if (begins)
        hemi_store64_relaxed(&words->since, now);
    if (turn == engine->turn && !begins)
        return;
    engine->turn = turn;
    engine->turn_ns = now;
}

/* Whether a run that waits has done so for too long. The next one may have begun meanwhile. */
static bool is_late(const hemi_halo_engine *engine, uint64_t now) {
    uint64_t since = hemi_load64_acquire(&engine->x->device->words->since);
    return engine->x->run_timeout_ns > 0 && since != 0 &&
           now - since > (uint64_t)engine->x->run_timeout_ns;
}

/* Tell onlookers for whom a stream waits: for the first neighbour that has not come. */
static void note_wait(hemi_halo_engine *engine, uint64_t at, uint64_t now) {
    const hem_exchange *x = engine->x;
    uint32_t seq = hemi_load32_relaxed(&engine->trouble[HEMD_TROUBLE_SEQ]);
    if (now - engine->turn_ns < NOTE_AFTER_NS || now - engine->noted_ns < NOTE_EVERY_NS)
        return;
    engine->noted_ns = now;
    for (size_t l = 0; l < x->lane_count; l++) {
        const uint32_t peer = x->lanes[l].way.peer;
        if (peer == x->world->rank || !waits_for(x->device, l, at))
            continue;
        hemd_want want = hemd_want_of(at == HEMI_HALO_ENGINE_STARTS ? HEMD_WHAT_ENGINE_START
                                                                    : HEMD_WHAT_ENGINE_FINISH,
                                      (int)peer, 0, HEM_GE, 0);
        want.since_ns = engine->turn_ns;
        hemd_note_write(engine->trouble, seq, &want, now);
        return;
    }
}

/* What breaks it whether the stream waits or not. */
static hem_status find_reason(const hem_exchange *x, uint32_t *peer_p) {
    const uint32_t *trouble = x->device->engine->trouble;
    uint32_t all = hemi_load32_acquire(&trouble[HEMD_TROUBLE_ALL]);
    hem_status status = (hem_status)(-(int32_t)all);
    for (size_t l = 0; l < x->lane_count; l++) {
        const hemi_halo_way *way = &x->lanes[l].way;
        if (way->peer == x->world->rank)
            continue;
        if (status == HEM_OK && hemi_load64_acquire(&way->in->credit.raised) != 0)
            status = HEM_ERR_REVOKED;
        if (is_dead(x, way->peer)) {
            *peer_p = way->peer + 1;
            return HEM_ERR_PEER;
        }
    }
    return status;
}

/* What breaks it if the stream waits for it. */
static hem_status find_waiting(hemi_halo_engine *engine, uint32_t *peer_p) {
    const hem_exchange *x = engine->x;
    const hemi_platform *platform = x->world->root->platform;
    uint64_t at = hemi_load64_acquire(&x->device->words->at);
    uint64_t now = platform->now(platform->ctx);
    watch_turn(engine, at, now);
    if (!waits(at))
        return HEM_OK;
    bool late = is_late(engine, now);
    note_wait(engine, at, now);
    for (size_t l = 0; l < x->lane_count; l++) {
        const hemi_halo_way *way = &x->lanes[l].way;
        if (way->peer == x->world->rank)
            continue;
        bool left = has_left(x, way);
        if ((left || late) && waits_for(x->device, l, at)) {
            *peer_p = way->peer + 1;
            return left ? HEM_ERR_REVOKED : HEM_ERR_TIMEOUT;
        }
    }
    return HEM_OK;
}

void hemi_halo_engine_raise(hemi_halo_device *d, hem_status status, uint32_t peer_plus_1) {
    const hem_exchange *x = d->engine->x;
    uint64_t none = 0;
    uint64_t why = (uint64_t)peer_plus_1 << 32 | (uint32_t)-status;
    (void)hemi_cas64_acq_rel(&d->words->failed, &none, why);
    if (status == HEM_ERR_CLOSED)
        return; /* that this rank has ended all know */
    for (size_t l = 0; l < x->lane_count; l++) {
        const hemi_halo_way *way = &x->lanes[l].way;
        if (way->peer != d->rank)
            hemi_halo_engine_tell(d->engine, way, &way->out->credit.raised);
    }
}

/* Set what the stream waits for. It may have been set already, or be taken back at once. */
static void release(const hem_exchange *x, uint64_t at) {
    const hemi_device *device = x->device->device;
    const uint64_t one = 1;
    for (size_t l = 0; l < x->lane_count; l++) {
        if (x->lanes[l].way.peer == x->world->rank)
            continue;
        hem_status status = device->module->memory->copy(device->context, word_of(x->device, l, at),
                                                         &one, sizeof one);
        (void)status; /* it is done again */
    }
}

/* No start is on a stream, and none will be. */
static void say_quiet(hemi_halo_engine *engine) {
    const hem_exchange *x = engine->x;
    hemi_store32_release(&engine->quiet, 1);
    engine->held = hemi_load32_acquire(&engine->leaves) == 0;
    for (size_t l = 0; l < x->lane_count; l++) {
        const hemi_halo_way *way = &x->lanes[l].way;
        if (way->peer != x->world->rank)
            hemi_halo_engine_tell(engine, way, &way->out->credit.quiet);
    }
}

static bool is_quiet(const hemi_halo_engine *engine, bool failed) {
    const hemd_halo_host *words = engine->x->device->words;
    bool graphs =
        hemi_load32_acquire(&engine->captured) != 0 && hemi_load32_acquire(&engine->leaves) == 0;
    return (!graphs || !failed) &&
           hemi_load64_acquire(&words->counted) >= hemi_load64_relaxed(&engine->last_start);
}

/* By one thread at a time. */
static bool look(hemi_halo_engine *engine) {
    const hem_exchange *x = engine->x;
    hemi_halo_device *d = x->device;
    uint32_t peer = 0;
    bool done = false;
    if (hemi_load64_acquire(&d->words->failed) == 0) {
        hem_status status = find_reason(x, &peer);
        if (status == HEM_OK)
            status = find_waiting(engine, &peer);
        if (status != HEM_OK)
            hemi_halo_engine_raise(d, status, peer);
    }
    bool failed = hemi_load64_acquire(&d->words->failed) != 0;
    if (failed || some_have_left(x) || hemi_load32_acquire(&engine->leaves) != 0) {
        hemi_store32_release(&engine->refuses, 1);
        hemi_fence_seq_cst(); /* pairs with that in announce */
        if (engine->quiet == 0 && is_quiet(engine, failed))
            say_quiet(engine);
    }
    uint64_t at = hemi_load64_acquire(&d->words->at);
    if (failed && waits(at) && all_are_out(x) && !(engine->held && at == HEMI_HALO_ENGINE_STARTS)) {
        release(x, at);
        done = true;
    }
    return done;
}

bool hemi_halo_engine_look(hemi_halo_engine *engine) {
    uint32_t nobody = 0;
    bool done = false;
    if (!hemi_cas32_acq_rel(&engine->looking, &nobody, 1))
        return false;
    if (hemi_load32_acquire(&engine->open) != 0)
        done = look(engine);
    /* Pairs with the acquire above, of the next one. */
    hemi_store32_release(&engine->looking, 0);
    return done;
}
