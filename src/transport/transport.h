/*
 * The contract of a transport: how one rank reaches another's memory.
 *
 * A transport turns a name that a peer has exported into a region. Where the region is mapped,
 * everything above loads and stores through it directly, signals and atomics included; the
 * operations below then are not called. They are for memory that cannot be mapped.
 */
#ifndef HEMI_TRANSPORT_TRANSPORT_H
#define HEMI_TRANSPORT_TRANSPORT_H

#include "core/world.h"

#include <hem/memory.h>

/** What a name says about memory. Comes from a peer: nothing in it is believed unchecked. */
typedef struct hemi_name {
    uint32_t kind; /**< enum hemi_name_kind */
    uint32_t root_rank;
    uint64_t where; /**< offset in the arena, or address in the owner's process */
    uint64_t bytes;
    uint32_t pid;
    uint32_t check; /**< see hemi_name_check */
    uint64_t job;   /**< of the arena */
} hemi_name;

enum hemi_name_kind {
    HEMI_NAME_LIBRARY = 1, /**< a range of the owner's part of the arena */
    HEMI_NAME_OWN          /**< the owner's private memory */
};

_Static_assert(sizeof(hemi_name) <= sizeof(hem_memory_handle), "a name fits into a handle");

struct hemi_transport;

/** Memory of some rank, as this rank reaches it. */
typedef struct hemi_region {
    const struct hemi_transport *transport;
    unsigned char *mapped; /**< NULL: only through put and get */
    uint64_t bytes;
    uint64_t remote; /**< what the transport needs to find it */
    uint32_t root_rank;
    uint32_t pid;
    unsigned route; /**< HEM_ROUTE_ bits */
} hemi_region;

typedef struct hemi_transport {
    const char *name;

    /** What it can do for library memory of `root_rank`: HEM_ROUTE_ bits; 0: it does not reach it.
     *  Does not block, allocate or fail. */
    unsigned (*reach)(const hemi_root *root, uint32_t root_rank);

    /** Turn a checked name into a region. May make system calls, does not allocate, does not wait
     *  for the peer. HEM_ERR_UNSUPPORTED, HEM_ERR_SYSTEM. */
    hem_status (*attach)(const hemi_root *root, const hemi_name *name, hemi_region *region_p);

    /** Copy into or out of a region that is not mapped; the range was checked. Complete on return:
     *  the source may be reused and the bytes are in place. HEM_ERR_PEER, HEM_ERR_SYSTEM. */
    hem_status (*put)(const hemi_region *region, uint64_t offset, const void *src, size_t n);
    hem_status (*get)(const hemi_region *region, uint64_t offset, void *dst, size_t n);
} hemi_transport;

/** All transports of this build, best first, NULL at the end. Defined in src/hem.c. */
extern const hemi_transport *const hemi_transports[];

/** The best transport to a rank, or NULL. */
const hemi_transport *hemi_transport_select(const hemi_root *root, uint32_t root_rank);

/** Name memory of this rank. `where` is an offset in the arena or an address. */
hemi_name hemi_name_make(const hemi_root *root, enum hemi_name_kind kind, uint64_t where,
                         uint64_t bytes);

/** Check a name that claims to come from `root_rank`. @return HEM_OK or HEM_ERR_RANGE. */
hem_status hemi_name_check(const hemi_root *root, const hemi_name *name, uint32_t root_rank);

/** Check a name and attach to it by the best transport. */
hem_status hemi_region_attach(const hemi_root *root, const hemi_name *name, uint32_t root_rank,
                              hemi_region *region_p);

/** Copy, mapped or not. The range was checked. */
hem_status hemi_region_put(const hemi_region *region, uint64_t offset, const void *src, size_t n);
hem_status hemi_region_get(const hemi_region *region, uint64_t offset, void *dst, size_t n);

#endif
