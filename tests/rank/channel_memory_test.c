/*
 * Messages straight from and into library memory: on the sender's side, the receiver's, both or
 * none; memory of one's own, of a window, of a third rank, of another world; and memory that was
 * freed and given out again. Every length and alignment arrives whole, with nothing beside it.
 *
 * hem-test: ranks=1,2,3 modes=processes,threads timeout=60
 */
#include "channel_kit.h"

#include <unistd.h>

enum {
    MOST = 1200000,
    PER_RANK = MOST + 4096
};

enum kind {
    PRIVATE,
    ALLOCATED,
    WINDOW,
    THIRD, /* a third rank's part of a window, if it is mapped */
    ELSEWHERE,
    STACK,
    KINDS
};

struct rank {
    hem_world *world;
    hem_world *twin;
    hem_window *window; /* half of it for sending, half for receiving, for each rank */
    hem_memory *allocated[2];
    hem_memory *elsewhere[2];
    uint8_t *private[2];
    uint8_t *stack[2];
    int me;
    int peer;
    uint64_t number;
};

static uint8_t *block_of(struct rank *r, enum kind kind, int half) {
    size_t offset = ((size_t)r->me * 2 + (size_t)half) * PER_RANK;
    int size = hem_world_size(r->world);
    uint8_t *at = NULL;

    switch (kind) {
    case ALLOCATED:
        return hem_memory_address(r->allocated[half]);
    case WINDOW:
        return (uint8_t *)hem_window_memory(r->window) + offset;
    case THIRD:
        at = hem_window_peer_address(r->window, (r->me + 1 + half) % size, 0);
        return at ? at + offset : r->private[half];
    case ELSEWHERE:
        return hem_memory_address(r->elsewhere[half]);
    case STACK:
        return r->stack[half];
    default:
        return r->private[half];
    }
}

static void swap(struct rank *r, enum kind out_kind, enum kind in_kind, size_t bytes) {
    size_t shift = r->number % 16;
    chan_buffer out = {.block = block_of(r, out_kind, 0), .capacity = MOST};
    chan_buffer in = {.block = block_of(r, in_kind, 1), .capacity = MOST};
    hem_message send = {.peer = r->peer, .bytes = bytes};
    hem_message recv = {.peer = r->peer, .bytes = bytes + 1};

    harness_step("message", r->number);
    chan_load(&out, bytes, shift, chan_tag(r->me, r->peer, 7, r->number));
    chan_place(&in, bytes, 15 - shift);
    send.data = out.at;
    recv.data = in.at;
    CHECK_OK(hem_sendrecv(r->world, 7, &send, &recv, LIMIT));
    CHECK_EQ(recv.bytes, bytes);
    CHECK_LOAD(&in, chan_tag(r->peer, r->me, 7, r->number));
    CHECK_LOAD(&out, chan_tag(r->me, r->peer, 7, r->number));
    r->number++;
}

/* Both ranks draw the same kinds, and use them the other way round. */
static void all_kinds(struct rank *r, size_t bytes, int times) {
    bool low = r->me <= r->peer;

    for (int time = 0; time < times; time++)
        for (int a = 0; a < KINDS; a++)
            for (int b = 0; b < KINDS; b++)
                swap(r, (enum kind)(low ? a : b), (enum kind)(low ? b : a), bytes);
}

/* The same address is library memory, then nothing, then library memory again. */
static void freed_and_back(struct rank *r) {
    hem_memory *memory = NULL;
    chan_buffer b = {.capacity = MOST};
    size_t got = 0;

    for (uint64_t i = 0; i < 20 && r->me != r->peer; i++) {
        harness_step("given out again", i);
        CHECK_OK(hem_memory_alloc(r->world, MOST + 4096, &memory));
        b.block = hem_memory_address(memory);
        if ((r->me < r->peer) == (i % 2 == 0)) {
            chan_load(&b, MOST, i % 16, i);
            CHECK_OK(hem_send(r->world, r->peer, 7, b.at, MOST, LIMIT));
        } else {
            chan_place(&b, MOST, i % 16);
            CHECK_OK(hem_recv(r->world, r->peer, 7, b.at, MOST, &got, LIMIT));
            CHECK_EQ(got, MOST);
            CHECK_LOAD(&b, i);
        }
        memset(b.at, 0xdd, MOST);
        CHECK_OK(hem_memory_free(memory));
    }
}

/* A buffer that ends with the last byte of the memory: nothing behind it may be looked at. */
static void up_to_the_end(struct rank *r) {
    hem_memory *memory = NULL;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t lengths[] = {1, 40, 41, 4096, 40 * page};
    hem_message send = {.peer = r->peer};
    hem_message recv = {.peer = r->peer};

    CHECK_OK(hem_memory_alloc(r->world, 80 * page, &memory));
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        uint8_t *at = hem_memory_address(memory);

        send.data = at + 40 * page - lengths[i];
        recv.data = at + 80 * page - lengths[i];
        send.bytes = recv.bytes = lengths[i];
        chan_fill(send.data, lengths[i], i);
        CHECK_OK(hem_sendrecv(r->world, 7, &send, &recv, LIMIT));
        CHECK_BYTES(recv.data, lengths[i], i);
    }
    CHECK_OK(hem_memory_free(memory));
}

static void set_up(struct rank *r, hem_world *world) {
    size_t size = (size_t)hem_world_size(world);

    r->world = world;
    r->me = hem_world_rank(world);
    r->peer = chan_partner(world);
    CHECK_OK(hem_world_split(world, 0, 0, &r->twin));
    r->window = harness_window(world, size * 2 * PER_RANK);
    for (int half = 0; half < 2; half++) {
        CHECK_OK(hem_memory_alloc(world, PER_RANK, &r->allocated[half]));
        CHECK_OK(hem_memory_alloc(r->twin, PER_RANK, &r->elsewhere[half]));
        r->private[half] = aligned_alloc(64, PER_RANK / 64 * 64 + 64);
        CHECK(r->private[half] != NULL);
    }
}

static void tear_down(struct rank *r) {
    harness_barrier(r->window);
    for (int half = 0; half < 2; half++) {
        CHECK_OK(hem_memory_free(r->allocated[half]));
        CHECK_OK(hem_memory_free(r->elsewhere[half]));
        free(r->private[half]);
    }
    harness_destroy(r->window);
    CHECK_OK(hem_world_close(r->twin));
    harness_close(r->world, HEM_OK);
}

int rank_main(hem_world *world) {
    static const size_t lengths[] = {0, 1, 40, 41, 1000, 4096, 70001, 300000, MOST};
    uint8_t stack[2][PER_RANK] __attribute__((aligned(64)));
    struct rank r = {.stack = {stack[0], stack[1]}};

    set_up(&r, world);
    for (size_t i = 0; i < (harness_sanitized() ? 7 : 9); i++)
        all_kinds(&r, lengths[i], lengths[i] < 5000 ? harness_rounds(4) : 1);
    freed_and_back(&r);
    up_to_the_end(&r);
    tear_down(&r);
    return 0;
}
