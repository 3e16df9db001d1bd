#include "place.h"

#include "core/topology.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

struct hemt_place {
    hwloc_topology_t topology;
    hwloc_obj_type_t type; /* a core, or a processor where the machine shows no cores */
    uint32_t cores;
    uint32_t ranks;
    bool asked;
};

int hemt_topology_load(hwloc_topology_t *topology_p) {
    hwloc_topology_t topology = NULL;
    if (hwloc_topology_init(&topology) != 0)
        return ENOMEM;
    /* Plugins look for GPUs and displays, load libraries of vendors and may start threads. */
    bool ours = getenv("HWLOC_PLUGINS_PATH") == NULL;
    if (ours)
        setenv("HWLOC_PLUGINS_PATH", "/dev/null", 1);
    int failed = hwloc_topology_set_flags(topology, HWLOC_TOPOLOGY_FLAG_IS_THISSYSTEM |
                                                        HWLOC_TOPOLOGY_FLAG_RESTRICT_TO_CPUBINDING);
    if (failed == 0)
        failed = hwloc_topology_load(topology);
    int error = errno;
    if (ours)
        unsetenv("HWLOC_PLUGINS_PATH");
    if (failed != 0) {
        hwloc_topology_destroy(topology);
        return error != 0 ? error : EIO;
    }
    *topology_p = topology;
    return 0;
}

static void count_cores(hemt_place *place) {
    place->type = HWLOC_OBJ_CORE;
    int count = hwloc_get_nbobjs_by_type(place->topology, place->type);
    if (count <= 0) {
        place->type = HWLOC_OBJ_PU;
        count = hwloc_get_nbobjs_by_type(place->topology, place->type);
    }
    place->cores = count > 0 ? (uint32_t)count : 1;
}

int hemt_place_plan(hemt_bind bind, uint32_t ranks, hemt_place **place_p, char *why, size_t size) {
    *place_p = NULL;
    if (bind == HEMT_BIND_NONE || (bind == HEMT_BIND_AUTO && ranks > hemi_topology_usable()))
        return 0;
    hemt_place *place = calloc(1, sizeof *place);
    int error = place == NULL ? ENOMEM : hemt_topology_load(&place->topology);
    if (error != 0) {
        free(place);
        snprintf(why, size, "cannot find the cores of this machine");
        return bind == HEMT_BIND_CORE ? error : 0;
    }
    count_cores(place);
    place->ranks = ranks;
    place->asked = bind == HEMT_BIND_CORE;
    if (ranks <= place->cores) {
        *place_p = place;
        return 0;
    }
    snprintf(why, size,
             "--bind core: %u ranks are more than the cores that may be used (%u); use "
             "--bind none",
             ranks, place->cores);
    hemt_place_free(place);
    return bind == HEMT_BIND_CORE ? ERANGE : 0;
}

int hemt_place_bind(const hemt_place *place, uint32_t rank) {
    if (place == NULL)
        return 0;
    /* Spread over all cores, and with them over caches and memories; neighbours stay near. */
    unsigned index = (unsigned)((uint64_t)rank * place->cores / place->ranks);
    hwloc_obj_t core = hwloc_get_obj_by_type(place->topology, place->type, index);
    if (core != NULL &&
        hwloc_set_cpubind(place->topology, core->cpuset, HWLOC_CPUBIND_PROCESS) == 0)
        return 0;
    /* Where nobody asked for it, a system that refuses is no reason to stop. */
    return place->asked ? (errno != 0 ? errno : EIO) : 0;
}

void hemt_place_free(hemt_place *place) {
    if (place == NULL)
        return;
    hwloc_topology_destroy(place->topology);
    free(place);
}
