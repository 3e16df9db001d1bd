/* The receiving direction of a lane. */
#include "channel/lane.h"

#include <inttypes.h>

uint64_t hemi_recv_break(hemi_lane *lane, const char *what) {
    lane->rx.broken = true;
    lane->rx.phase = HEMI_RX_IDLE;
    lane->rx.discard = false;
    hem_status status = hemi_fail(HEM_ERR_MISMATCH, "rank %u sent nonsense on channel %u: %s",
                                  lane->peer, lane->channel, what);
    hemi_queue_fail(&lane->rx.queue, status);
    return 1;
}

hem_status hemi_recv_too_small(const hemi_letter *letter, uint64_t bytes) {
    return hemi_fail(HEM_ERR_RANGE,
                     "%s: the message of rank %u has %" PRIu64 " bytes, the buffer only %zu",
                     hemi_call_name(letter->op.call), letter->peer, bytes, letter->room);
}

hem_status hemi_recv_withdrawn(const hemi_letter *letter) {
    return hemi_fail(HEM_ERR_REVOKED, "%s: rank %u has withdrawn the message while it arrived",
                     hemi_call_name(letter->op.call), letter->peer);
}

static uint64_t take_inline(hemi_lane *lane, hemi_letter *letter, const hemi_header *h) {
    bool fits = h->length <= letter->room;
    if (fits)
        hemi_copy_line(letter->data, hemi_rx_slot(&lane->rx.cursor)->payload, h->length);
    letter->op.bytes = h->length;
    hemi_rx_credit(&lane->rx.cursor);
    hemi_lane_wake(lane);
    hemi_letter_done(letter, fits ? HEM_OK : hemi_recv_too_small(letter, h->bytes));
    return HEMI_LINE;
}

/* Copy out a chunk that was found good, give it back, and end the message if it was the last. */
static uint64_t take_chunk(hemi_lane *lane, hemi_letter *letter, const hemi_header *h) {
    hemi_receiving *rx = &lane->rx;
    if (letter != NULL)
        memcpy(letter->data + rx->moved, hemi_rx_place(&rx->cursor, h), h->length);
    rx->moved += h->length;
    bool last = rx->moved == rx->total;
    hemi_rx_credit_chunk(&rx->cursor, h, last);
    hemi_lane_wake(lane);
    if (!last)
        return h->length + 1u;
    hemi_lane_measured(lane, HEMI_WAY_STAGED);
    rx->phase = HEMI_RX_IDLE;
    rx->discard = false;
    if (letter != NULL) {
        letter->op.bytes = rx->total;
        hemi_letter_done(letter, HEM_OK);
    }
    return h->length + 1u;
}

/* The message is too long: tell the sender while it sends, and throw the message away. */
static void refuse(hemi_lane *lane, hemi_letter *letter) {
    hemi_receiving *rx = &lane->rx;
    if (rx->total > 0)
        hemi_rx_say(&rx->cursor, rx->number, HEMI_VERDICT_RANGE, letter->room);
    rx->discard = true;
    hemi_letter_done(letter, hemi_recv_too_small(letter, rx->total));
}

static uint64_t begin_bulk(hemi_lane *lane, hemi_letter *letter, const hemi_header *h) {
    hemi_receiving *rx = &lane->rx;
    rx->number = rx->cursor.slot_head + 1;
    rx->total = h->bytes;
    rx->moved = 0;
    rx->phase = HEMI_RX_BULK;
    hemi_lane_measure(lane, h->bytes);
    if (h->bytes > letter->room) {
        refuse(lane, letter);
        letter = NULL;
    } else if (h->bytes >= HEMI_OFFER_MIN) {
        uint64_t likes = hemi_lane_is_library(lane->world->root, letter->data, letter->room) ||
                         (h->bytes >= HEMI_MEASURED_MIN && hemi_lane_likes_single(lane));
        if (likes != hemi_load64_relaxed(&rx->cursor.mine->likes))
            hemi_store64_relaxed(&rx->cursor.mine->likes, likes);
    }
    return take_chunk(lane, letter, h);
}

/* Throw a message away that nobody expects any more, and stop its sender if it is still at it. */
static uint64_t skip(hemi_lane *lane, const hemi_header *h) {
    hemi_receiving *rx = &lane->rx;
    uint32_t kind = h->kind & 0xff;
    rx->number = rx->cursor.slot_head + 1;
    rx->total = h->bytes;
    rx->moved = 0;
    if (kind != HEMI_SLOT_MESSAGE && !hemi_rx_withdrawn(&rx->cursor, rx->number))
        hemi_rx_say(&rx->cursor, rx->number, HEMI_VERDICT_RANGE, 0);
    if (kind == HEMI_SLOT_BULK) {
        rx->phase = HEMI_RX_BULK;
        rx->discard = true;
        return take_chunk(lane, NULL, h);
    }
    hemi_rx_credit(&rx->cursor);
    hemi_lane_wake(lane);
    return HEMI_LINE;
}

static uint64_t begin(hemi_lane *lane, hemi_letter *letter, const hemi_header *h) {
    const char *wrong = hemi_rx_check_first(&lane->rx.cursor, h);
    if (wrong != NULL)
        return hemi_recv_break(lane, wrong);
    int16_t ahead = (int16_t)(uint16_t)(h->tag - letter->tag);
    if (__builtin_expect(ahead < 0, 0))
        return skip(lane, h);
    if (__builtin_expect(ahead > 0, 0))
        return 0; /* the sender is ahead, as this letter's collective failed: it will be cancelled */
    switch (h->kind & 0xff) {
    case HEMI_SLOT_MESSAGE:
        return take_inline(lane, letter, h);
    case HEMI_SLOT_BULK:
        return begin_bulk(lane, letter, h);
    default:
        return hemi_offer_accept(lane, letter, h);
    }
}

/* The message under way ends without its rest. */
static uint64_t take_abort(hemi_lane *lane, hemi_letter *letter, const hemi_header *h) {
    hemi_receiving *rx = &lane->rx;
    hemi_rx_credit(&rx->cursor);
    hemi_lane_wake(lane);
    rx->phase = HEMI_RX_IDLE;
    rx->discard = false;
    /* A push that had not begun is nothing to the receiver: the next message may come. */
    if (letter != NULL && h->bytes != 0)
        hemi_letter_done(letter, hemi_recv_withdrawn(letter));
    return 1;
}

static uint64_t go_on(hemi_lane *lane, hemi_letter *letter, const hemi_header *h) {
    hemi_receiving *rx = &lane->rx;
    const char *wrong = hemi_rx_check_next(&rx->cursor, h, rx->total, rx->moved);
    if (wrong != NULL)
        return hemi_recv_break(lane, wrong);
    if ((h->kind & 0xff) == HEMI_SLOT_ABORT)
        return take_abort(lane, letter, h);
    return take_chunk(lane, letter, h);
}

static bool begins(const hemi_header *h) {
    uint32_t kind = h->kind & 0xff;
    return kind == HEMI_SLOT_MESSAGE || kind == HEMI_SLOT_BULK || kind == HEMI_SLOT_OFFER;
}

/* After PUSH: the sender says that it has pushed, or that it will not. */
static uint64_t end_push(hemi_lane *lane, hemi_letter *letter, const hemi_header *h) {
    hemi_receiving *rx = &lane->rx;
    /* It withdrew the offer before it had read the answer: this is the next message. */
    if (begins(h) && hemi_rx_withdrawn(&rx->cursor, rx->number)) {
        rx->phase = HEMI_RX_IDLE;
        rx->discard = false;
        return 1;
    }
    if (h->length != 0 || h->bytes > rx->total)
        return hemi_recv_break(lane, "end of a push");
    if (h->kind == (HEMI_SLOT_ABORT | HEMI_SLOT_LANES))
        return take_abort(lane, letter, h);
    if (h->kind != (HEMI_SLOT_FIN | HEMI_SLOT_LANES) || h->bytes != rx->total)
        return hemi_recv_break(lane, "end of a push");
    hemi_rx_credit(&rx->cursor);
    hemi_lane_wake(lane);
    rx->phase = HEMI_RX_IDLE;
    rx->discard = false;
    hemi_lane_measured(lane, HEMI_WAY_PUSHED);
    if (letter != NULL) {
        letter->op.bytes = rx->total;
        hemi_letter_done(letter, HEM_OK);
    }
    return 1;
}

/* The letter is to go, but the sender may have been in the middle of a piece. */
static uint64_t end_taking_back(hemi_lane *lane) {
    hemi_receiving *rx = &lane->rx;
    if (hemi_rx_pushed(&rx->cursor, rx->number))
        return 0;
    hemi_letter *letter = rx->queue.head;
    rx->phase = HEMI_RX_PUSH;
    rx->discard = true;
    hemi_letter_done(letter, hemi_fail(letter->ending, "%s", letter->op.text));
    return 1;
}

static uint64_t take_slot(hemi_lane *lane) {
    hemi_receiving *rx = &lane->rx;
    hemi_letter *letter = rx->discard ? NULL : rx->queue.head;
    hem_status status = hemi_lane_open(lane);
    if (__builtin_expect(status != HEM_OK, 0)) {
        if (status != HEMI_AGAIN)
            hemi_queue_fail(&rx->queue, status);
        return status != HEMI_AGAIN;
    }
    hemi_header header;
    hemi_rx_header(&rx->cursor, &header);
    if (rx->phase == HEMI_RX_BULK)
        return go_on(lane, letter, &header);
    if (rx->phase == HEMI_RX_PUSH)
        return end_push(lane, letter, &header);
    return begin(lane, letter, &header);
}

uint64_t hemi_recv_step(hemi_lane *lane) {
    hemi_receiving *rx = &lane->rx;
    if (rx->queue.head == NULL && rx->phase == HEMI_RX_IDLE)
        return 0;
    /* Pairs with the release of the thread that had claimed it. */
    if (hemi_load32_acquire(&rx->busy) != 0)
        return 0;
    if (__builtin_expect(rx->broken, 0))
        return hemi_recv_break(lane, "before");
    if (rx->phase == HEMI_RX_PULL)
        return hemi_offer_pull(lane);
    if (rx->phase == HEMI_RX_TAKING_BACK)
        return end_taking_back(lane);
    return hemi_rx_ready(&rx->cursor) ? take_slot(lane) : 0;
}
