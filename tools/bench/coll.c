#include "coll.h"

#include "meet.h"
#include "payload.h"
#include "vector.h"

/*
 * Where filling and checking cost little, the iterations follow each other without a pause, both
 * included. Where they do not, the ranks come together before and after each call, and only the
 * call counts. In both, each iteration writes all that is sent and reads all that came: if it did
 * not, peers that read in place would find the bytes of the last time in their own caches.
 *
 * With more ranks than cores a call takes so much longer that more may be touched in passing, and
 * coming together would hide what it costs to bring all ranks to run.
 */
static const size_t touched_in_passing = 1024;
static const size_t crowded_touched_in_passing = 16384;

size_t bench_coll_send_bytes(enum bench_kind kind, int ranks, size_t bytes) {
    if (kind == BENCH_REDUCE_SCATTER || kind == BENCH_ALLTOALL)
        return bytes * (size_t)ranks;
    return kind == BENCH_SPARSE ? 2 * bytes : bytes;
}

size_t bench_coll_recv_bytes(enum bench_kind kind, int ranks, size_t bytes) {
    if (kind == BENCH_ALLGATHER || kind == BENCH_ALLTOALL)
        return bytes * (size_t)ranks;
    return kind == BENCH_SPARSE ? 2 * bytes : bytes;
}

size_t bench_coll_largest(enum bench_kind kind, int ranks, const struct hemt_sizes *sizes,
                          size_t (*length)(enum bench_kind kind, int ranks, size_t bytes)) {
    size_t largest = 0;

    for (size_t i = 0; i < sizes->count; i++) {
        size_t n = length(kind, ranks, sizes->bytes[i]);
        if (n > largest)
            largest = n;
    }
    return largest;
}

static int neighbour(const struct bench_coll *coll, int step) {
    return (coll->world->rank + step + coll->world->ranks) % coll->world->ranks;
}

int bench_coll_source(const struct bench_coll *coll) {
    return coll->kind == BENCH_SENDRECV ? coll->world->rank ^ 1 : neighbour(coll, -1);
}

int bench_coll_target(const struct bench_coll *coll) {
    return coll->kind == BENCH_SENDRECV ? coll->world->rank ^ 1 : neighbour(coll, 1);
}

int bench_coll_root(const struct bench_coll *coll) {
    return (int)(coll->seq % (uint64_t)coll->world->ranks);
}

/* The number of a message: no two are alike over iterations, senders and receivers. */
static uint64_t number(const struct bench_coll *coll, int from, int to) {
    return coll->seq << 24 | (uint64_t)from << 12 | (uint64_t)to;
}

static double *vector(unsigned char *buffer) {
    return (double *)(void *)buffer;
}

static void fill(const struct bench_coll *coll) {
    const struct bench_world *world = coll->world;
    size_t bytes = coll->bytes;

    switch (coll->kind) {
    case BENCH_ALLREDUCE:
    case BENCH_REDUCE_SCATTER:
        bench_vector_fill(vector(coll->send),
                          bench_coll_send_bytes(coll->kind, world->ranks, bytes) / sizeof(double),
                          0, coll->seq, world->rank + 1);
        return;
    case BENCH_ALLTOALL:
        for (int to = 0; to < world->ranks; to++)
            bench_fill(coll->send + (size_t)to * bytes, bytes, number(coll, world->rank, to));
        return;
    case BENCH_SPARSE:
        for (int i = 0; i < coll->peer_count; i++)
            bench_fill(coll->send + (size_t)i * bytes, bytes,
                       number(coll, world->rank, coll->peers[i]));
        return;
    case BENCH_SENDRECV:
    case BENCH_SENDRECV_RING:
        bench_fill(coll->send, bytes, number(coll, world->rank, bench_coll_target(coll)));
        return;
    default:
        /* In bcast all fill the buffer, so that nobody but the root has what it sends. */
        bench_fill(coll->send, bytes, number(coll, world->rank, 0));
    }
}

static bool check_sparse(const struct bench_coll *coll) {
    bool right = true;

    for (int i = 0; i < coll->peer_count; i++)
        right &= bench_check(coll->came[i], coll->bytes,
                             number(coll, coll->peers[i], coll->world->rank));
    return right;
}

/* One block of everybody: what it sent to all, or to this rank. */
static bool check_blocks(const struct bench_coll *coll, int to) {
    bool right = true;

    for (int from = 0; from < coll->world->ranks; from++)
        right &= bench_check(coll->recv + (size_t)from * coll->bytes, coll->bytes,
                             number(coll, from, to));
    return right;
}

static bool is_right(const struct bench_coll *coll) {
    const struct bench_world *world = coll->world;
    size_t count = coll->bytes / sizeof(double);
    double total = bench_vector_total(world->ranks);

    switch (coll->kind) {
    case BENCH_ALLREDUCE:
        return bench_vector_check(vector(coll->recv), count, 0, coll->seq, total);
    case BENCH_REDUCE_SCATTER:
        return bench_vector_check(vector(coll->recv), count, (size_t)world->rank * count, coll->seq,
                                  total);
    case BENCH_ALLTOALL:
        return check_blocks(coll, world->rank);
    case BENCH_ALLGATHER:
        return check_blocks(coll, 0);
    case BENCH_SPARSE:
        return check_sparse(coll);
    case BENCH_BCAST:
        return bench_check(coll->recv, coll->bytes, number(coll, bench_coll_root(coll), 0));
    default:
        return bench_check(coll->recv, coll->bytes,
                           number(coll, bench_coll_source(coll), world->rank));
    }
}

static void check(const struct bench_coll *coll) {
    if (!is_right(coll))
        bench_die("rank %d: the result of iteration %llu with %zu bytes is wrong",
                  coll->world->rank, (unsigned long long)coll->seq, coll->bytes);
}

static void meet(const struct bench_coll *coll) {
    bench_meet(coll->meet, coll->world, coll->ops->help);
}

static double span(const struct bench_coll *coll, double start) {
    return bench_meet_span(coll->meet, coll->world, coll->ops->help, start, bench_now_ns());
}

static double run_in_passing(struct bench_coll *coll, uint64_t iters) {
    meet(coll);
    double start = bench_now_ns();

    for (uint64_t i = 0; i < iters; i++) {
        coll->seq++;
        fill(coll);
        coll->ops->run(coll->world->ctx, coll);
        check(coll);
    }
    return span(coll, start);
}

/* A call is over when it is for the last: a root may be done long before the others. */
static double run_apart(struct bench_coll *coll, uint64_t iters) {
    double ns = 0;

    for (uint64_t i = 0; i < iters; i++) {
        coll->seq++;
        fill(coll);
        meet(coll);
        double start = bench_now_ns();
        coll->ops->run(coll->world->ctx, coll);
        ns += span(coll, start);
        check(coll);
    }
    return ns;
}

static double batch(void *ctx, uint64_t iters) {
    struct bench_coll *coll = ctx;
    int ranks = coll->world->ranks;
    size_t touched = bench_coll_send_bytes(coll->kind, ranks, coll->bytes) +
                     bench_coll_recv_bytes(coll->kind, ranks, coll->bytes);
    size_t most = ranks > bench_online() ? crowded_touched_in_passing : touched_in_passing;

    return touched <= most ? run_in_passing(coll, iters) : run_apart(coll, iters);
}

/* The neighbours in a ring; with two ranks both are the same one. */
static void find_peers(struct bench_coll *coll) {
    coll->peers[0] = neighbour(coll, -1);
    coll->peers[1] = neighbour(coll, 1);
    coll->peer_count = coll->peers[0] == coll->peers[1] ? 1 : 2;
}

void bench_coll_measure(struct bench_coll *coll, const struct bench_args *args) {
    const char *why = hemt_kind_refuses(args->kind, coll->world->ranks, &args->sizes);

    if (why != NULL)
        bench_die("%s", why);
    coll->kind = args->kind;
    coll->meet = bench_meet_open(coll->world);
    find_peers(coll);
    for (size_t i = 0; i < args->sizes.count; i++) {
        coll->bytes = args->sizes.bytes[i];
        struct bench_result result = bench_measure(coll->world, batch, coll);
        bench_print(coll->world, NULL, coll->kind, coll->bytes, result, 1);
    }
}
