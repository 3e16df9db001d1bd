/* Meshes of triangles, cut into domains; see halo_kit.h. */
#include "halo_kit.h"

#include <math.h>

/* Making meshes. */

struct edges {
    int64_t (*pairs)[2];
    size_t count;
};

static void add_edge(struct edges *e, int64_t a, int64_t b) {
    if (e->count % 1024 == 0) {
        e->pairs = realloc(e->pairs, (e->count + 1024) * sizeof *e->pairs);
        CHECK(e->pairs != NULL);
    }
    e->pairs[e->count][0] = a;
    e->pairs[e->count++][1] = b;
}

static int by_pair(const void *a, const void *b) {
    const int64_t *x = a;
    const int64_t *y = b;

    return x[0] != y[0] ? (x[0] > y[0]) - (x[0] < y[0]) : (x[1] > y[1]) - (x[1] < y[1]);
}

/* Neighbours of each point, once each. Edges must be there in both directions. */
static halo_mesh mesh_of(int64_t points, struct edges *e) {
    halo_mesh m = {.points = points, .rings = 1, .salt = 1};

    m.start = calloc((size_t)points + 1, sizeof *m.start);
    m.next = malloc((e->count + 1) * sizeof *m.next);
    m.part = calloc((size_t)points + 1, sizeof *m.part);
    CHECK(m.start && m.next && m.part);
    if (e->count > 0) /* a single point has none */
        qsort(e->pairs, e->count, sizeof *e->pairs, by_pair);
    for (size_t i = 0, n = 0; i < e->count; i++) {
        if (i == 0 || by_pair(e->pairs[i - 1], e->pairs[i]) != 0) {
            m.next[n++] = e->pairs[i][1];
            m.start[e->pairs[i][0] + 1] = n;
        }
    }
    for (int64_t p = 0; p < points; p++)
        if (m.start[p + 1] < m.start[p])
            m.start[p + 1] = m.start[p];
    free(e->pairs);
    return m;
}

halo_mesh halo_mesh_torus(int64_t n, int64_t m) {
    static const int64_t step[6][2] = {{1, 0}, {-1, 0}, {0, 1}, {0, -1}, {1, 1}, {-1, -1}};
    struct edges e = {0};

    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < m; j++) {
            for (int k = 0; k < 6; k++) {
                int64_t to = (i + step[k][0] + n) % n * m + (j + step[k][1] + m) % m;

                if (to != i * m + j)
                    add_edge(&e, i * m + j, to);
            }
        }
    }
    return mesh_of(n * m, &e);
}

/* Triangles of a sphere, by the numbers of their corners. */
struct triangles {
    int64_t (*corners)[3];
    size_t count;
    int64_t points;
};

/* The twelve corners of an icosahedron are 0, five around it, five below these, and 11. */
static struct triangles icosahedron(void) {
    struct triangles t = {.corners = malloc(20 * sizeof *t.corners), .points = 12};

    CHECK(t.corners != NULL);
    for (int64_t i = 0; i < 5; i++) {
        int64_t right = (i + 1) % 5;
        const int64_t four[4][3] = {{0, 1 + i, 1 + right},
                                    {1 + i, 6 + i, 1 + right},
                                    {1 + right, 6 + i, 6 + right},
                                    {6 + i, 11, 6 + right}};

        for (int k = 0; k < 4; k++)
            memcpy(t.corners[t.count++], four[k], sizeof four[k]);
    }
    return t;
}

struct middle {
    int64_t ends[2];
    size_t triangle;
    int edge;
};

static int by_ends(const void *a, const void *b) {
    const struct middle *x = a;
    const struct middle *y = b;

    return by_pair(x->ends, y->ends);
}

/* Give the middle of each edge a number; `middles` of triangle i are at 3 i. */
static int64_t number_middles(const struct triangles *t, int64_t *middles) {
    struct middle *all = malloc(3 * t->count * sizeof *all);
    int64_t next = t->points - 1;

    CHECK(all != NULL);
    for (size_t i = 0; i < 3 * t->count; i++) {
        int64_t a = t->corners[i / 3][i % 3];
        int64_t b = t->corners[i / 3][(i + 1) % 3];

        all[i] = (struct middle){{a < b ? a : b, a < b ? b : a}, i / 3, (int)(i % 3)};
    }
    qsort(all, 3 * t->count, sizeof *all, by_ends);
    for (size_t i = 0; i < 3 * t->count; i++) {
        if (i == 0 || by_ends(&all[i - 1], &all[i]) != 0)
            next++;
        middles[3 * all[i].triangle + (size_t)all[i].edge] = next;
    }
    free(all);
    return next + 1;
}

static void cut_in_four(struct triangles *t) {
    int64_t *middles = malloc(3 * t->count * sizeof *middles);
    struct triangles finer = {.corners = malloc(4 * t->count * sizeof *t->corners)};

    CHECK(middles && finer.corners);
    finer.points = number_middles(t, middles);
    for (size_t i = 0; i < t->count; i++) {
        const int64_t *c = t->corners[i];
        const int64_t *m = middles + 3 * i;
        const int64_t four[4][3] = {
            {c[0], m[0], m[2]}, {m[0], c[1], m[1]}, {m[2], m[1], c[2]}, {m[0], m[1], m[2]}};

        memcpy(finer.corners[4 * i], four, sizeof four);
    }
    finer.count = 4 * t->count;
    free(t->corners);
    free(middles);
    *t = finer;
}

halo_mesh halo_mesh_ball(int times) {
    struct triangles t = icosahedron();
    struct edges e = {0};

    while (times-- > 0)
        cut_in_four(&t);
    for (size_t i = 0; i < t.count; i++) {
        for (int k = 0; k < 3; k++) {
            add_edge(&e, t.corners[i][k], t.corners[i][(k + 1) % 3]);
            add_edge(&e, t.corners[i][(k + 1) % 3], t.corners[i][k]);
        }
    }
    free(t.corners);
    return mesh_of(t.points, &e);
}

void halo_mesh_free(halo_mesh *m) {
    free(m->start);
    free(m->next);
    free(m->part);
    free(m->rank);
    *m = (halo_mesh){0};
}

/* Dealing. */

/* Patches grow from random seeds; how fast is random too, so that some are large and some tiny. */
static void grow_patches(halo_mesh *m, harness_rng *rng) {
    bool open = true;

    for (int64_t p = 0; p < m->points; p++)
        m->part[p] = -1;
    for (int i = 0; i < m->parts; i++)
        m->part[harness_below(rng, (size_t)m->points)] = i;
    while (open) {
        open = false;
        for (int64_t p = 0; p < m->points; p++) {
            size_t n = m->start[p + 1] - m->start[p];

            if (m->part[p] >= 0 || n == 0)
                continue;
            m->part[p] = m->part[m->next[m->start[p] + harness_below(rng, n)]];
            open |= m->part[p] < 0;
        }
    }
}

void halo_mesh_deal(halo_mesh *m, int parts, int ranks, bool patches, harness_rng *rng) {
    m->parts = parts;
    m->rank = realloc(m->rank, ((size_t)parts + 1) * sizeof *m->rank);
    CHECK(m->rank != NULL);
    for (int i = 0; i < parts; i++)
        m->rank[i] = (int)harness_below(rng, (size_t)ranks);
    if (patches)
        grow_patches(m, rng);
    else
        for (int64_t p = 0; p < m->points; p++)
            m->part[p] = (int)harness_below(rng, (size_t)parts);
    m->salt = harness_random(rng) | 1;
}
