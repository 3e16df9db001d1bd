#include "bench_shape.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* All ranks' fields together stay below this in the sizes by default. */
static const double most_bytes = 6e9;

static const struct {
    const char *name;
    int least;
    int most;
    const char *wrong;
    unsigned kinds; /* the benchmarks that have it, a bit each */
    int by_default;
} traits[HEMT_TRAITS] = {
#define BIT(kind) (1u << (kind))
    [HEMT_DIMS] = {"dims", 2, 3, "--dims takes 2 or 3",
                   BIT(BENCH_GRID) | BIT(BENCH_STREAM) | BIT(BENCH_PATTERN_SETUP), 3},
    [HEMT_HALO] = {"halo", 1, 3, "--halo takes 1, 2 or 3",
                   BIT(BENCH_GRID) | BIT(BENCH_MESH) | BIT(BENCH_STREAM) | BIT(BENCH_PATTERN_SETUP),
                   1},
    [HEMT_FIELDS] = {"fields", 1, 16, "--fields takes a number from 1 to 16",
                     BIT(BENCH_GRID) | BIT(BENCH_MESH) | BIT(BENCH_STREAM), 1},
    [HEMT_LEVELS] = {"levels", 1, 1024, "--levels takes a number from 1 to 1024", BIT(BENCH_MESH),
                     1},
    [HEMT_AXIS] = {"axis", 0, 2, "--axis takes a dimension: 0, 1 or 2",
                   BIT(BENCH_GRID) | BIT(BENCH_STREAM), 0},
    [HEMT_PERIODIC] = {"periodic", 0, 1, "--periodic is 0 or 1", BIT(BENCH_GRID), 0},
    [HEMT_HOPS] = {"hops", 1, 64, "--hops takes a number from 1 to 64", BIT(BENCH_ROLLING), 3},
    [HEMT_MESH] = {"mesh", 0, 1, "--pattern takes mesh or grid", BIT(BENCH_PATTERN_SETUP), 1},
#undef BIT
};

const char *hemt_trait_name(enum hemt_trait trait) {
    return traits[trait].name;
}

const char *hemt_shape_set(const char *name, const char *value, struct hemt_shape *shape) {
    enum hemt_trait trait = 0;
    char *end;

    while (trait < HEMT_TRAITS && strcmp(traits[trait].name, name) != 0)
        trait++;
    if (trait == HEMT_TRAITS)
        return "there is no such option";
    long number = strtol(value, &end, 10);
    if (end == value || *end != '\0' || number < traits[trait].least || number > traits[trait].most)
        return traits[trait].wrong;
    shape->value[trait] = (int)number;
    shape->given[trait] = true;
    return NULL;
}

/* A grid of two dimensions has fewer axes, and sixteen cubes are small enough for a set-up. */
void hemt_shape_fill(enum bench_kind kind, struct hemt_shape *shape) {
    for (enum hemt_trait trait = 0; trait < HEMT_TRAITS; trait++) {
        if (!shape->given[trait])
            shape->value[trait] = traits[trait].by_default;
    }
    if (kind == BENCH_GRID && !shape->given[HEMT_FIELDS])
        shape->value[HEMT_FIELDS] = 4;
}

const char *hemt_shape_refuses(enum bench_kind kind, const struct hemt_shape *shape,
                               const struct hemt_sizes *sizes) {
    static char text[96];

    for (enum hemt_trait trait = 0; trait < HEMT_TRAITS; trait++) {
        if (!shape->given[trait] || (traits[trait].kinds & 1u << kind) != 0)
            continue;
        snprintf(text, sizeof(text), "%s has no --%s", hemt_kind(kind)->name,
                 trait == HEMT_MESH ? "pattern" : traits[trait].name);
        return text;
    }
    if (shape->value[HEMT_AXIS] >= shape->value[HEMT_DIMS])
        return "--axis names a dimension that the grid does not have";
    for (size_t i = 0; i < sizes->count; i++) {
        if ((kind == BENCH_GRID || kind == BENCH_STREAM) &&
            (sizes->bytes[i] < (size_t)shape->value[HEMT_HALO] || sizes->bytes[i] > 65536))
            return "edges are at least as long as the halo is wide, and at most 64k";
        if (kind == BENCH_MESH && (sizes->bytes[i] < 256 || sizes->bytes[i] > (size_t)100 << 20))
            return "meshes have 256 to 100M points";
    }
    return NULL;
}

void hemt_shape_write(const struct hemt_shape *shape, char text[HEMT_SHAPE_TEXT]) {
    size_t used = 0;

    for (enum hemt_trait trait = 0; trait < HEMT_TRAITS; trait++)
        used += (size_t)snprintf(text + used, HEMT_SHAPE_TEXT - used, "%s%s=%d",
                                 trait == 0 ? "" : ":", traits[trait].name, shape->value[trait]);
}

const char *hemt_shape_read(const char *text, struct hemt_shape *shape_p) {
    struct hemt_shape shape = {.given = {false}};
    char copy[HEMT_SHAPE_TEXT];
    char *rest = copy;

    if (snprintf(copy, sizeof(copy), "%s", text) >= (int)sizeof(copy))
        return "the shape is too long";
    for (char *item; (item = strsep(&rest, ":")) != NULL;) {
        char *value = strchr(item, '=');
        if (value == NULL)
            return "a shape is such as dims=3:halo=1";
        *value++ = '\0';
        const char *why = hemt_shape_set(item, value, &shape);
        if (why != NULL)
            return why;
    }
    *shape_p = shape;
    return NULL;
}

void hemt_shape_describe(enum bench_kind kind, const struct hemt_shape *shape, char *text_p,
                         size_t size) {
    const int *value = shape->value;
    const char *many = value[HEMT_FIELDS] == 1 ? "" : "s";

    text_p[0] = '\0';
    if (kind == BENCH_GRID || kind == BENCH_STREAM)
        snprintf(text_p, size, "%d-D, halo %d, %d field%s, cut along dimension %d first%s",
                 value[HEMT_DIMS], value[HEMT_HALO], value[HEMT_FIELDS], many, value[HEMT_AXIS],
                 value[HEMT_PERIODIC] != 0 ? ", periodic" : "");
    else if (kind == BENCH_MESH)
        snprintf(text_p, size, "halo %d, %d field%s, %d level%s", value[HEMT_HALO],
                 value[HEMT_FIELDS], many, value[HEMT_LEVELS], value[HEMT_LEVELS] == 1 ? "" : "s");
    else if (kind == BENCH_ROLLING)
        snprintf(text_p, size, "windows reach back %d times a rank's share", value[HEMT_HOPS]);
    else if (kind == BENCH_PATTERN_SETUP && value[HEMT_MESH] != 0)
        snprintf(text_p, size, "a mesh of so many points per rank, halo %d", value[HEMT_HALO]);
    else if (kind == BENCH_PATTERN_SETUP)
        snprintf(text_p, size, "a %d-D grid of boxes of about so many points, halo %d",
                 value[HEMT_DIMS], value[HEMT_HALO]);
}

static double field_bytes(enum bench_kind kind, const struct hemt_shape *shape, int ranks,
                          size_t size) {
    double n = (double)size;
    double points = n;

    if (kind == BENCH_GRID || kind == BENCH_STREAM) {
        n += 2.0 * shape->value[HEMT_HALO];
        points = (shape->value[HEMT_DIMS] == 3 ? n * n * n : n * n) * ranks;
    } else if (kind != BENCH_MESH) {
        return 0;
    }
    return points * shape->value[HEMT_LEVELS] * shape->value[HEMT_FIELDS] * sizeof(double);
}

void hemt_shape_sizes(enum bench_kind kind, const struct hemt_shape *shape, int ranks,
                      struct hemt_sizes *sizes_p) {
    struct hemt_sizes all = {.count = 0};

    if (kind == BENCH_GRID && shape->value[HEMT_DIMS] == 2)
        (void)hemt_sizes_parse("256,1024,4096", &all);
    else
        hemt_kind_sizes(kind, ranks, &all);
    *sizes_p = (struct hemt_sizes){.count = 0};
    for (size_t i = 0; i < all.count; i++) {
        if (field_bytes(kind, shape, ranks, all.bytes[i]) <= most_bytes)
            sizes_p->bytes[sizes_p->count++] = all.bytes[i];
    }
}
