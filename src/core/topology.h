/* Cores: how many this thread may use. */
#ifndef HEMI_CORE_TOPOLOGY_H
#define HEMI_CORE_TOPOLOGY_H

#include <stdint.h>

/** The number of processors that the calling thread may run on; at least 1. */
uint32_t hemi_topology_usable(void);

/** The lowest number among them. */
uint32_t hemi_topology_first(void);

#endif
