/*
 * A job in which rank 0 is the library and all others are puppets of the fuzzer.
 *
 * How this works. Rank 0 attaches to a fresh arena on a platform of ours, where time passes only
 * when somebody asks for it, yields, naps or parks. Whenever rank 0 gives its core away, the
 * puppets have their turn: by default each echoes what rank 0 has said in a step of collective
 * set-up, so that worlds open and windows come to be; and the fuzzer overwrites whatever a peer may
 * write. So every input is one deterministic run in one thread, and a wait that does not end is
 * found by counting instead of by waiting.
 */
#ifndef HEM_FUZZ_PUPPET_H
#define HEM_FUZZ_PUPPET_H

#include "input.h"

#include "core/root.h"
#include "core/team.h"
#include "transport/transport.h"

#include <hem/hem.h>

#define PUPPET_PART (16ull << 20)
/** A wait that gave its core away so often, with all time passed, would never have ended. */
#define PUPPET_TURNS_MAX 200000

typedef struct puppet_job {
    hemi_platform platform;
    hemi_arena arena; /**< borrowed by the root */
    hemi_root *root;
    hemi_team *teams[2]; /**< where puppets echo: the root team and the world's */
    uint64_t clock;
    uint64_t random;
    unsigned turns;
    /** Called at every turn of the puppets, after they have echoed. May be NULL. */
    void (*turn)(struct puppet_job *job);
    void *turn_arg;
    bool mute; /**< puppets say nothing */
} puppet_job;

/* What a puppet answers in the step of hem_window_create that says where everything is. */
static inline void puppet_place_window(const puppet_job *job, uint32_t root_rank, hemi_say *say) {
    uint64_t place;
    memcpy(&place, say->data, sizeof place);
    if (say->call != HEMI_CALL_WINDOW_CREATE || place == 0)
        return;
    place = hemi_arena_part(&job->arena, root_rank) + HEMI_HEAP_META;
    memcpy(say->data, &place, sizeof place);
}

static inline void puppet_echo(const puppet_job *job, hemi_team *team) {
    if (team == NULL)
        return;
    uint64_t step = team->cells[0].seq;
    for (uint32_t r = 1; r < job->arena.ranks; r++) {
        hemi_cell *cell = &team->cells[r];
        if (cell->seq >= step)
            continue;
        hemi_say say;
        memcpy(&say, team->cells[0].blobs[step % 2], sizeof say);
        puppet_place_window(job, r, &say);
        memcpy(cell->blobs[step % 2], &say, sizeof say);
        hemi_store64_release(&cell->seq, step);
    }
}

static inline void puppet_turn(puppet_job *job, uint64_t ns) {
    job->clock += ns;
    FUZZ_CHECK(++job->turns < PUPPET_TURNS_MAX);
    for (int i = 0; i < 2 && !job->mute; i++)
        puppet_echo(job, job->teams[i]);
    if (job->turn != NULL)
        job->turn(job);
}

static inline uint64_t puppet_now(void *ctx) {
    return ((puppet_job *)ctx)->clock += 100;
}

static inline void puppet_park(void *ctx, uint32_t *word, uint32_t expected, int64_t limit_ns) {
    if (hemi_load32_relaxed(word) == expected)
        puppet_turn(ctx, limit_ns < 0 ? 1000000 : (uint64_t)limit_ns);
}

static inline void puppet_wake(void *ctx, uint32_t *word) {
    (void)ctx;
    (void)word;
}

static inline void puppet_yield(void *ctx) {
    puppet_turn(ctx, 10000);
}

static inline void puppet_nap(void *ctx, int64_t ns) {
    puppet_turn(ctx, (uint64_t)ns);
}

static inline bool puppet_fence(void *ctx) {
    (void)ctx;
    return true;
}

static inline uint64_t puppet_random(void *ctx) {
    return ((puppet_job *)ctx)->random += 0x9e3779b97f4a7c15u;
}

/** Make the arena and attach as rank 0. */
static inline void puppet_start(puppet_job *job, uint32_t ranks) {
    hemi_arena_plan plan = {.ranks = ranks, .kind = HEMI_KIND_LAUNCHED, .part_bytes = PUPPET_PART};
    memset(job, 0, sizeof *job);
    FUZZ_CHECK(setenv("HEM_SPIN", "2", 1) == 0); /* nobody else runs meanwhile */
    job->clock = 1000000000;
    job->platform = (hemi_platform){.ctx = job,
                                    .now = puppet_now,
                                    .park = puppet_park,
                                    .wake = puppet_wake,
                                    .yield = puppet_yield,
                                    .nap = puppet_nap,
                                    .membarrier = puppet_fence,
                                    .membarrier_register = puppet_fence,
                                    .random = puppet_random};
    FUZZ_CHECK(hemi_arena_make(&plan, &job->platform, &job->arena) == HEM_OK);
    hemi_arena borrowed = job->arena;
    borrowed.borrowed = true;
    FUZZ_CHECK(hemi_root_attach(&borrowed, &job->platform, 0, &job->root) == HEM_OK);
    job->teams[0] = hemi_arena_at(&job->arena, job->arena.team_offset);
}

/** Open the world of all, with puppets that echo. */
static inline hem_world *puppet_open(puppet_job *job) {
    hem_world *world = NULL;
    FUZZ_CHECK(hemi_root_open_world(job->root, HEM_MS(10), HEM_MS(10), &world) == HEM_OK);
    job->teams[1] = world->team;
    return world;
}

/** Free what is left of the job. The worlds that are open are buried. */
static inline void puppet_end(puppet_job *job) {
    hemi_root_bury(job->root);
    hemi_root_drop(job->root);
    hemi_arena_unmap(&job->arena);
}

/** Any status that the public headers name. */
static inline void puppet_check_status(hem_status status) {
    FUZZ_CHECK(status <= HEM_OK && status >= HEM_ERR_LIMIT);
}

#endif
