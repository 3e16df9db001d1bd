/* Long messages in one copy: pulled from the sender's memory or pushed into the receiver's. */
#include "channel/lane.h"
#include "channel/stream.h"

#include <errno.h>
#include <sys/uio.h>

bool hemi_offer_wanted(const hemi_lane *lane, const hemi_letter *letter) {
    const hemi_root *root = lane->world->root;
    if (hemi_lane_same_process(lane) || hemi_lane_is_library(root, letter->data, letter->room))
        return true;
    if (root->settings.copy == HEMI_COPY_SINGLE && !lane->no_single)
        return true;
    return hemi_load64_relaxed(&lane->tx.cursor.theirs->likes) == 1;
}

uint64_t hemi_offer_make(hemi_lane *lane) {
    const hemi_root *root = lane->world->root;
    hemi_sending *tx = &lane->tx;
    const hemi_letter *letter = tx->queue.head;
    bool library = hemi_lane_is_library(root, letter->data, letter->room);
    uint64_t where =
        library ? (uint64_t)(letter->data - root->arena.base) : (uint64_t)(uintptr_t)letter->data;
    hemi_offer offer = {library ? HEMI_OFFER_LIBRARY : HEMI_OFFER_PRIVATE, where,
                        !letter->op.owned && tx->near == 0};
    tx->near -= tx->near > 0;
    tx->number = hemi_tx_offer(&tx->cursor, &offer, letter->room);
    tx->phase = HEMI_TX_OFFERED;
    hemi_lane_wake(lane);
    return 1;
}

/* After two slow pieces, so many offers are not pulled. */
#define FAR_FOR 64

/* Two slow pieces were pulled not long ago: let the sender write past the caches. */
static bool is_far(hemi_receiving *rx) {
    if (rx->far == 0)
        return false;
    rx->far--;
    return true;
}

/*
 * Whether the sender shall push, where both buffers are library memory. It can do so past the caches,
 * and pulling leaves it with lines that it has to take back before it can write the next message: 512
 * KiB both ways between cores of an EPYC without a common cache were pulled in 330 us and pushed in 80
 * us; with one, in 70 and 105 us; 1 MiB between cores of a Xeon in 107 and 204 us. So it is measured.
 * And a sender that only started the message may not be there to push.
 */
static bool is_better_pushed(const hemi_lane *lane, const hemi_offer *offer) {
    return offer->present == 1 && lane->peer != lane->world->rank && !hemi_lane_is_dead(lane) &&
           hemi_lane_prefers(lane, HEMI_WAY_PUSHED, HEMI_WAY_PULLED);
}

/* How the offer is taken: push, pull, stage. Answers it unless it is pulled. */
static uint64_t choose(hemi_lane *lane, hemi_letter *letter, const hemi_offer *offer) {
    hemi_receiving *rx = &lane->rx;
    const hemi_root *root = lane->world->root;
    bool library = offer->memory == HEMI_OFFER_LIBRARY;
    bool mine = hemi_lane_is_library(root, letter->data, rx->total);
    rx->remote = !library && !hemi_lane_same_process(lane);
    rx->source =
        library ? (uint64_t)(uintptr_t)hemi_arena_at(&root->arena, offer->where) : offer->where;
    rx->began_ns = 0;
    if (mine && !rx->remote)
        hemi_lane_measure(lane, rx->total);
    if (mine && (rx->remote || is_better_pushed(lane, offer))) {
        rx->phase = HEMI_RX_PUSH;
        hemi_rx_say(&rx->cursor, rx->number, HEMI_VERDICT_PUSH,
                    (uint64_t)(letter->data - root->arena.base));
    } else if (rx->remote ? hemi_lane_likes_single(lane) : mine || !is_far(rx)) {
        rx->phase = HEMI_RX_PULL;
        if (rx->remote)
            hemi_lane_measure(lane, rx->total);
    } else {
        hemi_rx_say(&rx->cursor, rx->number, HEMI_VERDICT_STAGE, 0);
        hemi_store64_relaxed(&rx->cursor.mine->likes, 0);
    }
    return rx->phase == HEMI_RX_PULL ? hemi_offer_pull(lane) : 1;
}

static const char *check_offer(const hemi_lane *lane, const hemi_header *h) {
    const hem_world *world = lane->world;
    if (h->at.offer.memory == HEMI_OFFER_PRIVATE)
        return NULL;
    if (h->at.offer.memory != HEMI_OFFER_LIBRARY)
        return "kind of offered memory";
    return hemi_arena_in_part(&world->root->arena, world->members[lane->peer], h->at.offer.where,
                              h->bytes)
               ? NULL
               : "place of offered memory";
}

uint64_t hemi_offer_accept(hemi_lane *lane, hemi_letter *letter, const hemi_header *header) {
    hemi_receiving *rx = &lane->rx;
    const char *wrong = check_offer(lane, header);
    if (wrong != NULL)
        return hemi_recv_break(lane, wrong);
    rx->number = rx->cursor.slot_head + 1;
    rx->total = header->bytes;
    rx->moved = 0;
    hemi_rx_credit(&rx->cursor);
    uint64_t moved = 1;
    if (hemi_rx_withdrawn(&rx->cursor, rx->number)) {
        /* It never happened. */
    } else if (rx->total > letter->room) {
        hemi_rx_say(&rx->cursor, rx->number, HEMI_VERDICT_RANGE, letter->room);
        hemi_letter_done(letter, hemi_recv_too_small(letter, rx->total));
    } else {
        moved = choose(lane, letter, &header->at.offer);
    }
    hemi_lane_wake(lane);
    return moved;
}

/* Copy a piece from another process. False: the system does not let us. */
static bool read_piece(const hemi_lane *lane, unsigned char *to, uint64_t from, size_t bytes) {
    uint32_t pid = hemi_load32_relaxed(&lane->block->pid);
    while (bytes > 0) {
        struct iovec local = {to, bytes};
        struct iovec remote = {(void *)(uintptr_t)from, bytes};
        ssize_t got = process_vm_readv((pid_t)pid, &local, 1, &remote, 1, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        to += got;
        from += (uint64_t)got;
        bytes -= (size_t)got;
    }
    return true;
}

/* Copy a piece from mapped memory, and find out whether it comes from afar. */
static void copy_piece(hemi_lane *lane, unsigned char *to, uint64_t from, size_t bytes) {
    hemi_receiving *rx = &lane->rx;
    const hemi_platform *platform = lane->world->root->platform;
    bool timed = bytes >= HEMI_STREAM_MIN && lane->peer != lane->world->rank;
    uint64_t start = timed ? platform->now(platform->ctx) : 0;
    memcpy(to, (const void *)(uintptr_t)from, bytes);
    if (!timed)
        return;
    bool slow = (platform->now(platform->ctx) - start) * HEMI_PULL_SPEED > bytes;
    if (slow && rx->slow)
        rx->far = FAR_FOR;
    rx->slow = slow && !rx->slow;
}

static uint64_t end_pull(hemi_lane *lane, hemi_letter *letter, uint32_t code) {
    hemi_receiving *rx = &lane->rx;
    rx->phase = HEMI_RX_IDLE;
    /* In this order: a sender that withdraws waits for the second, then reads the first. */
    hemi_rx_say(&rx->cursor, rx->number, code, 0);
    hemi_rx_pull_end(&rx->cursor);
    hemi_lane_wake(lane);
    if (code == HEMI_VERDICT_DONE) {
        letter->op.bytes = rx->total;
        hemi_letter_done(letter, HEM_OK);
    }
    return rx->total;
}

/* The sender has withdrawn it. If nothing has come yet, the letter takes the next message. */
static uint64_t lose(hemi_lane *lane, hemi_letter *letter) {
    hemi_receiving *rx = &lane->rx;
    hemi_rx_pull_end(&rx->cursor);
    hemi_lane_wake(lane);
    rx->phase = HEMI_RX_IDLE;
    if (rx->moved != 0)
        hemi_letter_done(letter, hemi_recv_withdrawn(letter));
    return 1;
}

/* Whether the source cannot be read any more: private memory goes with its owner. */
static bool source_is_gone(const hemi_lane *lane) {
    const hemi_root *root = lane->world->root;
    return !hemi_arena_in_part(&root->arena, lane->world->members[lane->peer],
                               lane->rx.source - (uint64_t)(uintptr_t)root->arena.base, 1) &&
           !hemi_liveness_may_come(&root->arena, lane->world->members[lane->peer]);
}

uint64_t hemi_offer_pull(hemi_lane *lane) {
    hemi_receiving *rx = &lane->rx;
    hemi_letter *letter = rx->queue.head;
    if (source_is_gone(lane))
        return 0;
    if (!hemi_rx_pull_begin(&rx->cursor, rx->number))
        return lose(lane, letter);
    uint64_t left = rx->total - rx->moved;
    uint64_t bytes = left < HEMI_PIECE ? left : HEMI_PIECE;
    bool good = true;
    if (rx->remote)
        good = read_piece(lane, letter->data + rx->moved, rx->source + rx->moved, bytes);
    else
        copy_piece(lane, letter->data + rx->moved, rx->source + rx->moved, bytes);
    lane->no_single = lane->no_single || !good;
    rx->moved += good ? bytes : 0;
    if (good && rx->moved == rx->total)
        hemi_lane_measured(lane, rx->remote ? HEMI_WAY_SINGLE : HEMI_WAY_PULLED);
    if (!good || rx->moved == rx->total)
        return end_pull(lane, letter, good ? HEMI_VERDICT_DONE : HEMI_VERDICT_STAGE);
    hemi_rx_pull_end(&rx->cursor);
    hemi_lane_wake(lane);
    return bytes;
}

uint64_t hemi_offer_push(hemi_lane *lane) {
    hemi_sending *tx = &lane->tx;
    hemi_letter *letter = tx->queue.head;
    uint64_t left = letter->room - letter->moved;
    uint64_t bytes = left < HEMI_PIECE ? left : HEMI_PIECE;
    bool wanted = hemi_tx_push_begin(&tx->cursor, tx->number);
    if (wanted)
        hemi_send_copy(lane, tx->to + letter->moved, letter->data + letter->moved, bytes);
    hemi_tx_push_end(&tx->cursor);
    if (wanted)
        letter->moved += bytes;
    if (!wanted || letter->moved == letter->room) {
        /* Nobody wants it any more: it was received and thrown away, as a staged one would be. */
        tx->due = wanted ? HEMI_SLOT_FIN : HEMI_SLOT_ABORT;
        tx->due_bytes = wanted ? letter->room : 0;
        tx->phase = HEMI_TX_IDLE;
        /* There is a slot, as the offer's own has come back; and once this is done, the caller may
         * close the world. */
        (void)hemi_send_due(lane);
        hemi_letter_done(letter, HEM_OK);
    }
    hemi_lane_wake(lane);
    return bytes;
}
