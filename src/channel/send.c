/* The sending direction of a lane. */
#include "channel/lane.h"
#include "channel/stream.h"

#include <inttypes.h>

/* Chunks are a quarter of the message, so that both sides copy at the same time, within limits. */
#define CHUNK_MIN 4096
#define CHUNK_MAX 65536
/* One plain copy in so many is timed. After three slow ones in a row, which is more than the first
 * touch of new pages makes, so many go past the caches; then some plain ones go untimed, as what
 * they write to is not in any cache. */
#define STREAM_EVERY 8
#define STREAM_AFTER 3
#define STREAM_FOR   1024
#define STREAM_WARM  32
/* After a fast one, so many offers are to be pulled. */
#define NEAR_FOR 64

uint64_t hemi_send_break(hemi_lane *lane, const char *what) {
    lane->tx.broken = true;
    lane->tx.due = 0;
    lane->tx.phase = HEMI_TX_IDLE;
    hem_status status = hemi_fail(HEM_ERR_MISMATCH, "rank %u answered nonsense on channel %u: %s",
                                  lane->peer, lane->channel, what);
    hemi_queue_fail(&lane->tx.queue, status);
    return 1;
}

/* Whether a slot is free, after a look at the receiver's credit if it must be. */
static bool find_slot(hemi_lane *lane) {
    hemi_tx *tx = &lane->tx.cursor;
    if (__builtin_expect(hemi_tx_has_slot(tx), 1))
        return true;
    if (!hemi_tx_reload(tx)) {
        hemi_send_break(lane, "credits");
        return false;
    }
    return hemi_tx_has_slot(tx);
}

static uint64_t find_room(hemi_lane *lane, uint64_t wanted, uint64_t *skip_p) {
    hemi_tx *tx = &lane->tx.cursor;
    uint64_t length = hemi_tx_room(tx, wanted, skip_p);
    if (__builtin_expect(length != 0, 1))
        return length;
    if (!hemi_tx_reload(tx)) {
        hemi_send_break(lane, "credits");
        return 0;
    }
    return hemi_tx_room(tx, wanted, skip_p);
}

static uint64_t choose_chunk(const hemi_lane *lane, uint64_t bytes) {
    uint64_t ring = lane->tx.cursor.track.ring_bytes;
    uint64_t chunk = bytes <= HEMI_WHOLE_MAX ? HEMI_WHOLE_MAX : hemi_round_line(bytes / 4);
    if (chunk < CHUNK_MIN)
        chunk = CHUNK_MIN;
    if (chunk > CHUNK_MAX)
        chunk = CHUNK_MAX;
    /* Of a small ring a quarter, so that it can be filled and emptied at the same time. */
    uint64_t most = ring / 4 > CHUNK_MIN ? ring / 4 : ring < CHUNK_MIN ? ring : CHUNK_MIN;
    most = most / HEMI_LINE * HEMI_LINE;
    return chunk < most ? chunk : most;
}

uint64_t hemi_send_due(hemi_lane *lane) {
    hemi_sending *tx = &lane->tx;
    /* Nonsense is left for hemi_send_step to find: the caller is in the middle of something. */
    if (!hemi_tx_has_slot(&tx->cursor) &&
        (!hemi_tx_reload(&tx->cursor) || !hemi_tx_has_slot(&tx->cursor)))
        return 0;
    hemi_tx_post(&tx->cursor, tx->due, 0, tx->due_bytes);
    tx->due = 0;
    hemi_lane_wake(lane);
    return 1;
}

static hem_status too_small(const hemi_letter *letter, uint64_t room) {
    return hemi_fail(HEM_ERR_RANGE,
                     "%s: the message to rank %u has %zu bytes, its buffer only %" PRIu64,
                     hemi_call_name(letter->op.call), letter->peer, letter->room, room);
}

/* The receiver has found the rest of a message too long for its buffer. */
static bool refused(hemi_lane *lane, hemi_letter *letter) {
    hemi_sending *tx = &lane->tx;
    uint64_t room = 0;
    if (hemi_tx_verdict(&tx->cursor, tx->number, &room) != HEMI_VERDICT_RANGE)
        return false;
    hemi_letter_drop(letter, too_small(letter, room), false);
    return true;
}

void hemi_send_copy(hemi_lane *lane, unsigned char *to, const unsigned char *from, size_t bytes) {
    hemi_sending *tx = &lane->tx;
    if (tx->streamed > 0 && bytes >= HEMI_STREAM_MIN) {
        hemi_copy_stream(to, from, bytes);
        if (--tx->streamed == 0)
            tx->untimed = STREAM_WARM;
        return;
    }
    if (bytes < HEMI_STREAM_MIN || tx->untimed > 0) {
        memcpy(to, from, bytes);
        tx->untimed -= bytes >= HEMI_STREAM_MIN;
        return;
    }
    const hemi_platform *platform = lane->world->root->platform;
    uint64_t start = platform->now(platform->ctx);
    memcpy(to, from, bytes);
    bool slow = (platform->now(platform->ctx) - start) * HEMI_STREAM_SPEED > bytes;
    tx->slow = slow ? tx->slow + 1 : 0;
    tx->near = slow ? 0 : NEAR_FOR;
    tx->untimed = STREAM_EVERY - 1;
    if (tx->slow == STREAM_AFTER) {
        tx->slow = 0;
        tx->streamed = STREAM_FOR;
    }
}

static uint64_t send_chunk(hemi_lane *lane, hemi_letter *letter) {
    hemi_sending *tx = &lane->tx;
    if (letter->moved != 0 && refused(lane, letter))
        return 1;
    uint64_t left = letter->room - letter->moved;
    uint64_t skip = 0;
    uint64_t length = find_room(lane, left < tx->chunk ? left : tx->chunk, &skip);
    if (length == 0 || !find_slot(lane))
        return 0;
    hemi_send_copy(lane, hemi_tx_place(&tx->cursor, skip), letter->data + letter->moved, length);
    uint64_t number =
        hemi_tx_chunk(&tx->cursor, skip, length, tx->chunk, letter->moved, letter->room);
    hemi_lane_wake(lane);
    if (letter->moved == 0)
        tx->number = number;
    letter->moved += length;
    if (letter->moved == letter->room) {
        tx->phase = HEMI_TX_IDLE;
        hemi_letter_done(letter, HEM_OK);
    }
    return length + 1;
}

/* The head of the queue has not begun. */
static uint64_t begin(hemi_lane *lane, hemi_letter *letter) {
    hemi_sending *tx = &lane->tx;
    if (!find_slot(lane))
        return 0;
    if (letter->room <= HEMI_SLOT_BYTES) {
        hemi_tx_inline(&tx->cursor, letter->data, letter->room);
        hemi_lane_wake(lane);
        hemi_letter_done(letter, HEM_OK);
        return HEMI_LINE;
    }
    if (letter->room >= HEMI_OFFER_MIN && hemi_offer_wanted(lane, letter))
        return hemi_offer_make(lane);
    hem_status status = hemi_lane_reserve_ring(lane);
    if (status != HEM_OK) {
        hemi_letter_done(letter, status);
        return 1;
    }
    tx->phase = HEMI_TX_BULK;
    tx->chunk = choose_chunk(lane, letter->room);
    return send_chunk(lane, letter);
}

/* What the receiver said about the offer. */
static uint64_t take_answer(hemi_lane *lane, hemi_letter *letter) {
    hemi_sending *tx = &lane->tx;
    uint64_t detail = 0;
    const hemi_root *root = lane->world->root;
    switch (hemi_tx_verdict(&tx->cursor, tx->number, &detail)) {
    case HEMI_VERDICT_NONE:
        return 0;
    case HEMI_VERDICT_DONE:
        tx->phase = HEMI_TX_IDLE;
        letter->moved = letter->room;
        hemi_letter_done(letter, HEM_OK);
        return 1;
    case HEMI_VERDICT_RANGE:
        tx->phase = HEMI_TX_IDLE;
        hemi_letter_done(letter, too_small(letter, detail));
        return 1;
    case HEMI_VERDICT_PUSH:
        if (!hemi_arena_in_part(&root->arena, lane->world->members[lane->peer], detail,
                                letter->room))
            return hemi_send_break(lane, "where to push to");
        tx->to = hemi_arena_at(&root->arena, detail);
        tx->phase = HEMI_TX_PUSH;
        return 1;
    case HEMI_VERDICT_GONE:
        /* The receive went away before the push began: as if it had been received and lost. */
        tx->phase = HEMI_TX_IDLE;
        tx->due = HEMI_SLOT_ABORT;
        tx->due_bytes = 0;
        (void)hemi_send_due(lane);
        hemi_letter_done(letter, HEM_OK);
        return 1;
    default: {
        /* STAGE, or nonsense, which is safe to stage, too. */
        hem_status status = hemi_lane_reserve_ring(lane);
        tx->phase = status == HEM_OK ? HEMI_TX_BULK : HEMI_TX_IDLE;
        tx->chunk = choose_chunk(lane, letter->room);
        if (status != HEM_OK)
            hemi_letter_done(letter, status);
        return 1;
    }
    }
}

uint64_t hemi_send_end_withdrawal(hemi_lane *lane, bool dead) {
    hemi_sending *tx = &lane->tx;
    hemi_letter *letter = tx->queue.head;
    if (!dead && hemi_tx_pulled(&tx->cursor, tx->number))
        return 0;
    uint64_t detail = 0;
    bool done = hemi_tx_verdict(&tx->cursor, tx->number, &detail) == HEMI_VERDICT_DONE;
    tx->phase = HEMI_TX_IDLE;
    hemi_letter_done(letter, done ? HEM_OK : hemi_fail(letter->ending, "%s", letter->op.text));
    return 1;
}

uint64_t hemi_send_step(hemi_lane *lane) {
    hemi_sending *tx = &lane->tx;
    hem_status status = hemi_lane_open(lane);
    if (__builtin_expect(status != HEM_OK, 0)) {
        if (status != HEMI_AGAIN)
            hemi_queue_fail(&tx->queue, status);
        return status != HEMI_AGAIN;
    }
    if (__builtin_expect(tx->due != 0, 0))
        return find_slot(lane) ? hemi_send_due(lane) : 0;
    hemi_letter *letter = tx->queue.head;
    if (letter == NULL)
        return 0;
    if (__builtin_expect(tx->broken, 0))
        return hemi_send_break(lane, "before");
    switch (tx->phase) {
    case HEMI_TX_IDLE:
        tx->cursor.tag = letter->tag;
        return begin(lane, letter);
    case HEMI_TX_BULK:
        return send_chunk(lane, letter);
    case HEMI_TX_OFFERED:
        return take_answer(lane, letter);
    case HEMI_TX_PUSH:
        return hemi_offer_push(lane);
    default:
        return hemi_send_end_withdrawal(lane, false);
    }
}
