/* The plate, how it is cut into tiles, and the physics on one tile. Knows nothing of ranks. */
#ifndef HEAT_PLATE_H
#define HEAT_PLATE_H

#include <stdbool.h>
#include <stddef.h>

/* The whole plate, and for how many steps it is watched. */
struct plate {
    int width;
    int height;
    int steps;
};

/* A rectangle of points. */
struct tile {
    int x;
    int y;
    int width;
    int height;
};

/* How many tiles there are beside and above one another. */
struct grid {
    int columns;
    int rows;
};

/* The temperatures of one tile, 0 cold and 1 hot, with one ghost point around it on each side. */
struct field {
    struct plate plate;
    struct tile tile;
    size_t stride;
    float *now;
    float *next;
};

/* Cuts the plate into `tiles` tiles with short borders. False if it is too small for that. */
bool grid_choose(const struct plate *plate, int tiles, struct grid *grid_p);

/* Tile number `index`, counted row by row. Sizes differ by at most one point. */
struct tile grid_tile(const struct plate *plate, const struct grid *grid, int index);

/* A cold field. False if there is no memory. */
bool field_create(struct field *field, const struct plate *plate, struct tile tile);
void field_destroy(struct field *field);

/* The point (x, y) of the tile in `field->now`; -1 and width or height are the ghost points. */
float *field_at(const struct field *field, int x, int y);

/* Computes `next` where no ghost point is needed, and where one is: the outermost points. */
void field_diffuse_inside(struct field *field);
void field_diffuse_rim(struct field *field);

/* Draws with the hot pens on `next`, which then becomes `now`. `step` counts from 0. */
void field_finish_step(struct field *field, int step);

#endif
