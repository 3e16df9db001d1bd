#include "coll/settle.h"

/* The lower byte of a word: 0 is success, this is doubt, anything else a status with its sign off. */
#define DOUBT 0xffu
/* Where nobody can be made to fence, this is far longer than a store waits to become visible. */
#define NAP_NS 1000000

static uint64_t word_of(uint64_t k, uint32_t rank, uint32_t code) {
    return (k & UINT32_MAX) << 32 | (uint64_t)rank << 8 | code;
}

static uint64_t *find(const hemi_context *context, uint64_t k) {
    return &context->world->team->verdicts[k % HEMI_SETTLES];
}

static bool is_about(uint64_t word, uint64_t k) {
    return word >> 32 == (k & UINT32_MAX);
}

/* The others have given up so many since that the verdict on k is gone. */
static bool is_newer(uint64_t word, uint64_t k) {
    return (int32_t)((uint32_t)(word >> 32) - (uint32_t)k) > 0;
}

static hemi_verdict decode(uint64_t word, uint64_t k) {
    hemi_verdict verdict = {.status = HEMI_AGAIN};
    if (is_newer(word, k))
        verdict.status = HEM_ERR_REVOKED;
    if (!is_about(word, k))
        return verdict;
    verdict.doubted = true;
    verdict.rank = (uint32_t)(word >> 8) & 0xffffff;
    if ((word & 0xff) != DOUBT)
        verdict.status = (hem_status)(-(int)(word & 0xff));
    return verdict;
}

hemi_verdict hemi_settle_read(const hemi_context *context, uint64_t k) {
    /* Pairs with the compare-and-swaps below. */
    return decode(hemi_load64_acquire(find(context, k)), k);
}

/* Whether everybody has ended the collective whose verdict would be overwritten. */
static bool may_overwrite(const hemi_context *context, uint64_t k) {
    if (k <= HEMI_SETTLES)
        return true;
    for (uint32_t r = 0; r < context->size; r++)
        if (hemi_load64_acquire(&hemi_context_head(context, r)->done) <
            hemi_step_over(k - HEMI_SETTLES))
            return false;
    return true;
}

hem_status hemi_settle_doubt(const hemi_context *context, uint64_t k) {
    const hemi_root *root = context->world->root;
    const hemi_platform *platform = root->platform;
    uint64_t *word = find(context, k);
    uint64_t seen = hemi_load64_acquire(word);
    while (!is_about(seen, k) && !is_newer(seen, k)) {
        if (!may_overwrite(context, k)) {
            hem_status revoked = hem_world_revoke(context->world);
            return revoked == HEM_OK ? HEM_ERR_REVOKED : revoked;
        }
        if (hemi_cas64_acq_rel(word, &seen, word_of(k, context->rank, DOUBT)))
            break;
    }
    /* Also where DOUBT was there already: whoever wrote it may not have come to its own fence. */
    hemi_fence_seq_cst();
    if (!root->all_fence && (root->fence || !platform->membarrier(platform->ctx)))
        platform->nap(platform->ctx, NAP_NS);
    return HEM_OK;
}

hemi_verdict hemi_settle_propose(const hemi_context *context, uint64_t k, hem_status status,
                                 uint32_t rank) {
    uint64_t *word = find(context, k);
    uint64_t mine = word_of(k, rank, (uint32_t)(-(int)status) & 0xff);
    uint64_t seen = hemi_load64_acquire(word);
    do {
        hemi_verdict verdict = decode(seen, k);
        if (verdict.status != HEMI_AGAIN)
            return verdict;
    } while (!hemi_cas64_acq_rel(word, &seen, mine));
    return decode(mine, k);
}
