#include "picture.h"

#include <math.h>
#include <stdlib.h>

#define BORDER_SHADES (256 - PICTURE_SHADES)

/* Nine colours of the map "inferno", whose brightness grows evenly, so that no edge is seen where
 * there is none. Between them is interpolated. */
static const struct rgb inferno[] = {
    {0x00, 0x00, 0x04}, {0x21, 0x0c, 0x4a}, {0x56, 0x10, 0x6e},
    {0x89, 0x22, 0x6a}, {0xbb, 0x37, 0x54}, {0xe3, 0x59, 0x32},
    {0xf9, 0x8c, 0x0a}, {0xf9, 0xc9, 0x32}, {0xfc, 0xff, 0xa4},
};

static uint8_t mix(uint8_t from, uint8_t to, double share) {
    return (uint8_t)lround(from + share * (to - from));
}

static struct rgb mix_colours(struct rgb from, struct rgb to, double share) {
    return (struct rgb){mix(from.red, to.red, share), mix(from.green, to.green, share),
                        mix(from.blue, to.blue, share)};
}

/* `brightness` from 0 to 1. */
static struct rgb inferno_colour(double brightness) {
    int last = (int)(sizeof inferno / sizeof *inferno) - 1;
    double place = brightness * last;
    int below = place < last ? (int)place : last - 1;

    return mix_colours(inferno[below], inferno[below + 1], place - below);
}

void picture_palette(double white, struct rgb palette[256]) {
    for (int i = 0; i < PICTURE_SHADES; i++)
        palette[i] = inferno_colour(i / (PICTURE_SHADES - 1.0));
    for (int i = 0; i < BORDER_SHADES; i++)
        palette[PICTURE_SHADES + i] = mix_colours(inferno_colour(i / (BORDER_SHADES - 1.0)),
                                                  (struct rgb){255, 255, 255}, white);
}

/* The root makes the faint end of the trails visible. */
static uint8_t shade(double temperature, bool border) {
    double brightness = sqrt(temperature < 0 ? 0 : temperature > 1 ? 1 : temperature);

    if (border)
        return (uint8_t)(PICTURE_SHADES + lround(brightness * (BORDER_SHADES - 1)));
    return (uint8_t)lround(brightness * (PICTURE_SHADES - 1));
}

/* The points of the plate that pixel `pixel` of `pixels` stands for: at least one. */
struct span {
    int from;
    int to;
};

static struct span span_of(int pixel, int pixels, int points) {
    int from = (int)((long)pixel * points / pixels);
    int to = (int)(((long)pixel + 1) * points / pixels);

    return (struct span){from, to > from ? to : from + 1};
}

/* Marks the pixels in which a new tile begins; not the first one, which begins at the frame. */
static void mark_borders(int pixels, int points, int tiles, bool *marks) {
    int tile = 1;

    for (int i = 0; i < pixels; i++) {
        struct span span = span_of(i, pixels, points);
        marks[i] = tile < tiles && points * tile / tiles < span.to;
        while (tile < tiles && points * tile / tiles < span.to)
            tile++;
    }
}

static double mean(const struct picture *picture, struct span across, struct span down) {
    double sum = 0;

    for (int y = down.from; y < down.to; y++) {
        const float *row = picture->values + (size_t)y * (size_t)picture->plate.width;
        for (int x = across.from; x < across.to; x++)
            sum += (double)row[x];
    }
    return sum / ((double)(across.to - across.from) * (down.to - down.from));
}

bool picture_render(const struct picture *picture, int width, int height, uint8_t *pixels) {
    const struct plate *plate = &picture->plate;
    bool *columns = calloc((size_t)width + (size_t)height, sizeof *columns);
    bool *rows = columns + width;

    if (!columns)
        return false;
    mark_borders(width, plate->width, picture->grid.columns, columns);
    mark_borders(height, plate->height, picture->grid.rows, rows);
    for (int y = 0; y < height; y++) {
        struct span down = span_of(y, height, plate->height);
        for (int x = 0; x < width; x++) {
            double temperature = mean(picture, span_of(x, width, plate->width), down);
            *pixels++ = shade(temperature, columns[x] || rows[y]);
        }
    }
    free(columns);
    return true;
}
