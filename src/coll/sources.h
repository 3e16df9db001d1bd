/* Room for what each rank posted, for algorithms that combine it. */
#ifndef HEMI_COLL_SOURCES_H
#define HEMI_COLL_SOURCES_H

#include "coll/collective.h"

/** One of each per rank. */
typedef struct hemi_sources_room {
    const void **sources;
    hemi_found *found;
    size_t *offsets;
} hemi_sources_room;

/** For a method's prepare and release: few ranks need no memory besides the operation itself. */
hem_status hemi_sources_prepare(hemi_collective *c);
void hemi_sources_release(hemi_collective *c);

static inline const void **hemi_sources(const hemi_collective *c) {
    return ((hemi_sources_room *)c->state)->sources;
}

#endif
