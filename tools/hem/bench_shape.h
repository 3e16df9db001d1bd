#ifndef HEMT_BENCH_SHAPE_H
#define HEMT_BENCH_SHAPE_H

/*
 * What the benchmarks of halos, lines and set-up can be asked for beyond sizes. The command reads it
 * from its options and hands it to the runners as one argument, so that all of them do the same.
 */

#include "bench_kind.h"

#include <stdbool.h>
#include <stddef.h>

enum hemt_trait {
    HEMT_DIMS,   /* of the grid: 2 or 3 */
    HEMT_HALO,   /* width, in points or rings of points */
    HEMT_FIELDS, /* f64, f32, i32, f64 and so on */
    HEMT_LEVELS, /* values per point of a mesh */
    HEMT_AXIS,   /* the dimension that is cut first: 0 has long rows in its faces, the last short */
    HEMT_PERIODIC, /* whether a grid closes around */
    HEMT_HOPS,     /* how many ranks a window reaches back */
    HEMT_MESH,     /* set-up: of a mesh, or of a grid */
    HEMT_TRAITS
};

struct hemt_shape {
    int value[HEMT_TRAITS];
    bool given[HEMT_TRAITS];
};

/* The longest that hemt_shape_write writes, with its end. */
#define HEMT_SHAPE_TEXT 160

const char *hemt_trait_name(enum hemt_trait trait);

/* Set one by its name, as in ("halo", "2"). Returns NULL, or a sentence that says what is wrong. */
const char *hemt_shape_set(const char *name, const char *value, struct hemt_shape *shape);

/* What was not given becomes what the benchmark has by default. */
void hemt_shape_fill(enum bench_kind kind, struct hemt_shape *shape);

/* NULL, or a sentence that says why the benchmark cannot be asked for this. */
const char *hemt_shape_refuses(enum bench_kind kind, const struct hemt_shape *shape,
                               const struct hemt_sizes *sizes);

/* As "dims=3:halo=1:...", and back. Reading returns NULL or a sentence. */
void hemt_shape_write(const struct hemt_shape *shape, char text[HEMT_SHAPE_TEXT]);
const char *hemt_shape_read(const char *text, struct hemt_shape *shape_p);

/* For people: "3-D, halo 1, 4 fields"; empty where there is nothing to say. */
void hemt_shape_describe(enum bench_kind kind, const struct hemt_shape *shape, char *text_p,
                         size_t size);

/* The sizes by default, without those whose fields would take the machine's memory. */
void hemt_shape_sizes(enum bench_kind kind, const struct hemt_shape *shape, int ranks,
                      struct hemt_sizes *sizes_p);

#endif
