/* The machine as hwloc sees it, and what its kernel lets us do. */
#ifndef HEMT_MACHINE_H
#define HEMT_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HEMT_CACHES 8
#define HEMT_NODES  64

typedef struct hemt_cache {
    char name[16]; /**< "L1d", "L2" and so on */
    uint32_t count;
    uint64_t bytes; /**< of one, the largest if they differ */
} hemt_cache;

typedef struct hemt_node {
    uint32_t number;
    uint64_t bytes;
    char processors[64]; /**< "0-7,16" */
} hemt_node;

typedef struct hemt_machine {
    uint32_t packages;
    uint32_t cores;
    uint32_t processors;
    uint32_t cache_count;
    hemt_cache caches[HEMT_CACHES];
    uint32_t node_count; /**< nodes beyond HEMT_NODES are counted, but not described */
    hemt_node nodes[HEMT_NODES];
} hemt_machine;

/** What this process may use of the machine. @return 0 or an errno. */
int hemt_machine_look(hemt_machine *machine_p);

/** One thing that a transport needs from the kernel. */
typedef struct hemt_probe {
    const char *name;
    const char *purpose;
    bool usable;
    char why[192]; /**< empty if it is usable */
} hemt_probe;

enum {
    HEMT_PROBE_MEMFD,
    HEMT_PROBE_MEMBARRIER,
    HEMT_PROBE_COPY,
    HEMT_PROBES
};

/** Try them all out. */
void hemt_probe_all(hemt_probe probes_p[HEMT_PROBES]);

/** Look for a module such as "cuda". `where` gets its path, or why it cannot be used. */
bool hemt_module_look(const char *name, char *where, size_t size);

#endif
