/*
 * What the tests of patterns and exchanges share: a global reference.
 *
 * A case is all domains of all ranks, and says of every storage cell whether its domain owns it, of
 * which point it is a copy, or that nothing may touch it. It is computed on every rank from the same
 * description by plain loops, and knows nothing of the library. The value of a field at a point is a
 * hash of both, so that every rank knows what any point must hold.
 *
 * A field is filled with poison everywhere, also around its memory, then with values where its domain
 * owns. What a run must leave is written into an image of the whole allocation; a check compares all
 * bytes. So what must not change is checked as well as what must.
 */
#ifndef HEM_TESTS_RANK_HALO_KIT_H
#define HEM_TESTS_RANK_HALO_KIT_H

#include "harness.h"

/* Cases. */

enum {
    HALO_NONE, /**< outside of the grid, or not an owner's and not a halo's */
    HALO_HOLE, /**< halo inside of the grid that nobody owns */
    HALO_OWN,
    HALO_COPY
};

typedef struct halo_cell {
    int64_t key;    /**< the point */
    int32_t owner;  /**< the rank that owns it, if it is a copy */
    uint16_t sides; /**< HEM_SIDE_ bits */
    uint8_t kind;   /**< one of the above */
    int8_t turn[4]; /**< a vector's x is turn[0] x + turn[1] y of the owner's, and y the rest */
} halo_cell;

typedef struct halo_domain {
    int rank;
    size_t index; /**< among those of its rank */
    int64_t id;
    int dims;
    int64_t shape[HEM_DIMS]; /**< of its storage, halo included */
    int64_t first[HEM_DIMS]; /**< storage index of the first point that it owns; 0 on meshes */
    size_t count;
    halo_cell *cells; /**< in C order */
    bool is_grid;     /**< may be stored with more room around it */
} halo_domain;

typedef struct halo_case {
    int ranks;
    size_t count;
    halo_domain *domains; /**< ordered by rank and index */
} halo_case;

void halo_case_free(halo_case *c);
/** Domains of a rank: the first of them, and how many. */
size_t halo_case_of(const halo_case *c, int rank, halo_domain **first_p);
/** What the pattern says of itself on this rank is what the case says. */
void halo_check_facts(const halo_case *c, const hem_world *world, const hem_pattern *pattern);
/** Add a domain of `dims` dimensions whose cells are all HALO_NONE. */
halo_domain *halo_case_add(halo_case *c, int rank, int dims, const int64_t *shape);

/* Grids. */

typedef struct halo_box {
    hem_box box;
    int rank;
    int panel; /**< of a cube */
} halo_box;

typedef struct halo_grid {
    int dims;
    int64_t extent[HEM_DIMS];
    bool periodic[HEM_DIMS];
    int64_t low[HEM_DIMS];
    int64_t high[HEM_DIMS];
    bool faces_only;
    size_t count;
    halo_box *boxes;
} halo_grid;

void halo_grid_add(halo_grid *g, const hem_box *box, int rank);
void halo_grid_free(halo_grid *g);
/** Cut the whole grid into about `parts` boxes by random recursive cuts. Every box is rank 0's. */
void halo_grid_cut(halo_grid *g, size_t parts, harness_rng *rng);
/** Give boxes to ranks: at random, or each rank its turn; drop one in `drop`, if that is not 0. */
void halo_grid_deal(halo_grid *g, int ranks, bool random, size_t drop, harness_rng *rng);
/** A random grid with up to `cells` points per dimension and `parts` boxes, dealt to ranks. */
halo_grid halo_grid_random(int dims, int64_t cells, size_t parts, int ranks, harness_rng *rng);
halo_case halo_grid_case(const halo_grid *g, int ranks);
/** The options that this rank passes; the domains are the caller's to free. */
hem_grid_options halo_grid_options(const halo_grid *g, int rank);
hem_pattern *halo_grid_pattern(hem_world *world, const halo_grid *g, const halo_case *c);

/* Meshes: points and edges, of which each point is given to a domain. */

typedef struct halo_mesh {
    int64_t points;
    size_t *start; /**< of a point's neighbours in `next`; points + 1 */
    int64_t *next;
    int *part; /**< of each point: which domain of all, -1: nobody's */
    int *rank; /**< of each domain */
    int parts;
    int rings;     /**< of neighbours that are halo */
    uint64_t salt; /**< ids are not the points' numbers */
} halo_mesh;

/** An icosahedron whose triangles were cut in four `times` times. */
halo_mesh halo_mesh_ball(int times);
/** `n` x `m` points on a torus, each with six neighbours. */
halo_mesh halo_mesh_torus(int64_t n, int64_t m);
void halo_mesh_free(halo_mesh *m);
/** Give points to `parts` domains and these to ranks: one by one at random, or in grown patches that
 *  differ in size. */
void halo_mesh_deal(halo_mesh *m, int parts, int ranks, bool patches, harness_rng *rng);
/** Cells are in the order of storage, shuffled. */
halo_case halo_mesh_case(const halo_mesh *m, int ranks, harness_rng rng);

/** How halos are told to the library. */
enum {
    HALO_BY_POSITION,
    HALO_BY_ID,
    HALO_WITH_OWNERS,
    HALO_IDS_AND_OWNERS,
    HALO_WAYS
};

hem_pattern *halo_mesh_pattern(hem_world *world, const halo_case *c, int way);
/** The domains that this rank passes, and how many; to be freed with halo_mesh_undomains. */
hem_mesh_domain *halo_mesh_domains(const halo_case *c, int rank, int way, size_t *count_p);
void halo_mesh_undomains(hem_mesh_domain *domains, size_t count);

/* The cubed sphere, by solid geometry. */

typedef struct halo_cube {
    int64_t cells;
    int64_t halo;
    bool faces_only;
    size_t count;
    halo_box *boxes;
} halo_cube;

/** Cut each panel into about `parts` boxes and deal them. */
halo_cube halo_cube_random(int64_t cells, size_t parts, int ranks, harness_rng *rng);
void halo_cube_free(halo_cube *cube);
halo_case halo_cube_case(const halo_cube *cube, int ranks);
hem_pattern *halo_cube_pattern(hem_world *world, const halo_cube *cube, const halo_case *c);

/* Explicit lists between random domains, which own the first half of what they store. */

/** From a domain of one rank to a domain of another, or of the same. */
typedef struct halo_list {
    int from;
    int to;
    size_t there; /**< the domain that sends */
    size_t here;
    size_t count;
    int64_t *sent;
    int64_t *received;
} halo_list;

typedef struct halo_lists {
    halo_list *all;
    size_t count;
} halo_lists;

/** Fewer than `most` lists between domains of up to 2 `points` points, and what these are. Lists may be
 *  empty, name an owner's point twice, go to the same rank and domain, and there may be many per pair. */
halo_lists halo_lists_random(size_t points, size_t most, int ranks, halo_case *c_p,
                             harness_rng *rng);
void halo_lists_free(halo_lists *lists);
hem_pattern *halo_lists_pattern(hem_world *world, const halo_lists *lists, const halo_case *c);

/* Fields. */

/** What all ranks agree on. */
typedef struct halo_spec {
    hem_dtype dtype;
    size_t element; /**< bytes; filled in from the type if there is one */
    size_t levels;
    size_t components;
    unsigned flags;
    uint32_t number; /**< 0: counted */
    uint64_t seed;
    bool numbers; /**< small whole numbers instead of any bits */
} halo_spec;

enum {
    HALO_DEFAULT, /**< no strides at all */
    HALO_C,
    HALO_FORTRAN,
    HALO_LEVELS_FIRST,
    HALO_PADDED,
    HALO_SLICED,
    HALO_ANY, /**< axes in any order, odd paddings, any address */
    HALO_LAYOUTS
};

enum {
    HALO_PRIVATE,
    HALO_LIBRARY,
    HALO_MIXED, /**< each field one or the other, at random */
    HALO_POOL,  /**< the set's `pool` */
    HALO_MEMORIES = HALO_POOL
};

typedef struct halo_field {
    const halo_domain *domain;
    halo_spec spec;
    uint32_t number; /**< also where it is counted */
    hem_field field;
    unsigned char *base; /**< of the allocation, with guards */
    unsigned char *image;
    size_t size;
    int64_t strides[HEM_DIMS + 2]; /**< of dimensions, levels, components */
    int64_t offset;                /**< of the first storage cell from the field's address */
    hem_memory *memory;
    bool pooled;
} halo_field;

/** Write element bytes of the value of a point. */
void halo_value(const halo_spec *spec, uint64_t round, int64_t key, size_t level, size_t component,
                void *out);
/** A small whole number as an element of a type, and back. Complex: v + 2vi. */
void halo_put_number(hem_dtype dtype, int64_t value, void *out);
int64_t halo_get_number(hem_dtype dtype, const void *in);
/** Where an element of a field lies. */
unsigned char *halo_at(const halo_field *f, size_t cell, size_t level, size_t component);

/* Sets: fields of some cases on this rank, bound for one exchange. */

typedef struct halo_set {
    hem_world *world;
    halo_field *fields;
    hem_binding *bindings;
    size_t count;
    unsigned char *pool;
    size_t pool_bytes;
    size_t pool_used;
} halo_set;

/** Find memory for a field whose domain and spec are set. */
void halo_field_make(halo_set *s, halo_field *f, int layout, int memory, harness_rng *rng);

/** Add a field on every domain that this rank has in the case. */
void halo_set_add(halo_set *s, const hem_pattern *pattern, const halo_case *c,
                  const halo_spec *spec, int layout, int memory, harness_rng *rng);
/** Bind in another order; fields of one domain stay in theirs unless they are numbered. */
void halo_set_shuffle(halo_set *s, harness_rng *rng);
hem_exchange_options halo_set_options(const halo_set *s);
hem_exchange *halo_set_exchange(halo_set *s);
void halo_set_free(halo_set *s);

/** Poison everywhere, then what owners have in a round. */
void halo_set_fill(halo_set *s, uint64_t round);
/** What a forward run must leave, `how` may be NULL. */
void halo_set_expect(halo_set *s, const hem_exchange_how *how, uint64_t round);
void halo_set_check(const halo_set *s);
/** Fill, run, expect, check. */
void halo_set_run(halo_set *s, hem_exchange *exchange, const hem_exchange_how *how, uint64_t round);

/** Random specs: any type or an odd element size, levels and components up to `most`. */
halo_spec halo_spec_random(harness_rng *rng, size_t most);
/** Plain 8-byte integers. */
halo_spec halo_spec_plain(uint64_t seed);

#endif
