#include "report.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Borders are one fine line here, so they may be light. */
#define BORDER_WHITE 0.2

bool report_png(const struct picture *picture, const char *path) {
    int width = picture->plate.width;
    int height = picture->plate.height;
    uint8_t *pixels = malloc((size_t)width * (size_t)height);
    struct rgb palette[256];
    bool good = pixels && picture_render(picture, width, height, pixels);

    picture_palette(BORDER_WHITE, palette);
    good = good && png_write(path, width, height, pixels, palette);
    if (good)
        printf("picture        %s, %d x %d\n", path, width, height);
    else
        fprintf(stderr, "heat: %s: %s\n", path, strerror(errno));
    free(pixels);
    return good;
}

static uint32_t bits_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static bool compare(const struct picture *picture, const struct field *reference) {
    const float *seen = picture->values;

    for (int y = 0; y < picture->plate.height; y++) {
        for (int x = 0; x < picture->plate.width; x++, seen++) {
            float wanted = *field_at(reference, x, y);
            if (bits_of(*seen) != bits_of(wanted)) {
                fprintf(stderr, "heat: point (%d, %d) is %.9g, but %.9g on one rank\n", x, y,
                        (double)*seen, (double)wanted);
                return false;
            }
        }
    }
    return true;
}

bool report_check(const struct picture *picture) {
    const struct plate *plate = &picture->plate;
    struct field reference;

    if (!field_create(&reference, plate, (struct tile){0, 0, plate->width, plate->height})) {
        fprintf(stderr, "heat: no memory for the check\n");
        return false;
    }
    for (int step = 0; step < plate->steps; step++) {
        field_diffuse_inside(&reference);
        field_diffuse_rim(&reference);
        field_finish_step(&reference, step);
    }
    bool equal = compare(picture, &reference);
    if (equal)
        printf("check          equal to a run on one rank, bit for bit\n");
    field_destroy(&reference);
    return equal;
}

void report_times(const struct times *times, int ranks, int steps) {
    struct times sum = {0};
    long cores = sysconf(_SC_NPROCESSORS_ONLN);

    for (int i = 0; i < ranks; i++) {
        sum.steps += times[i].steps;
        sum.moving += times[i].moving;
        sum.waiting += times[i].waiting;
    }
    double us_per_step = 1e6 / ((double)ranks * steps);

    printf("step           %.1f us on average\n", sum.steps * us_per_step);
    printf(
        "communication  %.1f us moving edges (%.1f %%), %.1f us waiting for neighbours (%.0f %%)\n",
        sum.moving * us_per_step, 100 * sum.moving / sum.steps, sum.waiting * us_per_step,
        100 * sum.waiting / sum.steps);
    if (ranks > cores && cores > 0)
        printf("               %d ranks share %ld cores: while one waits, another one computes\n",
               ranks, cores);
}
