/*
 * What a thread puts to one place of a peer happens in program order, also when some of it travels
 * in a signal's cache line that the receiver has not looked at: a later put, signal, atomic or get
 * must neither overtake it nor be undone when the receiver looks at last. A strong signal and a
 * barrier publish it, whichever id they are on.
 *
 * hem-test: ranks=1,2,3,4,5,8,17 modes=processes,threads timeout=60
 */
#include "harness.h"

enum {
    IDS = 8,
    SIGNALS = 100,
    SET_ID = 6,
    BYTES = 1024
};

/* Every rank sends to its right and receives from its left, so both sides count alike. */
struct side {
    hem_window *window;
    uint8_t *mine;
    int left;
    int right;
    int size;
    /* Which signals of the window the tests' ids are: a payload may travel on low ones only. */
    uint32_t signal[IDS];
    uint64_t count[IDS];
    uint64_t counter;
};

struct choice {
    size_t offset;
    size_t n;
    size_t m;
    uint64_t first;
    uint64_t second;
    int way;
    uint64_t dice;
};

static struct choice choice_of(uint64_t seed, int sender, uint64_t round) {
    harness_rng rng = harness_rng_of(seed, (uint64_t)sender, round);
    struct choice c;

    c.offset = 64 + harness_below(&rng, 64) * 8;
    c.n = 8 + harness_below(&rng, harness_below(&rng, 4) ? 25 : 93);
    c.m = 1 + harness_below(&rng, harness_below(&rng, 4) ? 32 : 100);
    c.first = harness_random(&rng);
    c.second = harness_random(&rng);
    c.way = (int)harness_below(&rng, HARNESS_SEE_WAYS);
    c.dice = harness_random(&rng);
    return c;
}

static void send(struct side *s, size_t offset, uint64_t tag, size_t n, uint32_t id) {
    uint8_t bytes[128];

    harness_fill(bytes, n, tag);
    CHECK_OK(hem_put_signal(s->window, s->right, offset, bytes, n, s->signal[id], 1));
    s->count[id]++;
}

static void tell(struct side *s, uint32_t id) {
    CHECK_OK(hem_signal(s->window, s->right, s->signal[id], HEM_SIGNAL_ADD, 1));
    s->count[id]++;
}

static void see(struct side *s, const struct choice *c, uint32_t id) {
    harness_see(s->window, c->way, s->left, s->signal[id], s->count[id]);
}

static uint64_t word(uint64_t tag) {
    uint64_t value;

    harness_fill(&value, sizeof value, tag);
    return value;
}

/* The second put of a pair is in place when the last signal is seen, and stays there when the
 * receiver then looks at the first. */
static void check_second(struct side *s, const struct choice *c) {
    see(s, c, 1);
    CHECK_FILLED(s->mine + c->offset, c->n, c->second);
    see(s, c, 0);
    CHECK_FILLED(s->mine + c->offset, c->n, c->second);
}

static void twice_one_id(struct side *s, const struct choice *c) {
    send(s, c->offset, c->first, c->n, 1);
    send(s, c->offset, c->second, c->n, 1);
}

static void twice_two_ids(struct side *s, const struct choice *c) {
    send(s, c->offset, c->first, c->n, 0);
    send(s, c->offset, c->second, c->n, 1);
}

static void then_put(struct side *s, const struct choice *c) {
    uint8_t bytes[128];

    send(s, c->offset, c->first, c->n, 0);
    harness_fill(bytes, c->n, c->second);
    CHECK_OK(hem_put(s->window, s->right, c->offset, bytes, c->n));
    tell(s, 1);
}

static void put_then(struct side *s, const struct choice *c) {
    uint8_t bytes[128];

    harness_fill(bytes, c->n, c->first);
    CHECK_OK(hem_put(s->window, s->right, c->offset, bytes, c->n));
    send(s, c->offset, c->second, c->n, 1);
}

static void started(struct side *s, const struct choice *c) {
    uint8_t one[128];
    uint8_t two[128];

    harness_fill(one, c->n, c->first);
    harness_fill(two, c->n, c->second);
    CHECK_OK(hem_put_signal_start(s->window, s->right, c->offset, one, c->n, s->signal[0], 1, 0));
    s->count[0]++;
    CHECK_OK(hem_put_start(s->window, s->right, c->offset, two, c->n, 0));
    s->counter += 2;
    tell(s, 1);
    CHECK_OK(hem_wait_counter(s->window, 0, s->counter, LIMIT));
}

/* SET to the value that is there already, and ADD of nothing, carry their bytes all the same. */
static void same_value(struct side *s, const struct choice *c) {
    int op = c->dice & 1 ? HEM_SIGNAL_SET : HEM_SIGNAL_ADD;
    uint64_t value = op == HEM_SIGNAL_SET ? 7 : 0;
    uint32_t id = s->signal[SET_ID];
    uint8_t bytes[128];

    harness_fill(bytes, c->n, c->first);
    CHECK_OK(hem_put_signal_op(s->window, s->right, c->offset, bytes, c->n, id, op, value));
    harness_fill(bytes, c->n, c->second);
    CHECK_OK(hem_put_signal_op(s->window, s->right, c->offset, bytes, c->n, id, op, value));
    tell(s, 1);
}

static void then_value(struct side *s, const struct choice *c) {
    send(s, c->offset, c->first, c->n, 0);
    CHECK_OK(hem_put_value(s->window, s->right, c->offset, c->second));
    tell(s, 1);
}

static void check_value(struct side *s, const struct choice *c) {
    uint64_t value;

    for (uint32_t id = 2; id-- > 0;) {
        see(s, c, id);
        memcpy(&value, s->mine + c->offset, sizeof value);
        CHECK_EQ(value, c->second);
    }
}

static void then_add(struct side *s, const struct choice *c) {
    uint64_t old;

    send(s, c->offset, c->first, c->n, 0);
    CHECK_OK(hem_fetch_add(s->window, s->right, c->offset, c->second, &old));
    CHECK_EQ(old, word(c->first));
    tell(s, 1);
}

static void check_add(struct side *s, const struct choice *c) {
    uint64_t value;

    for (uint32_t id = 2; id-- > 0;) {
        see(s, c, id);
        memcpy(&value, s->mine + c->offset, sizeof value);
        CHECK_EQ(value, word(c->first) + c->second);
    }
}

static void then_swap(struct side *s, const struct choice *c) {
    uint64_t old;

    send(s, c->offset, c->first, c->n, 0);
    CHECK_OK(hem_compare_swap(s->window, s->right, c->offset, word(c->first), c->second, &old));
    CHECK_EQ(old, word(c->first));
    tell(s, 1);
}

/* The sender reads back at once what the receiver may not have looked at. */
static void then_get(struct side *s, const struct choice *c) {
    uint8_t back[128];

    send(s, c->offset, c->first, c->n, 0);
    CHECK_OK(hem_get(s->window, s->right, c->offset, back, c->n));
    CHECK_FILLED(back, c->n, c->first);
    send(s, c->offset, c->second, c->n, 1);
    CHECK_OK(hem_get_start(s->window, s->right, c->offset, back, c->n, 0));
    CHECK_OK(hem_wait_counter(s->window, 0, ++s->counter, LIMIT));
    CHECK_FILLED(back, c->n, c->second);
}

static void then_flush(struct side *s, const struct choice *c) {
    send(s, c->offset, c->first, c->n, 0);
    send(s, c->offset, c->second, c->n, 1);
    CHECK_OK(c->dice & 1 ? hem_flush(s->window, s->right) : hem_flush_all(s->window));
    CHECK_FILLED(hem_window_peer_address(s->window, s->right, c->offset), c->n, c->second);
}

static void overlapping(struct side *s, const struct choice *c) {
    send(s, c->offset, c->first, c->n, 0);
    send(s, c->offset + 4, c->second, c->m, 1);
}

static void check_overlapping(struct side *s, const struct choice *c) {
    uint8_t both[256];
    size_t all = c->n > c->m + 4 ? c->n : c->m + 4;

    harness_fill(both, c->n, c->first);
    harness_fill(both + 4, c->m, c->second);
    see(s, c, 1);
    CHECK(memcmp(s->mine + c->offset, both, all) == 0);
    see(s, c, 0);
    CHECK(memcmp(s->mine + c->offset, both, all) == 0);
}

/* A weak signal on top of a strong one does not take back what the strong one said. */
static void strong_then_weak(struct side *s, const struct choice *c) {
    int op = HEM_SIGNAL_ADD | HEM_SIGNAL_WEAK;

    send(s, c->offset, c->second, c->n, 0);
    tell(s, 1);
    if (c->dice & 1)
        CHECK_OK(hem_signal(s->window, s->right, s->signal[1], op, 1));
    else
        CHECK_OK(hem_put_signal_op(s->window, s->right, 0, "x", 1, s->signal[1], op, 1));
    s->count[1]++;
}

/* A barrier shows the bytes although the receiver never looked at the signal. */
static void then_barrier(struct side *s, const struct choice *c) {
    send(s, c->offset, c->first, c->n, 2);
    CHECK_OK(hem_barrier(s->window, 1, LIMIT));
}

static void then_peer_barrier(struct side *s, const struct choice *c) {
    if (s->size == 1) {
        then_barrier(s, c);
        return;
    }
    send(s, c->offset, c->first, c->n, 2);
    CHECK_OK(hem_barrier_peer_arrive(s->window, s->right, 0));
    if (s->size > 2) {
        CHECK_OK(hem_barrier_peer_arrive(s->window, s->left, 0));
        CHECK_OK(hem_barrier_peer_wait(s->window, s->right, 0, LIMIT));
    }
    CHECK_OK(hem_barrier_peer_wait(s->window, s->left, 0, LIMIT));
}

static void check_first(struct side *s, const struct choice *c) {
    CHECK_FILLED(s->mine + c->offset, c->n, c->first);
}

typedef void (*step)(struct side *s, const struct choice *c);

static const struct scenario {
    const char *name;
    step send;
    step check;
} scenarios[] = {
    {"twice one id", twice_one_id, check_second},
    {"twice two ids", twice_two_ids, check_second},
    {"then put", then_put, check_second},
    {"put then", put_then, check_second},
    {"started", started, check_second},
    {"same value", same_value, check_second},
    {"then value", then_value, check_value},
    {"then add", then_add, check_add},
    {"then swap", then_swap, check_value},
    {"then get", then_get, check_second},
    {"then flush", then_flush, check_second},
    {"overlapping", overlapping, check_overlapping},
    {"strong then weak", strong_then_weak, check_second},
    {"then barrier", then_barrier, check_first},
    {"then peer barrier", then_peer_barrier, check_first},
};

enum {
    SCENARIOS = sizeof scenarios / sizeof *scenarios
};

/* The receiver's own choices must be those of the sender, except for how it looks. */
static void one_round(struct side *s, uint64_t seed, uint64_t round, int rank) {
    const struct scenario *scenario = &scenarios[round % SCENARIOS];
    struct choice mine = choice_of(seed, rank, round);
    struct choice theirs = choice_of(seed, s->left, round);

    harness_step(scenario->name, round);
    harness_dither(mine.dice >> 8);
    scenario->send(s, &mine);
    harness_dither(mine.dice >> 24);
    theirs.way = mine.way;
    scenario->check(s, &theirs);
    harness_barrier(s->window);
}

static void all_rounds(hem_world *world, uint64_t seed, const uint32_t *signal) {
    struct side s = {.left = harness_left(world), .right = harness_right(world)};
    uint64_t rounds = (uint64_t)harness_rounds(hem_world_size(world) > 8 ? 20 : 150) * SCENARIOS;

    memcpy(s.signal, signal, sizeof s.signal);
    s.window = harness_window_ids(world, BYTES, SIGNALS, 4, 1);
    s.mine = hem_window_memory(s.window);
    s.size = hem_world_size(world);
    for (uint64_t round = 0; round < rounds; round++)
        one_round(&s, seed, round, hem_world_rank(world));
    harness_destroy(s.window);
}

int rank_main(hem_world *world) {
    static const uint32_t low[IDS] = {0, 1, 2, 3, 4, 5, 6, 7};
    static const uint32_t mixed[IDS] = {63, 64, 5, 99, 0, 1, 31, 32};
    static const uint32_t opposite[IDS] = {64, 63, 99, 0, 1, 2, 70, 7};
    uint64_t seed = harness_seed(world);

    all_rounds(world, seed, low);
    all_rounds(world, seed + 1, mixed);
    all_rounds(world, seed + 2, opposite);
    harness_close(world, HEM_OK);
    return 0;
}
