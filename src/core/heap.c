/*
 * How this works. The part behind the book-keeping is cut into extents, kept in an array sorted by
 * offset. Free extents come in three kinds: HOLE has no memory behind it, CLEAN has memory that
 * reads as zero, DIRTY has memory that must be cleared. Memory stays behind freed extents up to a
 * limit, because reserving a page anew costs twenty times what clearing it does.
 *
 * What is freed while a dead rank may still write to it (core/liveness.h) is LATE: it is neither in use
 * nor free, and becomes free when the heap is next asked for something after that is over.
 */
#include "core/heap.h"

#include "base/lock.h"
#include "base/status.h"
#include "core/liveness.h"

#include <inttypes.h>
#include <string.h>

enum extent_state {
    HOLE = 1,
    CLEAN,
    DIRTY,
    LATE,
    LATE_SPARSE,
    USED,
    USED_SPARSE
};

typedef struct extent {
    uint64_t offset;
    uint64_t bytes;
    uint64_t state;
} extent;

typedef struct heap {
    uint64_t count; /* 0: not prepared yet */
    uint64_t dirty_bytes;
    uint64_t late; /* extents */
    extent extents[];
} heap;

#define EXTENTS_MAX ((HEMI_HEAP_META - sizeof(heap)) / sizeof(extent))

static heap *heap_of(const hemi_arena *arena, uint32_t root_rank) {
    return hemi_arena_at(arena, hemi_arena_part(arena, root_rank));
}

static void lock(const hemi_arena *arena, const hemi_platform *platform, uint32_t root_rank) {
    hemi_lock(platform, &hemi_arena_rank(arena, root_rank)->heap_lock);
}

static void unlock(const hemi_arena *arena, uint32_t root_rank) {
    hemi_unlock(&hemi_arena_rank(arena, root_rank)->heap_lock);
}

/* Insert an extent at `at`, reserving another page of book-keeping when it grows into one. */
static hem_status insert(const hemi_arena *arena, heap *h, uint64_t at, extent e) {
    uint64_t used = sizeof(heap) + h->count * sizeof(extent);
    if (h->count >= EXTENTS_MAX)
        return hemi_fail(HEM_ERR_MEMORY, "shared memory is cut into more than %zu pieces",
                         (size_t)EXTENTS_MAX);
    if (used / HEMI_PAGE != (used + sizeof(extent)) / HEMI_PAGE) {
        uint64_t page = (uint64_t)((unsigned char *)h - arena->base) +
                        (used + sizeof(extent)) / HEMI_PAGE * HEMI_PAGE;
        hem_status status = hemi_arena_reserve(arena, page, HEMI_PAGE);
        if (status != HEM_OK)
            return status;
    }
    memmove(&h->extents[at + 1], &h->extents[at], (h->count - at) * sizeof(extent));
    h->extents[at] = e;
    h->count++;
    return HEM_OK;
}

static void drop(heap *h, uint64_t at) {
    memmove(&h->extents[at], &h->extents[at + 1], (h->count - at - 1) * sizeof(extent));
    h->count--;
}

hem_status hemi_heap_open(const hemi_arena *arena, const hemi_platform *platform,
                          uint32_t root_rank) {
    uint64_t start = hemi_arena_part(arena, root_rank);
    hem_status status = hemi_arena_reserve(arena, start, HEMI_PAGE);
    if (status != HEM_OK)
        return status;
    lock(arena, platform, root_rank);
    heap *h = heap_of(arena, root_rank);
    if (h->count == 0) {
        uint64_t clean = start + HEMI_HEAP_META;
        uint64_t hole = clean + arena->reserve_bytes;
        h->dirty_bytes = 0;
        h->late = 0;
        if (arena->reserve_bytes > 0)
            h->extents[h->count++] = (extent){clean, arena->reserve_bytes, CLEAN};
        h->extents[h->count++] = (extent){hole, start + arena->part_bytes - hole, HOLE};
    }
    unlock(arena, root_rank);
    return HEM_OK;
}

/* The smallest free extent of a kind that fits, or count. */
static uint64_t best_fit(const heap *h, uint64_t bytes, uint64_t state) {
    uint64_t best = h->count;
    for (uint64_t i = 0; i < h->count; i++)
        if (h->extents[i].state == state && h->extents[i].bytes >= bytes &&
            (best == h->count || h->extents[i].bytes < h->extents[best].bytes))
            best = i;
    return best;
}

static uint64_t choose(const heap *h, uint64_t bytes, hemi_heap_kind kind) {
    uint64_t at = h->count;
    if (kind == HEMI_HEAP_RESERVED) {
        at = best_fit(h, bytes, CLEAN);
        if (at == h->count)
            at = best_fit(h, bytes, DIRTY);
    }
    return at == h->count ? best_fit(h, bytes, HOLE) : at;
}

/* Cut `bytes` off the front of extent `at`, which becomes used. */
static hem_status take(const hemi_arena *arena, heap *h, uint64_t at, uint64_t bytes,
                       hemi_heap_kind kind) {
    extent *e = &h->extents[at];
    uint64_t state = e->state;
    if (e->bytes > bytes) {
        extent rest = {e->offset + bytes, e->bytes - bytes, state};
        hem_status status = insert(arena, h, at + 1, rest);
        if (status != HEM_OK)
            return status;
        e = &h->extents[at];
        e->bytes = bytes;
    }
    if (state == DIRTY)
        h->dirty_bytes -= bytes;
    e->state = kind == HEMI_HEAP_SPARSE ? USED_SPARSE : USED;
    return HEM_OK;
}

/* Join the free extent `at` with neighbours of the same kind. */
static void merge(heap *h, uint64_t at) {
    if (at + 1 < h->count && h->extents[at + 1].state == h->extents[at].state) {
        h->extents[at].bytes += h->extents[at + 1].bytes;
        drop(h, at + 1);
    }
    if (at > 0 && h->extents[at - 1].state == h->extents[at].state) {
        h->extents[at - 1].bytes += h->extents[at].bytes;
        drop(h, at);
    }
}

static uint64_t find_used(const heap *h, uint64_t offset) {
    for (uint64_t i = 0; i < h->count; i++)
        if (h->extents[i].offset == offset && h->extents[i].state >= USED)
            return i;
    return h->count;
}

/* Turn what is cached into holes, to make room in one piece. */
static void drop_cache(const hemi_arena *arena, heap *h) {
    for (uint64_t i = 0; i < h->count; i++) {
        if (h->extents[i].state != DIRTY && h->extents[i].state != CLEAN)
            continue;
        hemi_arena_release(arena, h->extents[i].offset, h->extents[i].bytes);
        h->extents[i].state = HOLE;
    }
    for (uint64_t i = h->count; i-- > 0;)
        if (i < h->count && h->extents[i].state == HOLE)
            merge(h, i);
    h->dirty_bytes = 0;
}

/* What was in use, or late, becomes free. */
static void give_back(const hemi_arena *arena, heap *h, uint64_t at, uint64_t cache_bytes) {
    extent *e = &h->extents[at];
    if ((e->state == USED || e->state == LATE) && h->dirty_bytes + e->bytes <= cache_bytes) {
        e->state = DIRTY;
        h->dirty_bytes += e->bytes;
    } else {
        hemi_arena_release(arena, e->offset, e->bytes);
        e->state = HOLE;
    }
    merge(h, at);
}

static void give_back_late(const hemi_arena *arena, heap *h) {
    if (h->late == 0 || !hemi_liveness_all_buried(arena))
        return;
    h->late = 0;
    for (uint64_t i = h->count; i-- > 0;) /* those before it stay where they are, or join it */
        if (i < h->count && (h->extents[i].state == LATE || h->extents[i].state == LATE_SPARSE))
            give_back(arena, h, i, 0);
}

static hem_status alloc_locked(const hemi_arena *arena, heap *h, uint64_t bytes,
                               hemi_heap_kind kind, extent *found_p) {
    give_back_late(arena, h);
    uint64_t at = choose(h, bytes, kind);
    if (at == h->count) {
        drop_cache(arena, h);
        at = choose(h, bytes, kind);
    }
    if (at == h->count)
        return hemi_fail(HEM_ERR_MEMORY,
                         "no %" PRIu64 " bytes in one piece are left of this rank's %" PRIu64
                         " MiB of shared memory; raise HEM_ARENA_SIZE",
                         bytes, arena->part_bytes >> 20);
    *found_p = h->extents[at];
    found_p->bytes = bytes;
    return take(arena, h, at, bytes, kind);
}

hem_status hemi_heap_alloc(const hemi_arena *arena, const hemi_platform *platform,
                           uint32_t root_rank, uint64_t bytes, hemi_heap_kind kind,
                           uint64_t *offset_p) {
    if (bytes > arena->part_bytes)
        return hemi_fail(HEM_ERR_MEMORY,
                         "%" PRIu64 " bytes are more than this rank's %" PRIu64
                         " MiB of shared memory; raise HEM_ARENA_SIZE",
                         bytes, arena->part_bytes >> 20);
    bytes = bytes == 0 ? HEMI_PAGE : (bytes + HEMI_PAGE - 1) / HEMI_PAGE * HEMI_PAGE;
    extent found = {0};
    lock(arena, platform, root_rank);
    hem_status status = alloc_locked(arena, heap_of(arena, root_rank), bytes, kind, &found);
    unlock(arena, root_rank);
    if (status != HEM_OK)
        return status;
    /* The slow part is done outside of the lock: the extent is already ours. */
    if (found.state == DIRTY)
        memset(hemi_arena_at(arena, found.offset), 0, bytes);
    else if (found.state == HOLE && kind == HEMI_HEAP_RESERVED)
        status = hemi_arena_reserve(arena, found.offset, bytes);
    if (status != HEM_OK) {
        hemi_heap_free(arena, platform, root_rank, found.offset, 0);
        return status;
    }
    *offset_p = found.offset;
    return HEM_OK;
}

void hemi_heap_free(const hemi_arena *arena, const hemi_platform *platform, uint32_t root_rank,
                    uint64_t offset, uint64_t cache_bytes) {
    lock(arena, platform, root_rank);
    heap *h = heap_of(arena, root_rank);
    uint64_t at = find_used(h, offset);
    if (at < h->count && hemi_liveness_all_buried(arena)) {
        give_back(arena, h, at, cache_bytes);
    } else if (at < h->count) {
        h->extents[at].state = h->extents[at].state == USED ? LATE : LATE_SPARSE;
        h->late++;
    }
    unlock(arena, root_rank);
}

uint64_t hemi_heap_used(const hemi_arena *arena, const hemi_platform *platform,
                        uint32_t root_rank) {
    uint64_t used = 0;
    lock(arena, platform, root_rank);
    const heap *h = heap_of(arena, root_rank);
    for (uint64_t i = 0; i < h->count; i++)
        if (h->extents[i].state >= USED)
            used += h->extents[i].bytes;
    unlock(arena, root_rank);
    return used;
}
