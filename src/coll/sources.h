/* Room for one pointer per rank, for algorithms that combine what all ranks posted. */
#ifndef HEMI_COLL_SOURCES_H
#define HEMI_COLL_SOURCES_H

#include "coll/collective.h"

#include <stdlib.h>

static inline hem_status hemi_sources_prepare(hemi_collective *c) {
    if (c->job.size <= HEMI_SOURCES_FEW) {
        c->state = c->few;
        return HEM_OK;
    }
    c->state = calloc(c->job.size, sizeof(void *));
    return c->state != NULL ? HEM_OK : hemi_fail(HEM_ERR_MEMORY, "no memory for a reduction");
}

static inline void hemi_sources_release(hemi_collective *c) {
    if (c->state != c->few)
        free(c->state);
    c->state = NULL;
}

#endif
