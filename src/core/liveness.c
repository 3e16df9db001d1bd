#include "core/liveness.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

void hemi_liveness_count(const hemi_arena *arena, const hemi_platform *platform) {
    /* Released after the word that changed; pairs with the acquire of whoever compares it. */
    hemi_add32_acq_rel(&arena->head->alarm, 1);
    platform->wake(platform->ctx, &arena->head->alarm);
}

void hemi_liveness_alarm(const hemi_arena *arena, const hemi_platform *platform) {
    hemi_liveness_count(arena, platform);
    for (uint32_t r = 0; r < arena->ranks; r++) {
        hemi_rank_block *block = hemi_arena_rank(arena, r);
        /* Unconditionally: this is rare, and so needs no word with the sleeper about fences. */
        hemi_add32_acq_rel(&block->doorbell, 1);
        platform->wake(platform->ctx, &block->doorbell);
    }
}

bool hemi_liveness_ended(const hemi_arena *arena, const hemi_platform *platform, uint32_t root_rank,
                         int exit_code) {
    hemi_rank_block *block = hemi_arena_rank(arena, root_rank);
    uint32_t before = hemi_load32_acquire(&block->state);
    if (before > HEMI_STATE_ALIVE)
        return false;
    /* Several may find it out at once; the compare-and-swap says who was first, and that one's word
     * for how it ended counts. Pairs with the acquire in hemi_liveness_may_come. */
    hemi_store64_relaxed(&block->death_ns, platform->now(platform->ctx));
    uint32_t after = exit_code == 0 ? HEMI_STATE_EXITED : HEMI_STATE_DEAD;
    bool first = false;
    while (before <= HEMI_STATE_ALIVE && !first)
        first = hemi_cas32_acq_rel(&block->state, &before, after);
    if (first)
        hemi_store32_release((uint32_t *)&block->exit_code, (uint32_t)exit_code);
    /* Also if another was first: it may have died before it could raise the alarm. */
    hemi_liveness_alarm(arena, platform);
    return first;
}

void hemi_liveness_describe(const hemi_arena *arena, uint32_t root_rank, char *text, size_t size) {
    const hemi_rank_block *block = hemi_arena_rank(arena, root_rank);
    uint32_t state = hemi_load32_acquire(&block->state);
    int code = (int)hemi_load32_acquire((const uint32_t *)&block->exit_code);
    if (state == HEMI_STATE_NEW)
        snprintf(text, size, "has not opened its world yet");
    else if (state == HEMI_STATE_ALIVE)
        snprintf(text, size, "is alive");
    else if (state == HEMI_STATE_EXITED)
        snprintf(text, size, "has exited");
    else if (code > 128 && code < 128 + 65)
        snprintf(text, size, "was killed by signal %d (%s)", code - 128, strsignal(code - 128));
    else if (arena->kind == HEMI_KIND_CALLBACK || code == 0)
        /* How it ended is known to its parent, which is not ours to ask, or not written yet. */
        snprintf(text, size, "has died");
    else if (arena->kind == HEMI_KIND_THREADS)
        snprintf(text, size, "returned without closing its world");
    else
        snprintf(text, size, "exited with code %d", code);
}
