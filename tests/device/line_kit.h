/* What the tests of lines with device memory have in common: payloads that both sides of a link can
 * work out, here or there. */
#ifndef HEM_TESTS_DEVICE_LINE_KIT_H
#define HEM_TESTS_DEVICE_LINE_KIT_H

#include "device.h"

enum {
    LINE_LEFT = 0,
    LINE_RIGHT = 1
};

/** What `rank` gives to one side in a round. */
typedef struct line_gift {
    bool present;
    bool on_device;
    size_t meta_bytes;
    size_t data_bytes;
    uint64_t tag; /* of harness_fill */
} line_gift;

/** Around the limits of what rides with a header, of a piece, of two of them. */
static inline size_t line_bytes(harness_rng *rng) {
    static const size_t sizes[] = {0,      1,      40,     4000,   4096,    5000,   20000,
                                   262143, 262144, 262145, 524288, 1048576, 3145733};
    size_t i = harness_below(rng, sizeof sizes / sizeof *sizes);
    /* Large ones are rarer, so that the test does not take for ever. */
    if (i >= 7 && harness_below(rng, 3) != 0)
        i -= 7;
    return sizes[i];
}

static inline line_gift line_gift_of(uint64_t seed, uint64_t round, int rank, int side) {
    harness_rng rng = harness_rng_of(seed, round, (uint64_t)(2 * rank + side));
    line_gift gift;
    memset(&gift, 0, sizeof gift);
    gift.tag = harness_random(&rng);
    gift.present = harness_below(&rng, 8) != 0;
    gift.on_device = harness_below(&rng, 2) != 0;
    gift.meta_bytes = harness_below(&rng, 4) == 0 ? harness_below(&rng, 10000) : 8;
    gift.data_bytes = line_bytes(&rng);
    return gift;
}

/** The rank at a side, or -1. */
static inline int line_neighbour(const hem_world *world, bool ring, int side) {
    int size = hem_world_size(world);
    int peer = hem_world_rank(world) + (side == LINE_LEFT ? -1 : 1);
    if (size == 1)
        return -1;
    if (ring)
        return (peer + size) % size;
    return peer < size ? peer : -1;
}

/** Memory for a gift, filled. */
static inline void *line_make_data(const line_gift *gift) {
    if (gift->data_bytes == 0)
        return NULL;
    void *plain = malloc(gift->data_bytes);
    CHECK(plain != NULL);
    harness_fill(plain, gift->data_bytes, gift->tag);
    if (!gift->on_device)
        return plain;
    void *data = device_alloc(gift->data_bytes);
    device_copy(data, plain, gift->data_bytes);
    free(plain);
    return data;
}

static inline void line_free_data(const line_gift *gift, void *data) {
    if (data == NULL)
        return;
    if (gift->on_device)
        device_free(data);
    else
        free(data);
}

/** Bytes wherever they are. */
static inline void line_check_data(const void *data, hem_memory_kind kind, size_t bytes,
                                   uint64_t tag) {
    if (kind == HEM_MEMORY_HOST) {
        CHECK_FILLED(data, bytes, tag);
        return;
    }
    void *plain = malloc(bytes);
    CHECK(plain != NULL);
    device_copy(plain, data, bytes);
    CHECK_FILLED(plain, bytes, tag);
    free(plain);
}

/** A round's memory: what goes out, until it may be freed. */
typedef struct line_packet {
    hem_payload payloads[2];
    line_gift gifts[2];
    hem_line_round round;
} line_packet;

static inline void line_pack(line_packet *packet, const hem_world *world, uint64_t seed,
                             uint64_t round) {
    memset(packet, 0, sizeof *packet);
    packet->round.struct_size = sizeof packet->round;
    for (int s = LINE_LEFT; s <= LINE_RIGHT; s++) {
        line_gift *gift = &packet->gifts[s];
        hem_payload *payload = &packet->payloads[s];
        *gift = line_gift_of(seed, round, hem_world_rank(world), s);
        if (!gift->present)
            continue;
        void *meta = malloc(gift->meta_bytes + 1);
        CHECK(meta != NULL);
        harness_fill(meta, gift->meta_bytes, gift->tag + 1);
        payload->meta = meta;
        payload->meta_bytes = gift->meta_bytes;
        payload->data = line_make_data(gift);
        payload->data_bytes = gift->data_bytes;
    }
    packet->round.to_left = packet->gifts[LINE_LEFT].present ? &packet->payloads[LINE_LEFT] : NULL;
    packet->round.to_right =
        packet->gifts[LINE_RIGHT].present ? &packet->payloads[LINE_RIGHT] : NULL;
}

static inline void line_unpack(line_packet *packet) {
    for (int s = LINE_LEFT; s <= LINE_RIGHT; s++) {
        free((void *)(uintptr_t)packet->payloads[s].meta);
        line_free_data(&packet->gifts[s], (void *)(uintptr_t)packet->payloads[s].data);
    }
}

/** What came from a side is what the neighbour gave. @return that gift. */
static inline line_gift line_check_side(const hem_world *world, bool ring, uint64_t seed,
                                        uint64_t round, const hem_delivery *delivery, int side) {
    int peer = line_neighbour(world, ring, side);
    line_gift gift;
    memset(&gift, 0, sizeof gift);
    if (peer >= 0)
        gift = line_gift_of(seed, round, peer, 1 - side);
    CHECK_EQ(delivery->present, gift.present);
    if (!gift.present)
        return gift;
    CHECK_EQ(delivery->meta_bytes, gift.meta_bytes);
    CHECK_EQ(delivery->data_bytes, gift.data_bytes);
    CHECK_FILLED(delivery->meta, gift.meta_bytes, gift.tag + 1);
    CHECK((delivery->buffer.data != NULL) == (gift.data_bytes != 0));
    if (gift.data_bytes != 0)
        line_check_data(delivery->buffer.data, delivery->buffer.kind, gift.data_bytes, gift.tag);
    return gift;
}

#endif
