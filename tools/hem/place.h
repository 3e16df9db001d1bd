/* Where ranks run. */
#ifndef HEMT_PLACE_H
#define HEMT_PLACE_H

#include "run.h"

#include <hwloc.h>
#include <stddef.h>

typedef struct hemt_place hemt_place;

/** Load what this process may use of the machine. @return 0, or an errno. */
int hemt_topology_load(hwloc_topology_t *topology_p);

/**
 * Find a core for each of `ranks` ranks. `*place_p` becomes NULL where ranks are not bound.
 *
 * @return 0, or an errno if binding was asked for and cannot be; `why` then says more.
 */
int hemt_place_plan(hemt_bind bind, uint32_t ranks, hemt_place **place_p, char *why, size_t size);

/** Bind the calling process to the core of `rank`. NULL does nothing. @return 0 or an errno. */
int hemt_place_bind(const hemt_place *place, uint32_t rank);

void hemt_place_free(hemt_place *place);

#endif
