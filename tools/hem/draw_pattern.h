/* A pattern to draw, and the ranks that make it, as threads. */
#ifndef HEMT_DRAW_PATTERN_H
#define HEMT_DRAW_PATTERN_H

#include "mesh/share.h"

#include <hem/hem.h>

typedef struct hemt_drawing {
    int ranks;
    const char *output;
    const char *title;
    bool print; /**< what each rank knows, too */
    /* A grid of two dimensions; or a mesh, if `part_of` is not NULL. */
    hem_grid_options grid;
    hem_grid_cut cut;
    gmsh_mesh mesh;
    int *part_of;
} hemt_drawing;

/** Make the pattern, check it and draw it. Says what went wrong. @return an exit code. */
int hemt_draw_pattern(const hemt_drawing *drawing);

#endif
