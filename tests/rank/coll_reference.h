/*
 * What collectives must give, computed the naive way.
 *
 * A case says what all ranks call. Every contribution follows from the case's seed, so that each
 * rank can compute what any other rank sends, and thereby what it must receive itself:
 * contributions are folded one after the other in the order of ranks, f16 and bf16 in f32, rounded
 * once.
 */
#ifndef HEM_TESTS_RANK_COLL_REFERENCE_H
#define HEM_TESTS_RANK_COLL_REFERENCE_H

#include "harness.h"

enum {
    COLL_RANKS = 16,     /**< the most ranks that these tests run with */
    COLL_USER_BYTES = 24 /**< an element of the user's own operation */
};

/** One collective as all ranks call it. */
typedef struct coll_case {
    hem_coll_kind kind;
    hem_dtype dtype;  /**< 0: elements of COLL_USER_BYTES */
    hem_reduction op; /**< 0 where nothing is combined */
    int root;
    size_t count;
    bool in_place;
    bool gaps; /**< the V kinds get displacements that leave gaps, in descending order */
    uint64_t seed;
    int size;
} coll_case;

/** A run of elements of a buffer: where, whose (-1: combined from all), which block of theirs. */
typedef struct coll_piece {
    size_t at;
    int source;
    int block;
    size_t count;
} coll_piece;

/** What one rank passes to a case. */
typedef struct coll_layout {
    size_t counts[COLL_RANKS];
    size_t displs[COLL_RANKS];
    size_t send_counts[COLL_RANKS];
    size_t send_displs[COLL_RANKS];
    size_t count;
    coll_piece sent[COLL_RANKS];
    coll_piece received[COLL_RANKS];
    int sent_count;
    int received_count;
    size_t send_room; /**< elements, with gaps */
    size_t recv_room;
} coll_layout;

const char *coll_kind_name(hem_coll_kind kind);
const char *coll_type_name(hem_dtype dtype);
const char *coll_op_name(hem_reduction op);
bool coll_combines(hem_coll_kind kind);
bool coll_has_root(hem_coll_kind kind);
bool coll_is_vector(hem_coll_kind kind);
/** Whether a rank gets no data from it and may be done before those who do. */
bool coll_only_gives(const coll_case *c, int rank);

/** Whether the type has the operation. */
bool coll_supported(hem_dtype dtype, hem_reduction op);

/** Bytes of an element of the case. */
size_t coll_element(const coll_case *c);

coll_layout coll_layout_of(const coll_case *c, int rank);

/** Fill in the description that `rank` passes, but for the buffers. */
hem_coll coll_describe(const coll_case *c, const coll_layout *layout);

/** Write what `rank` contributes into its send buffer; gaps stay as they are. */
void coll_fill(const coll_case *c, int rank, const coll_layout *layout, void *send);

/** Write what `rank` must receive into an image of its receive buffer; the rest stays as it is. */
void coll_expect(const coll_case *c, const coll_layout *layout, void *image);

/** Elements [first, first + n) of block `block` that `rank` contributes. */
void coll_generate(const coll_case *c, int rank, int block, size_t first, size_t n, void *out);

/** The same of all ranks, combined. */
void coll_combine(const coll_case *c, int block, size_t first, size_t n, void *out);

/** The user's operation: associative, not commutative. `arg` must be coll_user_arg. */
void coll_user(void *into, const void *from, size_t count, void *arg);
extern char coll_user_arg[];

/** Run a described collective by the function of its name. */
hem_status coll_call_by_name(hem_world *world, const hem_coll *coll, int64_t timeout_ns);

/** Run a case of private memory with hem_coll_run and check the result. For tests that only want to
 *  know that collectives work. */
void coll_run_checked(hem_world *world, const coll_case *c);

#endif
