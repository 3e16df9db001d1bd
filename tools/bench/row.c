#include "row.h"

#include "meet.h"
#include "payload.h"
#include "turns.h"

static size_t largest(const struct hemt_sizes *sizes) {
    size_t most = 0;

    for (size_t i = 0; i < sizes->count; i++) {
        if (sizes->bytes[i] > most)
            most = sizes->bytes[i];
    }
    return most;
}

/* The number of a message: no two are alike over iterations, senders and directions. */
static uint64_t number(const struct bench_row *row, int from, int side) {
    return row->seq << 13 | (uint64_t)from << 1 | (uint64_t)side;
}

static uint64_t first_row(const struct bench_row *row, int rank) {
    return (uint64_t)rank * row->size;
}

static void begin_turn(void *ctx) {
    struct bench_row *row = ctx;
    int rank = row->world->rank;

    row->seq++;
    if (row->kind == BENCH_ROLLING) {
        for (size_t i = 0; i < row->size; i++)
            row->rows[i] = bench_word(row->seq, first_row(row, rank) + i);
        return;
    }
    for (int side = 0; side < BENCH_SIDES; side++)
        bench_fill(row->send[side], row->size, number(row, rank, side));
}

static void run_turn(void *ctx) {
    struct bench_row *row = ctx;

    row->run(row);
}

static bool before_is_right(const struct bench_row *row) {
    size_t count = (size_t)bench_row_blocks(row) * row->size;
    const uint64_t *rows = bench_row_block(row, bench_row_blocks(row));
    uint64_t first = first_row(row, row->world->rank - bench_row_blocks(row));
    uint64_t wrong = 0;

    for (size_t i = 0; i < count; i++)
        wrong |= rows[i] ^ bench_word(row->seq, first + i);
    return wrong == 0;
}

/* What came from the left was given to the right there. */
static bool sides_are_right(const struct bench_row *row) {
    bool right = true;

    for (int side = 0; side < BENCH_SIDES; side++)
        right &= row->came_bytes[side] == row->size &&
                 bench_check(row->came[side], row->size,
                             number(row, row->neighbour[side], BENCH_SIDES - 1 - side));
    return right;
}

static void check_turn(void *ctx) {
    const struct bench_row *row = ctx;
    bool right = row->kind == BENCH_ROLLING ? before_is_right(row) : sides_are_right(row);

    if (!right)
        bench_die("rank %d: what came in iteration %llu with size %zu is wrong", row->world->rank,
                  (unsigned long long)row->seq, row->size);
}

void bench_row_open(struct bench_row *row, const struct bench_args *args) {
    const struct bench_world *world = row->world;

    row->kind = args->kind;
    row->meet = bench_meet_open(world);
    row->neighbour[BENCH_LEFT] = (world->rank + world->ranks - 1) % world->ranks;
    row->neighbour[BENCH_RIGHT] = (world->rank + 1) % world->ranks;
    row->hops = args->shape.value[HEMT_HOPS];
    if (row->hops > world->ranks - 1)
        row->hops = world->ranks - 1;
}

size_t bench_row_send_bytes(const struct bench_args *args) {
    return largest(&args->sizes) * (args->kind == BENCH_ROLLING ? sizeof(uint64_t) : 1);
}

size_t bench_row_before_bytes(const struct bench_row *row, const struct bench_args *args) {
    return bench_row_send_bytes(args) * (size_t)row->hops;
}

void bench_row_measure(struct bench_row *row, const char *impl) {
    size_t moved = row->kind == BENCH_ROLLING ? (size_t)row->hops * row->size * sizeof(uint64_t)
                                              : BENCH_SIDES * row->size;
    struct bench_turns turns = {.world = row->world,
                                .meet = row->meet,
                                .help = row->help,
                                .begin = begin_turn,
                                .run = run_turn,
                                .check = check_turn,
                                .ctx = row,
                                .touched = 2 * moved};

    /* Rows go one way: without a pause the first rank would run ahead of the last. */
    if (row->kind == BENCH_ROLLING)
        turns.touched = SIZE_MAX;
    struct bench_result result = bench_turns_measure(&turns);

    bench_print_more(row->world, impl, row->kind, row->size, result,
                     &(struct bench_more){.moved = moved});
}
