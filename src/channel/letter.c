/* Letters as operations: starting, taking back, freeing. */
#include "channel/lane.h"

#include <stdio.h>
#include <stdlib.h>

#define NAP_NS 50000

void hemi_letter_done(hemi_letter *letter, hem_status status) {
    hemi_queue_remove(hemi_letter_queue(letter), letter);
    hemi_op_complete(&letter->op, status);
}

void hemi_queue_fail(hemi_queue *queue, hem_status status) {
    while (queue->head != NULL)
        hemi_letter_done(queue->head, status);
}

/* Remember how the letter ends once the peer has let go of its buffer. */
static void end_later(hemi_letter *letter, hem_status status) {
    letter->ending = status;
    (void)snprintf(letter->op.text, sizeof letter->op.text, "%s", hem_last_error());
}

/* The head of the sending queue goes. @return whether it was or will be completed by the lane. */
static bool drop_sending(hemi_lane *lane, hemi_letter *letter, hem_status status, bool dead) {
    hemi_sending *tx = &lane->tx;
    switch (tx->phase) {
    case HEMI_TX_BULK:
    case HEMI_TX_PUSH:
        if (letter->moved != 0 || tx->phase == HEMI_TX_PUSH) {
            tx->due = HEMI_SLOT_ABORT;
            tx->due_bytes = letter->moved;
            if (hemi_send_due(lane) == 0)
                hemi_engine_list(lane->world, &lane->task);
        }
        break;
    case HEMI_TX_OFFERED:
        hemi_tx_withdraw(&tx->cursor, tx->number);
        tx->phase = HEMI_TX_WITHDRAWING;
        end_later(letter, status);
        hemi_send_end_withdrawal(lane, dead);
        return true;
    case HEMI_TX_WITHDRAWING:
        hemi_send_end_withdrawal(lane, dead);
        return true;
    default:
        break;
    }
    tx->phase = HEMI_TX_IDLE;
    return false;
}

/* The same of the receiving queue. */
static bool drop_receiving(hemi_lane *lane, hemi_letter *letter, hem_status status, bool dead) {
    hemi_receiving *rx = &lane->rx;
    switch (rx->phase) {
    case HEMI_RX_BULK:
        rx->discard = true;
        break;
    case HEMI_RX_PULL:
        /* The sender need not know that the rest of it is lost. */
        rx->phase = HEMI_RX_IDLE;
        hemi_rx_say(&rx->cursor, rx->number, HEMI_VERDICT_DONE, 0);
        hemi_lane_wake(lane);
        break;
    case HEMI_RX_PUSH:
        hemi_rx_take_back(&rx->cursor, rx->number);
        hemi_lane_wake(lane);
        rx->discard = true;
        if (dead || !hemi_rx_pushed(&rx->cursor, rx->number))
            break;
        rx->discard = false;
        rx->phase = HEMI_RX_TAKING_BACK;
        end_later(letter, status);
        return true;
    case HEMI_RX_TAKING_BACK:
        if (!dead)
            return true;
        rx->phase = HEMI_RX_PUSH;
        rx->discard = true;
        break;
    default:
        break;
    }
    return false;
}

void hemi_letter_drop(hemi_letter *letter, hem_status status, bool dead) {
    hemi_lane *lane = letter->lane;
    bool held = false;
    if (letter->sends) {
        if (lane->tx.queue.head == letter)
            held = drop_sending(lane, letter, status, dead);
    } else if (lane->rx.queue.head == letter && !lane->rx.discard) {
        held = drop_receiving(lane, letter, status, dead);
    }
    if (!held)
        hemi_letter_done(letter, status);
}

void hemi_letter_cancel(hemi_letter *letter, hem_status status) {
    hem_world *world = letter->op.world;
    const hemi_platform *platform = world->root->platform;
    hemi_lane *lane = letter->lane;
    hemi_letter_drop(letter, status, false);
    /* The peer is in the middle of a piece, or died there. */
    while (!hemi_op_is_done(&letter->op)) {
        hemi_engine_unlock(world);
        platform->nap(platform->ctx, NAP_NS);
        hemi_engine_lock(world);
        if (hemi_op_is_done(&letter->op))
            break;
        (void)lane->task.advance(&lane->task);
        lane->task.trouble(&lane->task, 0);
    }
}

/* Find the lane, and fail at once if the peer can do nothing any more. */
static hem_status prepare(hemi_letter *letter) {
    hem_world *world = letter->op.world;
    const char *call = hemi_call_name(letter->op.call);
    if (letter->lane == NULL) {
        hem_status status = hemi_lane_ready(world, letter->peer, letter->channel);
        if (status != HEM_OK)
            return status;
        letter->lane = hemi_lane_find(world, letter->peer, letter->channel);
    }
    if (letter->sends && !hemi_world_may_come(world, letter->peer))
        return hemi_world_fail_peer(world, letter->peer, call);
    return HEM_OK;
}

static void start(struct hem_op *op) {
    hemi_letter *letter = (hemi_letter *)(void *)op;
    hem_status status = prepare(letter);
    if (status != HEM_OK) {
        hemi_op_complete(op, status);
        return;
    }
    hemi_lane *lane = letter->lane;
    hemi_queue *queue = hemi_letter_queue(letter);
    letter->moved = 0;
    hemi_queue_append(queue, letter);
    if (queue->head == letter) {
        if (letter->sends)
            (void)hemi_send_step(lane);
        else
            (void)hemi_recv_step(lane);
    }
    if (hemi_lane_has_work(lane))
        hemi_engine_list(lane->world, &lane->task);
}

static void cancel(struct hem_op *op) {
    hemi_letter *letter = (hemi_letter *)(void *)op;
    hem_status status =
        hemi_fail(HEM_ERR_REVOKED, "%s: freed while it was under way", hemi_call_name(op->call));
    hemi_letter_cancel(letter, status);
}

void hemi_letter_forget(hemi_letter *letter) {
    hemi_lane *lane = letter->lane;
    const hemi_platform *platform = lane->world->root->platform;
    hemi_sending *tx = &lane->tx;
    hemi_receiving *rx = &lane->rx;
    bool offered = letter->sends && tx->queue.head == letter &&
                   (tx->phase == HEMI_TX_OFFERED || tx->phase == HEMI_TX_WITHDRAWING);
    bool pushed = !letter->sends && rx->queue.head == letter && !rx->discard &&
                  (rx->phase == HEMI_RX_PUSH || rx->phase == HEMI_RX_TAKING_BACK);
    if (offered)
        hemi_tx_withdraw(&tx->cursor, tx->number);
    if (pushed)
        hemi_rx_take_back(&rx->cursor, rx->number);
    while (!hemi_lane_is_dead(lane) && ((offered && hemi_tx_pulled(&tx->cursor, tx->number)) ||
                                        (pushed && hemi_rx_pushed(&rx->cursor, rx->number))))
        platform->nap(platform->ctx, NAP_NS);
    hemi_queue_remove(hemi_letter_queue(letter), letter);
}

static void destroy(struct hem_op *op) {
    hemi_letter *letter = (hemi_letter *)(void *)op;
    if (op->state == HEMI_OP_RUNNING && letter->lane != NULL)
        hemi_letter_forget(letter);
    free(op);
}

static void where(struct hem_op *op, hemi_flight_note *note) {
    const hemi_letter *letter = (const hemi_letter *)(const void *)op;
    const hemi_lane *lane = letter->lane;
    note->peer = (int32_t)lane->world->members[lane->peer];
    note->id = lane->channel;
    if (letter->sends) {
        const hemi_tx *tx = &lane->tx.cursor;
        note->word = lane->open ? &tx->theirs->slots : NULL;
        note->wanted =
            tx->slot_tail + 1 > tx->track.slot_count ? tx->slot_tail + 1 - tx->track.slot_count : 0;
    } else if (hemi_load32_acquire(&lane->rx.busy) == 0) { /* else its thread moves the cursor */
        note->word = &hemi_rx_slot(&lane->rx.cursor)->stamp;
        note->wanted = lane->rx.cursor.slot_head + 1;
    }
}

const hemi_op_type hemi_letter_send = {HEMI_CALL_SEND, start, cancel, destroy, where};
const hemi_op_type hemi_letter_recv = {HEMI_CALL_RECV, start, cancel, destroy, where};

void hemi_letter_fill(hemi_letter *letter, hem_world *world, uint32_t call, bool sends,
                      uint32_t peer, uint32_t channel, void *data, size_t bytes) {
    /* All but the room for a sentence, which is most of it. */
    memset(letter, 0, offsetof(struct hem_op, text));
    letter->op.text[0] = '\0';
    letter->op.world = world;
    letter->op.type = sends ? &hemi_letter_send : &hemi_letter_recv;
    letter->op.call = call;
    letter->next = NULL;
    letter->lane = NULL;
    letter->data = data;
    letter->room = bytes;
    letter->moved = 0;
    letter->peer = peer;
    letter->tag = 0;
    letter->channel = channel;
    letter->sends = sends;
    letter->ending = HEM_OK;
}

void hemi_letter_init(hemi_letter *letter, hem_world *world, bool sends, uint32_t peer,
                      uint32_t channel, void *data, size_t bytes) {
    hemi_letter_fill(letter, world, sends ? HEMI_CALL_SEND : HEMI_CALL_RECV, sends, peer, channel,
                     data, bytes);
}
