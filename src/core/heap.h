/*
 * A rank's heap: ranges of its part of the arena.
 *
 * Only threads of the rank's own process allocate from it, but several worlds of that process may
 * have mapped the arena at different places. Therefore its book-keeping lies at the start of the
 * part, guarded by a lock in the rank's block. When the process dies, all of that dies with it.
 */
#ifndef HEMI_CORE_HEAP_H
#define HEMI_CORE_HEAP_H

#include "core/arena.h"

/** Whether memory is reserved now, or page by page by whoever first uses it. */
typedef enum hemi_heap_kind {
    HEMI_HEAP_RESERVED,
    HEMI_HEAP_SPARSE
} hemi_heap_kind;

/** Prepare the heap of one's own rank; does nothing if it is prepared. */
hem_status hemi_heap_open(const hemi_arena *arena, const hemi_platform *platform,
                          uint32_t root_rank);

/**
 * Allocate `bytes`, rounded up to pages, that read as zero. `cache_bytes`: see hemi_heap_free.
 *
 * @return HEM_OK and the offset in the arena, or HEM_ERR_MEMORY.
 */
hem_status hemi_heap_alloc(const hemi_arena *arena, const hemi_platform *platform,
                           uint32_t root_rank, uint64_t bytes, hemi_heap_kind kind,
                           uint64_t *offset_p);

/** Free what was allocated. Up to `cache_bytes` of freed memory stay reserved for reuse. While a dead
 *  rank may still write to memory of others, nothing that is freed is used again. */
void hemi_heap_free(const hemi_arena *arena, const hemi_platform *platform, uint32_t root_rank,
                    uint64_t offset, uint64_t cache_bytes);

/** Bytes in use, for tests and statistics. */
uint64_t hemi_heap_used(const hemi_arena *arena, const hemi_platform *platform, uint32_t root_rank);

#endif
