#include "machine.h"

#include "place.h"

#include <stdio.h>
#include <string.h>

static uint32_t count_of(hwloc_topology_t topology, hwloc_obj_type_t type) {
    int count = hwloc_get_nbobjs_by_type(topology, type);
    return count > 0 ? (uint32_t)count : 0;
}

static void look_at_caches(hwloc_topology_t topology, hemt_machine *machine) {
    static const hwloc_obj_type_t types[] = {HWLOC_OBJ_L1CACHE, HWLOC_OBJ_L1ICACHE,
                                             HWLOC_OBJ_L2CACHE, HWLOC_OBJ_L3CACHE,
                                             HWLOC_OBJ_L4CACHE};
    static const char *const names[] = {"L1d", "L1i", "L2", "L3", "L4"};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        hemt_cache cache = {.count = count_of(topology, types[i])};
        if (cache.count == 0)
            continue;
        snprintf(cache.name, sizeof cache.name, "%s", names[i]);
        for (uint32_t k = 0; k < cache.count; k++) {
            uint64_t bytes = hwloc_get_obj_by_type(topology, types[i], k)->attr->cache.size;
            cache.bytes = bytes > cache.bytes ? bytes : cache.bytes;
        }
        machine->caches[machine->cache_count++] = cache;
    }
}

static void look_at_nodes(hwloc_topology_t topology, hemt_machine *machine) {
    machine->node_count = count_of(topology, HWLOC_OBJ_NUMANODE);
    for (uint32_t i = 0; i < machine->node_count && i < HEMT_NODES; i++) {
        hwloc_obj_t node = hwloc_get_obj_by_type(topology, HWLOC_OBJ_NUMANODE, i);
        machine->nodes[i].number = node->os_index;
        machine->nodes[i].bytes = node->attr->numanode.local_memory;
        hwloc_bitmap_list_snprintf(machine->nodes[i].processors,
                                   sizeof machine->nodes[i].processors, node->cpuset);
    }
}

int hemt_machine_look(hemt_machine *machine_p) {
    hwloc_topology_t topology = NULL;
    int error = hemt_topology_load(&topology);
    if (error != 0)
        return error;
    memset(machine_p, 0, sizeof *machine_p);
    machine_p->packages = count_of(topology, HWLOC_OBJ_PACKAGE);
    machine_p->cores = count_of(topology, HWLOC_OBJ_CORE);
    machine_p->processors = count_of(topology, HWLOC_OBJ_PU);
    look_at_caches(topology, machine_p);
    look_at_nodes(topology, machine_p);
    hwloc_topology_destroy(topology);
    return 0;
}
