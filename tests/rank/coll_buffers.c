#include "coll_buffers.h"

enum {
    GUARD = 192,
    PAINT = 0xb6,
    SPOILT = 0xee
};

/* Rooms. */

static coll_room room_make(hem_world *world, size_t bytes, bool library, size_t shift) {
    coll_room room = {.bytes = bytes};
    size_t whole = bytes + 2 * GUARD + 64;
    uintptr_t at;

    if (library) {
        CHECK_OK(hem_memory_alloc(world, whole, &room.memory));
        room.base = hem_memory_address(room.memory);
    } else {
        room.base = malloc(whole);
    }
    CHECK(room.base != NULL);
    at = ((uintptr_t)room.base + 63) / 64 * 64 + shift;
    room.start = room.base + (at - (uintptr_t)room.base) + GUARD - 64;
    memset(room.base, PAINT, whole);
    return room;
}

static void room_check(const coll_room *room) {
    if (!room->base)
        return;
    CHECK_ALL(room->base, (size_t)(room->start - room->base), PAINT);
    CHECK_ALL(room->start + room->bytes, GUARD, PAINT);
}

static void room_free(coll_room *room) {
    if (room->memory)
        CHECK_OK(hem_memory_free(room->memory));
    else
        free(room->base);
    *room = (coll_room){0};
}

/* Making. */

static bool in_library(int memory, int rank, bool sends) {
    switch (memory) {
    case COLL_PRIVATE:
        return false;
    case COLL_LIBRARY:
        return true;
    case COLL_BY_RANK:
        return rank % 2;
    default:
        return (rank % 2 == 0) == sends;
    }
}

static size_t shift_of(const coll_case *c, int align, int rank, uint64_t which) {
    harness_rng rng = harness_rng_of(c->seed, (uint64_t)rank, which);

    return align == COLL_ALIGNED ? 0 : align == COLL_ODD ? 1 : harness_below(&rng, 64);
}

/* In place, where the one buffer begins inside of the other, in elements. */
static void overlay(coll_buffers *b) {
    const coll_case *c = &b->c;
    size_t own = b->layout.displs[b->rank] * coll_element(c);

    b->send = b->rooms[0].start;
    b->recv = b->rooms[0].start;
    if (c->kind == HEM_ALLGATHER || c->kind == HEM_ALLGATHERV || c->kind == HEM_GATHER ||
        c->kind == HEM_GATHERV)
        b->send += own;
    if (c->kind == HEM_SCATTER || c->kind == HEM_SCATTERV)
        b->recv += own;
}

/* Who has both buffers may have them in one. A broadcast in place is so for everybody. */
static bool shares(const coll_buffers *b) {
    const coll_case *c = &b->c;

    if (!c->in_place || c->kind == HEM_BARRIER)
        return false;
    return c->kind == HEM_BROADCAST || (b->layout.sent_count && b->layout.received_count);
}

coll_buffers coll_buffers_make(hem_world *world, const coll_case *c, int memory, int align) {
    int rank = hem_world_rank(world);
    coll_buffers b = {.c = *c, .layout = coll_layout_of(c, rank), .rank = rank};
    bool sends = b.layout.sent_count > 0;
    bool receives = b.layout.received_count > 0;

    b.send_bytes = b.layout.send_room * coll_element(c);
    b.recv_bytes = b.layout.recv_room * coll_element(c);
    b.shared = shares(&b);
    if (sends || b.shared)
        b.rooms[0] =
            room_make(world, b.shared && b.recv_bytes > b.send_bytes ? b.recv_bytes : b.send_bytes,
                      in_library(memory, rank, true), shift_of(c, align, rank, 1));
    if (receives && !b.shared)
        b.rooms[1] = room_make(world, b.recv_bytes, in_library(memory, rank, false),
                               shift_of(c, align, rank, 2));
    b.send = b.rooms[0].start;
    b.recv = b.rooms[1].start;
    if (b.shared)
        overlay(&b);
    return b;
}

/* Filling and checking. */

void coll_buffers_fill(coll_buffers *b) {
    for (int i = 0; i < 2; i++)
        if (b->rooms[i].base)
            memset(b->rooms[i].start, PAINT, b->rooms[i].bytes);
    if (b->layout.sent_count)
        coll_fill(&b->c, b->rank, &b->layout, b->send);
    b->coll = coll_describe(&b->c, &b->layout);
    b->coll.send = b->send;
    b->coll.recv = b->recv;
}

static void compare(const coll_buffers *b, const unsigned char *got, const unsigned char *want,
                    size_t bytes, const char *what) {
    size_t element = coll_element(&b->c);

    if (bytes == 0 || memcmp(got, want, bytes) == 0)
        return;
    for (size_t i = 0; i < bytes; i++)
        if (got[i] != want[i])
            harness_fail(__FILE__, __LINE__,
                         "%s: byte %zu of %zu (element %zu, byte %zu) is %#x, not %#x", what, i,
                         bytes, i / element, i % element, got[i], want[i]);
}

static unsigned char *image_of(size_t bytes) {
    unsigned char *image = malloc(bytes + 1);

    CHECK(image != NULL);
    memset(image, PAINT, bytes);
    return image;
}

static void check_received(const coll_buffers *b, unsigned char *image) {
    const coll_layout *l = &b->layout;
    size_t element = coll_element(&b->c);

    coll_expect(&b->c, l, image);
    if (!b->shared || b->recv_bytes >= b->send_bytes) {
        compare(b, b->recv, image, b->recv_bytes, "received");
        return;
    }
    for (int i = 0; i < l->received_count; i++)
        compare(b, b->recv + l->received[i].at * element, image + l->received[i].at * element,
                l->received[i].count * element, "received in place");
}

void coll_buffers_check(coll_buffers *b) {
    unsigned char *image;

    if (b->layout.received_count) {
        image = image_of(b->recv_bytes);
        check_received(b, image);
        free(image);
    }
    if (b->layout.sent_count && !b->shared) {
        image = image_of(b->send_bytes);
        coll_fill(&b->c, b->rank, &b->layout, image);
        compare(b, b->send, image, b->send_bytes, "sent");
        free(image);
        /* Nobody reads it any more. */
        memset(b->send, SPOILT, b->send_bytes);
    }
    room_check(&b->rooms[0]);
    room_check(&b->rooms[1]);
}

void coll_buffers_free(coll_buffers *b) {
    room_free(&b->rooms[0]);
    room_free(&b->rooms[1]);
}
