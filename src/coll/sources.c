#include "coll/sources.h"

#include <stdlib.h>

/* What lies in the operation for few ranks. */
typedef struct few {
    hemi_sources_room room;
    const void *sources[HEMI_SOURCES_FEW];
    hemi_found found[HEMI_SOURCES_FEW];
    size_t offsets[HEMI_SOURCES_FEW];
} few;

_Static_assert(sizeof(few) <= HEMI_COLLECTIVE_ROOM, "few ranks fit into the operation");

hem_status hemi_sources_prepare(hemi_collective *c) {
    if (c->job.size <= HEMI_SOURCES_FEW) {
        few *f = (few *)(void *)c->room;
        f->room = (hemi_sources_room){f->sources, f->found, f->offsets};
        c->state = &f->room;
        return HEM_OK;
    }
    size_t each = sizeof(void *) + sizeof(hemi_found) + sizeof(size_t);
    hemi_sources_room *room = calloc(1, sizeof *room + c->job.size * each);
    if (room == NULL)
        return hemi_fail(HEM_ERR_MEMORY, "no memory for a reduction");
    room->found = (hemi_found *)(void *)(room + 1);
    room->sources = (const void **)(void *)(room->found + c->job.size);
    room->offsets = (size_t *)(void *)(room->sources + c->job.size);
    c->state = room;
    return HEM_OK;
}

void hemi_sources_release(hemi_collective *c) {
    if (c->state != NULL && c->state != (void *)c->room)
        free(c->state);
    c->state = NULL;
}
