/* Temperatures as colours, with the borders between the tiles. */
#ifndef HEAT_PICTURE_H
#define HEAT_PICTURE_H

#include "plate.h"
#include "png.h"

/* The temperatures of the whole plate, and how it is cut. */
struct picture {
    struct plate plate;
    struct grid grid;
    const float *values;
};

/* The first colours of the palette are for temperatures, the rest for borders. */
#define PICTURE_SHADES 240

/* Colours from black over purple and orange to a pale yellow, then the same for borders, made
 * lighter by a share of white. */
void picture_palette(double white, struct rgb palette[256]);

/* Scales the picture to `width` x `height` indices into the palette. False if no memory. */
bool picture_render(const struct picture *picture, int width, int height, uint8_t *pixels);

#endif
