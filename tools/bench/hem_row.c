/*
 * Lines and rolling windows over Hem:
 *
 * line     hem_line_exchange in a ring; what comes goes into buffers that are kept
 * rolling  hem_reach_run, planned once; and, as hem-hops, an open line on which each rank passes on
 *          what it got, received right where it belongs
 */
#include "hem_row.h"

#include "hem_halo.h"
#include "row.h"

enum {
    SLOTS = 4,
    MOST_BUFFERS = SLOTS + BENCH_SIDES
};

/* Just below the limit of the driver, so that a hang ends with a sentence. */
static const int64_t limit_ns = HEM_SEC(100);

/* Where a line receives: buffers in turn, or the place that is set before the round. */
struct room {
    unsigned char *slot[SLOTS];
    bool taken[SLOTS];
    size_t bytes;
    void *place;
};

struct lined {
    struct bench_row row;
    hem_world *ranks;
    hem_line *line;
    hem_reach *reach;
    hem_line_result result;
    struct room room;
    hem_memory *memory[MOST_BUFFERS]; /* of buffers in library memory */
    int memories;
};

static hem_world *ranks_of_run;

static void help(void *ctx) {
    (void)ctx;
    bench_hem_need(hem_progress(ranks_of_run), "hem_progress");
}

static void *buffer(struct lined *lined, bool library, size_t bytes) {
    hem_memory **memory = &lined->memory[lined->memories];

    if (!library)
        return bench_alloc(bytes);
    bench_hem_need(hem_memory_alloc(lined->ranks, bytes, memory), "hem_memory_alloc");
    lined->memories++;
    return hem_memory_address(*memory);
}

static hem_status give_room(void *arg, int peer, const void *meta, size_t meta_bytes, size_t bytes,
                            hem_line_buffer *buffer_p) {
    struct room *room = arg;

    (void)peer;
    (void)meta;
    (void)meta_bytes;
    *buffer_p = (hem_line_buffer){.data = room->place};
    for (int i = 0; room->place == NULL && i < SLOTS && buffer_p->data == NULL; i++) {
        if (room->taken[i])
            continue;
        room->taken[i] = true;
        buffer_p->data = room->slot[i];
    }
    return buffer_p->data != NULL && bytes <= room->bytes ? HEM_OK : HEM_ERR_MEMORY;
}

static void take_room(void *arg, hem_line_buffer *buffer, size_t bytes) {
    struct room *room = arg;

    (void)bytes;
    for (int i = 0; i < SLOTS; i++) {
        if (buffer->data == room->slot[i])
            room->taken[i] = false;
    }
}

static void open_line(struct lined *lined, bool ring) {
    hem_line_options options = {.struct_size = sizeof(options),
                                .ring = ring,
                                .alloc = give_room,
                                .release = take_room,
                                .alloc_arg = &lined->room};

    bench_hem_need(hem_line_create(lined->ranks, &options, &lined->line), "hem_line_create");
}

static void keep(struct bench_row *row, int side, const hem_delivery *delivery) {
    if (!delivery->present)
        bench_die("rank %d: nothing came from rank %d", row->world->rank, row->neighbour[side]);
    row->came[side] = delivery->buffer.data;
    row->came_bytes[side] = delivery->data_bytes;
}

/* To give back what came the last time is part of it, as whoever calls it must do that. */
static void run_line(struct bench_row *row) {
    struct lined *lined = row->ctx;
    hem_payload left = {.data = row->send[BENCH_LEFT], .data_bytes = row->size};
    hem_payload right = {.data = row->send[BENCH_RIGHT], .data_bytes = row->size};
    hem_line_round round = {.struct_size = sizeof(round), .to_left = &left, .to_right = &right};

    hem_line_release(&lined->result);
    bench_hem_need(hem_line_exchange(lined->line, &round, &lined->result, limit_ns),
                   "hem_line_exchange");
    keep(row, BENCH_LEFT, &lined->result.from_left);
    keep(row, BENCH_RIGHT, &lined->result.from_right);
}

/* In hop k a rank has something to give if there are k - 1 ranks before it. */
static void run_hops(struct bench_row *row) {
    struct lined *lined = row->ctx;
    int rank = row->world->rank;

    for (int hop = 1; hop <= row->hops; hop++) {
        hem_payload block = {.data = hop == 1 ? row->rows : bench_row_block(row, hop - 1),
                             .data_bytes = row->size * sizeof(uint64_t)};
        hem_line_round round = {.struct_size = sizeof(round),
                                .to_right = rank >= hop - 1 ? &block : NULL};
        hem_line_result result;

        lined->room.place = bench_row_block(row, hop);
        bench_hem_need(hem_line_exchange(lined->line, &round, &result, limit_ns),
                       "hem_line_exchange");
        if (result.from_left.present != (rank >= hop))
            bench_die("rank %d: hop %d brought something else", rank, hop);
        result.from_left.buffer.data = NULL;
        hem_line_release(&result);
    }
}

static void run_reach(struct bench_row *row) {
    struct lined *lined = row->ctx;

    bench_hem_need(hem_reach_run(lined->reach, row->rows,
                                 bench_row_block(row, bench_row_blocks(row)), NULL, limit_ns),
                   "hem_reach_run");
}

static void plan_reach(struct lined *lined) {
    const struct bench_row *row = &lined->row;
    hem_reach_options options = {.struct_size = sizeof(options),
                                 .rows = row->size,
                                 .row_bytes = sizeof(uint64_t),
                                 .back_rows = (uint64_t)row->hops * row->size};
    uint64_t before;
    uint64_t after;

    bench_hem_need(hem_reach_plan(lined->ranks, &options, &lined->reach), "hem_reach_plan");
    bench_hem_need(hem_reach_rows(lined->reach, &before, &after), "hem_reach_rows");
    if (before != (uint64_t)bench_row_blocks(row) * row->size || after != 0)
        bench_die("rank %d: the plan has %llu rows before and %llu after", row->world->rank,
                  (unsigned long long)before, (unsigned long long)after);
}

static void measure_line(struct lined *lined, const struct bench_args *args) {
    struct bench_row *row = &lined->row;

    for (int side = 0; side < BENCH_SIDES; side++)
        row->send[side] = buffer(lined, args->library, lined->room.bytes);
    for (int i = 0; i < SLOTS; i++)
        lined->room.slot[i] = buffer(lined, args->library, lined->room.bytes);
    open_line(lined, true);
    row->run = run_line;
    for (size_t i = 0; i < args->sizes.count; i++) {
        row->size = args->sizes.bytes[i];
        bench_row_measure(row, NULL);
    }
    hem_line_release(&lined->result);
}

static void measure_rolling(struct lined *lined, const struct bench_args *args) {
    struct bench_row *row = &lined->row;

    row->rows = buffer(lined, args->library, lined->room.bytes);
    row->before = buffer(lined, args->library, bench_row_before_bytes(row, args));
    open_line(lined, false);
    for (size_t i = 0; i < args->sizes.count; i++) {
        row->size = args->sizes.bytes[i];
        plan_reach(lined);
        row->run = run_reach;
        bench_row_measure(row, NULL);
        bench_hem_need(hem_reach_destroy(lined->reach), "hem_reach_destroy");
        row->run = run_hops;
        bench_row_measure(row, args->library ? "hem-lib-hops" : "hem-hops");
    }
}

void bench_hem_row(const struct bench_world *world, const struct bench_args *args,
                   hem_world *ranks) {
    struct lined lined = {.row = {.world = world, .help = help}, .ranks = ranks};

    ranks_of_run = ranks;
    lined.row.ctx = &lined;
    bench_row_open(&lined.row, args);
    lined.room.bytes = bench_row_send_bytes(args);
    if (args->kind == BENCH_ROLLING)
        measure_rolling(&lined, args);
    else
        measure_line(&lined, args);
    bench_hem_need(hem_line_destroy(lined.line), "hem_line_destroy");
    for (int i = 0; i < lined.memories; i++)
        bench_hem_need(hem_memory_free(lined.memory[i]), "hem_memory_free");
}
