/*
 * Patterns: who owes which points to whom.
 *
 * A pattern is built once, by all ranks of a world together, from what each rank knows of its own
 * domains: boxes of a structured grid, global ids of a mesh, panels of a cubed sphere, or explicit
 * lists. It is never changed afterwards, knows nothing of fields or memory, and serves any number of
 * exchanges (hem/exchange.h) at the same time. A rank may have no, one or many domains.
 *
 * A point has one owner. A halo point of a domain is a copy of a point that some domain owns, perhaps
 * another domain of the same rank, or the domain itself where the grid is periodic.
 *
 * What ranks pass is compared; if it does not fit together, or one rank's part is bad, or a rank
 * dies, all ranks get an error. Set-up takes memory and time in a rank's own points, halo and
 * neighbours, not in the number of ranks. Ids, indices and counts have 64 bits.
 */
#ifndef HEM_PATTERN_H
#define HEM_PATTERN_H

#include <hem/world.h>
#include <stdbool.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The most dimensions of a grid. */
#define HEM_DIMS 4

typedef struct hem_pattern hem_pattern;

/** A box of points: from `start` on, `count` per dimension. What is beyond `dims` is not read. */
typedef struct hem_box {
    int64_t start[HEM_DIMS];
    int64_t count[HEM_DIMS];
} hem_box;

/* Structured grids. */

/** A box that this rank owns. */
typedef struct hem_grid_domain {
    int64_t id; /**< what errors and pictures call it; any number */
    hem_box box;
} hem_grid_domain;

/** Zero means default everywhere; set `struct_size` to sizeof(hem_grid_options). */
typedef struct hem_grid_options {
    size_t struct_size;
    int dims;                 /**< 1 to HEM_DIMS; the same on all ranks, as all up to `domains` */
    int64_t extent[HEM_DIMS]; /**< the grid is the points 0 to extent - 1 of each dimension */
    bool periodic[HEM_DIMS];
    /** Points of halo below and above each domain, per dimension. May be 0, and wider than the
     *  neighbouring boxes or the grid. */
    int64_t halo_low[HEM_DIMS];
    int64_t halo_high[HEM_DIMS];
    bool faces_only; /**< leave out edges and corners of halos */
    /** This rank's domains: not empty, inside of the grid, overlapping no other. They need not
     *  cover the grid: halo points that nobody owns are left alone, and counted as holes. */
    const hem_grid_domain *domains;
    size_t domain_count;
    int64_t timeout_ns; /**< of the set-up. Default: the world's */
} hem_grid_options;

/**
 * Make a pattern of boxes of a structured grid.
 *
 * Collective. @return HEM_OK; HEM_ERR_ARG, HEM_ERR_RANGE for a bad box, HEM_ERR_MISMATCH if ranks
 *         do not mean the same grid or two domains overlap, naming both; HEM_ERR_MEMORY,
 *         HEM_ERR_PEER, HEM_ERR_TIMEOUT, HEM_ERR_REVOKED. On all ranks the same.
 */
HEM_API HEM_MUST_CHECK hem_status hem_pattern_grid(hem_world *world,
                                                   const hem_grid_options *options,
                                                   hem_pattern **pattern_p);

/** How hem_grid_balance cuts a grid: `parts` per dimension, the last dimension counting fastest. */
typedef struct hem_grid_cut {
    int dims;
    int64_t extent[HEM_DIMS];
    int64_t parts[HEM_DIMS];
} hem_grid_cut;

/**
 * Cut a grid into `parts` boxes with as little surface as can be; their extents differ by at most 1
 * per dimension.
 *
 * Local. @return HEM_OK; HEM_ERR_ARG; HEM_ERR_RANGE if no cut leaves every box a point.
 */
HEM_API HEM_MUST_CHECK hem_status hem_grid_balance(int dims, const int64_t *extent, int64_t parts,
                                                   hem_grid_cut *cut_p);

/** The box of part `part`. Local. @return HEM_OK, HEM_ERR_ARG, HEM_ERR_RANGE. */
HEM_API HEM_MUST_CHECK hem_status hem_grid_part(const hem_grid_cut *cut, int64_t part,
                                                hem_box *box_p);

/**
 * The part that lies `step` parts (any numbers, per dimension) away from `part`, or -1 if there is
 * none. `periodic` may be NULL: not at all. Local.
 */
HEM_API int64_t hem_grid_neighbour(const hem_grid_cut *cut, const bool *periodic, int64_t part,
                                   const int64_t *step);

/* Unstructured meshes. */

/** The points that one domain stores, its own and its halo. */
typedef struct hem_mesh_domain {
    int64_t id;            /**< what errors and pictures call it; any number */
    const int64_t *points; /**< global ids, not negative, in the order in which they are stored */
    size_t count;
    /** Which of them are halo: positions in `points`, or, if that is NULL, ids in `halo_ids`. All
     *  others this domain owns. What is named twice counts once; of an id all points with it. */
    const size_t *halo;
    const int64_t *halo_ids;
    size_t halo_count;
    /** The rank that owns each halo point, in the same order, if the caller knows. Then owners are
     *  not searched for, and two owners of one id not noticed; all domains of all ranks or none. */
    const int *halo_owners;
} hem_mesh_domain;

/** Zero means default everywhere; set `struct_size` to sizeof(hem_mesh_options). */
typedef struct hem_mesh_options {
    size_t struct_size;
    const hem_mesh_domain *domains;
    size_t domain_count;
    int64_t timeout_ns; /**< of the set-up. Default: the world's */
} hem_mesh_options;

/**
 * Make a pattern of the global ids of a mesh. The lists are not kept.
 *
 * Collective. @return HEM_OK; HEM_ERR_ARG; HEM_ERR_RANGE for a position or rank that does not exist,
 *         an id that is negative or, as halo, not among the points; HEM_ERR_MISMATCH for an id that
 *         nobody owns or two own, naming it and the ranks; otherwise as hem_pattern_grid.
 */
HEM_API HEM_MUST_CHECK hem_status hem_pattern_mesh(hem_world *world,
                                                   const hem_mesh_options *options,
                                                   hem_pattern **pattern_p);

/* The cubed sphere. */

/** A box of one of the six panels. */
typedef struct hem_sphere_domain {
    int64_t id;
    int panel;   /**< 0 to 5 */
    hem_box box; /**< of two dimensions: x and y of the panel */
} hem_sphere_domain;

/**
 * Zero means default everywhere; set `struct_size` to sizeof(hem_sphere_options).
 *
 * Panels 0 to 3 go around the equator eastwards, 4 is the north, 5 the south. x of panels 0 to 3
 * points east, y north. The south edge of panel 4 is the north edge of panel 0, with the same
 * direction of x; so is the north edge of panel 5 the south edge of panel 0. Where three panels meet
 * there is no diagonal neighbour: those halo points stay as they are.
 */
typedef struct hem_sphere_options {
    size_t struct_size;
    int64_t cells; /**< points along the edge of a panel */
    int64_t halo;  /**< width, at most `cells` */
    bool faces_only;
    const hem_sphere_domain *domains;
    size_t domain_count;
    int64_t timeout_ns; /**< of the set-up. Default: the world's */
} hem_sphere_options;

/**
 * Make a pattern of boxes on the panels of a cubed sphere.
 *
 * Fields have two dimensions, x and y. Across the edges of panels whose axes differ, points are
 * reordered, and a field that is a vector (HEM_FIELD_VECTOR) has its two components exchanged and
 * negated as the axes are, so that they are along x and y of the panel that receives them.
 *
 * Collective. @return as hem_pattern_grid.
 */
HEM_API HEM_MUST_CHECK hem_status hem_pattern_sphere(hem_world *world,
                                                     const hem_sphere_options *options,
                                                     hem_pattern **pattern_p);

/* Explicit lists. */

/** Points of one of this rank's domains to send to, or to receive from, a peer. */
typedef struct hem_point_list {
    int peer;              /**< may be this rank */
    size_t domain;         /**< 0 to domain_count - 1 */
    const int64_t *points; /**< positions in the domain's storage; receives name each one once */
    size_t count;
} hem_point_list;

/** Zero means default everywhere; set `struct_size` to sizeof(hem_explicit_options). */
typedef struct hem_explicit_options {
    size_t struct_size;
    const size_t *domain_points; /**< points that each of this rank's domains stores */
    size_t domain_count;
    /** The k-th list that a rank sends to another is the k-th that this one receives from it, and as
     *  long. */
    const hem_point_list *sends;
    size_t send_count;
    const hem_point_list *receives;
    size_t receive_count;
    int64_t timeout_ns; /**< of the set-up. Default: the world's */
} hem_explicit_options;

/** Make a pattern of the caller's own lists, which are copied. Collective, as hem_pattern_grid. */
HEM_API HEM_MUST_CHECK hem_status hem_pattern_explicit(hem_world *world,
                                                       const hem_explicit_options *options,
                                                       hem_pattern **pattern_p);

/* What a pattern says of itself. */

/** This rank's view, in numbers; set `struct_size` to sizeof(hem_pattern_facts) before the call. */
typedef struct hem_pattern_facts {
    size_t struct_size;
    int dims; /**< of its fields: 1 for meshes and explicit lists, 2 for the sphere */
    size_t domains;
    size_t neighbours; /**< ranks that it sends to or receives from, itself not counted */
    uint64_t send_points;
    uint64_t recv_points;
    uint64_t local_points; /**< copied between domains of this rank */
    uint64_t holes;        /**< halo points inside of the grid that nobody owns */
    /* What the set-up took on this rank. */
    uint64_t setup_messages;   /**< sent */
    uint64_t setup_bytes;      /**< sent */
    uint64_t setup_peak_bytes; /**< of memory in use for it at once, the pattern itself included */
    uint64_t setup_ns;
} hem_pattern_facts;

/** Local. @return HEM_OK, HEM_ERR_ARG. */
HEM_API HEM_MUST_CHECK hem_status hem_pattern_info(const hem_pattern *pattern,
                                                   hem_pattern_facts *facts_p);

/** One neighbour of this rank. */
typedef struct hem_neighbour {
    int rank;
    uint64_t send_points;
    uint64_t recv_points;
} hem_neighbour;

/** Neighbour `index`, ordered by rank. Local. @return HEM_OK, HEM_ERR_ARG, HEM_ERR_RANGE. */
HEM_API HEM_MUST_CHECK hem_status hem_pattern_neighbour(const hem_pattern *pattern, size_t index,
                                                        hem_neighbour *neighbour_p);

/** Print domains, neighbours and counts of this rank, for people. Local. */
HEM_API HEM_MUST_CHECK hem_status hem_pattern_print(const hem_pattern *pattern, FILE *file);

/**
 * Check that both sides of every pair of ranks still mean the same points: that every halo point of
 * this rank is written by one link, that links match, and that all points exist.
 *
 * A time limit of 0 is the world's. Of meshes and spheres links are compared by their counts, sides and
 * domains, since ids are not kept.
 *
 * Collective. @return HEM_OK; HEM_ERR_MISMATCH, saying what does not fit; otherwise as
 *         hem_pattern_grid.
 */
HEM_API HEM_MUST_CHECK hem_status hem_pattern_validate(const hem_pattern *pattern,
                                                       int64_t timeout_ns);

/** Zero means default everywhere; set `struct_size` to sizeof(hem_draw_options). */
typedef struct hem_draw_options {
    size_t struct_size;
    /** Meshes: x and y of every point of each of this rank's domains, as stored. Needed there. */
    const double *const *coordinates;
    const char *title;
    int64_t timeout_ns; /**< Default: the world's */
} hem_draw_options;

/**
 * Draw a pattern as SVG into the file `path`, which rank 0 writes: domains, halos, and who sends
 * where. 2-D grids, and meshes with coordinates.
 *
 * Collective. @return HEM_OK; HEM_ERR_UNSUPPORTED for other patterns; HEM_ERR_SYSTEM if the file
 *         cannot be written; otherwise as hem_pattern_grid.
 */
HEM_API HEM_MUST_CHECK hem_status hem_pattern_draw(const hem_pattern *pattern, const char *path,
                                                   const hem_draw_options *options);

/**
 * Give a pattern up. NULL is allowed. Exchanges that use it keep what they need of it.
 *
 * Local. From any thread. @return HEM_OK.
 */
HEM_API hem_status hem_pattern_destroy(hem_pattern *pattern);

#ifdef __cplusplus
}
#endif
#endif
