/*
 * How this works. A file is a row of sections, "$Nodes" to "$EndNodes". Numbers are read one by one,
 * lines do not matter. Points have tags, any numbers at all, which cells refer to; they are looked up
 * in a sorted list in the end. No count is believed: memory grows with what is really there.
 *
 * Format 2 is one list of nodes and one of elements. Format 4 has them in blocks, and 4.1 has the
 * tags of a block before its coordinates, 4.0 has each beside its own.
 */
#include "gmsh.h"

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct tag {
    long long tag;
    size_t point;
} tag;

typedef struct reader {
    FILE *file;
    char *why;
    size_t why_room;
    int version;   /* 20, 40 or 41 */
    int dimension; /* of the cells that have been kept so far */
    gmsh_mesh mesh;
    tag *tags;
    long long *corners; /* tags */
    size_t tag_room;
    size_t point_room;
    size_t corner_room;
    size_t corner_count;
    size_t cell_room;
} reader;

/* Kinds of elements: how many points they have, in how many dimensions. Others are not known. */
static const struct {
    int points;
    int dimension;
} kinds[] = {{0, 0}, {2, 1}, {3, 2}, {4, 2},  {4, 3},  {8, 3},  {6, 3},  {5, 3},
             {3, 1}, {6, 2}, {9, 2}, {10, 3}, {27, 3}, {18, 3}, {14, 3}, {1, 0}};

static bool fail(reader *r, const char *format, ...) {
    va_list args;
    va_start(args, format);
    (void)vsnprintf(r->why, r->why_room, format, args);
    va_end(args);
    return false;
}

/* Room for `need` elements. @return the array where it is now; NULL: no memory. */
static void *grow(reader *r, void *array, size_t element, size_t need, size_t *room) {
    if (need <= *room)
        return array;
    size_t more = *room < 64 ? 64 : 2 * *room;
    void *grown = realloc(array, more * element);
    if (grown == NULL)
        (void)fail(r, "no memory for %zu elements", more);
    else
        *room = more;
    return grown;
}

static bool read_whole(reader *r, long long *value_p) {
    return fscanf(r->file, "%lld", value_p) == 1 || fail(r, "a whole number is missing");
}

static bool read_count(reader *r, long long *value_p) {
    return read_whole(r, value_p) && (*value_p >= 0 || fail(r, "a count is %lld", *value_p));
}

static bool skip_numbers(reader *r, long long count) {
    double ignored;
    for (long long i = 0; i < count; i++)
        if (fscanf(r->file, "%lf", &ignored) != 1)
            return fail(r, "a number is missing");
    return true;
}

static bool add_tag(reader *r, long long number) {
    gmsh_mesh *m = &r->mesh;
    tag *tags = grow(r, r->tags, sizeof *tags, m->point_count + 1, &r->tag_room);
    if (tags == NULL)
        return false;
    r->tags = tags;
    double(*points)[3] = grow(r, m->points, sizeof *points, m->point_count + 1, &r->point_room);
    if (points == NULL)
        return false;
    m->points = points;
    r->tags[m->point_count] = (tag){number, m->point_count};
    m->point_count++;
    return true;
}

static bool read_place(reader *r, size_t point) {
    double *at = r->mesh.points[point];
    return fscanf(r->file, "%lf %lf %lf", &at[0], &at[1], &at[2]) == 3 ||
           fail(r, "coordinates are missing");
}

static bool read_nodes_2(reader *r) {
    long long count;
    long long number;
    if (!read_count(r, &count))
        return false;
    for (long long i = 0; i < count; i++)
        if (!read_whole(r, &number) || !add_tag(r, number) ||
            !read_place(r, r->mesh.point_count - 1))
            return false;
    return true;
}

/* One block of nodes of format 4. Parametric ones have coordinates more, as many as dimensions. */
static bool read_node_block(reader *r) {
    long long dimension;
    long long entity;
    long long parametric;
    long long count;
    long long number;
    bool together = r->version == 40;
    if (!(together ? read_whole(r, &entity) && read_whole(r, &dimension)
                   : read_whole(r, &dimension) && read_whole(r, &entity)) ||
        !read_whole(r, &parametric) || !read_count(r, &count))
        return false;
    int extra = parametric != 0 && dimension > 0 && dimension <= 3 ? (int)dimension : 0;
    size_t first = r->mesh.point_count;
    for (long long i = 0; i < count; i++) {
        if (!read_whole(r, &number) || !add_tag(r, number))
            return false;
        if (together && (!read_place(r, r->mesh.point_count - 1) || !skip_numbers(r, extra)))
            return false;
    }
    for (size_t i = first; !together && i < r->mesh.point_count; i++)
        if (!read_place(r, i) || !skip_numbers(r, extra))
            return false;
    return true;
}

static bool read_nodes_4(reader *r) {
    long long blocks;
    if (!read_count(r, &blocks) || !skip_numbers(r, r->version == 40 ? 1 : 3))
        return false;
    for (long long i = 0; i < blocks; i++)
        if (!read_node_block(r))
            return false;
    return true;
}

static bool add_corner(reader *r) {
    long long *corners = grow(r, r->corners, sizeof *corners, r->corner_count + 1, &r->corner_room);
    if (corners == NULL)
        return false;
    r->corners = corners;
    return read_whole(r, &r->corners[r->corner_count++]);
}

/* The corners of one element. Cells of a lower dimension are dropped as soon as higher ones come. */
static bool read_corners(reader *r, long long kind) {
    gmsh_mesh *m = &r->mesh;
    if (kind < 1 || kind >= (long long)(sizeof kinds / sizeof kinds[0]))
        return fail(r, "elements of kind %lld are not known", kind);
    if (kinds[kind].dimension < r->dimension)
        return skip_numbers(r, kinds[kind].points);
    if (kinds[kind].dimension > r->dimension) {
        r->dimension = kinds[kind].dimension;
        r->corner_count = 0;
        m->cell_count = 0;
    }
    size_t *first = grow(r, m->first, sizeof *first, m->cell_count + 2, &r->cell_room);
    if (first == NULL)
        return false;
    m->first = first;
    m->first[m->cell_count++] = r->corner_count;
    for (int i = 0; i < kinds[kind].points; i++)
        if (!add_corner(r))
            return false;
    m->first[m->cell_count] = r->corner_count;
    return true;
}

static bool read_elements_2(reader *r) {
    long long count;
    long long number;
    long long kind;
    long long tags;
    if (!read_count(r, &count))
        return false;
    for (long long i = 0; i < count; i++)
        if (!read_whole(r, &number) || !read_whole(r, &kind) || !read_count(r, &tags) ||
            !skip_numbers(r, tags) || !read_corners(r, kind))
            return false;
    return true;
}

static bool read_elements_4(reader *r) {
    long long blocks;
    long long kind;
    long long count;
    long long number;
    if (!read_count(r, &blocks) || !skip_numbers(r, r->version == 40 ? 1 : 3))
        return false;
    for (long long b = 0; b < blocks; b++) {
        if (!skip_numbers(r, 2) || !read_whole(r, &kind) || !read_count(r, &count))
            return false;
        for (long long i = 0; i < count; i++)
            if (!read_whole(r, &number) || !read_corners(r, kind))
                return false;
    }
    return true;
}

static bool read_format(reader *r) {
    double version;
    int binary;
    int size;
    if (fscanf(r->file, "%lf %d %d", &version, &binary, &size) != 3)
        return fail(r, "$MeshFormat is not whole");
    if (binary != 0)
        return fail(r, "the file is binary; save it as ASCII");
    r->version = (int)(version * 10 + 0.5);
    r->version = r->version / 10 == 2 ? 20 : r->version;
    return r->version == 20 || r->version == 40 || r->version == 41 ||
           fail(r, "format %.1f is not known: 2, 4.0 and 4.1 are", version);
}

static bool read_section(reader *r, const char *name) {
    if (strcmp(name, "$MeshFormat") == 0)
        return read_format(r);
    if (r->version == 0)
        return fail(r, "it does not begin with $MeshFormat");
    if (strcmp(name, "$Nodes") == 0)
        return r->version == 20 ? read_nodes_2(r) : read_nodes_4(r);
    if (strcmp(name, "$Elements") == 0)
        return r->version == 20 ? read_elements_2(r) : read_elements_4(r);
    return true;
}

/* All sections; what is between those that count is passed over. */
static bool read_sections(reader *r) {
    char word[64];
    while (fscanf(r->file, "%63s", word) == 1)
        if (word[0] == '$' && strncmp(word, "$End", 4) != 0 && !read_section(r, word))
            return false;
    if (ferror(r->file))
        return fail(r, "%s", strerror(errno));
    if (r->version == 0)
        return fail(r, "it is no file of Gmsh");
    if (r->mesh.point_count == 0 || r->mesh.cell_count == 0)
        return fail(r, "it has no %s", r->mesh.point_count == 0 ? "nodes" : "elements");
    return true;
}

static int by_tag(const void *left, const void *right) {
    const tag *a = left;
    const tag *b = right;
    return a->tag < b->tag ? -1 : a->tag > b->tag;
}

/* Numbers of points for tags. */
static bool resolve(reader *r) {
    gmsh_mesh *m = &r->mesh;
    qsort(r->tags, m->point_count, sizeof *r->tags, by_tag);
    for (size_t i = 1; i < m->point_count; i++)
        if (r->tags[i].tag == r->tags[i - 1].tag)
            return fail(r, "there are two nodes %lld", r->tags[i].tag);
    m->corners = calloc(r->corner_count, sizeof *m->corners);
    if (m->corners == NULL)
        return fail(r, "no memory for %zu corners", r->corner_count);
    for (size_t i = 0; i < r->corner_count; i++) {
        tag key = {r->corners[i], 0};
        const tag *found = bsearch(&key, r->tags, m->point_count, sizeof key, by_tag);
        if (found == NULL)
            return fail(r, "there is no node %lld, which an element has", key.tag);
        m->corners[i] = found->point;
    }
    return true;
}

bool gmsh_read(const char *path, gmsh_mesh *mesh_p, char *why, size_t room) {
    reader r = {.why = why, .why_room = room};
    r.file = fopen(path, "re");
    if (r.file == NULL)
        return fail(&r, "%s", strerror(errno));
    bool good = read_sections(&r) && resolve(&r);
    (void)fclose(r.file);
    free(r.tags);
    free(r.corners);
    if (good)
        *mesh_p = r.mesh;
    else
        gmsh_free(&r.mesh);
    return good;
}

void gmsh_free(gmsh_mesh *mesh) {
    free(mesh->points);
    free(mesh->corners);
    free(mesh->first);
    *mesh = (gmsh_mesh){0};
}
