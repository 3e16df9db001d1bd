#include "coll/blocks.h"

#include "base/lock.h"

#include <stdlib.h>

/* Shorter ones cost nothing to make, longer ones are not worth keeping. */
#define KEPT_FROM (64u << 10)
#define KEPT_MOST (256u << 20)

/* Before each block, aligned as malloc does. */
typedef struct head {
    struct hemi_blocks *blocks; /* NULL: not to be kept */
    size_t bytes;
} head;

struct hemi_blocks {
    const hemi_platform *platform;
    uint32_t lock;
    uint32_t refs; /* blocks given out, and the holder */
    head *kept;
};

hemi_blocks *hemi_blocks_make(const hemi_platform *platform) {
    hemi_blocks *blocks = calloc(1, sizeof *blocks);
    if (blocks == NULL)
        return NULL;
    blocks->platform = platform;
    blocks->refs = 1;
    return blocks;
}

static void drop(hemi_blocks *blocks) {
    if (hemi_add32_acq_rel(&blocks->refs, UINT32_MAX) != 1)
        return;
    free(blocks->kept);
    free(blocks);
}

void hemi_blocks_drop(hemi_blocks *blocks) {
    if (blocks != NULL)
        drop(blocks);
}

/* The one that is kept, if it is large enough and not far too large. */
static head *take_kept(hemi_blocks *blocks, size_t bytes) {
    hemi_lock(blocks->platform, &blocks->lock);
    head *h = blocks->kept;
    if (h != NULL && (h->bytes < bytes || h->bytes / 4 > bytes))
        h = NULL;
    if (h != NULL)
        blocks->kept = NULL;
    hemi_unlock(&blocks->lock);
    return h;
}

void *hemi_block_get(hemi_blocks *blocks, size_t bytes) {
    if (bytes < KEPT_FROM || bytes > KEPT_MOST)
        blocks = NULL;
    head *h = blocks != NULL ? take_kept(blocks, bytes) : NULL;
    if (h == NULL) {
        h = malloc(sizeof *h + bytes);
        if (h == NULL)
            return NULL;
        *h = (head){blocks, bytes};
    }
    if (blocks != NULL)
        hemi_add32_relaxed(&blocks->refs, 1);
    return h + 1;
}

void hemi_block_put(void *block) {
    if (block == NULL)
        return;
    head *h = (head *)block - 1;
    hemi_blocks *blocks = h->blocks;
    head *old = h;
    if (blocks != NULL) {
        hemi_lock(blocks->platform, &blocks->lock);
        old = blocks->kept;
        blocks->kept = h;
        hemi_unlock(&blocks->lock);
    }
    free(old);
    if (blocks != NULL)
        drop(blocks);
}
