/* Who passes what to a collective, and what must come out. */
#include "coll_reference.h"

static const char *const kind_names[] = {
    "nothing",   "barrier",    "broadcast",      "reduce",          "allreduce",
    "allgather", "allgatherv", "reduce_scatter", "reduce_scatterv", "gather",
    "gatherv",   "scatter",    "scatterv",       "alltoall",        "alltoallv",
};

static const char *const type_names[] = {"user", "byte", "i8",  "i16",  "i32", "i64",
                                         "u8",   "u16",  "u32", "u64",  "f16", "bf16",
                                         "f32",  "f64",  "c64", "c128", "bool"};

static const char *const op_names[] = {"none", "sum",  "prod", "min",  "max",    "land",   "lor",
                                       "lxor", "band", "bor",  "bxor", "minloc", "maxloc", "user"};

const char *coll_kind_name(hem_coll_kind kind) {
    return kind_names[kind];
}

const char *coll_type_name(hem_dtype dtype) {
    return type_names[dtype];
}

const char *coll_op_name(hem_reduction op) {
    return op_names[op];
}

bool coll_combines(hem_coll_kind kind) {
    return kind == HEM_REDUCE || kind == HEM_ALLREDUCE || kind == HEM_REDUCE_SCATTER ||
           kind == HEM_REDUCE_SCATTERV;
}

static bool goes_to_root(hem_coll_kind kind) {
    return kind == HEM_REDUCE || kind == HEM_GATHER || kind == HEM_GATHERV;
}

static bool comes_from_root(hem_coll_kind kind) {
    return kind == HEM_BROADCAST || kind == HEM_SCATTER || kind == HEM_SCATTERV;
}

bool coll_has_root(hem_coll_kind kind) {
    return goes_to_root(kind) || comes_from_root(kind);
}

bool coll_is_vector(hem_coll_kind kind) {
    return kind == HEM_ALLGATHERV || kind == HEM_REDUCE_SCATTERV || kind == HEM_GATHERV ||
           kind == HEM_SCATTERV || kind == HEM_ALLTOALLV;
}

bool coll_only_gives(const coll_case *c, int rank) {
    return goes_to_root(c->kind) ? rank != c->root : comes_from_root(c->kind) && rank == c->root;
}

bool coll_supported(hem_dtype dtype, hem_reduction op) {
    bool complex = dtype == HEM_C64 || dtype == HEM_C128;
    bool real = dtype >= HEM_F16 && dtype <= HEM_F64;
    bool bits = op >= HEM_BAND && op <= HEM_BXOR;

    if (!dtype || op == HEM_USER)
        return !dtype && op == HEM_USER;
    if (dtype == HEM_BYTE)
        return bits;
    if (dtype == HEM_BOOL)
        return op <= HEM_BXOR;
    if (bits)
        return !complex && !real;
    return !complex || op == HEM_SUM || op == HEM_PROD || (op >= HEM_LAND && op <= HEM_LXOR);
}

size_t coll_element(const coll_case *c) {
    if (!c->dtype)
        return COLL_USER_BYTES;
    return c->op == HEM_MINLOC || c->op == HEM_MAXLOC ? 16 : hem_dtype_size(c->dtype);
}

/* Layouts. */

/* How much goes from `from` to `to` in a V kind: nothing, all, or a part of `count`. */
static size_t share(const coll_case *c, int from, int to) {
    harness_rng rng = harness_rng_of(c->seed / 16, (uint64_t)from + 1, (uint64_t)to + 1);
    size_t part = harness_below(&rng, c->count + 1);

    switch (harness_below(&rng, 4)) {
    case 0:
        return 0;
    case 1:
        return c->count;
    default:
        return part;
    }
}

/* In place, as much comes back as goes out. */
static size_t share_between(const coll_case *c, int from, int to) {
    if (c->in_place && from > to)
        return share(c, to, from);
    return share(c, from, to);
}

/* Place blocks one after the other, or from the last to the first with gaps. @return the room. */
static size_t place(const coll_case *c, const size_t *counts, size_t *displs) {
    size_t at = 0;

    for (int i = 0; i < c->size; i++) {
        int rank = c->gaps ? c->size - 1 - i : i;

        if (c->gaps)
            at += (size_t)rank % 3;
        displs[rank] = at;
        at += counts[rank];
    }
    return at;
}

static void count_blocks(const coll_case *c, int rank, coll_layout *l) {
    for (int peer = 0; peer < c->size; peer++) {
        if (c->kind == HEM_ALLTOALLV) {
            l->counts[peer] = share_between(c, peer, rank);
            l->send_counts[peer] = share_between(c, rank, peer);
        } else {
            l->counts[peer] = coll_is_vector(c->kind) ? share(c, peer, -1) : c->count;
        }
    }
    l->count = coll_is_vector(c->kind) ? l->counts[rank] : c->count;
}

static void add_sent(coll_layout *l, size_t at, int block, size_t count) {
    l->sent[l->sent_count++] = (coll_piece){at, 0, block, count};
}

static void add_received(coll_layout *l, size_t at, int source, int block, size_t count) {
    l->received[l->received_count++] = (coll_piece){at, source, block, count};
}

static void lay_out_sent(const coll_case *c, int rank, coll_layout *l, size_t room) {
    bool alltoallv = c->kind == HEM_ALLTOALLV;

    switch (c->kind) {
    case HEM_BARRIER:
        return;
    case HEM_REDUCE_SCATTER:
    case HEM_REDUCE_SCATTERV:
    case HEM_ALLTOALL:
    case HEM_ALLTOALLV:
    case HEM_SCATTER:
    case HEM_SCATTERV:
        if (comes_from_root(c->kind) && rank != c->root)
            return;
        l->send_room = alltoallv ? place(c, l->send_counts, l->send_displs) : room;
        for (int peer = 0; peer < c->size; peer++)
            add_sent(l, alltoallv ? l->send_displs[peer] : l->displs[peer], peer,
                     alltoallv ? l->send_counts[peer] : l->counts[peer]);
        return;
    default:
        if (c->kind == HEM_BROADCAST && rank != c->root)
            return;
        l->send_room = l->count;
        add_sent(l, 0, 0, l->count);
    }
}

static void lay_out_received(const coll_case *c, int rank, coll_layout *l, size_t room) {
    if (c->kind == HEM_BARRIER || (goes_to_root(c->kind) && rank != c->root))
        return;
    switch (c->kind) {
    case HEM_ALLGATHER:
    case HEM_ALLGATHERV:
    case HEM_GATHER:
    case HEM_GATHERV:
    case HEM_ALLTOALL:
    case HEM_ALLTOALLV:
        l->recv_room = room;
        for (int peer = 0; peer < c->size; peer++)
            add_received(l, l->displs[peer], peer,
                         c->kind == HEM_ALLTOALL || c->kind == HEM_ALLTOALLV ? rank : 0,
                         l->counts[peer]);
        return;
    default:
        l->recv_room = l->count;
        add_received(l, 0, coll_combines(c->kind) ? -1 : c->root,
                     c->kind == HEM_BROADCAST || c->kind == HEM_REDUCE || c->kind == HEM_ALLREDUCE
                         ? 0
                         : rank,
                     l->count);
    }
}

coll_layout coll_layout_of(const coll_case *c, int rank) {
    coll_case plain = *c;
    coll_layout l = {0};
    size_t room;

    CHECK(c->size <= COLL_RANKS);
    count_blocks(c, rank, &l);
    plain.gaps = c->gaps && coll_is_vector(c->kind);
    room = place(&plain, l.counts, l.displs);
    lay_out_sent(&plain, rank, &l, room);
    lay_out_received(&plain, rank, &l, room);
    return l;
}

hem_coll coll_describe(const coll_case *c, const coll_layout *l) {
    hem_coll coll = {.struct_size = sizeof coll, .kind = c->kind, .root = c->root};

    if (c->kind == HEM_BARRIER)
        return coll;
    coll.count = l->count;
    coll.dtype = c->dtype;
    coll.op = c->op;
    if (!c->dtype)
        coll.element = COLL_USER_BYTES;
    if (c->op == HEM_USER) {
        coll.user = coll_user;
        coll.user_arg = coll_user_arg;
    }
    if (coll_is_vector(c->kind))
        coll.counts = l->counts;
    if (coll_is_vector(c->kind) && c->gaps)
        coll.displs = l->displs;
    if (c->kind == HEM_ALLTOALLV)
        coll.send_counts = l->send_counts;
    if (c->kind == HEM_ALLTOALLV && c->gaps)
        coll.send_displs = l->send_displs;
    return coll;
}

/* Contents. */

void coll_fill(const coll_case *c, int rank, const coll_layout *l, void *send) {
    for (int i = 0; i < l->sent_count; i++)
        coll_generate(c, rank, l->sent[i].block, 0, l->sent[i].count,
                      (unsigned char *)send + l->sent[i].at * coll_element(c));
}

void coll_expect(const coll_case *c, const coll_layout *l, void *image) {
    for (int i = 0; i < l->received_count; i++) {
        const coll_piece *piece = &l->received[i];
        unsigned char *to = (unsigned char *)image + piece->at * coll_element(c);

        if (piece->source < 0)
            coll_combine(c, piece->block, 0, piece->count, to);
        else
            coll_generate(c, piece->source, piece->block, 0, piece->count, to);
    }
}

char coll_user_arg[] = "the argument of the user's function";

/* The user's operation: maps x -> a x + b one after the other, and the third word of the first. */
void coll_user(void *into, const void *from, size_t count, void *arg) {
    unsigned char *left = into;
    const unsigned char *right = from;
    uint64_t a[3];
    uint64_t b[3];

    if (arg != coll_user_arg)
        return;
    for (size_t i = 0; i < count; i++, left += COLL_USER_BYTES, right += COLL_USER_BYTES) {
        memcpy(a, left, sizeof a);
        memcpy(b, right, sizeof b);
        a[1] = a[1] * b[0] + b[1];
        a[0] *= b[0];
        memcpy(left, a, sizeof a);
    }
}

/* Calls. */

static hem_status call_movement(hem_world *w, const hem_coll *c, int64_t limit) {
    switch (c->kind) {
    case HEM_BARRIER:
        return hem_sync(w, limit);
    case HEM_BROADCAST:
        return hem_broadcast(w, c->recv, c->count, c->dtype, c->root, limit);
    case HEM_ALLGATHER:
        return hem_allgather(w, c->send, c->recv, c->count, c->dtype, limit);
    case HEM_ALLGATHERV:
        return hem_allgatherv(w, c->send, c->recv, c->counts, c->displs, c->dtype, limit);
    case HEM_GATHER:
        return hem_gather(w, c->send, c->recv, c->count, c->dtype, c->root, limit);
    case HEM_GATHERV:
        return hem_gatherv(w, c->send, c->count, c->recv, c->counts, c->displs, c->dtype, c->root,
                           limit);
    case HEM_SCATTER:
        return hem_scatter(w, c->send, c->recv, c->count, c->dtype, c->root, limit);
    case HEM_SCATTERV:
        return hem_scatterv(w, c->send, c->counts, c->displs, c->recv, c->count, c->dtype, c->root,
                            limit);
    case HEM_ALLTOALL:
        return hem_alltoall(w, c->send, c->recv, c->count, c->dtype, limit);
    default:
        return hem_alltoallv(w, c->send, c->send_counts, c->send_displs, c->recv, c->counts,
                             c->displs, c->dtype, limit);
    }
}

hem_status coll_call_by_name(hem_world *w, const hem_coll *c, int64_t limit) {
    switch (c->kind) {
    case HEM_REDUCE:
        return hem_reduce(w, c->send, c->recv, c->count, c->dtype, c->op, c->root, limit);
    case HEM_ALLREDUCE:
        return hem_allreduce(w, c->send, c->recv, c->count, c->dtype, c->op, limit);
    case HEM_REDUCE_SCATTER:
        return hem_reduce_scatter(w, c->send, c->recv, c->count, c->dtype, c->op, limit);
    case HEM_REDUCE_SCATTERV:
        return hem_reduce_scatterv(w, c->send, c->recv, c->counts, c->dtype, c->op, limit);
    default:
        return call_movement(w, c, limit);
    }
}

void coll_run_checked(hem_world *world, const coll_case *c) {
    int rank = hem_world_rank(world);
    coll_layout l = coll_layout_of(c, rank);
    size_t element = coll_element(c);
    hem_coll coll = coll_describe(c, &l);
    unsigned char *send = malloc(l.send_room * element + 1);
    unsigned char *recv = malloc(l.recv_room * element + 1);
    unsigned char *want = malloc(l.recv_room * element + 1);

    CHECK(send && recv && want);
    memset(recv, 0x5a, l.recv_room * element);
    memset(want, 0x5a, l.recv_room * element);
    coll_fill(c, rank, &l, send);
    if (c->kind == HEM_BROADCAST && rank == c->root)
        memcpy(recv, send, l.count * element);
    coll_expect(c, &l, want);
    coll.send = c->kind == HEM_BROADCAST ? recv : send;
    coll.recv = recv;
    CHECK_OK(hem_coll_run(world, &coll, LIMIT));
    CHECK(memcmp(recv, want, l.recv_room * element) == 0);
    free(send);
    free(recv);
    free(want);
}
