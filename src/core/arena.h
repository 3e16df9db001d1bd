/* Making, checking and mapping the arena. */
#ifndef HEMI_CORE_ARENA_H
#define HEMI_CORE_ARENA_H

#include "base/platform.h"
#include "core/layout.h"

#include <hem/status.h>
#include <stddef.h>

/** A mapped arena. Plain: copying it copies nothing shared. */
typedef struct hemi_arena {
    int fd;
    unsigned char *base;
    hemi_arena_head *head;
    /* Taken from the head once, after it was checked, so that a peer cannot change them later. */
    uint64_t total_bytes;
    uint64_t ranks_offset;
    uint64_t team_offset;
    uint64_t parts_offset;
    uint64_t part_bytes;
    uint64_t reserve_bytes;
    uint32_t ranks;
    uint32_t kind;
    bool borrowed; /**< another struct unmaps and closes it */
} hemi_arena;

typedef struct hemi_arena_plan {
    uint32_t ranks;
    uint32_t kind;
    uint64_t part_bytes;    /**< 0: HEM_ARENA_SIZE, or the machine's memory */
    uint64_t reserve_bytes; /**< memory of each part to reserve now */
    const char *command;
} hemi_arena_plan;

/**
 * Make an arena for `plan->ranks` ranks and map it. The descriptor is close-on-exec and sealed.
 *
 * @return HEM_OK; HEM_ERR_LIMIT for too many ranks or a limit on address space, saying which;
 *         HEM_ERR_MEMORY; HEM_ERR_ARG for a bad HEM_ARENA_SIZE; HEM_ERR_SYSTEM.
 */
hem_status hemi_arena_make(const hemi_arena_plan *plan, const hemi_platform *platform,
                           hemi_arena *arena_p);

/**
 * Map the arena behind `fd`, after checking everything in its head. Does not take `fd`: a duplicate
 * is kept.
 *
 * `writable` false is for onlookers (`hem ps`).
 * @return HEM_OK, HEM_ERR_ARG if it is not an arena of this version, HEM_ERR_LIMIT, HEM_ERR_SYSTEM.
 */
hem_status hemi_arena_map(int fd, bool writable, hemi_arena *arena_p);

/** Unmap and close. Safe on a zeroed struct with fd -1 and base NULL. */
void hemi_arena_unmap(hemi_arena *arena);

/** Check a head against the length of its file. @return NULL, or what is wrong with it. */
const char *hemi_arena_check(const hemi_arena_head *head, uint64_t file_bytes);

/** Reserve memory behind [offset, offset + bytes) so that touching it cannot fail. */
hem_status hemi_arena_reserve(const hemi_arena *arena, uint64_t offset, uint64_t bytes);

/** Give the memory behind whole pages back; they read as zero afterwards. */
void hemi_arena_release(const hemi_arena *arena, uint64_t offset, uint64_t bytes);

static inline void *hemi_arena_at(const hemi_arena *arena, uint64_t offset) {
    return arena->base + offset;
}

static inline hemi_rank_block *hemi_arena_rank(const hemi_arena *arena, uint32_t root_rank) {
    return (hemi_rank_block *)(void *)(arena->base + arena->ranks_offset +
                                       (uint64_t)root_rank * sizeof(hemi_rank_block));
}

static inline uint64_t hemi_arena_part(const hemi_arena *arena, uint32_t root_rank) {
    return arena->parts_offset + (uint64_t)root_rank * arena->part_bytes;
}

/** Whether [offset, offset + bytes) lies inside of what the heap of `root_rank` can give out. */
bool hemi_arena_in_part(const hemi_arena *arena, uint32_t root_rank, uint64_t offset,
                        uint64_t bytes);

/** Fill in a team whose members are `members[0..size)`. Its memory must be zero. */
void hemi_team_init(hemi_team *team, uint64_t id, uint32_t owner, const uint32_t *members,
                    uint32_t size);

#endif
