/*
 * What the tests of collectives on device buffers share: one collective twice, on buffers of the host
 * and of the device that hold the same bytes. Afterwards they must again, also where nothing was to be
 * written.
 */
#ifndef HEM_TESTS_DEVICE_COLL_KIT_H
#define HEM_TESTS_DEVICE_COLL_KIT_H

#include "coll_form.h"

#define COLL_KIT_GUARD 64
#define COLL_KIT_RANKS 8

/** A buffer of the host and its twin on the device, with something around them. */
typedef struct coll_kit_buffer {
    size_t bytes;         /**< of all of it */
    size_t shift;         /**< where it begins */
    unsigned char *first; /**< what was in it at first */
    unsigned char *host;
    unsigned char *device;
    bool borrowed; /**< `device` is in the kit's arena */
} coll_kit_buffer;

typedef struct coll_kit {
    hem_world *world;
    int rank;
    int size;
    device_stream native;
    hem_stream *stream;
    hem_coll coll; /**< without buffers */
    coll_kit_buffer send;
    coll_kit_buffer recv;
    size_t send_at; /**< bytes; in place, in the buffer `recv` */
    size_t recv_at;
    size_t recv_shift; /**< bytes by which `recv` begins later than `send` does */
    size_t element;    /**< bytes of elements without a type, or 0 */
    bool in_place;
    bool names_send;
    unsigned char *arena; /**< where device buffers are to be, or NULL */
    size_t arena_bytes;
    size_t arena_used;
    size_t counts[COLL_KIT_RANKS];
    size_t displs[COLL_KIT_RANKS];
    size_t send_counts[COLL_KIT_RANKS];
    size_t send_displs[COLL_KIT_RANKS];
} coll_kit;

/** The sum of words over all ranks, in place. */
static inline hem_coll coll_kit_sum(uint64_t *memory, size_t count) {
    hem_coll c;
    memset(&c, 0, sizeof c);
    c.struct_size = sizeof c;
    c.kind = HEM_ALLREDUCE;
    c.dtype = HEM_U64;
    c.op = HEM_SUM;
    c.send = memory;
    c.recv = memory;
    c.count = count;
    c.blocks = DEVICE_FEW_BLOCKS;
    return c;
}

static inline coll_kit coll_kit_open(hem_world *world) {
    coll_kit kit;
    memset(&kit, 0, sizeof kit);
    kit.world = world;
    kit.rank = hem_world_rank(world);
    kit.size = hem_world_size(world);
    kit.native = device_stream_create();
    CHECK_OK(hem_stream_cuda(world, kit.native, &kit.stream));
    return kit;
}

static inline void coll_kit_close(coll_kit *kit) {
    device_stream_sync(kit->native);
    CHECK_OK(hem_stream_destroy(kit->stream));
    device_stream_destroy(kit->native);
}

/** Numbers whose sums are rounded, and now and then any bits. */
static inline void coll_kit_fill(unsigned char *to, size_t bytes, hem_dtype dtype,
                                 harness_rng *rng) {
    bool any = harness_below(rng, 4) == 0;
    for (size_t i = 0; i < bytes; i++)
        to[i] = (unsigned char)(harness_random(rng) >> 17);
    if (any)
        return;
    for (size_t i = 0; i + 8 <= bytes; i += 8) {
        float f[2] = {(float)harness_below(rng, 100000) * 0.37f - 9000.0f,
                      (float)harness_below(rng, 1000) * 0.001f};
        double g = (double)harness_below(rng, 1000000) * 0.123 - 50000.0;
        if (dtype == HEM_F32 || dtype == HEM_C64)
            memcpy(to + i, f, 8);
        else if (dtype == HEM_F64 || dtype == HEM_C128)
            memcpy(to + i, &g, 8);
        else if (dtype == HEM_F16 || dtype == HEM_BF16)
            for (size_t k = 1; k < 8; k += 2) /* exponents that are not too far apart */
                to[i + k] = (unsigned char)((to[i + k] & 0x83) | 0x3c);
        else if (dtype == HEM_BOOL)
            for (size_t k = 0; k < 8; k++)
                to[i + k] &= 1;
    }
}

/** Whether elements are pairs of a value and a location. */
static inline bool coll_kit_pairs(const coll_kit *kit) {
    return kit->coll.op == HEM_MINLOC || kit->coll.op == HEM_MAXLOC;
}

/** Bytes of an element. */
static inline size_t coll_kit_element(const coll_kit *kit) {
    if (kit->element != 0)
        return kit->element;
    return coll_kit_pairs(kit) ? 16 : hem_dtype_size(kit->coll.dtype);
}

/** Values of which many are equal, zeros with a sign and NaN or the largest among them; few locations. */
static inline void coll_kit_fill_pairs(unsigned char *pairs, size_t count, hem_dtype dtype,
                                       harness_rng *rng) {
    static const unsigned char tops[] = {0x00, 0x80, 0x7f, 0xff};
    size_t bytes = hem_dtype_size(dtype);
    for (size_t i = 0; i < count; i++) {
        unsigned char *value = pairs + 16 * i;
        int64_t location = (int64_t)harness_below(rng, 5) - 2;
        size_t which = harness_below(rng, 2 * sizeof tops);
        if (which < sizeof tops) {
            memset(value, which < 2 ? 0x00 : 0xff, bytes);
            value[bytes - 1] = tops[which];
        }
        memcpy(value + 8, &location, sizeof location);
    }
}

static inline void coll_kit_make(coll_kit *kit, coll_kit_buffer *b, size_t bytes, size_t shift,
                                 hem_dtype dtype, harness_rng *rng) {
    b->shift = COLL_KIT_GUARD + shift;
    b->bytes = bytes + shift + 2 * COLL_KIT_GUARD;
    b->first = (unsigned char *)malloc(b->bytes);
    b->host = (unsigned char *)malloc(b->bytes);
    b->borrowed = kit->arena != NULL;
    if (b->borrowed) {
        b->device = kit->arena + kit->arena_used;
        kit->arena_used += (b->bytes + 255) / 256 * 256;
        CHECK(kit->arena_used <= kit->arena_bytes);
    } else {
        b->device = (unsigned char *)device_alloc(b->bytes);
    }
    CHECK(b->first != NULL && b->host != NULL);
    coll_kit_fill(b->first, b->bytes, dtype, rng);
    if (coll_kit_pairs(kit))
        coll_kit_fill_pairs(b->first + b->shift, bytes / 16, dtype, rng);
}

static inline void coll_kit_free(coll_kit_buffer *b) {
    free(b->first);
    free(b->host);
    if (b->device != NULL && !b->borrowed)
        device_free(b->device);
    memset(b, 0, sizeof *b);
}

static inline void coll_kit_reset(coll_kit_buffer *b) {
    if (b->first == NULL)
        return;
    memcpy(b->host, b->first, b->bytes);
    device_copy(b->device, b->first, b->bytes);
}

static inline void coll_kit_compare(const coll_kit_buffer *b, const char *what) {
    unsigned char *copy = (unsigned char *)malloc(b->bytes + 1);
    CHECK(copy != NULL);
    if (b->first != NULL)
        device_copy(copy, b->device, b->bytes);
    for (size_t i = 0; b->first != NULL && i < b->bytes; i++)
        if (copy[i] != b->host[i])
            harness_fail(__FILE__, __LINE__, "byte %zu of %s, which begins at %zu: %02x, not %02x",
                         i, what, b->shift, copy[i], b->host[i]);
    free(copy);
}

/* Blocks of random lengths in a random distance. The same on all ranks that pass the same `rng`. */
static inline size_t coll_kit_deal(size_t *counts, size_t *displs, int size, size_t most,
                                   harness_rng *rng) {
    size_t at = 0;
    for (int r = 0; r < size; r++) {
        counts[r] = harness_below(rng, 4) == 0 ? 0 : harness_below(rng, most + 1);
        at += harness_below(rng, 3);
        displs[r] = at;
        at += counts[r];
    }
    return at;
}

/* Elements of both buffers; in place, where `send` is in `recv`. */
typedef struct coll_kit_sizes {
    size_t send;
    size_t recv;
    size_t own; /**< element at which `send` begins in place */
} coll_kit_sizes;

static inline coll_kit_sizes coll_kit_size_v(coll_kit *kit, size_t count, harness_rng *rng) {
    coll_kit_sizes s = {0, 0, 0};
    hem_coll *c = &kit->coll;
    bool root = kit->rank == c->root;
    size_t own = (size_t)kit->rank;
    size_t all = coll_kit_deal(kit->counts, kit->displs, kit->size, count, rng);
    c->counts = kit->counts;
    c->displs = c->kind == HEM_REDUCE_SCATTERV ? NULL : kit->displs;
    c->count = 0;
    if (c->kind == HEM_ALLGATHERV || c->kind == HEM_GATHERV) {
        s.send = kit->counts[own];
        s.recv = c->kind == HEM_ALLGATHERV || root ? all : 0;
        s.own = kit->displs[own];
        c->count = c->kind == HEM_GATHERV ? kit->counts[own] : 0;
    } else if (c->kind == HEM_SCATTERV) {
        s.send = root ? all : 0;
        s.recv = kit->counts[own];
        s.own = kit->displs[own];
        c->count = kit->counts[own];
    } else {
        s.send = all;
        s.recv = kit->counts[own];
    }
    return s;
}

/* Everybody deals for everybody, and takes its own. */
static inline coll_kit_sizes coll_kit_size_alltoallv(coll_kit *kit, size_t count,
                                                     harness_rng *rng) {
    coll_kit_sizes s = {0, 0, 0};
    size_t counts[COLL_KIT_RANKS], displs[COLL_KIT_RANKS];
    size_t at = 0;
    for (int r = 0; r < kit->size; r++) {
        size_t all = coll_kit_deal(counts, displs, kit->size, count, rng);
        kit->counts[r] = counts[kit->rank];
        kit->displs[r] = at;
        at += counts[kit->rank] + harness_below(rng, 3);
        if (r != kit->rank)
            continue;
        memcpy(kit->send_counts, counts, sizeof counts);
        memcpy(kit->send_displs, displs, sizeof displs);
        s.send = all;
    }
    s.recv = at;
    kit->coll.counts = kit->counts;
    kit->coll.displs = kit->displs;
    kit->coll.send_counts = kit->send_counts;
    kit->coll.send_displs = kit->send_displs;
    return s;
}

static inline coll_kit_sizes coll_kit_sizes_of(coll_kit *kit, size_t count, harness_rng *rng) {
    coll_kit_sizes s = {count, count, 0};
    hem_coll *c = &kit->coll;
    size_t size = (size_t)kit->size, own = (size_t)kit->rank;
    bool root = kit->rank == c->root;
    c->count = count;
    switch (c->kind) {
    case HEM_BROADCAST:
        s.send = root ? count : 0;
        return s;
    case HEM_REDUCE:
        s.recv = root ? count : 0;
        return s;
    case HEM_ALLREDUCE:
        return s;
    case HEM_ALLGATHER:
        s.recv = size * count;
        s.own = own * count;
        return s;
    case HEM_REDUCE_SCATTER:
        s.send = size * count;
        return s;
    case HEM_GATHER:
        s.recv = root ? size * count : 0;
        s.own = own * count;
        return s;
    case HEM_SCATTER:
        s.send = root ? size * count : 0;
        s.own = own * count;
        return s;
    case HEM_ALLTOALL:
        s.send = s.recv = size * count;
        return s;
    case HEM_ALLTOALLV:
        return coll_kit_size_alltoallv(kit, count, rng);
    default:
        return coll_kit_size_v(kit, count, rng);
    }
}

/** Set a collective up. `rng` is the same on all ranks, `own` is not. Without a type: kit->element. */
static inline void coll_kit_set(coll_kit *kit, hem_coll_kind kind, hem_dtype dtype,
                                hem_reduction op, size_t count, bool in_place, size_t shift,
                                harness_rng *rng, harness_rng *own) {
    memset(&kit->coll, 0, sizeof kit->coll);
    kit->coll.struct_size = sizeof kit->coll;
    kit->coll.kind = kind;
    kit->coll.dtype = dtype;
    kit->coll.element = kit->element;
    kit->coll.op = op;
    kit->coll.root = (int)harness_below(rng, (size_t)kit->size);
    kit->coll.memory = HEM_MEMORY_DEVICE;
    size_t element = coll_kit_element(kit);
    coll_kit_sizes s = coll_kit_sizes_of(kit, count, rng);
    bool root = kit->rank == kit->coll.root;
    bool gathers = kind == HEM_GATHER || kind == HEM_GATHERV;
    bool scatters = kind == HEM_SCATTER || kind == HEM_SCATTERV;
    kit->names_send = kind != HEM_BROADCAST;
    if (gathers || scatters || kind == HEM_REDUCE)
        in_place = in_place && root;
    kit->in_place = in_place && kind != HEM_ALLTOALLV && kind != HEM_BROADCAST;
    kit->send_at = kit->recv_at = 0;
    if (!kit->in_place) {
        if (kit->names_send)
            coll_kit_make(kit, &kit->send, s.send * element, shift, dtype, own);
        coll_kit_make(kit, &kit->recv, s.recv * element, shift + kit->recv_shift, dtype, own);
        return;
    }
    /* One buffer, the larger one; the other is inside of it. */
    coll_kit_make(kit, &kit->recv, (s.send > s.recv ? s.send : s.recv) * element, shift, dtype,
                  own);
    *(scatters ? &kit->recv_at : &kit->send_at) = s.own * element;
}

static inline hem_coll coll_kit_coll(const coll_kit *kit, bool device) {
    hem_coll c = kit->coll;
    const coll_kit_buffer *from = kit->in_place ? &kit->recv : &kit->send;
    if (kit->names_send)
        c.send = (device ? from->device : from->host) + from->shift + kit->send_at;
    c.recv = (device ? kit->recv.device : kit->recv.host) + kit->recv.shift + kit->recv_at;
    if (!device)
        c.memory = HEM_MEMORY_HOST;
    return c;
}

/** Run it on the host and in the given way on the device, and compare. */
static inline void coll_kit_run(coll_kit *kit, hem_op *op, uint64_t way) {
    hem_coll host = coll_kit_coll(kit, false), device = coll_kit_coll(kit, true);
    coll_kit_reset(&kit->send);
    coll_kit_reset(&kit->recv);
    CHECK_OK(hem_coll_run(kit->world, &host, LIMIT));
    if (way == 0) {
        CHECK_OK(hem_op_start_on(op, kit->stream));
        device_stream_sync(kit->native);
        CHECK_OK(hem_op_status(op));
    } else if (way == 1) {
        CHECK_OK(hem_op_start(op));
        CHECK_OK(hem_op_wait(op, LIMIT));
    } else {
        CHECK_OK(hem_coll_run(kit->world, &device, LIMIT));
    }
    coll_kit_compare(&kit->send, "send");
    coll_kit_compare(&kit->recv, "recv");
}

static inline void coll_kit_clear(coll_kit *kit) {
    coll_kit_free(&kit->send);
    coll_kit_free(&kit->recv);
    kit->arena_used = 0;
}

/** Both ways of a plan, and the blocking call if `blocks`. */
static inline void coll_kit_check(coll_kit *kit, bool blocks) {
    hem_op *op = NULL;
    hem_coll device = coll_kit_coll(kit, true);
    CHECK_OK(hem_coll_plan(kit->world, &device, &op));
    coll_kit_run(kit, op, 0);
    coll_kit_run(kit, op, 1);
    coll_kit_run(kit, op, 0);
    CHECK_OK(hem_op_free(op));
    if (blocks)
        coll_kit_run(kit, NULL, 2);
    coll_kit_clear(kit);
}

#endif
