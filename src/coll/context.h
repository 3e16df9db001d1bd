/*
 * What a rank knows of the collectives of a world: its peers' boards, how far everybody is, and the
 * steps that were given out. Private memory, guarded by the engine's lock.
 */
#ifndef HEMI_COLL_CONTEXT_H
#define HEMI_COLL_CONTEXT_H

#include "coll/board.h"
#include "coll/reduce/reduce.h"
#include "core/hub.h"

/**
 * The steps of one collective that this rank has begun. It belongs to the context, since a collective
 * that failed may be gone before those that came before it are finished.
 */
typedef struct hemi_span {
    struct hemi_span *next; /**< in the order of steps, or in the pool */
    uint64_t number;        /**< of the collective */
    uint64_t steps;
    uint64_t finished;  /**< of them */
    bool posted;        /**< all of them, as far as it ever will */
    bool uses_channels; /**< it sends messages: only the oldest such one may */
} hemi_span;

/** Scratch for each rank has at least so many bytes. */
#define HEMI_SCRATCH_LEAST (8u << 10)

/** Library memory that is kept from one collective to the next. */
typedef struct hemi_kept {
    hemi_child child;
    hem_world *world;
    uint64_t offset;
    uint64_t bytes; /**< 0: there is none */
    bool used;
} hemi_kept;

typedef struct hemi_context {
    hem_world *world;
    uint32_t rank;
    uint32_t size;
    uint32_t seen;        /**< ranks whose hub has been seen: all below this one */
    uint32_t known;       /**< ranks of which everything is known, after all have been seen */
    unsigned char **hubs; /**< where the hub of each rank is mapped */
    uint64_t board;       /**< offset of the board in a hub, the same for all */
    uint64_t stages;      /**< of the stages */
    uint64_t stage_bytes;
    uint64_t collectives; /**< begun so far */
    uint64_t done;        /**< as published */
    uint64_t all_done;    /**< what everybody is known to have finished */
    hemi_span *spans;     /**< oldest first */
    hemi_span **spans_end;
    hemi_span *pool;
    bool plain;      /**< neither HEM_CHECK nor HEM_ALGORITHM is set */
    hem_dtype dtype; /**< of the reduction that coll/quick.c used last */
    hem_reduction op;
    hemi_reducer reducer;
    bool pulls;             /**< all ranks can read each other's private memory */
    unsigned char *scratch; /**< one piece of scratch_bytes per rank, for what was read so */
    size_t scratch_bytes;
    hemi_kept kept;             /**< see hemi_context_borrow */
    struct hemi_blocks *blocks; /**< memory that results of hem_sparse have given back, or NULL */
} hemi_context;

/** The context of a world; makes it, and this rank's hub, on first use. Under the lock. */
hem_status hemi_context_find(hem_world *world, hemi_context **context_p);

/** Have one more span in the pool. @return HEM_OK, HEM_ERR_MEMORY. */
hem_status hemi_context_stock(hemi_context *context);

/** Begin the next collective, of `steps` steps. Takes a span from the pool. */
hemi_span *hemi_context_take(hemi_context *context, uint64_t steps, bool uses_channels);

/** `count` more steps of the span are finished: publish what can be. */
void hemi_context_finish(hemi_context *context, hemi_span *span, uint64_t count);

/** The newest collective, the only one under way and of one step, is over: as taking and finishing. */
void hemi_context_pass(hemi_context *context);

/** Whether all collectives before this one have posted all their steps; NULL: before the next one.
 *  Lines are taken in order: an older collective never waits for a line that a newer one holds. */
bool hemi_context_may_begin(const hemi_context *context, const hemi_span *span);

/** Whether every collective before this one that sends messages is finished here. */
bool hemi_context_is_turn(const hemi_context *context, const hemi_span *span);

/** Get to know the peers. HEMI_AGAIN: see hemi_context_unknown. */
hem_status hemi_context_connect(hemi_context *context);

/** The rank that connecting waits for, and the word. There is one. */
static inline uint32_t hemi_context_unknown(const hemi_context *context) {
    return context->seen < context->size ? context->seen : context->known;
}

/** Whether the line of `step` may be written. */
bool hemi_context_may_post(hemi_context *context, uint64_t step);

/** The rank that has not finished what it must for `step` to be posted, or `size`. */
uint32_t hemi_context_slowest(const hemi_context *context, uint64_t step);

/** Read private memory of another process. @return HEM_OK, HEM_ERR_PEER, HEM_ERR_SYSTEM. */
hem_status hemi_context_pull(const hemi_context *context, uint32_t rank, uint64_t address, void *to,
                             size_t n);

/**
 * Library memory for one collective at a time, which is kept for the next one. NULL: it is in use, or there is
 * none. Under the lock.
 */
unsigned char *hemi_context_borrow(hemi_context *context, size_t bytes);

/** Have scratch. @return HEM_OK, HEM_ERR_MEMORY. */
hem_status hemi_context_scratch(hemi_context *context);

/** Wake all other ranks that sleep. */
void hemi_context_wake(const hemi_context *context);

static inline hemi_hub_head *hemi_context_head(const hemi_context *context, uint32_t rank) {
    return (hemi_hub_head *)(void *)context->hubs[rank];
}

static inline hemi_post *hemi_context_post(const hemi_context *context, uint32_t rank,
                                           uint64_t step) {
    return (hemi_post *)(void *)(context->hubs[rank] + context->board) +
           HEMI_POST_STRIDE * (hemi_step_line(step) % HEMI_BOARD);
}

/** This rank's stage of a step. */
static inline unsigned char *hemi_context_stage(const hemi_context *context, uint64_t step) {
    return context->hubs[context->rank] + context->stages +
           (hemi_step_line(step) % HEMI_BOARD) * context->stage_bytes;
}

/** The offset in the arena of an address, or 0 if it is not in library memory. */
static inline uint64_t hemi_context_offset(const hemi_context *context, const void *address,
                                           size_t bytes) {
    const hemi_arena *arena = &context->world->root->arena;
    uintptr_t at = (uintptr_t)address;
    uintptr_t base = (uintptr_t)arena->base;
    if (at <= base || at - base >= arena->total_bytes || bytes > arena->total_bytes - (at - base))
        return 0;
    return at - base;
}

#endif
