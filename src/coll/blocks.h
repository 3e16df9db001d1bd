/*
 * Memory of results, kept between one and the next.
 *
 * Fresh memory of some size costs a page fault per page, more than what is copied into it. So a
 * result that is given back leaves its block here, for the next one that fits. Blocks outlive the
 * world that they came from, as results do: whoever comes last frees the rest.
 */
#ifndef HEMI_COLL_BLOCKS_H
#define HEMI_COLL_BLOCKS_H

#include "base/platform.h"

#include <stddef.h>

typedef struct hemi_blocks hemi_blocks;

/** NULL if there is no memory. The caller holds it. */
hemi_blocks *hemi_blocks_make(const hemi_platform *platform);

/** The holder lets go. NULL is allowed. */
void hemi_blocks_drop(hemi_blocks *blocks);

/** A block of `bytes` bytes, or NULL. `blocks` may be NULL: then it is never kept. */
void *hemi_block_get(hemi_blocks *blocks, size_t bytes);

/** Give a block back. NULL is allowed. From any thread. */
void hemi_block_put(void *block);

#endif
