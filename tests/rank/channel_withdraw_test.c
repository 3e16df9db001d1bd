/*
 * What happens to the others when one operation in a queue goes away: a send or receive that had
 * not begun leaves no trace, one that had begun costs its own message only, and those behind it
 * move up.
 *
 * hem-test: ranks=2,3 modes=processes,threads timeout=60
 */
#include "channel_kit.h"

enum {
    BIG = 2500000,
    LETTERS = 4
};

struct queue {
    hem_world *world;
    hem_window *window;
    int me;
    int peer;
    chan_buffer buffers[LETTERS];
    hem_op *ops[LETTERS];
};

static void queue_open(struct queue *q, hem_world *world) {
    *q = (struct queue){.world = world, .me = hem_world_rank(world), .peer = chan_partner(world)};
    q->window = harness_window(world, 64);
    for (int i = 0; i < LETTERS; i++)
        q->buffers[i] = chan_make(BIG);
}

static void queue_close(struct queue *q) {
    for (int i = 0; i < LETTERS; i++)
        chan_free(&q->buffers[i]);
    harness_destroy(q->window);
}

static void start_send(struct queue *q, int i, size_t bytes) {
    chan_load(&q->buffers[i], bytes, (size_t)i, (uint64_t)i);
    CHECK_OK(hem_send_start(q->world, q->peer, 0, q->buffers[i].at, bytes, &q->ops[i]));
}

static void start_recv(struct queue *q, int i) {
    chan_place(&q->buffers[i], BIG, (size_t)i);
    CHECK_OK(hem_recv_start(q->world, q->peer, 0, q->buffers[i].at, BIG, &q->ops[i]));
}

static void drop(struct queue *q, int i) {
    FREE_OP(q->ops[i]);
    q->ops[i] = NULL;
    memset(q->buffers[i].at, 0x11, q->buffers[i].bytes);
}

static void check_dropped(struct queue *q, int i) {
    CHECK_ALL(q->buffers[i].at, q->buffers[i].bytes, 0x11);
    CHECK_GUARDS(&q->buffers[i]);
}

/* A little progress, so that the first one begins. */
static void stir(struct queue *q) {
    for (int i = 0; i < 50; i++)
        CHECK_OK(hem_progress(q->world));
}

static void free_rest(struct queue *q) {
    for (int i = 0; i < LETTERS; i++)
        if (q->ops[i]) {
            CHECK_OK(hem_op_wait(q->ops[i], LIMIT));
            FREE_OP(q->ops[i]);
            q->ops[i] = NULL;
        }
}

/* Messages `gone` of four go away before the peer receives; the first is too big for staging. */
static void sends_go(struct queue *q, int first_gone, int gone, const size_t *bytes) {
    for (int i = 0; i < LETTERS; i++)
        start_send(q, i, bytes[i]);
    stir(q);
    for (int i = first_gone; i < first_gone + gone; i++)
        drop(q, i);
    harness_barrier(q->window);
    free_rest(q);
}

/* Only the message that may have begun can show up as HEM_ERR_REVOKED. */
static void rest_comes(struct queue *q, int first_gone, int gone, const size_t *bytes) {
    chan_buffer *b = &q->buffers[0];
    size_t got = 0;
    hem_status status;

    chan_place(b, BIG, 3);
    harness_barrier(q->window);
    for (int i = 0; i < LETTERS; i++) {
        if (i >= first_gone && i < first_gone + gone)
            continue;
        status = hem_recv(q->world, q->peer, 0, b->at, BIG, &got, LIMIT);
        if (status == HEM_ERR_REVOKED && first_gone == 0) {
            first_gone = -gone;
            i--;
            continue;
        }
        CHECK_OK(status);
        CHECK_EQ(got, bytes[i]);
        CHECK_BYTES(b->at, got, (uint64_t)i);
    }
    if (gone == LETTERS) {
        status = hem_recv(q->world, q->peer, 0, b->at, BIG, &got, HEM_MS(20));
        CHECK(status == HEM_ERR_REVOKED || status == HEM_ERR_TIMEOUT);
    }
}

static void withdrawn_sends(struct queue *q) {
    static const size_t lengths[][LETTERS] = {
        {BIG, 8, 8, 8},
        {BIG, 5000, 100000, 8},
        {BIG, BIG, BIG, BIG},
        {BIG, 1, BIG, 0},
    };

    for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
        for (int first = 0; first < LETTERS; first++) {
            for (int gone = 1; first + gone <= LETTERS; gone++) {
                harness_step("withdrawn sends, case", l * 100 + (size_t)(first * 10 + gone));
                if (q->me < q->peer)
                    sends_go(q, first, gone, lengths[l]);
                else if (q->me > q->peer)
                    rest_comes(q, first, gone, lengths[l]);
                else
                    harness_barrier(q->window);
                harness_barrier(q->window);
            }
        }
    }
}

/* Receives that have not begun go away: the messages find those that are left, in order. */
static void withdrawn_recvs(struct queue *q, size_t bytes) {
    for (int gone = 0; gone < LETTERS; gone++) {
        harness_step("withdrawn receive", (uint64_t)gone);
        if (q->me > q->peer) {
            for (int i = 0; i < LETTERS; i++)
                start_recv(q, i);
            stir(q);
            drop(q, gone);
        }
        harness_barrier(q->window);
        if (q->me < q->peer)
            for (int i = 0; i < LETTERS - 1; i++)
                start_send(q, i, bytes + (size_t)i);
        for (int i = 0, n = 0; q->me > q->peer && i < LETTERS; i++) {
            if (i == gone)
                continue;
            CHECK_OK(hem_op_wait(q->ops[i], LIMIT));
            CHECK_EQ(hem_op_bytes(q->ops[i]), bytes + (size_t)n);
            CHECK_BYTES(q->buffers[i].at, bytes + (size_t)n, (uint64_t)n);
            n++;
        }
        if (q->me > q->peer)
            check_dropped(q, gone);
        free_rest(q);
        harness_barrier(q->window);
    }
}

/* A receive goes away in mid-message: that message is lost, the next one finds the next receive. */
static void half_received(struct queue *q) {
    size_t got = 0;

    for (int round = 0; round < 10; round++) {
        harness_step("half received", (uint64_t)round);
        if (q->me < q->peer) {
            start_send(q, 0, BIG);
            start_send(q, 1, 50);
            start_send(q, 2, 50000);
            harness_barrier(q->window);
            free_rest(q);
        } else if (q->me > q->peer) {
            chan_place(&q->buffers[1], BIG, 1);
            harness_barrier(q->window);
            start_recv(q, 0);
            for (int i = 0; i < round; i++)
                CHECK_OK(hem_progress(q->world));
            drop(q, 0);
            CHECK_OK(hem_recv(q->world, q->peer, 0, q->buffers[1].at, BIG, &got, LIMIT));
            CHECK_BYTES(q->buffers[1].at, got, got == BIG ? 0 : got == 50 ? 1 : 2);
            while (got != 50000)
                CHECK_OK(hem_recv(q->world, q->peer, 0, q->buffers[1].at, BIG, &got, LIMIT));
            CHECK_BYTES(q->buffers[1].at, got, 2);
            check_dropped(q, 0);
        } else {
            harness_barrier(q->window);
        }
        harness_barrier(q->window);
    }
}

/* hem_sendrecv gives up both halves; whatever of it had been sent can be taken off. */
static void swap_times_out(struct queue *q) {
    hem_message half = {q->peer, q->buffers[0].at, BIG};
    hem_status status = HEM_OK;

    if (q->me < q->peer) {
        CHECK_STATUS(hem_sendrecv(q->world, 0, &half, &half, HEM_MS(3)), HEM_ERR_TIMEOUT);
        CHECK_EQ(half.bytes, BIG);
        half.bytes = 8;
        CHECK_STATUS(hem_sendrecv(q->world, 0, &half, &half, HEM_MS(3)), HEM_ERR_TIMEOUT);
    }
    harness_barrier(q->window);
    if (q->me > q->peer) {
        while (status != HEM_ERR_TIMEOUT) {
            status = hem_recv(q->world, q->peer, 0, q->buffers[1].at, BIG, NULL, HEM_MS(20));
            CHECK(status == HEM_OK || status == HEM_ERR_TIMEOUT || status == HEM_ERR_REVOKED);
        }
    }
    harness_barrier(q->window);
}

/* A persistent operation that is freed while it runs. */
static void plan_goes(struct queue *q) {
    if (q->me < q->peer) {
        chan_load(&q->buffers[0], BIG, 2, 2);
        CHECK_OK(hem_send_plan(q->world, q->peer, 0, q->buffers[0].at, BIG, &q->ops[0]));
        CHECK_OK(hem_op_start(q->ops[0]));
    } else {
        chan_place(&q->buffers[0], BIG, 2);
        CHECK_OK(hem_recv_plan(q->world, q->peer, 1, q->buffers[0].at, BIG, &q->ops[0]));
        CHECK_OK(hem_op_start(q->ops[0]));
    }
    stir(q);
    drop(q, 0);
    harness_barrier(q->window);
}

int rank_main(hem_world *world) {
    struct queue q;

    queue_open(&q, world);
    chan_works(world, q.peer, 0, 0);
    withdrawn_sends(&q);
    chan_works(world, q.peer, 0, 10);
    withdrawn_recvs(&q, 4);
    withdrawn_recvs(&q, 9000);
    withdrawn_recvs(&q, BIG - LETTERS);
    half_received(&q);
    chan_works(world, q.peer, 0, 20);
    if (q.me != q.peer)
        swap_times_out(&q);
    else
        for (int i = 0; i < 2; i++)
            harness_barrier(q.window);
    chan_works(world, q.peer, 0, 30);
    plan_goes(&q);
    chan_works(world, q.peer, 1, 40);
    queue_close(&q);
    harness_close(world, HEM_OK);
    return 0;
}
