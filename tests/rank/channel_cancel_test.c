/*
 * Sends and receives that give up in mid-message: a time limit that passes or a hem_op_free at a
 * random moment, for small, staged and large messages. A send that timed out is never received
 * whole; a send that was done is received whole and once, unless a receive had given up just then;
 * the order stays, nothing is written into buffers that were given back, and the channel works on.
 *
 * hem-test: ranks=2,4 modes=processes,threads timeout=60
 */
#include "channel_kit.h"

enum {
    COUNT = 150,
    MOST = 3000000,
    END = 0xe9d
};

/* What became of a send. */
enum fate {
    UNKNOWN, /* freed while it was under way: either */
    SENT,
    WITHDRAWN
};

struct letter {
    uint64_t number;
    uint64_t bytes;
};

struct side {
    hem_world *world;
    int me;
    int peer;
    uint64_t seed;
    harness_rng rng;
    hem_memory *memory;
    chan_buffer buffer;
    uint8_t fates[COUNT + 1];
    uint8_t seen[COUNT + 1];
    uint64_t lost;    /* receives that gave up */
    uint64_t revoked; /* receives that ended with HEM_ERR_REVOKED */
};

static size_t length_of(const struct side *s, uint64_t number) {
    static const size_t classes[] = {64, 64, 9000, 200000, 1000000, MOST};
    harness_rng rng = harness_rng_of(s->seed, number, 11);
    size_t most = classes[harness_below(&rng, sizeof classes / sizeof *classes)];

    if (harness_sanitized() && most > 9000)
        most /= 8;
    return sizeof(struct letter) + harness_below(&rng, most - sizeof(struct letter));
}

/* The message says which one it is, so that the receiver knows what else must be in it. */
static void write_letter(struct side *s, uint64_t number, size_t bytes) {
    struct letter head = {number, bytes};

    chan_load(&s->buffer, bytes, number % 16, number);
    memcpy(s->buffer.at, &head, sizeof head);
}

static int64_t some_time(struct side *s) {
    static const int64_t scales[] = {0, 2000, 20000, 200000, 2000000};

    return (int64_t)harness_below(&s->rng, (size_t)scales[harness_below(&s->rng, 5)] + 1);
}

/* Mark a buffer that was given back, here and there all over it, and see that the marks stay. */
static void spoil(chan_buffer *b) {
    for (size_t at = 0; at < b->bytes; at += 8192)
        memset(b->at + at, 0xee, b->bytes - at < 64 ? b->bytes - at : 64);
}

static void check_spoilt(const chan_buffer *b) {
    for (size_t at = 0; at < b->bytes; at += 8192)
        CHECK_ALL(b->at + at, b->bytes - at < 64 ? b->bytes - at : 64, 0xee);
    CHECK_GUARDS(b);
}

/* Blocking: the status says what became of it. */
static enum fate send_limited(struct side *s, size_t bytes) {
    hem_status status = hem_send(s->world, s->peer, 8, s->buffer.at, bytes, some_time(s));

    if (status == HEM_OK)
        return SENT;
    CHECK_STATUS(status, HEM_ERR_TIMEOUT);
    return WITHDRAWN;
}

static enum fate send_and_free(struct side *s, size_t bytes) {
    hem_op *op = NULL;
    bool done = false;
    hem_status status;

    CHECK_OK(hem_send_start(s->world, s->peer, 8, s->buffer.at, bytes, &op));
    for (size_t polls = harness_below(&s->rng, 40); polls > 0 && !done; polls--)
        CHECK_OK(hem_op_test(op, &done));
    if (!done && harness_below(&s->rng, 2)) {
        status = hem_op_wait(op, some_time(s));
        done = status != HEM_ERR_TIMEOUT;
        if (done)
            CHECK_OK(status);
    }
    FREE_OP(op);
    return done ? SENT : UNKNOWN;
}

/* The buffer is used for something else at once: nobody may see that. */
static void send_all(struct side *s, bool cancels) {
    for (uint64_t number = 0; number < COUNT; number++) {
        size_t bytes = length_of(s, number);

        harness_step("send", number);
        write_letter(s, number, bytes);
        harness_dither(harness_random(&s->rng));
        if (!cancels || number % 8 == 7) {
            CHECK_OK(hem_send(s->world, s->peer, 8, s->buffer.at, bytes, LIMIT));
            s->fates[number] = SENT;
        } else if (number % 2) {
            s->fates[number] = (uint8_t)send_limited(s, bytes);
        } else {
            s->fates[number] = (uint8_t)send_and_free(s, bytes);
        }
        CHECK_GUARDS(&s->buffer);
        spoil(&s->buffer);
    }
    harness_step("last send", 0);
    CHECK_OK(hem_send(s->world, s->peer, 9, s->fates, sizeof s->fates, LIMIT));
    CHECK_OK(hem_recv(s->world, s->peer, 9, NULL, 0, NULL, LIMIT));
    write_letter(s, END, sizeof(struct letter));
    CHECK_OK(hem_send(s->world, s->peer, 8, s->buffer.at, sizeof(struct letter), LIMIT));
}

/* @return whether it was the last message. */
static bool take(struct side *s, size_t got, uint64_t *next) {
    struct letter head;

    CHECK(got >= sizeof head);
    memcpy(&head, s->buffer.at, sizeof head);
    CHECK_EQ(head.bytes, got);
    if (head.number == END)
        return true;
    CHECK(head.number < COUNT);
    harness_step("received", head.number);
    CHECK(head.number >= *next);
    CHECK_EQ(got, length_of(s, head.number));
    *next = head.number + 1;
    s->seen[head.number]++;
    chan_fill(s->buffer.at, sizeof head, head.number);
    CHECK_BYTES(s->buffer.at, got, head.number);
    CHECK_GUARDS(&s->buffer);
    return false;
}

static hem_status recv_and_free(struct side *s, size_t *got) {
    hem_op *op = NULL;
    bool done = false;
    hem_status status = HEM_OK;

    CHECK_OK(hem_recv_start(s->world, s->peer, 8, s->buffer.at, MOST, &op));
    for (size_t polls = harness_below(&s->rng, 60); polls > 0 && !done; polls--)
        status = hem_op_test(op, &done);
    if (!done) {
        status = hem_op_wait(op, some_time(s));
        done = status != HEM_ERR_TIMEOUT;
    }
    *got = hem_op_bytes(op);
    FREE_OP(op);
    return status;
}

static hem_status receive(struct side *s, bool cancels, size_t *got) {
    uint64_t dice = harness_random(&s->rng);

    chan_place(&s->buffer, MOST, dice / 8 % 16);
    harness_dither(dice >> 12);
    if (!cancels || dice % 4 == 0)
        return hem_recv(s->world, s->peer, 8, s->buffer.at, MOST, got,
                        cancels ? HEM_MS(20) : LIMIT);
    if (dice % 2)
        return hem_recv(s->world, s->peer, 8, s->buffer.at, MOST, got, some_time(s));
    return recv_and_free(s, got);
}

static void gave_up(struct side *s) {
    s->lost++;
    spoil(&s->buffer);
    if (harness_below(&s->rng, 4) == 0)
        harness_sleep_ms(1);
    check_spoilt(&s->buffer);
}

/*
 * The last message comes when this rank asks for it, which it does when it knows that nothing else
 * is to come and that it will not give up on the last message itself.
 */
static void recv_all(struct side *s, bool cancels, hem_op *fates) {
    bool done = false;
    bool asked = false;
    uint64_t next = 0;

    for (bool last = false; !last;) {
        size_t got = 0;
        hem_status status;

        CHECK_OK(hem_op_test(fates, &done));
        if (!asked && (done || !cancels)) {
            CHECK_OK(hem_send(s->world, s->peer, 9, NULL, 0, LIMIT));
            asked = true;
        }
        status = receive(s, !asked, &got);
        if (status == HEM_OK)
            last = take(s, got, &next);
        else if (status == HEM_ERR_REVOKED)
            s->revoked++;
        else if (!asked && status == HEM_ERR_TIMEOUT)
            gave_up(s);
        else
            CHECK_OK(status);
    }
}

/* Compare what the sender says with what came. */
static void judge(const struct side *s, const uint8_t *fates) {
    uint64_t missing = 0;
    uint64_t withdrawn = 0;

    for (uint64_t i = 0; i < COUNT; i++) {
        harness_step("fate of", i);
        CHECK(s->seen[i] <= 1);
        CHECK(fates[i] != WITHDRAWN || s->seen[i] == 0);
        missing += fates[i] == SENT && s->seen[i] == 0;
        withdrawn += fates[i] != SENT && s->seen[i] == 0;
    }
    harness_step("judged", 0);
    CHECK(missing <= s->lost);
    CHECK(s->revoked <= withdrawn);
}

static void receive_and_judge(struct side *s, bool cancels) {
    uint8_t fates[sizeof s->fates] = {0};
    hem_op *op = NULL;

    CHECK_OK(hem_recv_start(s->world, s->peer, 9, fates, sizeof fates, &op));
    recv_all(s, cancels, op);
    CHECK_OK(hem_op_wait(op, LIMIT));
    CHECK_EQ(hem_op_bytes(op), sizeof fates);
    FREE_OP(op);
    judge(s, fates);
}

static void one_way(struct side *s, bool sends, bool send_cancels, bool recv_cancels) {
    memset(s->fates, 0, sizeof s->fates);
    memset(s->seen, 0, sizeof s->seen);
    s->lost = s->revoked = 0;
    if (sends)
        send_all(s, send_cancels);
    else
        receive_and_judge(s, recv_cancels);
    chan_works(s->world, s->peer, 8, 77);
}

/* With library memory on either side, large ones go in one copy between processes, too. */
static void use_memory(struct side *s, bool library) {
    if (s->memory)
        CHECK_OK(hem_memory_free(s->memory));
    else
        chan_free(&s->buffer);
    s->memory = NULL;
    if (!library) {
        s->buffer = chan_make(MOST);
        return;
    }
    CHECK_OK(hem_memory_alloc(s->world, MOST + 4096, &s->memory));
    s->buffer.block = hem_memory_address(s->memory);
    s->buffer.capacity = MOST;
}

int rank_main(hem_world *world) {
    static _Thread_local struct side s;
    int rounds = harness_rounds(1);

    s = (struct side){.world = world, .me = hem_world_rank(world), .peer = chan_partner(world)};
    s.seed = harness_seed(world);
    s.rng = harness_rng_of(s.seed, (uint64_t)s.me, 5);
    s.buffer = chan_make(MOST);
    for (int round = 0; round < 4 * rounds; round++) {
        use_memory(&s, round >> (s.me % 2) & 1);
        for (int mode = 0; mode < 6; mode++)
            one_way(&s, (s.me < s.peer) == (mode < 3), mode % 3 != 1, mode % 3 != 0);
    }
    use_memory(&s, false);
    chan_free(&s.buffer);
    harness_close(world, HEM_OK);
    return 0;
}
