/*
 * Inside of the mesh pattern. mesh.c puts it together, mesh_read.c looks at what the caller passes,
 * mesh_home.c is what a rank does for others: it knows the owners of some ids and answers.
 */
#ifndef HEMI_HALO_PATTERN_MESH_H
#define HEMI_HALO_PATTERN_MESH_H

#include "halo/pattern/making.h"

/** A halo point of this rank. */
typedef struct hemi_halo {
    uint64_t position; /**< in its domain */
    uint64_t there;    /**< position in the owner's domain, once it is known */
    uint32_t domain;
    uint32_t home;   /**< the rank that is asked; of the caller's, the owner that it says */
    uint32_t owner;  /**< rank, once it is known */
    uint32_t abroad; /**< the owner's domain */
} hemi_halo;

typedef struct hemi_mesh {
    hem_world *world;
    const hem_mesh_domain *domains;
    size_t domain_count;
    unsigned char **is_halo; /**< per domain, per point */
    hemi_halo *halos;        /**< ordered by domain and position at first */
    size_t halo_count;
    size_t halo_room;
    uint32_t votes; /**< HEMI_MESH_ bits */
    uint64_t bytes; /**< of memory in the above */
} hemi_mesh;

/** What a rank says of its halos: nothing if it has none. */
#define HEMI_MESH_SEARCHES 1u
#define HEMI_MESH_KNOWS    2u

/** Check the caller's domains and list the halo. @return HEM_OK, HEM_ERR_ARG, RANGE, MEMORY. */
hem_status hemi_mesh_read(hemi_mesh *mesh);

void hemi_mesh_free(hemi_mesh *mesh);

enum hemi_mesh_kind {
    HEMI_MESH_OWNED = 1,
    HEMI_MESH_ASKED
};

/** A record of points that a domain owns: their ids follow, then as many positions. */
typedef struct hemi_mesh_owned {
    uint16_t kind; /**< HEMI_MESH_OWNED */
    uint16_t wide; /**< 1: positions have 8 bytes, not 4 */
    uint32_t domain;
    int64_t id; /**< of the domain, for people */
} hemi_mesh_owned;

/** A record that asks who owns some points: their ids follow. */
typedef struct hemi_mesh_ask {
    uint16_t kind; /**< HEMI_MESH_ASKED */
    uint16_t spare[3];
} hemi_mesh_ask;

/** The answer: as many of hemi_mesh_found follow, in the order of the questions. */
typedef struct hemi_mesh_answer {
    int64_t status; /**< not HEM_OK: it has no answers, for want of memory */
} hemi_mesh_answer;

#define HEMI_MESH_NOBODY UINT32_MAX

typedef struct hemi_mesh_found {
    uint32_t rank; /**< or HEMI_MESH_NOBODY */
    uint32_t domain;
    uint64_t position;
} hemi_mesh_found;

/**
 * Answer all questions in `bag` from what is owned according to `owned`, which may be the same bag.
 * Answers go into `answers`. Two owners of an id, and nonsense, are failures of the making.
 */
void hemi_mesh_answer_all(hemi_making *making, const hemi_bag *owned, const hemi_bag *bag,
                          hemi_bag *answers);

#endif
