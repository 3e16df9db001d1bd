/*
 * A receive into too small a buffer fails with HEM_ERR_RANGE and names both sizes; nothing is
 * written beside the buffer. So does the send, if it has not been done already. The message is off
 * the channel then, and the next ones arrive.
 *
 * hem-test: ranks=1,2,3 modes=processes,threads timeout=60
 */
#include "channel_kit.h"

#include <sys/mman.h>

struct half {
    size_t bytes;
    size_t room;
    bool must_fail; /* the sender, too: no staging holds so much */
};

static void check_sentence(size_t bytes, size_t room) {
    char text[32];

    snprintf(text, sizeof text, "%zu", bytes);
    CHECK_SENTENCE(text);
    snprintf(text, sizeof text, "%zu", room);
    CHECK_SENTENCE(text);
}

static void check_sender(hem_status status, const struct half *h) {
    if (status == HEM_OK && !h->must_fail)
        return;
    CHECK_STATUS(status, HEM_ERR_RANGE);
    check_sentence(h->bytes, h->room);
}

static void receive(hem_world *world, int peer, chan_buffer *in, const struct half *h, int way) {
    hem_message recv = {peer, in->at, h->room};
    size_t got = 4711;
    hem_op *op = NULL;

    if (way == 0) {
        CHECK_STATUS(hem_recv(world, peer, 6, in->at, h->room, &got, LIMIT), HEM_ERR_RANGE);
        CHECK_EQ(got, 4711);
    } else if (way == 1) {
        CHECK_STATUS(hem_sendrecv(world, 6, NULL, &recv, LIMIT), HEM_ERR_RANGE);
        CHECK_EQ(recv.bytes, h->room);
    } else {
        CHECK_OK(hem_recv_start(world, peer, 6, in->at, h->room, &op));
        CHECK_STATUS(hem_op_wait(op, LIMIT), HEM_ERR_RANGE);
        check_sentence(h->bytes, h->room);
        CHECK_STATUS(hem_op_wait(op, LIMIT), HEM_ERR_RANGE);
        FREE_OP(op);
    }
    check_sentence(h->bytes, h->room);
    CHECK_GUARDS(in);
}

static void send(hem_world *world, int peer, chan_buffer *out, const struct half *h, int way) {
    hem_message half = {peer, out->at, h->bytes};
    hem_op *op = NULL;

    if (way == 0) {
        check_sender(hem_send(world, peer, 6, out->at, h->bytes, LIMIT), h);
    } else if (way == 1) {
        check_sender(hem_sendrecv(world, 6, &half, NULL, LIMIT), h);
    } else {
        CHECK_OK(hem_send_start(world, peer, 6, out->at, h->bytes, &op));
        check_sender(hem_op_wait(op, LIMIT), h);
        FREE_OP(op);
    }
}

/* Both to and from oneself, so that the receive must be started first. */
static void to_self(hem_world *world, chan_buffer *out, chan_buffer *in, const struct half *h) {
    int me = hem_world_rank(world);
    hem_op *ops[2] = {NULL, NULL};

    CHECK_OK(hem_recv_start(world, me, 6, in->at, h->room, &ops[0]));
    CHECK_OK(hem_send_start(world, me, 6, out->at, h->bytes, &ops[1]));
    check_sender(hem_op_wait(ops[1], LIMIT), h);
    CHECK_STATUS(hem_op_wait(ops[0], LIMIT), HEM_ERR_RANGE);
    check_sentence(h->bytes, h->room);
    CHECK_GUARDS(in);
    FREE_OP(ops[0]);
    FREE_OP(ops[1]);
}

static const struct half halves[] = {
    {1, 0, false},
    {8, 7, false},
    {40, 39, false},
    {40, 0, false},
    {41, 40, false},
    {64, 41, false},
    {1000, 999, false},
    {5000, 40, false},
    {70000, 69999, false},
    {300000, 0, false},
    {1100000, 1099999, false},
    {2100000, 4096, false},
    {9000000, 100, true},
    {33554433, 33554432, true},
};

static void all_halves(hem_world *world) {
    int me = hem_world_rank(world);
    int peer = chan_partner(world);
    chan_buffer out = chan_make(33554433);
    chan_buffer in = chan_make(33554433);

    for (size_t i = 0; i < sizeof halves / sizeof *halves; i++) {
        if (harness_sanitized() && halves[i].bytes > 9000000)
            continue;
        for (int way = 0; way < 3; way++) {
            harness_step("half", i);
            chan_load(&out, halves[i].bytes, 3, i);
            chan_place(&in, halves[i].room, 5);
            if (me == peer)
                to_self(world, &out, &in, &halves[i]);
            else if (me < peer)
                send(world, peer, &out, &halves[i], way);
            else
                receive(world, peer, &in, &halves[i], (way + (int)i) % 3);
            CHECK_BYTES(out.at, out.bytes, i);
            if (i % 2)
                chan_works(world, peer, 6, i * 100);
        }
    }
    chan_free(&in);
    chan_free(&out);
    chan_works(world, peer, 6, 5000);
}

/* One that does not fit among others that do: only it is lost. */
static void among_others(hem_world *world, size_t bytes) {
    int me = hem_world_rank(world);
    int peer = chan_partner(world);
    chan_buffer out[3];
    chan_buffer in[3];
    hem_op *ops[6] = {NULL};

    for (size_t i = 0; i < 3; i++) {
        out[i] = chan_make(bytes);
        in[i] = chan_make(bytes);
        chan_load(&out[i], bytes, i, chan_tag(me, peer, 6, i));
        chan_place(&in[i], i == 1 ? bytes - 1 : bytes, i);
        CHECK_OK(hem_recv_start(world, peer, 6, in[i].at, in[i].bytes, &ops[i]));
        CHECK_OK(hem_send_start(world, peer, 6, out[i].at, out[i].bytes, &ops[3 + i]));
    }
    CHECK_OK(hem_op_wait(ops[2], LIMIT));
    CHECK_OK(hem_op_wait(ops[0], LIMIT));
    CHECK_STATUS(hem_op_wait_all(ops, 3, LIMIT), HEM_ERR_RANGE);
    check_sentence(bytes, bytes - 1);
    CHECK_OK(hem_op_wait(ops[3], LIMIT));
    CHECK_OK(hem_op_wait(ops[5], LIMIT));
    check_sender(hem_op_wait(ops[4], LIMIT), &(struct half){bytes, bytes - 1, false});
    CHECK_LOAD(&in[0], chan_tag(peer, me, 6, 0));
    CHECK_GUARDS(&in[1]);
    CHECK_LOAD(&in[2], chan_tag(peer, me, 6, 2));
    for (size_t i = 0; i < 6; i++)
        FREE_OP(ops[i]);
    for (size_t i = 0; i < 3; i++) {
        chan_free(&in[i]);
        chan_free(&out[i]);
    }
}

/* More than 4 GiB: cut to 32 bits it would fit. The pages are never there. */
static void beyond_32_bits(hem_world *world) {
    size_t bytes = ((size_t)1 << 32) + 100;
    int me = hem_world_rank(world);
    int peer = chan_partner(world);
    struct half h = {bytes, 200, true};
    chan_buffer in = chan_make(200);
    chan_buffer out = {.bytes = bytes};

    out.at = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(out.at != MAP_FAILED);
    chan_place(&in, 200, 9);
    if (me == peer)
        to_self(world, &out, &in, &h);
    else if (me < peer)
        send(world, peer, &out, &h, 0);
    else
        receive(world, peer, &in, &h, 0);
    CHECK_EQ(munmap(out.at, bytes), 0);
    chan_works(world, peer, 6, 9000);
    chan_free(&in);
}

int rank_main(hem_world *world) {
    all_halves(world);
    among_others(world, 17);
    among_others(world, 4000);
    among_others(world, 100000);
    among_others(world, harness_sanitized() ? 800000 : 3000000);
    if (!harness_sanitized())
        beyond_32_bits(world);
    harness_close(world, HEM_OK);
    return 0;
}
