/*
 * One group's part of a message of a pipe: what it waits for, and how it moves. Why it is safe stands
 * in hem/device/pipe.h.
 */
#ifndef HEM_DEVICE_FLOW_H
#define HEM_DEVICE_FLOW_H

#include <hem/device/copy.h>
#include <hem/device/wait.h>
#include <hem/device/way.h>

/** One group's part of a message on its way. Small: it lives in registers. */
typedef struct hemd_flow {
    const hem_dev_pipe *pipe;
    const hemd_way *way;
    const hemd_deal *deal;
    unsigned char *data; /**< only read where it is sent */
    int64_t timeout_ns;
    uint32_t chunk;
    uint32_t parts; /**< groups that work on this message; this one takes every parts-th lane */
    uint32_t lane;
    uint32_t turn;   /**< of the slot in hand */
    uint32_t piece;  /**< of the message, in the bulk form */
    uint32_t filled; /**< of this piece, in bytes */
    bool brief;      /**< as the deal says; a constant where the compiler can make it one */
    hem_status kept; /**< the leader's: the pipe had failed before, or something is wrong */
    uint64_t at;     /**< this side's cursor on this lane: slots, or units */
    uint64_t stamp;  /**< in the short form */
    uint64_t seen;   /**< the leader's: the credit or tail when it last looked */
} hemd_flow;

/** A credit lets this side write where the other has read; that needs no fence on a GPU. */
HEM_DEV uint64_t hemd_load64_credit(const uint64_t *word) {
#if defined(__CUDACC__)
    return hemd_load64_relaxed(word);
#else
    return __atomic_load_n(word, __ATOMIC_ACQUIRE);
#endif
}

HEM_DEV void hemd_store64_credit(uint64_t *word, uint64_t value) {
#if defined(__CUDACC__)
    hemd_store64_relaxed(word, value);
#else
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
#endif
}

/* Failure. */

/** This rank's end of the pipe has failed: say so here, to the host, and to all peers. */
HEM_DEV_SLOW void hemd_pipe_fail(const hem_dev_pipe *pipe, const hemd_way *way, hem_status status) {
    uint64_t code = (uint64_t)-status;
    if (hemd_compare_swap64(way->error, 0, code) != 0)
        return;
    hem_dev_window w = pipe->window;
    uint32_t id = w.home->signals - 1;
    hemd_store64_relaxed(hemd_out(w, &w.peers[w.rank], id), code);
    if (status == HEM_ERR_REVOKED || status == HEM_ERR_CLOSED)
        return; /* everybody is told that */
    for (int rank = 0; rank < w.size; rank++) {
        if (rank == w.rank || pipe->ways[rank].out == NULL)
            continue;
        hemd_store64_relaxed((uint64_t *)(void *)pipe->ways[rank].out, code);
        hemd_store64_relaxed(hemd_out(w, &w.peers[rank], id), code);
    }
}

/** Why a wait for the peer of a way should end, if it should; `bytes` is the length of the message. `asks`:
 *  look at the host, too. */
HEM_DEV_SLOW hem_status hemd_pipe_look(const hem_dev_pipe *pipe, const hemd_way *way, bool receives,
                                       uint64_t bytes, bool asks, uint64_t since,
                                       int64_t timeout_ns) {
    uint64_t code = hemd_load64_relaxed(way->error);
    if (code == 0)
        code = hemd_load64_relaxed((const uint64_t *)(const void *)way->in);
    if (code != 0)
        return (hem_status)(-(int32_t)code);
    bool late = timeout_ns >= 0 && hemd_now_ns() - since >= (uint64_t)timeout_ns;
    hem_status status = HEM_OK;
    if (late || asks) {
        hemd_want want =
            hemd_want_of(receives ? HEMD_WHAT_RECV : HEMD_WHAT_SEND, way->peer, 0, HEM_GE, bytes);
        want.since_ns = since;
        status = hemd_look_at_host(pipe->window.home->trouble, way->peer, pipe->window.size, &want);
    }
    return status == HEM_OK && late ? HEM_ERR_TIMEOUT : status;
}

HEM_DEV const hemd_unit *hemd_way_heads(const hemd_way *way) {
    return (const hemd_unit *)(const void *)(way->in + way->area.heads);
}

HEM_DEV const hemd_unit *hemd_way_units(const hemd_way *way) {
    return (const hemd_unit *)(const void *)(way->in + way->area.units);
}

HEM_DEV const hemd_tail *hemd_way_tails(const hemd_way *way) {
    return (const hemd_tail *)(const void *)(way->in + way->area.tails);
}

/** In a pipe with a window: what the peer says of message `number` of a lane. `offers`: as its sender. */
HEM_DEV const hemd_post *hemd_way_post(const hemd_way *way, uint32_t lane, uint64_t number,
                                       bool offers) {
    uint64_t posts = offers ? way->area.offers : way->area.asks;
    return (const hemd_post *)(const void *)(way->in + posts) +
           ((uint64_t)lane * HEMD_PIPE_POSTS + number % HEMD_PIPE_POSTS);
}

/** On lane 0 of a pipe with a window: is message `number` offered in the bulk form, but not with
 *  `bytes` bytes? */
HEM_DEV_SLOW bool hemd_pipe_offers_other(const hemd_way *way, uint64_t number, uint64_t bytes) {
    uint64_t next = hemd_load64_relaxed(&way->taken->posts) + 1;
    const hemd_post *offer = hemd_way_post(way, 0, next, true);
    return hemd_acquire64(&offer->number, way->near != 0) == next &&
           hemd_load64_relaxed(&offer->message) == number &&
           hemd_load64_relaxed(&offer->bytes) != bytes;
}

/** On lane 0: has the next message come, but not with `bytes` bytes? In either form. */
HEM_DEV_SLOW bool hemd_pipe_differs(const hem_dev_pipe *pipe, const hemd_way *way, uint64_t bytes) {
    uint64_t number = hemd_load64_relaxed(&way->taken->messages) + 1;
    uint64_t units = hemd_load64_relaxed(&way->taken->units);
    uint64_t slots = hemd_load64_relaxed(&way->taken->slots);
    uint64_t turn = hemd_load64_relaxed(&way->taken->turn);
    uint64_t data = 0, length = bytes;
    uint64_t stamp = hemd_unit_load(hemd_way_units(way) + (units & (way->area.ring - 1)), &data);
    if (stamp >> HEMD_PIPE_LENGTH_BITS == number)
        length = stamp & ((1u << HEMD_PIPE_LENGTH_BITS) - 1u);
    uint64_t tail = hemd_acquire64(&hemd_way_tails(way)->bytes, way->near != 0);
    if (tail > slots * pipe->slot_bytes &&
        hemd_unit_load(hemd_way_heads(way) + turn, &data) == number)
        length = data;
    return length != bytes ||
           (pipe->straight.peers != NULL && hemd_pipe_offers_other(way, number, bytes));
}

/** One more look in vain. @return HEM_OK to go on. */
HEM_DEV hem_status hemd_flow_patience(const hemd_flow *flow, bool receives, uint32_t *polls,
                                      uint64_t *since) {
    if (++*polls % HEMD_POLLS != 0) {
        hemd_relax();
        return HEM_OK;
    }
    if (*since == 0)
        *since = hemd_now_ns();
    hem_status status = hemd_pipe_look(flow->pipe, flow->way, receives, flow->deal->bytes,
                                       hemd_asks_host(*polls), *since, flow->timeout_ns);
    if (status == HEM_OK && receives && flow->lane == 0 &&
        hemd_pipe_differs(flow->pipe, flow->way, flow->deal->bytes))
        status = HEM_ERR_MISMATCH;
    return status;
}

/* What a flow waits for. */

HEM_DEV const uint64_t *hemd_flow_word(const hemd_flow *flow, bool receives) {
    if (receives)
        return &hemd_way_tails(flow->way)[flow->lane].bytes;
    const hemd_credit *credits =
        (const hemd_credit *)(const void *)(flow->way->in + flow->way->area.credits);
    return flow->brief ? &credits[flow->lane].units : &credits[flow->lane].slots;
}

HEM_DEV uint64_t hemd_flow_load(const hemd_flow *flow, bool receives) {
    const uint64_t *word = hemd_flow_word(flow, receives);
    return receives ? hemd_acquire64(word, flow->way->near != 0) : hemd_load64_credit(word);
}

/** Units of the short form that this lane carries. */
HEM_DEV uint32_t hemd_flow_units(const hemd_flow *flow) {
    uint32_t units = flow->deal->bytes == 0 ? 1 : (uint32_t)((flow->deal->bytes + 7) / 8);
    uint32_t left = units - flow->lane * flow->deal->piece;
    return left < flow->deal->piece ? left : flow->deal->piece;
}

/** Where the piece in hand begins in the message, how long it is, and the next chunk of it. */
HEM_DEV uint64_t hemd_flow_offset(const hemd_flow *flow) {
    return (uint64_t)flow->piece * flow->deal->piece;
}

HEM_DEV uint32_t hemd_flow_length(const hemd_flow *flow) {
    uint64_t left = flow->deal->bytes - hemd_flow_offset(flow);
    return left < flow->deal->piece ? (uint32_t)left : flow->deal->piece;
}

HEM_DEV uint32_t hemd_flow_chunk(const hemd_flow *flow) {
    uint32_t left = hemd_flow_length(flow) - flow->filled;
    return left < flow->chunk ? left : flow->chunk;
}

/** What the word must have come to before the next step. Counts from the beginning of the pipe. */
HEM_DEV uint64_t hemd_flow_wants(const hemd_flow *flow, bool receives) {
    if (receives)
        return flow->at * flow->pipe->slot_bytes + flow->filled + hemd_flow_chunk(flow);
    return flow->brief ? flow->at + hemd_flow_units(flow) - flow->way->area.ring
                       : flow->at + 1 - flow->pipe->slots;
}

HEM_DEV bool hemd_flow_may(const hemd_flow *flow, uint64_t wants) {
    return (int64_t)(flow->seen - wants) >= 0;
}

/** By the leader: wait for the word. */
HEM_DEV hem_status hemd_flow_await(hemd_flow *flow, bool receives) {
    uint64_t wants = hemd_flow_wants(flow, receives);
    uint32_t polls = 0;
    uint64_t since = 0;
    hem_status status = HEM_OK;
    if (flow->kept != HEM_OK || hemd_flow_may(flow, wants))
        return flow->kept;
    for (;;) {
        flow->seen = hemd_flow_load(flow, receives);
        if (hemd_flow_may(flow, wants))
            return HEM_OK;
        if (status != HEM_OK)
            return status;
        status = hemd_flow_patience(flow, receives, &polls, &since);
    }
}

/* The bulk form. */

#if defined(__CUDACC__)

/** What a warp copies at once: 8 pieces of 16 bytes per thread, all under way at a time. */
#define HEMD_PIPE_BATCH 4096u

/** Copy up to a batch by a warp; `from` and `to` are this thread's. Pieces are mostly whole halves of
 *  a batch (hemd_deal_out), so that what is left over at the end of a message may take longer. */
HEM_DEV void hemd_pipe_batch(unsigned char *to, const unsigned char *from, uint32_t lane16,
                             uint32_t n) {
    uint4 piece[8];
    if (n >= HEMD_PIPE_BATCH) {
        HEMD_UNROLL
        for (uint32_t k = 0; k < 8; k++)
            piece[k] = __ldcg((const uint4 *)(const void *)(from + 512 * k));
        HEMD_UNROLL
        for (uint32_t k = 0; k < 8; k++)
            __stcg((uint4 *)(void *)(to + 512 * k), piece[k]);
        return;
    }
    uint32_t at = lane16;
    if (n >= HEMD_PIPE_BATCH / 2) {
        HEMD_UNROLL
        for (uint32_t k = 0; k < 4; k++)
            piece[k] = __ldcg((const uint4 *)(const void *)(from + 512 * k));
        HEMD_UNROLL
        for (uint32_t k = 0; k < 4; k++)
            __stcg((uint4 *)(void *)(to + 512 * k), piece[k]);
        at += HEMD_PIPE_BATCH / 2;
    }
#pragma unroll 1
    for (; at + 16 <= n; at += 512)
        __stcg((uint4 *)(void *)(to + at - lane16),
               __ldcg((const uint4 *)(const void *)(from + at - lane16)));
}

/**
 * Copy by `size` threads where the buffer of the caller is misaligned, so that the two sides differ.
 * Each aligned piece of `to` is put together from the two of `from` that it overlaps. As in
 * hem/device/copy.h, but with fewer pieces under way: a kernel of 1024 threads has 64 registers.
 */
HEM_DEV_SLOW void hemd_pipe_copy_odd(uint32_t rank, uint32_t size, unsigned char *to,
                                     const unsigned char *from, uint32_t n) {
    uint32_t by = (uint32_t)((uintptr_t)from - (uintptr_t)to) & 15u;
    uint32_t head = (uint32_t)(0u - (uintptr_t)to) & 15u;
    head += head < by ? 16u : 0u; /* or the first aligned piece of `from` would begin before it */
    uint32_t end = n < head + 32u ? head : head + (n - head + by - 16u) / 16u * 16u;
    if (end == head)
        head = end = n;
    for (uint32_t at = rank; at < head; at += size)
        to[at] = from[at];
    for (uint32_t at = head + 16u * rank; at < end; at += 32u * size) {
        bool two = at + 16u * size < end;
        const unsigned char *next = two ? from + at + 16u * size - by : from + at - by;
        hemd_vector a = hemd_vector_load(from + at - by), b = hemd_vector_load(from + at - by + 16);
        hemd_vector c = hemd_vector_load(next), d = hemd_vector_load(next + 16);
        hemd_vector_store(to + at, hemd_vector_pick(a, b, by));
        if (two)
            hemd_vector_store(to + at + 16u * size, hemd_vector_pick(c, d, by));
    }
    for (uint32_t at = end + rank; at < n; at += size)
        to[at] = from[at];
}

#endif

/** Copy by the group. Staging begins on a line, so that only the caller's buffer may be odd. */
HEM_DEV void hemd_pipe_copy(hem_group group, unsigned char *to, const unsigned char *from,
                            uint32_t n) {
#if defined(__CUDACC__)
    if ((((uintptr_t)to | (uintptr_t)from) & 15u) == 0 && group.size >= 32) {
        uint32_t lane16 = group.rank % 32u * 16u;
        for (uint32_t at = group.rank / 32u * HEMD_PIPE_BATCH; at < n;
             at += group.size / 32u * HEMD_PIPE_BATCH)
            hemd_pipe_batch(to + at + lane16, from + at + lane16, lane16, n - at);
        uint32_t behind = (n & ~15u) + group.rank;
        if (behind < n)
            to[behind] = from[behind];
    } else {
        hemd_pipe_copy_odd(group.rank, group.size, to, from, n);
    }
#else
    hemd_copy(group, to, from, n);
#endif
}

/** Where the chunk in hand begins in an area. */
HEM_DEV uint64_t hemd_flow_slot(const hemd_flow *flow) {
    uint32_t slot = flow->lane * flow->pipe->slots + flow->turn;
    return flow->way->area.slots + slot * flow->pipe->slot_bytes + flow->filled;
}

/** Behind a whole piece. */
HEM_DEV void hemd_flow_advance(hemd_flow *flow) {
    flow->at++;
    flow->turn = flow->turn + 1 == flow->pipe->slots ? 0 : flow->turn + 1;
    flow->piece += flow->deal->lanes;
    flow->filled = 0;
}

/** Say which message begins in the slot in hand. */
HEM_DEV void hemd_send_head(const hemd_flow *flow) {
    const hemd_way *way = flow->way;
    hemd_unit *heads = (hemd_unit *)(void *)(way->out + way->area.heads);
    hemd_unit_store(heads + (flow->lane * flow->pipe->slots + flow->turn), flow->deal->bytes,
                    hemd_load64_relaxed(&way->sent[flow->lane].messages) + 1);
}

/** Send a chunk; there is room. */
HEM_DEV void hemd_send_chunk(hemd_flow *flow, hem_group group) {
    const hemd_way *way = flow->way;
    uint32_t n = hemd_flow_chunk(flow);
    const unsigned char *from = flow->data + hemd_flow_offset(flow) + flow->filled;
    hemd_pipe_copy(group, way->out + hemd_flow_slot(flow), from, n);
    if (group.rank == 0 && flow->piece == 0 && flow->filled == 0)
        hemd_send_head(flow);
    flow->filled += n;
    hem_group_sync(group);
    if (group.rank == 0) {
        hemd_tail *tails = (hemd_tail *)(void *)(way->out + way->area.tails);
        hemd_store64_release(&tails[flow->lane].bytes,
                             flow->at * flow->pipe->slot_bytes + flow->filled, way->near != 0);
    }
    if (flow->filled == hemd_flow_length(flow))
        hemd_flow_advance(flow);
}

/** Where this rank tells the sender of a lane how far it has come. */
HEM_DEV hemd_credit *hemd_flow_credit(const hemd_flow *flow) {
    return (hemd_credit *)(void *)(flow->way->out + flow->way->area.credits) + flow->lane;
}

/** On lane 0, by the leader: does the message that has come have the length expected? */
HEM_DEV bool hemd_recv_head(const hemd_flow *flow) {
    uint64_t length = 0;
    uint64_t number = hemd_unit_load(hemd_way_heads(flow->way) + flow->turn, &length);
    return number == hemd_load64_relaxed(&flow->way->taken->messages) + 1 &&
           length == flow->deal->bytes;
}

/** Receive a chunk; it is there. The leader keeps an error if it is not of the message expected. */
HEM_DEV void hemd_recv_chunk(hemd_flow *flow, hem_group group) {
    uint32_t n = hemd_flow_chunk(flow);
    unsigned char *to = flow->data + hemd_flow_offset(flow) + flow->filled;
    hemd_pipe_copy(group, to, flow->way->in + hemd_flow_slot(flow), n);
    if (group.rank == 0 && flow->piece == 0 && flow->filled == 0 && !hemd_recv_head(flow))
        flow->kept = HEM_ERR_MISMATCH;
    flow->filled += n;
    if (flow->filled < hemd_flow_length(flow))
        return;
    hemd_flow_advance(flow);
    hem_group_sync(group);
    if (group.rank == 0 && flow->kept == HEM_OK)
        hemd_store64_credit(&hemd_flow_credit(flow)->slots, flow->at);
}

#endif
