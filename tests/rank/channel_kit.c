#include "channel_kit.h"

enum {
    GUARD_IN = 0xa5,
    GUARD_OUT = 0x3c,
    EDGE = CHAN_GUARD + 16
};

/* Buffers. */

chan_buffer chan_make(size_t capacity) {
    chan_buffer buffer = {.capacity = capacity};

    buffer.block = aligned_alloc(64, (capacity + 2 * EDGE + 63) / 64 * 64);
    CHECK(buffer.block != NULL);
    chan_place(&buffer, 0, 0);
    return buffer;
}

void chan_free(chan_buffer *buffer) {
    free(buffer->block);
    buffer->block = NULL;
}

static void place(chan_buffer *buffer, size_t bytes, size_t shift, uint8_t guard) {
    CHECK(bytes <= buffer->capacity && shift < 16);
    buffer->at = buffer->block + CHAN_GUARD + shift;
    buffer->bytes = bytes;
    buffer->guard = guard;
    memset(buffer->at - CHAN_GUARD, guard, CHAN_GUARD);
    memset(buffer->at + bytes, guard, CHAN_GUARD);
}

void chan_place(chan_buffer *buffer, size_t bytes, size_t shift) {
    place(buffer, bytes, shift, GUARD_IN);
}

void chan_load(chan_buffer *buffer, size_t bytes, size_t shift, uint64_t tag) {
    place(buffer, bytes, shift, GUARD_OUT);
    chan_fill(buffer->at, bytes, tag);
}

void chan_check_guards(const char *file, int line, const chan_buffer *buffer) {
    harness_check_all(file, line, buffer->at - CHAN_GUARD, CHAN_GUARD, buffer->guard);
    harness_check_all(file, line, buffer->at + buffer->bytes, CHAN_GUARD, buffer->guard);
}

/* Contents. */

static uint64_t word_of(uint64_t tag, size_t i) {
    uint64_t x = (tag + 1) * 0x9e3779b97f4a7c15 + i * 0xbf58476d1ce4e5b9;

    return x ^ (x >> 29);
}

void chan_fill(void *at, size_t bytes, uint64_t tag) {
    uint8_t *to = at;
    size_t words = bytes / 8;
    uint64_t word;

    for (size_t i = 0; i < words; i++) {
        word = word_of(tag, i);
        memcpy(to + i * 8, &word, 8);
    }
    word = word_of(tag, words);
    if (bytes % 8)
        memcpy(to + words * 8, &word, bytes % 8);
}

/* Say which byte it is, and where it would belong if it is of the same message. */
static void complain(const char *file, int line, const uint8_t *from, size_t bytes, uint64_t tag) {
    uint64_t want;
    uint64_t got;

    for (size_t i = 0; i + 8 <= bytes; i += 8) {
        want = word_of(tag, i / 8);
        memcpy(&got, from + i, 8);
        for (size_t j = 0; want != got && j + 8 <= bytes; j += 8)
            if (word_of(tag, j / 8) == got)
                harness_fail(file, line, "bytes %zu to %zu of %zu hold what belongs to %zu", i,
                             i + 7, bytes, j);
        if (want != got)
            harness_fail(file, line, "bytes %zu to %zu of %zu are %#llx, not %#llx", i, i + 7,
                         bytes, (unsigned long long)got, (unsigned long long)want);
    }
    harness_fail(file, line, "the last %zu of %zu bytes are wrong", bytes % 8, bytes);
}

void chan_check_bytes(const char *file, int line, const void *at, size_t bytes, uint64_t tag) {
    const uint8_t *from = at;
    size_t words = bytes / 8;
    uint64_t wrong = 0;
    uint64_t word;

    for (size_t i = 0; i < words; i++) {
        memcpy(&word, from + i * 8, 8);
        wrong |= word ^ word_of(tag, i);
    }
    word = word_of(tag, words);
    if (wrong || memcmp(from + words * 8, &word, bytes % 8) != 0)
        complain(file, line, from, bytes, tag);
}

uint64_t chan_tag(int from, int to, uint32_t channel, uint64_t number) {
    return (((uint64_t)from * 64 + (uint64_t)to) * 32 + channel) << 40 | number;
}

size_t chan_random_bytes(harness_rng *rng, size_t most) {
    static const size_t edges[] = {0, CHAN_INLINE, 64, 128, 4096, 8192, 65536, 262144, 1048576};
    size_t dice = harness_below(rng, 64);
    size_t bytes;

    if (dice < 36)
        bytes = harness_below(rng, 200);
    else if (dice < 46)
        bytes = edges[harness_below(rng, dice < 45 ? 6 : 9)] + harness_below(rng, 5);
    else if (dice < 58)
        bytes = harness_below(rng, 6000);
    else if (dice < 63)
        bytes = harness_below(rng, 80000);
    else
        bytes = harness_below(rng, 700000);
    return bytes < most ? bytes : harness_below(rng, most + 1);
}

/* Small pieces. */

int chan_partner(const hem_world *world) {
    int other = hem_world_rank(world) ^ 1;

    return other < hem_world_size(world) ? other : hem_world_rank(world);
}

void chan_works(hem_world *world, int peer, uint32_t channel, uint64_t number) {
    static const size_t lengths[] = {0, 24, 3000, 30000, 700001};
    int me = hem_world_rank(world);
    chan_buffer out = chan_make(700001);
    chan_buffer in = chan_make(700001);

    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        hem_message send = {.peer = peer, .bytes = lengths[i]};
        hem_message recv = {.peer = peer, .bytes = lengths[i] + 1};

        chan_load(&out, lengths[i], i, chan_tag(me, peer, channel, number + i));
        chan_place(&in, lengths[i], 15 - i);
        send.data = out.at;
        recv.data = in.at;
        CHECK_OK(hem_sendrecv(world, channel, &send, &recv, LIMIT));
        CHECK_EQ(recv.bytes, lengths[i]);
        CHECK_LOAD(&in, chan_tag(peer, me, channel, number + i));
    }
    chan_free(&in);
    chan_free(&out);
}

/* Running. */

static int thread_rank(hem_world *world, void *arg) {
    return harness_run(world, *(harness_body *)arg);
}

int chan_main(int argc, char **argv, harness_body body) {
    hem_world *world = NULL;
    hem_status status;

    if (argc == 3 && strcmp(argv[1], "--threads") == 0) {
        harness_set_threads();
        status = hem_world_threads(atoi(argv[2]), thread_rank, &body, NULL);
        if (status == HEM_OK)
            return 0;
    } else {
        status = hem_world_open(NULL, &world);
        if (status == HEM_OK)
            return harness_run(world, body);
    }
    fprintf(stderr, "%s: %s: %s\n", argv[0], hem_status_name(status), hem_last_error());
    return 1;
}

void chan_geometry(const char *slots, const char *bytes) {
    CHECK_EQ(setenv("HEM_CHANNEL_SLOTS", slots, 1), 0);
    CHECK_EQ(setenv("HEM_CHANNEL_BYTES", bytes, 1), 0);
}
