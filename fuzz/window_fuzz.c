/*
 * A window whose other rank is broken: between rank 0's calls, the words that the peer may write
 * are overwritten. No call may fault, hang, or write outside of rank 0's window memory.
 */
#include "puppet.h"

#include "window/window.h"

#include <unistd.h>

#define RANKS   2
#define BYTES   200
#define SIGNALS 9
#define LIMIT   HEM_US(200)

/* Some memory that the peer writes into. */
typedef struct target {
    unsigned char *start;
    size_t bytes;
} target;

typedef struct game {
    puppet_job job;
    fuzz_input in;
    hem_window *window;
    hem_world *world;
} game;

static hemi_window_head *peers_head(const game *g) {
    return hemi_arena_at(&g->job.arena, hemi_arena_part(&g->job.arena, 1) + HEMI_HEAP_META);
}

/* A well-made name of the puppet's memory, which only the checks behind the sum can refuse. */
static void name_peers_memory(game *g, enum hemi_name_kind kind, uint64_t where, uint64_t bytes) {
    hemi_root other = {.arena = g->job.arena, .rank = 1};
    peers_head(g)->data = hemi_name_make(&other, kind, where, bytes);
}

/* The puppet's control block: its head names its memory, which follows the control block. */
static void make_peers_block(game *g) {
    hemi_window_head *head = peers_head(g);
    uint64_t memory = hemi_arena_part(&g->job.arena, 1) + (1 << 20);
    head->magic = HEMI_WINDOW_MAGIC;
    head->id = 1;
    name_peers_memory(g, HEMI_NAME_LIBRARY, memory, BYTES);
    hemi_arena_rank(&g->job.arena, 1)->pid = (uint32_t)getpid();
}

/*
 * Counts only before rank 0 has used the peer. Private memory is named at an address where nothing
 * is, since the puppet's process is this one.
 */
static void rename_peers_memory(game *g) {
    uint64_t part = hemi_arena_part(&g->job.arena, 1);
    uint8_t how = fuzz_u8(&g->in);
    uint64_t where = fuzz_u8(&g->in) * 4096ull;
    uint64_t bytes = how / 4 % 2 == 0 ? fuzz_u8(&g->in) : fuzz_u64(&g->in);
    if (how % 4 == 0)
        name_peers_memory(g, HEMI_NAME_OWN, 4096, bytes % 8192);
    else
        name_peers_memory(g, (enum hemi_name_kind)(how % 4), part + where, bytes);
}

static void start(game *g) {
    hem_window_options options = {
        .struct_size = sizeof options, .bytes = BYTES, .signals = SIGNALS, .timeout_ns = LIMIT};
    puppet_start(&g->job, RANKS);
    g->world = puppet_open(&g->job);
    make_peers_block(g);
    FUZZ_CHECK(hem_window_create(g->world, &options, &g->window) == HEM_OK);
}

static target row_in(const game *g, uint64_t control, uint32_t source, uint64_t from, uint64_t to) {
    unsigned char *row = (unsigned char *)hemi_arena_at(&g->job.arena, control) +
                         g->window->layout.rows + source * g->window->layout.row_bytes;
    return (target){row + from, to - from};
}

/* What a peer writes: its row here with the claims in it, the list, its own block, its cell. */
static target choose_target(const game *g, uint8_t which) {
    const hemi_window_layout *layout = &g->window->layout;
    uint64_t mine = g->window->controls[0];
    uint64_t theirs = g->window->controls[1];
    switch (which % 8) {
    case 0:
    case 1:
        return row_in(g, mine, 1, 0, layout->row_arrivals);
    case 2:
        return row_in(g, mine, 1, layout->row_arrivals, layout->row_claims);
    case 3:
        return row_in(g, mine, 1, layout->row_claims, layout->row_pairs);
    case 4:
        return row_in(g, theirs, 0, 0, layout->row_bytes);
    case 5:
        return (target){g->window->control + offsetof(hemi_window_head, users), sizeof(uint32_t)};
    case 6:
        return (target){g->window->control + layout->list, RANKS * sizeof(uint32_t)};
    default:
        return (target){hemi_arena_at(&g->job.arena, theirs), sizeof(hemi_window_head)};
    }
}

/* Overwrite a few bytes, often with small numbers, since those are what counts go through. */
static void poke(game *g) {
    target t = choose_target(g, fuzz_u8(&g->in));
    size_t at = fuzz_u8(&g->in) * 8ull % t.bytes;
    uint64_t value = fuzz_u8(&g->in) % 2 == 0 ? fuzz_u8(&g->in) : fuzz_u64(&g->in);
    size_t n = t.bytes - at < sizeof value ? t.bytes - at : sizeof value;
    memcpy(t.start + at, &value, n);
}

/* A death, a revocation, or a peer that has closed: waits end. */
static void end_somebody(game *g) {
    switch (fuzz_u8(&g->in) % 8) {
    case 0:
        (void)hemi_liveness_ended(&g->job.arena, &g->job.platform, 1, fuzz_u8(&g->in));
        break;
    case 1:
        hemi_store32_release(&g->world->team->revoked, 1);
        hemi_liveness_alarm(&g->job.arena, &g->job.platform);
        break;
    case 2:
        hemi_store32_release(&g->world->cells[1].closed, 1);
        hemi_liveness_alarm(&g->job.arena, &g->job.platform);
        break;
    default:
        break;
    }
}

static hem_status call_signal(game *g, uint8_t which, int peer, uint32_t id) {
    hem_window *window = g->window;
    hem_compare compare = (hem_compare)(HEM_EQ + fuzz_u8(&g->in) % 6);
    uint64_t value = fuzz_u8(&g->in);
    hem_signal_want wants[2] = {{1, id, compare, value}, {peer, 1, HEM_GE, 1}};
    size_t index = 0;
    bool done = false;
    switch (which % 8) {
    case 0:
        return hem_wait_signal_from(window, peer, id, compare, value, LIMIT);
    case 1:
        return hem_test_signal_from(window, peer, id, compare, value, &done);
    case 2:
        return hem_read_signal_from(window, peer, id, &value);
    case 3:
        return hem_wait_signal(window, id, compare, value, LIMIT);
    case 4:
        return hem_test_signal(window, id, compare, value, &done);
    case 5:
        return hem_read_signal(window, id, &value);
    case 6:
        return hem_wait_signal_any(window, wants, 2, &index, LIMIT);
    default:
        return hem_test_signal_any(window, wants, 2, &index, &done);
    }
}

static hem_status call_put(game *g, uint8_t which, int peer, uint32_t id) {
    hem_window *window = g->window;
    size_t offset = fuzz_u8(&g->in);
    size_t n = fuzz_u8(&g->in) % 64;
    unsigned char bytes[64] = {1, 2, 3};
    uint64_t old = 0;
    switch (which % 8) {
    case 0:
    case 1:
        return hem_put_signal(window, peer, offset, bytes, n, id, 1);
    case 2:
        return hem_signal(window, peer, id, HEM_SIGNAL_SET | HEM_SIGNAL_WEAK, offset);
    case 3:
        return hem_put(window, peer, offset, bytes, n);
    case 4:
        return hem_get(window, peer, offset, bytes, n);
    case 5:
        return hem_flush(window, peer);
    case 6:
        return hem_fetch_add(window, peer, offset / 8 * 8, 1, &old);
    default:
        return hem_signal_all(window, id, HEM_SIGNAL_ADD, 1);
    }
}

static hem_status call_barrier(game *g, uint8_t which, int peer, uint32_t id) {
    hem_window *window = g->window;
    bool done = false;
    switch (which % 8) {
    case 0:
        return hem_barrier(window, id % 4, LIMIT);
    case 1:
        return hem_barrier_arrive(window, id % 4);
    case 2:
        return hem_barrier_wait(window, id % 4, LIMIT);
    case 3:
        return hem_barrier_test(window, id % 4, &done);
    case 4:
        return hem_barrier_peer(window, peer, id % 4, LIMIT);
    case 5:
        return hem_barrier_peer_arrive(window, peer, id % 4);
    case 6:
        return hem_barrier_peer_wait(window, peer, id % 4, LIMIT);
    default:
        return hem_barrier_peer_test(window, peer, id % 4, &done);
    }
}

static void call(game *g) {
    uint8_t which = fuzz_u8(&g->in);
    int peer = which / 64 % 4 == 0 ? 0 : 1;
    uint32_t id = fuzz_u8(&g->in) % SIGNALS;
    hem_status status = HEM_OK;
    g->job.turns = 0;
    if (which / 8 % 4 == 0)
        status = call_barrier(g, which, peer, id);
    else if (which / 8 % 4 == 1)
        status = call_put(g, which, peer, id);
    else
        status = call_signal(g, which, peer, id);
    puppet_check_status(status);
}

/* The rest of the page behind the window's memory is nobody's. */
static void check_memory(const game *g) {
    const unsigned char *memory = hem_window_memory(g->window);
    for (size_t i = BYTES; i < HEMI_PAGE; i++)
        FUZZ_CHECK(memory[i] == 0);
}

/* The peer also writes while rank 0 waits. */
static void turn(puppet_job *job) {
    game *g = job->turn_arg;
    if (job->turns % 4 == 1 && g->in.left > 0)
        poke(g);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static game g;
    g = (game){.in = {data, size}};
    start(&g);
    g.job.turn_arg = &g;
    g.job.turn = fuzz_u8(&g.in) % 2 == 0 ? NULL : turn;
    while (g.in.left > 0) {
        uint8_t what = fuzz_u8(&g.in);
        if (what % 16 == 15)
            end_somebody(&g);
        else if (what % 32 == 30)
            rename_peers_memory(&g);
        else if (what % 2 == 0)
            poke(&g);
        else
            call(&g);
    }
    check_memory(&g);
    g.job.turn = NULL;
    g.job.turns = 0;
    puppet_check_status(hem_window_destroy(g.window));
    puppet_check_status(hem_world_close(g.world));
    puppet_end(&g.job);
    return 0;
}
