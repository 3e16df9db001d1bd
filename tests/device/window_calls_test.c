/*
 * The calls of kernels that window_kernel has not, between real ranks. Two groups of several warps in a block
 * pass words round a ring, one of them sends while the other receives, with a signal that is set: what is
 * read of signals and counters is never less than what was waited for, nor more than was sent, and addresses
 * are translated. Stamped messages of every alignment, by each kind of group. A lock out of compare and swap,
 * in one rank's window, around plain memory of it: by the kernels of all ranks, several blocks each.
 *
 * hem-test: ranks=1,2,4,5,8 timeout=120 delayed=2
 */
#include "group_kit.h"
#include "window_kit.h"

#include <hem/device/stamped.h>

#define WORDS 900
#define PLACE 8192 /* of one message; there are two of each kind */
#define LONG  3000 /* bytes of the longest stamped message */
#define LOCK  (4 * PLACE)
#define CELLS 200

typedef struct calls_args {
    hem_dev_window w;
    uint64_t *out; /* PLACE bytes, then as many */
    uint64_t *wrong;
    uint64_t first; /* number of the first round */
    uint64_t rounds;
    uint32_t scope;
} calls_args;

HEM_DEV uint64_t word_of(int rank, uint64_t round, uint64_t i) {
    return (round * 100 + (uint64_t)rank) * 1000003 + i;
}

HEM_DEV void blame(const calls_args *args, hem_group g, bool wrong) {
    if (g.rank == 0 && wrong)
        hemd_add64_relaxed(args->wrong, 1);
}

/* Half of the words with the counter, the others with the signal, which brings all of them. */
HEM_DEV hem_status send_words(const calls_args *args, hem_group g, uint64_t round) {
    hem_dev_window w = args->w;
    const int right = (w.rank + 1) % w.size;
    const uint64_t at = round % 2 * PLACE, half = WORDS / 2 * 8;
    uint64_t seen = 0;
    hem_status status = HEM_OK;
    for (uint64_t i = g.rank; i < WORDS; i += g.size)
        args->out[i] = word_of(w.rank, round, i);
    hem_group_sync(g);
    if (round > 2)
        status = hem_dev_wait_signal_from(w, g, right, 1, HEM_GE, round - 2, HEM_FOREVER);
    if (status == HEM_OK)
        status = hem_dev_put_start(w, g, right, at, args->out, half, 3);
    if (g.rank == 0) {
        hem_status read = hem_dev_read_counter(w, 3, &seen);
        blame(args, g, read != HEM_OK || seen != round);
    }
    if (status == HEM_OK)
        status = hem_dev_put_signal_op(w, g, right, at + half, args->out + WORDS / 2,
                                       WORDS * 8 - half, 0, HEM_SIGNAL_SET, round);
    return status;
}

/* Only the left one signals on id 0: the sum is what it said. By one thread. */
HEM_DEV bool reads_well(hem_dev_window w, int left, uint64_t round) {
    uint64_t one = 0, sum = 0;
    bool good = hem_dev_read_signal_from(w, left, 0, &one) == HEM_OK;
    good = good && hem_dev_read_signal(w, 0, &sum) == HEM_OK;
    /* It may be two rounds ahead, and it may go on in between. */
    return good && one >= round && sum >= one && sum <= round + 2;
}

HEM_DEV bool translates_well(hem_dev_window w, int left, uint64_t at) {
    unsigned char *here = (unsigned char *)hem_dev_address(w, w.rank, 0);
    return hem_dev_translate(w, here + at, left) == hem_dev_address(w, left, at) &&
           hem_dev_translate(w, here - 1, left) == NULL &&
           hem_dev_translate(w, here + w.peers[w.rank].bytes, left) == NULL &&
           hem_dev_translate(w, here, w.size) == NULL;
}

HEM_DEV hem_status take_words(const calls_args *args, hem_group g, uint64_t round) {
    hem_dev_window w = args->w;
    const int left = (w.rank + w.size - 1) % w.size;
    const uint64_t at = round % 2 * PLACE;
    hem_status status = hem_dev_wait_signal_from(w, g, left, 0, HEM_GE, round, HEM_FOREVER);
    if (status != HEM_OK)
        return status;
    if (g.rank == 0)
        blame(args, g, !reads_well(w, left, round) || !translates_well(w, left, at + 8));
    const uint64_t *words = (const uint64_t *)hem_dev_address(w, w.rank, at);
    uint64_t wrong = 0;
    for (uint64_t i = g.rank; i < WORDS; i += g.size)
        wrong += words[i] != word_of(left, round, i);
    if (wrong != 0)
        hemd_add64_relaxed(args->wrong, wrong);
    /* The other group of the block has put by then, or will. */
    status = hem_dev_wait_counter(w, g, 3, round, HEM_FOREVER);
    if (status == HEM_OK) /* nothing but a signal; all of the group have looked */
        status = hem_dev_put_signal_op(w, g, left, 0, NULL, 0, 1, HEM_SIGNAL_ADD, 1);
    return status;
}

DEVICE_KERNEL(ring_of_groups, calls_args) {
    const bool sends = hem_warp_index() < 2;
    hem_group g = sends ? hem_warps(0, 2, 1) : hem_warps(2, 3, 2);
    hem_status status = HEM_OK;
    for (uint64_t i = 0; i < args->rounds && status == HEM_OK; i++)
        status =
            sends ? send_words(args, g, args->first + i) : take_words(args, g, args->first + i);
    blame(args, g, status != HEM_OK);
}

HEM_DEV unsigned char byte_of(int rank, uint64_t stamp, uint64_t i) {
    return (unsigned char)((stamp * 31 + (uint64_t)rank * 7 + i) * 0x9e3779b97f4a7c15ull >> 56);
}

/* One message to the right, stamped with the round, and one from the left. */
HEM_DEV hem_status pass_stamped(const calls_args *args, hem_group g, uint64_t round) {
    hem_dev_window w = args->w;
    const int right = (w.rank + 1) % w.size, left = (w.rank + w.size - 1) % w.size;
    const uint64_t n = round % 5 == 0 ? round * 37 % LONG : round % 70;
    const uint64_t place = 2 * PLACE + round % 2 * PLACE;
    unsigned char *from = (unsigned char *)args->out + round % 16;
    unsigned char *to = (unsigned char *)args->out + PLACE + round / 16 % 16;
    hem_status status = HEM_OK;
    blame(args, g, hem_dev_stamped_bytes(n) < 2 * n || hem_dev_stamped_bytes(n) > PLACE);
    for (uint64_t i = g.rank; i < n; i += g.size)
        from[i] = byte_of(w.rank, round, i);
    hem_group_sync(g);
    if (round > 2)
        status = hem_dev_wait_signal_from(w, g, right, 2, HEM_GE, round - 2, HEM_FOREVER);
    if (status == HEM_OK)
        status = hem_dev_put_stamped(w, g, right, place, from, n, round);
    if (status == HEM_OK)
        status = hem_dev_take_stamped(w, g, left, place, to, n, round, HEM_FOREVER);
    uint64_t wrong = 0;
    for (uint64_t i = g.rank; i < n && status == HEM_OK; i += g.size)
        wrong += to[i] != byte_of(left, round, i);
    if (wrong != 0)
        hemd_add64_relaxed(args->wrong, wrong);
    return status == HEM_OK ? hem_dev_signal(w, g, left, 2, HEM_SIGNAL_ADD, 1) : status;
}

DEVICE_KERNEL(stamped_ring, calls_args) {
    hem_group g = group_kit_of(args->scope);
    hem_status status = HEM_OK;
    if (!group_kit_takes_part(args->scope))
        return;
    for (uint64_t i = 0; i < args->rounds && status == HEM_OK; i++)
        status = pass_stamped(args, g, args->first + i);
    blame(args, g, status != HEM_OK);
}

/* The word of rank 0 is 0 if nobody has the lock. */
HEM_DEV bool change_lock(hem_dev_window w, uint64_t from, uint64_t to) {
    uint64_t old = from + 1;
    return hem_dev_compare_swap(w, 0, LOCK, from, to, &old) == HEM_OK && old == from;
}

/* Plain loads and stores of all threads, between the leader's acquire and its release. */
DEVICE_KERNEL(locked, calls_args) {
    hem_dev_window w = args->w;
    hem_group g = hem_block();
    uint64_t *cells = (uint64_t *)hem_dev_address(w, 0, LOCK + 128);
    const uint64_t name = 1 + (uint64_t)w.rank * 100 + hem_block_index();
    for (uint64_t round = 0; round < args->rounds; round++) {
        while (g.rank == 0 && !change_lock(w, 0, name))
            hemd_relax();
        hem_group_sync(g);
        const uint64_t all = cells[0];
        uint64_t wrong = 0;
        for (uint64_t i = g.rank; i < CELLS; i += g.size)
            wrong += cells[i] != all;
        hem_group_sync(g); /* all have seen the first one */
        for (uint64_t i = g.rank; i < CELLS; i += g.size)
            cells[i] = all + 1;
        if (wrong != 0)
            hemd_add64_relaxed(args->wrong, wrong);
        hem_group_sync(g);
        if (g.rank == 0)
            blame(args, g, !change_lock(w, name, 0));
    }
}

typedef struct test {
    hem_window *window;
    device_stream stream;
    uint64_t *out;
    uint64_t *wrong;
    int size;
} test;

static calls_args args_of(test *t, uint64_t first, uint64_t rounds, uint32_t scope) {
    calls_args args;
    args.w = window_kit_dev(t->window);
    args.out = t->out;
    args.wrong = t->wrong;
    args.first = first;
    args.rounds = rounds;
    args.scope = scope;
    return args;
}

static void finish(test *t) {
    uint64_t wrong = 1;
    device_stream_sync(t->stream);
    device_copy(&wrong, t->wrong, sizeof wrong);
    CHECK_EQ(wrong, 0);
    harness_barrier(t->window);
}

static void check_groups(test *t) {
    uint64_t each = (uint64_t)harness_rounds(60);
    for (uint64_t i = 0; i < 3; i++) {
        harness_step("groups", i);
        calls_args args = args_of(t, 1 + i * each, each, 0);
        device_launch(ring_of_groups, t->stream, 1, 5, &args);
        finish(t);
    }
}

static void check_stamped(test *t) {
    uint64_t each = (uint64_t)harness_rounds(260);
    for (uint32_t scope = 0; scope < GROUP_KITS; scope++) {
        harness_step("stamped", scope);
        calls_args args = args_of(t, 1 + scope * each, each, scope);
        device_launch(stamped_ring, t->stream, 1, GROUP_KIT_WIDTH, &args);
        finish(t);
    }
}

static void check_lock(test *t) {
    uint64_t rounds = (uint64_t)harness_rounds(40), cells[CELLS];
    harness_step("lock", 0);
    calls_args args = args_of(t, 0, rounds, 0);
    device_launch(locked, t->stream, 2, 2, &args);
    finish(t);
    CHECK_OK(hem_get(t->window, 0, LOCK + 128, cells, sizeof cells));
    for (int i = 0; i < CELLS; i++)
        CHECK_EQ(cells[i], 2 * rounds * (uint64_t)t->size);
}

int rank_main(hem_world *world) {
    test t;
    hem_window_options o = window_kit_options(LOCK + 128 + CELLS * 8);
    t.window = window_kit_create(world, &o);
    t.stream = device_stream_create();
    t.out = (uint64_t *)device_alloc(3 * PLACE);
    t.wrong = (uint64_t *)device_alloc(8);
    t.size = hem_world_size(world);
    check_groups(&t);
    check_stamped(&t);
    check_lock(&t);
    harness_barrier(t.window);
    CHECK_OK(hem_window_destroy(t.window));
    device_stream_destroy(t.stream);
    device_free(t.out);
    device_free(t.wrong);
    harness_close(world, HEM_OK);
    return 0;
}
