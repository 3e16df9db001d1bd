#include "core/liveness.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

void hemi_liveness_alarm(const hemi_arena *arena, const hemi_platform *platform) {
    /* Released after the word that changed; pairs with the acquire of whoever compares it. */
    hemi_add32_acq_rel(&arena->head->alarm, 1);
    for (uint32_t r = 0; r < arena->ranks; r++) {
        hemi_rank_block *block = hemi_arena_rank(arena, r);
        /* Unconditionally: this is rare, and so needs no word with the sleeper about fences. */
        hemi_add32_acq_rel(&block->doorbell, 1);
        platform->wake(platform->ctx, &block->doorbell);
    }
}

bool hemi_liveness_ended(const hemi_arena *arena, const hemi_platform *platform,
                         uint32_t root_rank, int exit_code) {
    hemi_rank_block *block = hemi_arena_rank(arena, root_rank);
    uint32_t first = 0;
    if (!hemi_cas32_acq_rel(&block->ending, &first, 1))
        return false;
    block->exit_code = exit_code;
    block->death_ns = platform->now(platform->ctx);
    hemi_store32_release(&block->state, exit_code == 0 ? HEMI_STATE_EXITED : HEMI_STATE_DEAD);
    hemi_liveness_alarm(arena, platform);
    return true;
}

void hemi_liveness_describe(const hemi_arena *arena, uint32_t root_rank, char *text, size_t size) {
    const hemi_rank_block *block = hemi_arena_rank(arena, root_rank);
    uint32_t state = hemi_load32_acquire(&block->state);
    if (state == HEMI_STATE_NEW)
        snprintf(text, size, "has not opened its world yet");
    else if (state == HEMI_STATE_ALIVE)
        snprintf(text, size, "is alive");
    else if (state == HEMI_STATE_EXITED)
        snprintf(text, size, "has exited");
    else if (block->exit_code > 128 && block->exit_code < 128 + 65)
        snprintf(text, size, "was killed by signal %d (%s)", block->exit_code - 128,
                 strsignal(block->exit_code - 128));
    else if (arena->kind == HEMI_KIND_CALLBACK)
        /* How it ended is known to its parent, which is not ours to ask. */
        snprintf(text, size, "has died");
    else if (arena->kind == HEMI_KIND_THREADS)
        snprintf(text, size, "returned without closing its world");
    else
        snprintf(text, size, "exited with code %d", block->exit_code);
}
