#include "channel/lane.h"

#include <stdlib.h>

void hemi_queue_append(hemi_queue *queue, hemi_letter *letter) {
    letter->next = NULL;
    if (queue->head == NULL)
        queue->head = letter;
    else
        queue->last->next = letter;
    queue->last = letter;
}

void hemi_queue_prepend(hemi_queue *queue, hemi_letter *letter) {
    letter->next = queue->head;
    if (queue->head == NULL)
        queue->last = letter;
    queue->head = letter;
}

void hemi_queue_remove(hemi_queue *queue, hemi_letter *letter) {
    hemi_letter *before = NULL;
    for (hemi_letter *l = queue->head; l != letter; l = l->next)
        before = l;
    if (before == NULL)
        queue->head = letter->next;
    else
        before->next = letter->next;
    if (queue->last == letter)
        queue->last = before;
}

static void set_up_tx(hemi_lane *lane, const hemi_lane_area *theirs) {
    hemi_tx *tx = &lane->tx.cursor;
    hemi_track_init(&tx->track, theirs->at, theirs->head_bytes, theirs->slots, theirs->ring_bytes);
    tx->mine = (hemi_credit *)(void *)theirs->at;
    lane->rx.cursor.mine = tx->mine;
}

static void set_up_rx(hemi_lane *lane, const hemi_lane_area *mine) {
    hemi_rx *rx = &lane->rx.cursor;
    hemi_track_init(&rx->track, mine->at, mine->head_bytes, mine->slots, mine->ring_bytes);
    rx->theirs = (const hemi_credit *)(const void *)mine->at;
    lane->tx.cursor.theirs = rx->theirs;
}

/* The area at `offset` of a hub. */
static hemi_lane_area area_of(const hem_world *world, const hemi_hub_view *hub, uint64_t offset) {
    return (hemi_lane_area){hemi_arena_at(&world->root->arena, offset),
                            hemi_lane_head_bytes(hub->slots), hub->ring_bytes, hub->slots};
}

hem_status hemi_lane_reach(hemi_lane *lane) {
    hem_world *world = lane->world;
    hemi_hub_view view;
    hem_status status = hemi_hub_see(world, lane->peer, &view);
    if (status != HEM_OK)
        return status;
    uint64_t area = hemi_hub_lane(&view, world->rank, lane->channel);
    status = hemi_hub_reserve(world, area, hemi_lane_head_bytes(view.slots));
    if (status != HEM_OK)
        return status;
    hemi_lane_area theirs = area_of(world, &view, area);
    set_up_tx(lane, &theirs);
    lane->open = true;
    return HEM_OK;
}

hem_status hemi_lane_reserve_ring(hemi_lane *lane) {
    if (__builtin_expect(lane->tx.reserved, 1))
        return HEM_OK;
    const hemi_track *track = &lane->tx.cursor.track;
    uint64_t offset = (uint64_t)(track->ring - lane->world->root->arena.base);
    hem_status status = hemi_hub_reserve(lane->world, offset, track->ring_bytes);
    lane->tx.reserved = status == HEM_OK;
    return status;
}

/* A pass moves a bounded amount, so that the directions and lanes of a rank take turns. */
#define TURN_BYTES 16384

static hem_status advance(hemi_task *task) {
    hemi_lane *lane = (hemi_lane *)(void *)task;
    uint64_t sum = 0;
    uint64_t moved;
    do {
        moved = lane->tx.queue.head != NULL || lane->tx.due != 0 ? hemi_send_step(lane) : 0;
        moved += hemi_recv_step(lane);
        sum += moved;
    } while (moved != 0 && sum < TURN_BYTES);
    if (sum != 0)
        hemi_store32_relaxed(&lane->world->engine.moves, lane->world->engine.moves + 1);
    if (!hemi_lane_has_work(lane))
        return HEM_OK;
    return moved != 0 ? HEMI_MORE : HEMI_AGAIN;
}

static void fail_queue(hemi_lane *lane, hemi_queue *queue, bool revoked, bool dead) {
    hemi_letter *next = NULL;
    for (hemi_letter *letter = queue->head; letter != NULL; letter = next) {
        next = letter->next;
        const char *call = hemi_call_name(letter->op.call);
        hem_status status = revoked ? hemi_world_fail_revoked(lane->world, call)
                                    : hemi_world_fail_peer(lane->world, lane->peer, call);
        hemi_letter_drop(letter, status, dead);
    }
}

/* What the peer had published before it went is still taken; a revoked world gets one more look. */
static void trouble(hemi_task *task, uint64_t now_ns) {
    hemi_lane *lane = (hemi_lane *)(void *)task;
    (void)now_ns;
    bool revoked = hemi_load32_acquire(&lane->world->team->revoked) != 0;
    bool dead = hemi_lane_is_dead(lane);
    bool gone = dead || hemi_load32_acquire(lane->closed) != 0;
    if (__builtin_expect(!revoked && !gone, 1))
        return;
    hem_status status = advance(task);
    while (gone && !revoked && status == HEMI_MORE)
        status = advance(task);
    if (lane->peer == lane->world->rank && !revoked)
        return; /* closing: hemi_engine_close cancels what is left */
    fail_queue(lane, &lane->tx.queue, revoked, dead);
    /* A thread that has claimed it may leave messages behind for those who wait; it wakes us then. */
    if (!revoked && hemi_load32_acquire(&lane->rx.busy) != 0)
        return;
    fail_queue(lane, &lane->rx.queue, revoked, dead);
    if (dead) {
        lane->tx.due = 0;
        lane->rx.phase = HEMI_RX_IDLE;
        lane->rx.discard = false;
    }
    if (!hemi_lane_has_work(lane))
        hemi_engine_unlist(lane->world, task);
}

bool hemi_lane_prefers(const hemi_lane *lane, enum hemi_way way, enum hemi_way other) {
    const hemi_receiving *rx = &lane->rx;
    bool faster =
        rx->rates[way] == 0 || (rx->rates[other] != 0 && rx->rates[way] > rx->rates[other]);
    /* Two in a row, as the sender hears of the first one's wish only afterwards. */
    return faster != (rx->tries % HEMI_MEASURED_TRIES >= HEMI_MEASURED_TRIES - 2);
}

bool hemi_lane_likes_single(const hemi_lane *lane) {
    uint32_t copy = lane->world->root->settings.copy;
    if (copy != HEMI_COPY_AUTO || lane->no_single || hemi_lane_same_process(lane))
        return copy == HEMI_COPY_SINGLE && !lane->no_single;
    return hemi_lane_prefers(lane, HEMI_WAY_SINGLE, HEMI_WAY_STAGED);
}

void hemi_lane_measure(hemi_lane *lane, uint64_t bytes) {
    const hemi_platform *platform = lane->world->root->platform;
    bool wanted = bytes >= HEMI_MEASURED_MIN && lane->world->root->settings.copy == HEMI_COPY_AUTO;
    lane->rx.began_ns = wanted ? platform->now(platform->ctx) : 0;
}

void hemi_lane_measured(hemi_lane *lane, enum hemi_way way) {
    const hemi_platform *platform = lane->world->root->platform;
    hemi_receiving *rx = &lane->rx;
    if (rx->began_ns == 0)
        return;
    uint64_t took = platform->now(platform->ctx) - rx->began_ns + 1;
    uint64_t rate = rx->total * 1000 / took + 1;
    rate = rate > UINT32_MAX / 2 ? UINT32_MAX / 2 : rate;
    uint32_t *mean = &rx->rates[way];
    *mean = *mean == 0 ? (uint32_t)rate : (uint32_t)((3 * (uint64_t)*mean + rate) / 4);
    rx->began_ns = 0;
    rx->tries++;
}

static void free_table(void *lanes) {
    hemi_lane_table *table = lanes;
    for (uint32_t r = 0; r < table->size; r++)
        free(table->peers[r]);
    free(table);
}

static hem_status make_table(hem_world *world) {
    if (world->engine.lanes != NULL)
        return HEM_OK;
    hemi_lane_table *table = calloc(1, sizeof *table + world->size * sizeof(hemi_lanes *));
    if (table == NULL)
        return hemi_fail(HEM_ERR_MEMORY, "no memory for the channels of %u ranks", world->size);
    table->size = world->size;
    world->engine.lanes = table;
    world->engine.lanes_free = free_table;
    return HEM_OK;
}

static hem_status make_peer(hem_world *world, uint32_t peer) {
    hemi_lane_table *table = world->engine.lanes;
    if (table->peers[peer] == NULL)
        table->peers[peer] = calloc(1, sizeof(hemi_lanes));
    if (table->peers[peer] == NULL)
        return hemi_fail(HEM_ERR_MEMORY, "no memory for the channels with rank %u", peer);
    return HEM_OK;
}

static void fill_in(hemi_lane *lane, hem_world *world, uint32_t peer, uint32_t channel) {
    lane->world = world;
    lane->peer = peer;
    lane->channel = channel;
    lane->block = hemi_arena_rank(&world->root->arena, world->members[peer]);
    lane->closed = &world->cells[peer].closed;
    lane->task.advance = advance;
    lane->task.trouble = trouble;
    lane->task.deadline_ns = UINT64_MAX;
}

void hemi_lane_set_up(hemi_lane *lane, hem_world *world, uint32_t peer, const hemi_lane_area *mine,
                      const hemi_lane_area *theirs) {
    fill_in(lane, world, peer, HEMI_CHANNEL_APART);
    set_up_rx(lane, mine);
    set_up_tx(lane, theirs);
    lane->ready = true;
    lane->open = true;
}

static hem_status make_lane(hem_world *world, uint32_t peer, uint32_t channel) {
    hemi_lane_table *table = world->engine.lanes;
    hemi_lane *lane = &table->peers[peer]->lanes[channel];
    const hemi_hub_view *hub = &world->engine.hub->mine;
    uint64_t area = hemi_hub_lane(hub, peer, channel);
    /* The peer may use it first, but polling must not be what gives it memory. */
    hem_status status = hemi_hub_reserve(world, area, hemi_lane_head_bytes(hub->slots));
    if (status != HEM_OK)
        return status;
    hemi_lane_area mine = area_of(world, hub, area);
    fill_in(lane, world, peer, channel);
    set_up_rx(lane, &mine);
    lane->ready = true;
    return HEM_OK;
}

hem_status hemi_lane_ready(hem_world *world, uint32_t peer, uint32_t channel) {
    if (hemi_lane_find(world, peer, channel) != NULL)
        return HEM_OK;
    hem_status status = hemi_hub_open(world);
    if (status == HEM_OK)
        status = make_table(world);
    if (status == HEM_OK)
        status = make_peer(world, peer);
    if (status == HEM_OK)
        status = make_lane(world, peer, channel);
    return status;
}
