/*
 * Settling: either every rank has the result of a collective, or every rank has an error.
 *
 * Collective k has word k % HEMI_SETTLES in the team. In the good case nobody writes it, and
 * whoever has all that it needs loads it once. Whoever gives up (time limit, death, cancel)
 *
 *   1. changes the word to DOUBT(k) by compare-and-swap,
 *   2. makes every rank pass a full fence (membarrier; where signallers fence, they did),
 *   3. looks once more whether it has all that it needs,
 *   4. proposes SUCCESS(k) or FAILED(k, rank, why) by compare-and-swap, and takes what is there.
 *
 * Whoever has all that it needs and finds DOUBT(k) proposes SUCCESS(k) and takes what is there.
 *
 * Why all agree. If a rank finished without seeing DOUBT, every post that it needed was visible before
 * DOUBT was, and so step 3 of whoever doubts finds them, too: nobody proposes failure. If one saw it,
 * the first compare-and-swap decides for all. For this, everybody must need the same: whoever only
 * contributes to a reduction waits for all posts as well, and a collective whose buffers are read in
 * place, or that sends messages, ends with a step that everybody posts when it has all its data. The
 * root of a broadcast posts all that anybody needs, and so may propose success.
 *
 * Whoever waits looks at the word now and then, since a rank that gave up may never post; FAILED is
 * followed by the alarm. A word is written over only when every rank has ended the collective that it
 * was about (`done`); if one has not, the world is revoked instead. A rank that finds a newer word was
 * left behind. models/settle.pml checks all this, with mutants.
 */
#ifndef HEMI_COLL_SETTLE_H
#define HEMI_COLL_SETTLE_H

#include "coll/context.h"

/** What the word says about collective k: HEM_OK, HEMI_AGAIN in doubt or if it says nothing. */
typedef struct hemi_verdict {
    hem_status status; /**< HEMI_AGAIN: none yet */
    uint32_t rank;     /**< who gave up */
    bool doubted;
} hemi_verdict;

hemi_verdict hemi_settle_read(const hemi_context *context, uint64_t k);

/** Steps 1 and 2. @return HEM_OK, or HEM_ERR_REVOKED if the word may not be written over. */
hem_status hemi_settle_doubt(const hemi_context *context, uint64_t k);

/** Propose; HEM_OK is success. @return what holds. */
hemi_verdict hemi_settle_propose(const hemi_context *context, uint64_t k, hem_status status,
                                 uint32_t rank);

#endif
