/*
 * Collective set-up with broken peers: their cells, the team's own words, and the place of a team
 * are overwritten before and during rank 0's calls. Every call ends, with an error or without.
 */
#include "puppet.h"

#include "core/heap.h"

#define RANKS      3
#define WORLDS_MAX 8
#define LIMIT      HEM_US(500)

typedef struct game {
    puppet_job job;
    fuzz_input in;
    hem_world *worlds[WORLDS_MAX];
    size_t count;
} game;

/* A team block: that of the root, that of a world, or one that is made up in the heap of a rank. */
static unsigned char *choose_team(game *g, uint8_t which, size_t *bytes_p) {
    *bytes_p = hemi_team_bytes(RANKS);
    if (which % 4 == 0 || g->count == 0)
        return hemi_arena_at(&g->job.arena, g->job.arena.team_offset);
    if (which % 4 == 1)
        return hemi_arena_at(&g->job.arena, hemi_arena_part(&g->job.arena, 1) + HEMI_HEAP_META);
    return (unsigned char *)g->worlds[which / 4 % g->count]->team;
}

/*
 * Overwrite a few bytes of a team: of its head, of a peer's cell, or of the table of members. What
 * rank 0 has said itself is left alone, since no peer writes it.
 */
static void poke(game *g) {
    size_t bytes = 0;
    unsigned char *team = choose_team(g, fuzz_u8(&g->in), &bytes);
    uint8_t where = fuzz_u8(&g->in);
    size_t start = 0;
    size_t room = sizeof(hemi_team);
    if (where % 4 == 1) {
        start = sizeof(hemi_team) + RANKS * sizeof(hemi_cell);
        room = RANKS * sizeof(uint32_t);
    } else if (where % 4 >= 2) {
        start = sizeof(hemi_team) + (1 + where / 4 % 2) * sizeof(hemi_cell);
        room = sizeof(hemi_cell);
    }
    size_t at = fuzz_u8(&g->in) * 4ull % room;
    uint64_t value = fuzz_u8(&g->in) % 2 == 0 ? fuzz_u8(&g->in) : fuzz_u64(&g->in);
    size_t n = 1 + fuzz_u8(&g->in) % sizeof value;
    memcpy(team + start + at, &value, n < room - at ? n : room - at);
}

static void turn(puppet_job *job) {
    game *g = job->turn_arg;
    if (g->in.left > 0 && fuzz_u8(&g->in) % 2 == 0)
        poke(g);
}

static void keep(game *g, hem_status status, hem_world *world) {
    puppet_check_status(status);
    if (status != HEM_OK || world == NULL)
        return;
    if (g->count < WORLDS_MAX) {
        world->timeout_ns = LIMIT;
        g->worlds[g->count++] = world;
    } else {
        (void)hem_world_close(world);
    }
}

/* Where a peer says that a team is: at a place of one, or anywhere. */
static uint64_t choose_offset(game *g) {
    size_t bytes = 0;
    uint8_t which = fuzz_u8(&g->in);
    if (which % 8 == 0)
        return fuzz_u64(&g->in);
    if (which % 8 == 1)
        return fuzz_u32(&g->in) * (uint64_t)HEMI_PAGE;
    return (uint64_t)(choose_team(g, which / 8, &bytes) - g->job.arena.base);
}

static void make_team_up(game *g) {
    const uint32_t members[RANKS] = {fuzz_u8(&g->in) % RANKS, fuzz_u8(&g->in) % RANKS, 0};
    hemi_team *team =
        hemi_arena_at(&g->job.arena, hemi_arena_part(&g->job.arena, 1) + HEMI_HEAP_META);
    hemi_team_init(team, 9, fuzz_u8(&g->in) % 4, members, RANKS);
}

static void look_at(game *g, const hem_world *world) {
    for (int r = -1; r <= hem_world_size(world); r++) {
        int alive = hem_world_alive(world, r);
        FUZZ_CHECK(alive == 0 || alive == 1 || alive == HEM_ERR_RANGE);
        int route = hem_route_query(world, r);
        FUZZ_CHECK(route >= 0 || route == HEM_ERR_RANGE);
    }
    (void)g;
}

static void create_window(hem_world *world) {
    hem_window_options options = {.struct_size = sizeof options, .bytes = 100, .timeout_ns = LIMIT};
    hem_window *window = NULL;
    hem_status status = hem_window_create(world, &options, &window);
    puppet_check_status(status);
    if (status == HEM_OK)
        puppet_check_status(hem_window_destroy(window));
}

static void agree(hem_world *world) {
    uint64_t word = 0;
    puppet_check_status(
        hemi_team_agree(world, HEMI_CALL_SPLIT, HEM_OK, 0, &word, sizeof word, LIMIT));
    for (uint32_t r = 0; r < world->size; r++)
        hemi_team_heard(world, r, &word, sizeof word);
}

static void call(game *g) {
    uint8_t which = fuzz_u8(&g->in);
    hem_world *world = g->count > 0 ? g->worlds[which / 8 % g->count] : NULL;
    hem_world *made = NULL;
    g->job.turns = 0;
    if (world == NULL || which % 8 == 0) {
        uint32_t rank = fuzz_u8(&g->in);
        keep(g, hemi_world_make(g->job.root, choose_offset(g), rank % 4, LIMIT, &made), made);
    } else if (which % 8 == 1) {
        keep(g, hem_world_split(world, fuzz_u8(&g->in) % 2, fuzz_u8(&g->in), &made), made);
    } else if (which % 8 == 2) {
        keep(g, hem_world_shrink(world, &made), made);
    } else if (which % 8 == 3) {
        puppet_check_status(hemi_team_meet(world, HEMI_CALL_WINDOW_DESTROY, 1, LIMIT));
    } else if (which % 8 == 4) {
        puppet_check_status(hem_world_close(world));
        g->worlds[which / 8 % g->count] = g->worlds[g->count - 1];
        g->count--;
    } else if (which % 8 == 5) {
        look_at(g, world);
    } else if (which % 8 == 6) {
        create_window(world);
    } else {
        agree(world);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static game g;
    g = (game){.in = {data, size}};
    puppet_start(&g.job, RANKS);
    hem_world *world = puppet_open(&g.job);
    keep(&g, HEM_OK, world);
    g.job.turn_arg = &g;
    g.job.turn = turn;
    while (g.in.left > 0) {
        uint8_t what = fuzz_u8(&g.in);
        g.job.mute = what / 16 % 4 == 3;
        if (what % 16 == 0)
            make_team_up(&g);
        else if (what % 2 == 0)
            poke(&g);
        else
            call(&g);
    }
    g.job.turns = 0;
    puppet_end(&g.job);
    return 0;
}
