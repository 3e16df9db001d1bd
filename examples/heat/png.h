/* Writes a PNG with a palette, without a library. */
#ifndef HEAT_PNG_H
#define HEAT_PNG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rgb {
    uint8_t red;
    uint8_t green;
    uint8_t blue;
};

/* Writes `height` rows of `width` indices into `palette`. False, with errno, if it could not. */
bool png_write(const char *path, int width, int height, const uint8_t *pixels,
               const struct rgb palette[256]);

#endif
