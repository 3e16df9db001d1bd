/* Ending every process below the calling one, however it tries to slip away. */
#ifndef HEMT_DESCENDANTS_H
#define HEMT_DESCENDANTS_H

#include <stddef.h>
#include <sys/types.h>

typedef struct hemt_pids {
    pid_t *list;
    size_t count;
    size_t room;
} hemt_pids;

void hemt_pids_free(hemt_pids *pids);

/** The children of the calling process, whichever of its threads started or adopted them. */
void hemt_children(hemt_pids *pids_p);

/**
 * Kill and reap all descendants of the calling process, which must be a child subreaper: whoever
 * loses its parent, also by a double fork or setsid, becomes our child and is killed in a later
 * round. `spared` (may be NULL) are children that were there before.
 *
 * @return how many are left because they belong to another user; normally 0.
 */
size_t hemt_end_descendants(const hemt_pids *spared);

#endif
