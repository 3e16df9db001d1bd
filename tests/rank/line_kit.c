#include "line_kit.h"

static size_t choose(harness_rng *rng, size_t most) {
    static const size_t edges[] = {0,    1,    7,    8,     9,     39,    40,      41,
                                   63,   64,   4063, 4064,  4065,  4095,  4096,    4097,
                                   8191, 8192, 8193, 16383, 16384, 65536, 1000003, 1048576};
    size_t count = sizeof edges / sizeof *edges;
    size_t bytes = edges[harness_below(rng, count)];

    return bytes <= most ? bytes : harness_below(rng, most + 1);
}

line_gift line_gift_of(const line_plan *plan, uint64_t round, int rank, int side) {
    harness_rng rng = harness_rng_of(plan->seed, round, (uint64_t)rank * 2 + (uint64_t)side);
    line_gift gift = {.present = harness_below(&rng, 6) != 0};

    gift.tag = harness_random(&rng);
    if (!gift.present)
        return gift;
    gift.meta_bytes = choose(&rng, harness_below(&rng, 3) == 0 ? plan->meta_most : 0);
    gift.data_bytes = choose(&rng, harness_below(&rng, 4) == 0 ? plan->data_most : 9000);
    if (gift.data_bytes > plan->data_most)
        gift.data_bytes = plan->data_most;
    return gift;
}

int line_neighbour(const hem_world *world, const line_plan *plan, int side) {
    int size = hem_world_size(world);
    int peer = hem_world_rank(world) + (side == LINE_LEFT ? -1 : 1);

    if (size == 1 || (!plan->ring && (peer < 0 || peer == size)))
        return -1;
    return (peer + size) % size;
}

static void *filled(size_t bytes, uint64_t tag) {
    void *data = malloc(bytes + 1);

    CHECK(data != NULL);
    harness_fill(data, bytes, tag);
    return data;
}

void line_pack(line_packet *packet, const hem_world *world, const line_plan *plan, uint64_t round) {
    *packet = (line_packet){.round = {.struct_size = sizeof(hem_line_round)}};
    for (int side = LINE_LEFT; side <= LINE_RIGHT; side++) {
        line_gift gift = line_gift_of(plan, round, hem_world_rank(world), side);
        hem_payload *payload = &packet->payloads[side];

        packet->gifts[side] = gift;
        if (!gift.present)
            continue;
        payload->meta = filled(gift.meta_bytes, gift.tag);
        payload->meta_bytes = gift.meta_bytes;
        payload->data = filled(gift.data_bytes, gift.tag + 1);
        payload->data_bytes = gift.data_bytes;
    }
    if (packet->gifts[LINE_LEFT].present)
        packet->round.to_left = &packet->payloads[LINE_LEFT];
    if (packet->gifts[LINE_RIGHT].present)
        packet->round.to_right = &packet->payloads[LINE_RIGHT];
}

void line_unpack(line_packet *packet) {
    for (int side = LINE_LEFT; side <= LINE_RIGHT; side++) {
        free((void *)(uintptr_t)packet->payloads[side].meta);
        free((void *)(uintptr_t)packet->payloads[side].data);
    }
    memset(packet, 0, sizeof *packet);
}

static void check_delivery(const hem_delivery *delivery, const line_gift *gift) {
    CHECK_EQ(delivery->present, gift->present);
    if (!gift->present) {
        CHECK(delivery->meta == NULL && delivery->buffer.data == NULL);
        CHECK_EQ(delivery->meta_bytes + delivery->data_bytes, 0);
        return;
    }
    CHECK_EQ(delivery->meta_bytes, gift->meta_bytes);
    CHECK_EQ(delivery->data_bytes, gift->data_bytes);
    CHECK_FILLED(delivery->meta, gift->meta_bytes, gift->tag);
    CHECK((delivery->buffer.data == NULL) == (gift->data_bytes == 0));
    CHECK_FILLED(delivery->buffer.data, gift->data_bytes, gift->tag + 1);
}

void line_check(const hem_world *world, const line_plan *plan, uint64_t round,
                const hem_line_result *result) {
    const hem_delivery *deliveries[] = {&result->from_left, &result->from_right};

    CHECK_EQ(result->round, round);
    for (int side = LINE_LEFT; side <= LINE_RIGHT; side++) {
        int peer = line_neighbour(world, plan, side);
        line_gift gift = {0};

        if (peer >= 0)
            gift = line_gift_of(plan, round, peer, 1 - side);
        check_delivery(deliveries[side], &gift);
    }
}

bool line_pass(hem_world *world, hem_line *line, const line_plan *plan, uint64_t round, bool done) {
    line_packet packet;
    hem_line_result result;

    harness_step("round", round);
    line_pack(&packet, world, plan, round);
    packet.round.done = done;
    CHECK_OK(hem_line_exchange(line, &packet.round, &result, LIMIT));
    line_check(world, plan, round, &result);
    hem_line_release(&result);
    line_unpack(&packet);
    return result.all_done;
}

hem_line *line_make(hem_world *world, bool ring) {
    hem_line_options options = {.struct_size = sizeof options, .ring = ring};
    hem_line *line = NULL;

    CHECK_OK(hem_line_create(world, &options, &line));
    return line;
}
