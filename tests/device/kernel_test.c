/*
 * Kernels and their groups: every warp of a grid is there once, all blocks at once, barriers of blocks
 * and of some warps hold back and let go, what threads tell each other reaches all of a group, and
 * words are changed whole.
 *
 * hem-test: ranks=1,2 timeout=90 delayed=2
 */
#include "device.h"

#define BLOCKS 3
#define WARPS  6
#define CELLS  (BLOCKS * WARPS * 32)

/* What all kernels here share. */
typedef struct state {
    uint64_t errors;
    uint64_t word;
    uint64_t far[16]; /* away from it */
    uint64_t tickets;
    uint64_t sum;
    hemd_unit unit;
    uint64_t cells[CELLS];
} state;

typedef struct kernel_args {
    state *at;
    uint64_t rounds;
    uint64_t seed;
} kernel_args;

HEM_DEV void expect(const kernel_args *args, bool good) {
    if (!good)
        hemd_add64_relaxed(&args->at->errors, 1);
}

HEM_DEV uint64_t mix(uint64_t x) {
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/* Each thread of the grid has a cell of its own. */
DEVICE_KERNEL(kernel_grid, kernel_args) {
    hem_group block = hem_block();
    hem_group warp = hem_warp();
    uint32_t index = hem_block_index() * block.size + block.rank;
    expect(args, hem_block_count() == BLOCKS && hem_warp_count() == WARPS);
    expect(args, block.rank == hem_warp_index() * warp.size + warp.rank);
    expect(args, block.size == WARPS * warp.size);
    expect(args, hem_thread().rank == 0 && hem_thread().size == 1);
    args->at->cells[index] += args->seed;
}

/* One writes, all read, over and over: a barrier that lets one through early is seen. */
HEM_DEV void pass_round(const kernel_args *args, hem_group group, uint64_t *cells, uint64_t round) {
    cells[group.rank] = round;
    hem_group_sync(group);
    expect(args, cells[(group.rank + 1) % group.size] == round);
    expect(args, cells[(group.rank + group.size / 2) % group.size] == round);
    hem_group_sync(group);
}

DEVICE_KERNEL(kernel_blocks_sync, kernel_args) {
    hem_group block = hem_block();
    uint64_t *cells = args->at->cells + hem_block_index() * block.size;
    for (uint64_t round = 1; round <= args->rounds; round++)
        pass_round(args, block, cells, round);
}

/* Three teams of each block go round at different speeds; a block barrier lies in between. */
DEVICE_KERNEL(kernel_teams_sync, kernel_args) {
    uint32_t team = hem_warp_index() / 2;
    hem_group block = hem_block();
    hem_group warps = hem_warps(2 * team, 2, 1 + team * 7);
    uint64_t *cells = args->at->cells + hem_block_index() * block.size + team * warps.size;
    for (uint64_t half = 0; half < 2; half++) {
        for (uint64_t round = 1; round <= args->rounds * (team + 1); round++)
            pass_round(args, warps, cells, round);
        pass_round(args, block, args->at->cells + hem_block_index() * block.size, half);
    }
}

HEM_DEV void ask_any(const kernel_args *args, hem_group group, uint64_t team) {
    for (uint64_t round = 0; round < args->rounds; round++) {
        uint64_t dice = mix(args->seed + team * 1000003 + round);
        bool some = dice % 3 != 0;
        uint32_t who = (uint32_t)(dice / 3 % group.size);
        expect(args, hem_group_any(group, some && group.rank == who) == some);
    }
}

DEVICE_KERNEL(kernel_any, kernel_args) {
    uint32_t team = hem_warp_index() / 3;
    ask_any(args, hem_block(), hem_block_index());
    ask_any(args, hem_warps(3 * team, 3, 15 - team), 10 + team);
    ask_any(args, hem_warp(), 20);
    ask_any(args, hem_thread(), 30);
}

/* Only what the leader says counts. */
HEM_DEV void all_agree(const kernel_args *args, hem_group group) {
    for (uint64_t round = 0; round < args->rounds; round++)
        for (int code = 0; code < 32; code++) {
            int mine = group.rank == 0 ? code : (code + (int)group.rank) % 32;
            expect(args, (int)hem_group_agree(group, (hem_status)-mine) == -code);
        }
}

DEVICE_KERNEL(kernel_agree, kernel_args) {
    uint32_t team = hem_warp_index() / 2;
    all_agree(args, hem_block());
    all_agree(args, hem_warps(2 * team, 2, 1 + team));
    all_agree(args, hem_warp());
    all_agree(args, hem_thread());
}

/* What the leader acquired is seen by its group: block 0 stores, the other blocks wait. */
DEVICE_KERNEL(kernel_hand_over, kernel_args) {
    hem_group block = hem_block();
    state *at = args->at;
    for (uint64_t round = 1; round <= args->rounds; round++) {
        if (hem_block_index() == 0) {
            at->cells[block.rank] = round * 1000 + block.rank;
            hem_group_sync(block);
            if (block.rank == 0)
                hemd_store64_release(&at->word, round, true);
            while (block.rank == 0 && hemd_load64_relaxed(&at->tickets) < round * (BLOCKS - 1))
                hemd_relax();
            hemd_acquire(&at->tickets, true);
            hem_group_sync(block);
            continue;
        }
        if (block.rank == 0) {
            while (hemd_load64_relaxed(&at->word) < round)
                hemd_relax();
            hemd_acquire(&at->word, true);
        }
        expect(args, hem_group_agree(block, HEM_OK) == HEM_OK);
        expect(args, at->cells[block.rank] == round * 1000 + block.rank);
        hem_group_sync(block);
        if (block.rank == 0)
            hemd_add64_release(&at->tickets, 1, true);
    }
}

DEVICE_KERNEL(kernel_words, kernel_args) {
    state *at = args->at;
    for (uint64_t round = 0; round < args->rounds; round++) {
        uint64_t ticket =
            round % 2 ? hemd_fetch_add64(&at->tickets, 1) : hemd_fetch_add64_near(&at->tickets, 1);
        uint64_t old = 0;
        uint64_t seen;
        hemd_add64_relaxed(&at->sum, ticket);
        while ((seen = hemd_compare_swap64(&at->word, old, old + 3)) != old)
            old = seen;
    }
}

/* Data and its number, in one piece. */
DEVICE_KERNEL(kernel_units, kernel_args) {
    state *at = args->at;
    if (hem_block().rank != 0 || hem_block_index() > 1)
        return;
    for (uint64_t round = 1; round <= args->rounds; round++) {
        uint64_t data;
        if (hem_block_index() == 0) {
            hemd_unit_store(&at->unit, mix(round), round);
            while (hemd_load64_relaxed(&at->word) < round)
                hemd_relax();
        } else {
            while (hemd_unit_load(&at->unit, &data) != round)
                hemd_relax();
            expect(args, data == mix(round));
            hemd_store64_relaxed(&at->word, round);
        }
    }
}

DEVICE_KERNEL(kernel_clock, kernel_args) {
    uint64_t first = hemd_now_ns();
    while (hemd_now_ns() < first + 1000000)
        hemd_relax();
    hemd_add64_relaxed(&args->at->word, 1);
}

typedef struct test {
    state *device;
    state host;
    device_stream stream;
    kernel_args args;
} test;

static void begin(test *t, const char *what, uint64_t rounds) {
    harness_step(what, rounds);
    memset(&t->host, 0, sizeof t->host);
    device_copy(t->device, &t->host, sizeof t->host);
    t->args.at = t->device;
    t->args.rounds = rounds;
    t->args.seed++;
}

static void finish(test *t) {
    device_stream_sync(t->stream);
    device_copy(&t->host, t->device, sizeof t->host);
    CHECK_EQ(t->host.errors, 0);
}

static void check_grid(test *t) {
    uint32_t threads = BLOCKS * WARPS * (device_stands_in() ? 1 : 32);
    uint64_t seed;
    begin(t, "grid", 1);
    seed = t->args.seed;
    device_launch(kernel_grid, t->stream, BLOCKS, WARPS, &t->args);
    /* The arguments were copied. */
    t->args.seed = 999;
    finish(t);
    t->args.seed = seed;
    for (uint32_t i = 0; i < CELLS; i++)
        CHECK_EQ(t->host.cells[i], i < threads ? seed : 0);
}

static void check_words(test *t) {
    uint64_t threads = BLOCKS * WARPS * (device_stands_in() ? 1 : 32);
    uint64_t calls;
    begin(t, "words", (uint64_t)harness_rounds(200));
    calls = threads * t->args.rounds;
    device_launch(kernel_words, t->stream, BLOCKS, WARPS, &t->args);
    finish(t);
    CHECK_EQ(t->host.tickets, calls);
    CHECK_EQ(t->host.sum, calls * (calls - 1) / 2);
    CHECK_EQ(t->host.word, calls * 3);
}

static void check_groups(test *t) {
    begin(t, "block barrier", (uint64_t)harness_rounds(300));
    device_launch(kernel_blocks_sync, t->stream, BLOCKS, WARPS, &t->args);
    finish(t);
    begin(t, "named barriers", (uint64_t)harness_rounds(100));
    device_launch(kernel_teams_sync, t->stream, BLOCKS, WARPS, &t->args);
    finish(t);
    begin(t, "any", (uint64_t)harness_rounds(100));
    device_launch(kernel_any, t->stream, BLOCKS, WARPS, &t->args);
    finish(t);
    begin(t, "agree", (uint64_t)harness_rounds(2));
    device_launch(kernel_agree, t->stream, BLOCKS, WARPS, &t->args);
    finish(t);
}

int rank_main(hem_world *world) {
    static const uint32_t rest[][2] = {{1, 1}, {1, 2}, {2, 1}, {8, 1}};
    test *t = (test *)calloc(1, sizeof *t);
    CHECK(t != NULL);
    t->device = (state *)device_alloc(sizeof *t->device);
    t->stream = device_stream_create();
    t->args.seed = 41;

    check_grid(t);
    check_groups(t);
    check_words(t);
    begin(t, "hand over", (uint64_t)harness_rounds(100));
    device_launch(kernel_hand_over, t->stream, BLOCKS, WARPS, &t->args);
    finish(t);
    begin(t, "units", (uint64_t)harness_rounds(100));
    device_launch(kernel_units, t->stream, 2, 1, &t->args);
    finish(t);
    begin(t, "clock", 1);
    for (size_t i = 0; i < sizeof rest / sizeof rest[0]; i++)
        device_launch(kernel_clock, t->stream, rest[i][0], rest[i][1], &t->args);
    finish(t);
    CHECK_EQ(t->host.word, (1 + 2 + 2 + 8) * (device_stands_in() ? 1u : 32u));

    device_stream_destroy(t->stream);
    device_free(t->device);
    free(t);
    harness_close(world, HEM_OK);
    return 0;
}
