/* Cutting a mesh into parts, and what each part stores. */
#ifndef MESH_SHARE_H
#define MESH_SHARE_H

#include "gmsh.h"

#include <stdint.h>

/**
 * Cut the points into `parts` by recursive bisection: across the longest side, so that both halves
 * have as many points for each of their parts. Writes the part of each point.
 *
 * @return false: no memory.
 */
bool mesh_bisect(const gmsh_mesh *mesh, int parts, int *part_of);

/** The points of one part: first those that it owns, then its halo. */
typedef struct mesh_share {
    int64_t *points; /**< their numbers in the mesh */
    size_t count;
    size_t own;
} mesh_share;

/** The halo of a part is every point that has a cell in common with one of its own. */
bool mesh_share_make(const gmsh_mesh *mesh, const int *part_of, int part, mesh_share *share_p);
void mesh_share_free(mesh_share *share);

#endif
