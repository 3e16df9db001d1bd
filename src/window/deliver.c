/* Putting short payloads in place: by the rank that sees the signal, or by the one that sent it. */
#include "base/lock.h"
#include "window/window.h"

/* After this many yields, naps: whoever has the claim may have been stopped. */
#define YIELDS 1000
#define NAP_NS 50000

/* Wait until the other side, which has claimed payload `seq`, has moved it. */
static hem_status await_done(hem_window *window, const hemi_peer *peer, const hemi_claim *claim,
                             uint32_t seq, int64_t limit_ns) {
    const hemi_platform *platform = window->root->platform;
    uint64_t start = platform->now(platform->ctx);
    for (uint64_t i = 0; !hemi_line_in_place(claim, seq); i++) {
        if (!hemi_liveness_may_come(&window->root->arena, window->world->members[peer->rank]))
            return hemi_line_in_place(claim, seq) ? HEM_OK : HEM_ERR_PEER;
        if (limit_ns >= 0 && platform->now(platform->ctx) - start >= (uint64_t)limit_ns)
            return hemi_fail(HEM_ERR_TIMEOUT,
                             "rank %u was stopped while it moved a payload that came with a signal",
                             peer->rank);
        if (i < YIELDS)
            platform->yield(platform->ctx);
        else
            platform->nap(platform->ctx, NAP_NS);
    }
    return HEM_OK;
}

/* Of this rank's memory: nothing rides in lines to device memory, whatever a peer has written. */
static uint64_t bytes_here(const hem_window *window) {
    return window->device == NULL ? window->bytes : 0;
}

static hem_status move(const hemi_line *line, hemi_claim *claim, uint32_t seq,
                       unsigned char *memory, uint64_t bytes, uint32_t rank) {
    if (hemi_line_move(line, claim, seq, memory, bytes))
        return HEM_OK;
    return hemi_fail(HEM_ERR_MISMATCH, "rank %u sent a payload for a place that does not exist",
                     rank);
}

/*
 * The sender died while it had the claim. It writes no more, so finishing is ours; and of one thread
 * only, since the second would move it over what the first has let its caller write.
 */
static hem_status finish_for_the_dead(hem_window *window, const hemi_peer *peer,
                                      const hemi_line *line, hemi_claim *claim, uint32_t seq) {
    hem_status status = HEM_OK;
    hemi_lock(window->root->platform, &window->lock);
    if (!hemi_line_in_place(claim, seq))
        status = move(line, claim, seq, window->memory, bytes_here(window), peer->rank);
    hemi_unlock(&window->lock);
    return status;
}

/* The receiving side of one line. */
static hem_status take_line(hem_window *window, hemi_peer *peer, uint32_t id, int64_t limit_ns) {
    hemi_line *line = &peer->in[id];
    hemi_claim *claim = &peer->in_claims[id];
    uint32_t seq = 0;
    if (hemi_line_waiting(line, claim, &seq) && hemi_line_claim(claim, seq))
        return move(line, claim, seq, window->memory, bytes_here(window), peer->rank);
    if (hemi_line_in_place(claim, seq))
        return HEM_OK;
    hem_status status = await_done(window, peer, claim, seq, limit_ns);
    return status == HEM_ERR_PEER ? finish_for_the_dead(window, peer, line, claim, seq) : status;
}

hem_status hemi_peer_take_set(hem_window *window, hemi_peer *peer, uint64_t look,
                              int64_t limit_ns) {
    hem_status status = HEM_OK;
    for (; look != 0 && status == HEM_OK; look &= look - 1) {
        uint32_t id = (uint32_t)__builtin_ctzll(look);
        if (id < window->signals)
            status = take_line(window, peer, id, limit_ns);
    }
    return status;
}

hem_status hemi_peer_take(hem_window *window, hemi_peer *peer, uint32_t id, int64_t limit_ns) {
    hem_status status = take_line(window, peer, id, limit_ns);
    uint64_t look = hemi_load64_acquire(&peer->in[id].look);
    if (__builtin_expect(look != 0, 0) && status == HEM_OK)
        status = hemi_peer_take_set(window, peer, look, limit_ns);
    return status;
}

/*
 * The sending side of one line: put the last payload in place, if it is not. What counts is what the
 * line itself says: another thread of this rank may be about to send on it.
 */
static hem_status force_line(hem_window *window, hemi_peer *peer, uint32_t id) {
    if (hemi_line_known(&peer->shadows[id], &peer->in[id]))
        return HEM_OK;
    hemi_line *line = &peer->out[id];
    hemi_claim *claim = &peer->out_claims[id];
    uint32_t seq = 0;
    if (hemi_line_waiting(line, claim, &seq) && hemi_line_claim(claim, seq))
        return move(line, claim, seq, peer->data.mapped, peer->data.bytes, window->rank);
    if (hemi_line_in_place(claim, seq))
        return HEM_OK;
    hem_status status = await_done(window, peer, claim, seq, window->timeout_ns);
    return status == HEM_ERR_PEER ? hemi_world_fail_peer(window->world, peer->rank, "hem_flush")
                                  : status;
}

static bool overlaps(uint64_t place, size_t offset, size_t n) {
    uint64_t start = hemi_place_offset(place);
    uint64_t end = start + hemi_place_length(place);
    return start < offset + n && offset < end;
}

hem_status hemi_peer_settle_overlap(hem_window *window, hemi_peer *peer, size_t offset, size_t n) {
    hem_status status = HEM_OK;
    uint64_t ids = hemi_load64_relaxed(&peer->sent_inline);
    for (; ids != 0 && status == HEM_OK; ids &= ids - 1) {
        uint32_t id = (uint32_t)__builtin_ctzll(ids);
        if (overlaps(hemi_load64_relaxed(&peer->shadows[id].place), offset, n))
            status = force_line(window, peer, id);
    }
    return status;
}

hem_status hemi_peer_settle_all(hem_window *window, hemi_peer *peer) {
    hem_status status = HEM_OK;
    uint64_t ids = hemi_load64_relaxed(&peer->sent_inline);
    for (; ids != 0 && status == HEM_OK; ids &= ids - 1)
        status = force_line(window, peer, (uint32_t)__builtin_ctzll(ids));
    return status;
}

uint64_t hemi_peer_unsettled(hemi_peer *peer, uint32_t but) {
    uint64_t unsettled = 0;
    uint64_t ids = hemi_load64_relaxed(&peer->sent_inline);
    for (; ids != 0; ids &= ids - 1) {
        uint32_t id = (uint32_t)__builtin_ctzll(ids);
        if (id != but && !hemi_line_known(&peer->shadows[id], &peer->in[id]))
            unsettled |= 1ull << id;
    }
    return unsettled;
}
