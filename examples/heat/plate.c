#include "plate.h"

#include <math.h>
#include <stdlib.h>

/* Each step a point moves towards its four neighbours by DIFFUSION, at most 0.25 to be stable, and
 * loses a little to the air. */
#define DIFFUSION 0.24f
#define COOLING   0.0008f
#define PENS      3
#define PI        3.14159265358979323846

bool grid_choose(const struct plate *plate, int tiles, struct grid *grid_p) {
    long best = -1;

    for (int columns = 1; columns <= tiles; columns++) {
        int rows = tiles / columns;
        long border = (long)columns * plate->height + (long)rows * plate->width;
        if (columns * rows != tiles || columns > plate->width || rows > plate->height)
            continue;
        if (best < 0 || border < best) {
            best = border;
            *grid_p = (struct grid){columns, rows};
        }
    }
    return best >= 0;
}

struct tile grid_tile(const struct plate *plate, const struct grid *grid, int index) {
    int column = index % grid->columns;
    int row = index / grid->columns;
    int left = plate->width * column / grid->columns;
    int right = plate->width * (column + 1) / grid->columns;
    int top = plate->height * row / grid->rows;
    int bottom = plate->height * (row + 1) / grid->rows;

    return (struct tile){left, top, right - left, bottom - top};
}

bool field_create(struct field *field, const struct plate *plate, struct tile tile) {
    size_t stride = (size_t)tile.width + 2;
    size_t points = stride * ((size_t)tile.height + 2);

    *field = (struct field){
        .plate = *plate,
        .tile = tile,
        .stride = stride,
        .now = calloc(points, sizeof(float)),
        .next = calloc(points, sizeof(float)),
    };
    if (field->now && field->next)
        return true;
    field_destroy(field);
    return false;
}

void field_destroy(struct field *field) {
    free(field->now);
    free(field->next);
    field->now = NULL;
    field->next = NULL;
}

static size_t index_of(const struct field *field, int x, int y) {
    return (size_t)(y + 1) * field->stride + (size_t)(x + 1);
}

float *field_at(const struct field *field, int x, int y) {
    return &field->now[index_of(field, x, y)];
}

/* The outermost points of the plate have ghost points that stay 0: its frame is kept cold. */
static void diffuse(struct field *field, int left, int top, int right, int bottom) {
    for (int y = top; y < bottom; y++) {
        const float *here = field_at(field, 0, y);
        const float *above = here - field->stride;
        const float *below = here + field->stride;
        float *restrict out = &field->next[index_of(field, 0, y)];

        for (int x = left; x < right; x++) {
            float around = (here[x - 1] + here[x + 1]) + (above[x] + below[x]);
            out[x] = (1.0f - COOLING) * (here[x] + DIFFUSION * (around - 4.0f * here[x]));
        }
    }
}

void field_diffuse_inside(struct field *field) {
    diffuse(field, 1, 1, field->tile.width - 1, field->tile.height - 1);
}

/* In a tile of one row or column some points are computed twice, with the same result. */
void field_diffuse_rim(struct field *field) {
    int width = field->tile.width;
    int height = field->tile.height;

    diffuse(field, 0, 0, width, 1);
    diffuse(field, 0, height - 1, width, height);
    diffuse(field, 0, 1, 1, height - 1);
    diffuse(field, width - 1, 1, width, height - 1);
}

/* The pens follow one curve, a third of the way apart: a circle with six loops, made wide. */
static void pen_position(const struct plate *plate, int pen, int step, double *x_p, double *y_p) {
    double turn = (step + 1.0) / plate->steps + (double)pen / PENS;
    double angle = 2 * PI * turn;

    *x_p = plate->width * (0.5 + 0.30 * cos(angle) + 0.14 * cos(7 * angle));
    *y_p = plate->height * (0.5 + 0.30 * sin(angle) + 0.14 * sin(7 * angle));
}

static int clamp(double value, int low, int high) {
    return value < low ? low : value > high ? high : (int)value;
}

/* A pen sets a disc to 1. Every tile computes where the pens are and draws what lies in it, so the
 * result does not depend on how the plate is cut. */
static void draw_pen(struct field *field, double pen_x, double pen_y) {
    const struct tile *tile = &field->tile;
    double radius = 0.5 + 0.011 * field->plate.height;
    int left = clamp(floor(pen_x - radius), tile->x, tile->x + tile->width);
    int right = clamp(ceil(pen_x + radius) + 1, tile->x, tile->x + tile->width);
    int top = clamp(floor(pen_y - radius), tile->y, tile->y + tile->height);
    int bottom = clamp(ceil(pen_y + radius) + 1, tile->y, tile->y + tile->height);

    for (int y = top; y < bottom; y++) {
        for (int x = left; x < right; x++) {
            double dx = x - pen_x;
            double dy = y - pen_y;
            if (dx * dx + dy * dy <= radius * radius)
                field->next[index_of(field, x - tile->x, y - tile->y)] = 1.0f;
        }
    }
}

void field_finish_step(struct field *field, int step) {
    for (int pen = 0; pen < PENS; pen++) {
        double x, y;
        pen_position(&field->plate, pen, step, &x, &y);
        draw_pen(field, x, y);
    }

    float *old = field->now;
    field->now = field->next;
    field->next = old;
}
