#include "coll/claim.h"

#include <stdio.h>

/* As the operation of a claim: this rank cannot do what it called. */
#define REFUSED 0xff

_Static_assert(sizeof(hemi_coll_claim) == HEMI_POST_INLINE, "a claim fits into a post");

static uint64_t hash_counts(const hemi_job *job) {
    uint64_t hash = 0xcbf29ce484222325u;
    bool shared = job->kind == HEM_ALLGATHERV || job->kind == HEM_REDUCE_SCATTERV;
    for (uint32_t r = 0; shared && r < job->size; r++)
        hash = (hash ^ job->counts[r]) * 0x100000001b3u;
    return hash;
}

hemi_coll_claim hemi_claim_of(const hemi_job *job) {
    /* In the kinds with V it is each rank's own, or not used. */
    bool equal = job->counts == NULL && job->kind != HEM_GATHERV && job->kind != HEM_SCATTERV;
    hemi_coll_claim mine = {
        .kind = (uint8_t)job->kind,
        .op = (uint8_t)job->op,
        .element = job->element,
        .root = job->root,
        .count = equal ? job->count : 0,
        .counts = hash_counts(job),
        .dtype = (uint16_t)job->dtype,
    };
    return mine;
}

void hemi_claim_post(const hemi_collective *c) {
    hemi_coll_claim mine = hemi_claim_of(&c->job);
    mine.steps = c->body;
    if (c->refused)
        mine.op = REFUSED;
    uint64_t first = hemi_step_number(c->number, 0);
    hemi_post *post = hemi_collective_line(c, first);
    memcpy(post->payload, &mine, sizeof mine);
    hemi_post_release(post, first, 0, sizeof mine);
    hemi_context_wake(c->context);
}

static void describe(const hemi_coll_claim *a, char *text, size_t size) {
    if (a->op == REFUSED) {
        snprintf(text, size, "%s with bad arguments", hemi_call_name(HEMI_CALL_COLL + a->kind));
        return;
    }
    snprintf(text, size, "%s(%llu of %s, %llu bytes each, %s, root %u)",
             hemi_call_name(HEMI_CALL_COLL + a->kind), (unsigned long long)a->count,
             hemi_dtype_name((hem_dtype)a->dtype), (unsigned long long)a->element,
             a->op == 0 ? "no operation" : hemi_reduction_name((hem_reduction)a->op), a->root);
}

hem_status hemi_claim_differs(const hemi_coll_claim *first, const hemi_coll_claim *other,
                              uint32_t r) {
    if (memcmp(first, other, sizeof *first) == 0)
        return HEM_OK;
    char texts[2][112];
    describe(first, texts[0], sizeof texts[0]);
    describe(other, texts[1], sizeof texts[1]);
    return hemi_fail(HEM_ERR_MISMATCH, "rank %u called %s where rank 0 called %s%s", r, texts[1],
                     texts[0], strcmp(texts[0], texts[1]) == 0 ? ", with other counts" : "");
}

hem_status hemi_claim_compare(const hemi_collective *c) {
    uint64_t step = hemi_step_number(c->number, 0);
    hem_status status = HEM_OK;
    hemi_coll_claim first;
    memcpy(&first, hemi_context_post(c->context, 0, step)->payload, sizeof first);
    for (uint32_t r = 1; r < c->job.size && status == HEM_OK; r++) {
        hemi_coll_claim other;
        memcpy(&other, hemi_context_post(c->context, r, step)->payload, sizeof other);
        status = hemi_claim_differs(&first, &other, r);
    }
    return status;
}
