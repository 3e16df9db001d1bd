/* Meshes, and files of Gmsh that hold them: formats 2 and 4, ASCII. */
#ifndef MESH_GMSH_H
#define MESH_GMSH_H

#include <stdbool.h>
#include <stddef.h>

/** Points and the cells of the highest dimension that the file has. */
typedef struct gmsh_mesh {
    double (*points)[3];
    size_t point_count;
    size_t *corners; /**< of all cells, one after the other: numbers of points, from 0 */
    size_t *first;   /**< where those of each cell begin; one more than there are cells */
    size_t cell_count;
} gmsh_mesh;

/**
 * Read a mesh. Points are numbered from 0, in the order of the file.
 *
 * @return whether it could be read; if not, `why` says why not, and there is nothing to free.
 */
bool gmsh_read(const char *path, gmsh_mesh *mesh_p, char *why, size_t room);

void gmsh_free(gmsh_mesh *mesh);

#endif
