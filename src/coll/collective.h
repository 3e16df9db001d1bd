/*
 * A collective under way on this rank.
 *
 * It is a row of steps over the board (coll/board.h): with HEM_CHECK, one in which everybody says what
 * it calls; then those of the algorithm; and, where buffers may be read in place or messages are sent,
 * a closing one. Each step is posted when its line is free, and pulled when those posts are there that
 * it needs; posts run ahead of pulls by a few steps, so that data is staged while others still read.
 */
#ifndef HEMI_COLL_COLLECTIVE_H
#define HEMI_COLL_COLLECTIVE_H

#include "coll/context.h"
#include "coll/job.h"

#include <string.h>

/** What a method's pull says if the collective needs no more steps; not an error. */
#define HEMI_ENOUGH ((hem_status)3)

/** Up to this many ranks a reduction needs no memory besides the operation itself. */
#define HEMI_SOURCES_FEW     16
#define HEMI_COLLECTIVE_ROOM 1024

/** From this many bytes on buffers may be read in place, and a closing step follows. */
#define HEMI_CLOSES_FROM (16u << 10)
/** From this many bytes on private ones are, too: a system call for each has paid off then (all-reduce
 *  of 2 ranks on a Xeon: 32 KiB 5.7 us staged, 10.4 so; 256 KiB 40 and 51; 8 MiB 1662 and 1229). */
#define HEMI_PULLS_FROM     (1u << 20)
#define HEMI_PULLS_FROM_TWO (4u << 20) /**< of two ranks */

struct hemi_collective;

/** How a collective is done. One per algorithm, const. */
typedef struct hemi_method {
    const char *name;
    /** Whether it can do this job with this much staging. */
    bool (*fits)(const hemi_job *job, uint64_t stage_bytes);
    /** Decide on `width`, `closes`, and how many steps it takes, at least 1: the same on all ranks,
     *  from what is the same on all ranks. The peers are known. */
    uint64_t (*lay_out)(struct hemi_collective *c);
    /** May step k be posted? HEM_OK, HEMI_AGAIN, or why it never can. NULL: always. */
    hem_status (*ready)(struct hemi_collective *c, uint64_t k);
    /** Post step k, or do nothing if this rank has nothing to say in it. */
    void (*post)(struct hemi_collective *c, uint64_t k);
    /** The posts that step k needs are there: use them. HEMI_ENOUGH: no rank needs the steps that
     *  follow. */
    hem_status (*pull)(struct hemi_collective *c, uint64_t k);
    bool needs_root_only; /**< steps need the post of the root alone, not everybody's */
    bool uses_channels;   /**< or may: such collectives take turns */
    /** May be NULL: allocate, when the operation is made; begin again; give up; free. */
    hem_status (*prepare)(struct hemi_collective *c);
    void (*begin)(struct hemi_collective *c);
    void (*stop)(struct hemi_collective *c);
    void (*release)(struct hemi_collective *c);
} hemi_method;

typedef struct hemi_collective {
    struct hem_op op;
    hemi_task task;
    hemi_job job;
    const hemi_method *method;
    const struct hemi_algorithm *algorithm; /**< what to plan by, where messages are sent */
    hemi_context *context;
    hemi_span *span;
    uint64_t number; /**< of the collective in its world */
    uint64_t steps;  /**< in all */
    uint64_t body;   /**< of the algorithm */
    uint64_t next_post;
    uint64_t next_pull;
    uint32_t next_rank; /**< the first whose post of step `next_pull` has not been seen */
    uint32_t lost; /**< a rank, plus 1, whose process was gone when its memory was to be read */
    bool checks;
    bool refused;  /**< this rank's arguments are no good: it only says so to the others */
    bool closes;   /**< a closing step follows */
    bool laid_out; /**< what follows is decided; after the peers are known */
    bool pulls;    /**< buffers are read in place always, private ones too, and so in one piece */
    unsigned char *copy; /**< of a buffer that is read in place and written at the same time */
    bool settled;  /**< found to have succeeded while in doubt: time limits do not count any more */
    size_t width;  /**< bytes of a block in one step: the algorithm's */
    size_t stride; /**< from block to block in a stage: the algorithm's */
    int64_t timeout_ns; /**< of hem_coll: 0 is none */
    const void *call; /**< what the caller said, while it is being made, if not all is in the job */
    void *state;      /**< the algorithm's */
    /** The algorithm's too; the last member, as it need not be cleared. */
    unsigned char room[HEMI_COLLECTIVE_ROOM] __attribute__((aligned(16)));
} hemi_collective;

/** Choose an algorithm and lay the steps out. `job` is taken over, also on failure. */
hem_status hemi_collective_make(hem_world *world, hemi_job *job, hemi_collective *c);

/** Free what it owns, not itself. */
void hemi_collective_clear(hemi_collective *c);

/** Go on with what coll/quick.c has posted. Under the lock. */
struct hemi_quick;
void hemi_collective_resume(hemi_collective *c, const struct hemi_quick *posted);

/** Its time limit has passed: end it, unless it turns out to have succeeded. Under the lock. */
void hemi_collective_expire(hemi_collective *c);

/** Give up: settle with the others. @return HEM_OK if it succeeded and goes on, else how it ended. */
hem_status hemi_collective_give_up(hemi_collective *c, hem_status why, uint32_t rank);

/** The types of operations: blocking (on the stack) and handles. */
extern const hemi_op_type hemi_collective_type;

/* For algorithms. */

/** Set in `bytes` of a post: the data is the poster's whole buffer, not a stage laid out for it. */
#define HEMI_POST_WHOLE (1ull << 63)
/** Set in `bytes` of a post: `where` is an address in the poster's process. */
#define HEMI_POST_PRIVATE (1ull << 62)

static inline uint64_t hemi_collective_step(const hemi_collective *c, uint64_t k) {
    return hemi_step_number(c->number, k + (c->checks ? 1 : 0));
}

static inline hemi_post *hemi_collective_line(const hemi_collective *c, uint64_t step) {
    return hemi_context_post(c->context, c->context->rank, step);
}

/** Where to put `bytes` bytes of step k: the line itself if they fit, else the stage. */
static inline unsigned char *hemi_collective_room(const hemi_collective *c, uint64_t k,
                                                  size_t bytes) {
    uint64_t step = hemi_collective_step(c, k);
    return bytes <= HEMI_POST_INLINE ? hemi_collective_line(c, step)->payload
                                     : hemi_context_stage(c->context, step);
}

/** Publish what was written to the room. */
void hemi_collective_publish(const hemi_collective *c, uint64_t k, size_t bytes);

/** Publish library memory in place. */
void hemi_collective_refer(const hemi_collective *c, uint64_t k, uint64_t where, uint64_t bytes);

/**
 * Whether a collective that moves `bytes` bytes in all closes, and how wide the pieces of blocks of
 * `most` bytes are if a stage has room for `staged` of each. For a method's lay_out.
 */
void hemi_collective_cut(hemi_collective *c, size_t bytes, size_t most, size_t staged);

/** Have room for a copy of `bytes` bytes if buffers are pulled. @return HEM_OK, HEM_ERR_MEMORY. */
hem_status hemi_collective_need_copy(hemi_collective *c, size_t bytes);

/** Where peers can read these bytes in place, with flags for the post, or 0. Only if it closes. */
uint64_t hemi_collective_place(const hemi_collective *c, const void *data, size_t bytes,
                               uint64_t *flags_p);

/** Copy and publish, or refer if that is allowed. */
void hemi_collective_post_data(const hemi_collective *c, uint64_t k, const void *data,
                               size_t bytes);

/** What a rank posted in a step. */
typedef struct hemi_found {
    const unsigned char *data; /**< NULL: in the poster's process, at `address` */
    uint64_t address;
    uint32_t rank;
    bool whole; /**< it is the whole buffer, not a stage laid out for the step */
} hemi_found;

/**
 * Find what `rank` posted in step k.
 *
 * @return HEM_OK; HEM_ERR_MISMATCH if it has other bytes than `bytes` (of a whole buffer: `whole`).
 */
hem_status hemi_collective_find(const hemi_collective *c, uint64_t k, uint32_t rank, size_t bytes,
                                size_t whole, hemi_found *found_p);

/** Copy `n` bytes from `offset` of it. @return HEM_OK, HEM_ERR_SYSTEM; HEMI_AGAIN: try later. */
hem_status hemi_collective_copy(hemi_collective *c, const hemi_found *found, size_t offset,
                                void *to, size_t n);

/** What this rank itself would have posted, without looking at the board. */
static inline hemi_found hemi_found_own(const hemi_collective *c, const unsigned char *data) {
    return (hemi_found){.data = data, .rank = c->context->rank, .whole = true};
}

/**
 * Combine `n` bytes from `offsets[r]` of what each rank posted, in the order of ranks, into `out`.
 * `found` has one per rank. @return as hemi_collective_copy.
 */
hem_status hemi_collective_combine(hemi_collective *c, const hemi_found *found,
                                   const size_t *offsets, void *out, size_t n);

/** Whether step k has been pulled. */
static inline bool hemi_collective_has_pulled(const hemi_collective *c, uint64_t k) {
    return c->next_pull > k + (c->checks ? 1 : 0);
}

extern const hemi_method hemi_direct_barrier;
extern const hemi_method hemi_direct_broadcast;
extern const hemi_method hemi_direct_gather; /**< all-gather(v) and gather */
extern const hemi_method hemi_direct_alltoall;
extern const hemi_method hemi_direct_scatter;
extern const hemi_method hemi_direct_reduce_scatter; /**< equal and v */
extern const hemi_method hemi_direct_reduce_once;    /**< reduce and all-reduce: each all of it */
extern const hemi_method hemi_direct_reduce_twice;   /**< all-reduce: each a part of it */
extern const hemi_method hemi_direct_exchange;       /**< gatherv, scatterv, all-to-all-v */
extern const hemi_method hemi_direct_sparse;
extern const hemi_method hemi_planned; /**< any plan over channels */

#endif
