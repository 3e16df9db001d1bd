/* Buffers of one rank for one case of a collective: placed anywhere, with guards around them. */
#ifndef HEM_TESTS_RANK_COLL_BUFFERS_H
#define HEM_TESTS_RANK_COLL_BUFFERS_H

#include "coll_reference.h"

/** Where buffers lie. */
enum {
    COLL_PRIVATE,
    COLL_LIBRARY,
    COLL_BY_RANK, /**< library memory on odd ranks */
    COLL_BY_SIDE, /**< what is sent in library memory on even ranks, what is received on odd ones */
    COLL_MEMORIES
};

/** At which addresses they begin. */
enum {
    COLL_ALIGNED, /**< multiples of 64 */
    COLL_ODD,     /**< 1 more than that */
    COLL_ANY,     /**< random, different on each rank */
    COLL_ALIGNS
};

/** A guarded piece of memory. */
typedef struct coll_room {
    hem_memory *memory; /**< NULL: private */
    unsigned char *base;
    unsigned char *start;
    size_t bytes;
} coll_room;

typedef struct coll_buffers {
    coll_case c;
    coll_layout layout;
    hem_coll coll; /**< to be run, once filled */
    int rank;
    bool shared; /**< one room for both */
    coll_room rooms[2];
    unsigned char *send; /**< NULL where this rank sends nothing */
    unsigned char *recv; /**< NULL where it receives nothing */
    size_t send_bytes;
    size_t recv_bytes;
} coll_buffers;

coll_buffers coll_buffers_make(hem_world *world, const coll_case *c, int memory, int align);

/** Put in what the case's seed says is sent, paint all else, and fill in `coll`. */
void coll_buffers_fill(coll_buffers *b);

/** All that must be received is there, and nothing else has changed. Spoils what was sent. */
void coll_buffers_check(coll_buffers *b);

void coll_buffers_free(coll_buffers *b);

#endif
