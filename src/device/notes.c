#include "device/notes.h"

#include "base/platform.h"

#include <string.h>

/* Tries to find a note that is not being written just now, with naps between. */
#define TRIES  20
#define NAP_NS 1000000

/* The words that a slot names, or NULL. They may be anything: a peer has written the offset. */
static const uint32_t *words_of(const hemi_arena *arena, uint32_t root_rank, uint32_t slot) {
    const uint64_t *notes = hemi_arena_rank(arena, root_rank)->notes;
    /* Pairs with the release in show_note. */
    uint64_t offset = hemi_load64_acquire(&notes[slot]);
    uint64_t bytes = HEMD_TROUBLE_RANKS * sizeof(uint32_t);
    if (offset == 0 || offset % HEMI_LINE != 0 ||
        !hemi_arena_in_part(arena, root_rank, offset, bytes))
        return NULL;
    return (const uint32_t *)hemi_arena_at(arena, offset);
}

uint32_t hemi_note_seq(const hemi_arena *arena, uint32_t root_rank, uint32_t slot) {
    const uint32_t *words = words_of(arena, root_rank, slot);
    return words == NULL ? 0 : hemi_load32_acquire(&words[HEMD_TROUBLE_SEQ]);
}

/* Which of all ranks one of the note's world is; -1: any, or the note makes no sense. */
static int32_t root_rank_of(const hemi_arena *arena, uint32_t owner, const uint32_t *words,
                            uint64_t peer, uint64_t size) {
    if (size > arena->ranks || peer >= size)
        return -1;
    const uint32_t *ranks = &words[HEMD_TROUBLE_RANKS + size];
    uint64_t offset = (uint64_t)((const unsigned char *)ranks - arena->base);
    if (!hemi_arena_in_part(arena, owner, offset, size * sizeof *ranks))
        return -1;
    uint32_t rank = hemi_load32_relaxed(&ranks[peer]);
    return rank < arena->ranks ? (int32_t)rank : -1;
}

static void copy_note(const hemi_arena *arena, uint32_t owner, const uint32_t *words,
                      uint64_t now_ns, hemi_flight *copy_p, uint64_t *seen_p) {
    const hemd_note *note = (const hemd_note *)(const void *)&words[HEMD_TROUBLE_NOTE];
    uint64_t what = hemi_load64_acquire(&note->what);
    uint64_t since = hemi_load64_acquire(&note->since_ns);
    uint64_t waited = hemi_load64_acquire(&note->now_ns) - since;
    memset(copy_p, 0, sizeof *copy_p);
    copy_p->call = HEMI_CALL_KERNEL + (what < HEMD_WHAT_COUNT ? (uint32_t)what : 0);
    copy_p->peer = root_rank_of(arena, owner, words, hemi_load64_acquire(&note->peer),
                                hemi_load64_acquire(&note->size));
    copy_p->id = (uint32_t)hemi_load64_acquire(&note->id);
    copy_p->compare = (uint32_t)hemi_load64_acquire(&note->compare);
    copy_p->wanted = hemi_load64_acquire(&note->wanted);
    copy_p->world = hemi_load64_acquire(&note->world);
    copy_p->window = hemi_load64_acquire(&note->object);
    copy_p->since_ns = waited < now_ns ? now_ns - waited : 0;
    /* There is a word with a value, of which the note has a copy. */
    if (what >= HEMD_WHAT_SIGNAL_FROM && what <= HEMD_WHAT_BARRIER_PEER)
        copy_p->word = (uint64_t)((const unsigned char *)&note->seen - arena->base);
    *seen_p = hemi_load64_acquire(&note->seen);
}

bool hemi_note_read(const hemi_arena *arena, uint32_t root_rank, uint32_t slot, uint32_t before,
                    uint64_t now_ns, hemi_flight *copy_p, uint64_t *seen_p) {
    for (int i = 0; i < TRIES; i++) {
        const uint32_t *words = words_of(arena, root_rank, slot);
        uint32_t seq = words == NULL ? before : hemi_load32_acquire(&words[HEMD_TROUBLE_SEQ]);
        if (seq == before)
            return false;
        if (seq % 2 == 0) {
            copy_note(arena, root_rank, words, now_ns, copy_p, seen_p);
            if (hemi_load32_relaxed(&words[HEMD_TROUBLE_SEQ]) == seq &&
                words_of(arena, root_rank, slot) == words)
                return copy_p->call > HEMI_CALL_KERNEL;
        }
        hemi_platform_real()->nap(NULL, NAP_NS);
    }
    return false;
}
