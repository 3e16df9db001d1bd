#include "share.h"

#include <stdlib.h>

typedef struct ranked {
    double at;
    size_t point;
} ranked;

static int compare(const void *left, const void *right) {
    const ranked *a = left;
    const ranked *b = right;
    if (a->at != b->at)
        return a->at < b->at ? -1 : 1;
    /* Everybody who reads the file must cut alike. */
    return a->point < b->point ? -1 : a->point > b->point;
}

static int longest_side(const gmsh_mesh *mesh, const ranked *some, size_t count) {
    double longest = -1;
    int side = 0;
    for (int d = 0; d < 3; d++) {
        double low = mesh->points[some[0].point][d];
        double high = low;
        for (size_t i = 1; i < count; i++) {
            double at = mesh->points[some[i].point][d];
            low = at < low ? at : low;
            high = at > high ? at : high;
        }
        if (high - low > longest) {
            longest = high - low;
            side = d;
        }
    }
    return side;
}

static void bisect(const gmsh_mesh *mesh, ranked *some, size_t count, int first, int parts,
                   int *part_of) {
    if (count == 0)
        return;
    if (parts == 1) {
        for (size_t i = 0; i < count; i++)
            part_of[some[i].point] = first;
        return;
    }
    int side = longest_side(mesh, some, count);
    for (size_t i = 0; i < count; i++)
        some[i].at = mesh->points[some[i].point][side];
    qsort(some, count, sizeof *some, compare);
    int lower = parts / 2;
    size_t cut = count * (size_t)lower / (size_t)parts;
    bisect(mesh, some, cut, first, lower, part_of);
    bisect(mesh, some + cut, count - cut, first + lower, parts - lower, part_of);
}

bool mesh_bisect(const gmsh_mesh *mesh, int parts, int *part_of) {
    ranked *all = calloc(mesh->point_count + 1, sizeof *all);
    if (all == NULL)
        return false;
    for (size_t i = 0; i < mesh->point_count; i++)
        all[i].point = i;
    bisect(mesh, all, mesh->point_count, 0, parts, part_of);
    free(all);
    return true;
}

/* Mark all points of cells that have a point of the part: 1 is halo, 2 its own. */
static void mark(const gmsh_mesh *mesh, const int *part_of, int part, unsigned char *marks) {
    for (size_t c = 0; c < mesh->cell_count; c++) {
        bool touched = false;
        for (size_t i = mesh->first[c]; i < mesh->first[c + 1]; i++)
            touched = touched || part_of[mesh->corners[i]] == part;
        for (size_t i = mesh->first[c]; touched && i < mesh->first[c + 1]; i++)
            marks[mesh->corners[i]] = 1;
    }
    for (size_t p = 0; p < mesh->point_count; p++)
        if (part_of[p] == part)
            marks[p] = 2;
}

bool mesh_share_make(const gmsh_mesh *mesh, const int *part_of, int part, mesh_share *share_p) {
    unsigned char *marks = calloc(mesh->point_count + 1, 1);
    mesh_share share = {calloc(mesh->point_count + 1, sizeof *share.points), 0, 0};
    if (marks == NULL || share.points == NULL) {
        free(marks);
        free(share.points);
        return false;
    }
    mark(mesh, part_of, part, marks);
    for (int kind = 2; kind >= 1; kind--) {
        for (size_t p = 0; p < mesh->point_count; p++)
            if (marks[p] == kind)
                share.points[share.count++] = (int64_t)p;
        share.own = kind == 2 ? share.count : share.own;
    }
    free(marks);
    *share_p = share;
    return true;
}

void mesh_share_free(mesh_share *share) {
    free(share->points);
    *share = (mesh_share){0};
}
