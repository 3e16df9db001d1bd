/*
 * Messages and collectives over Hem, by the blocking calls. With `--memory library` both buffers are
 * memory of hem_memory_alloc, otherwise they are private.
 */
#include "hem_coll.h"

#include "coll.h"

/* Just below the limit of the driver, so that a hang ends with a sentence. */
static const int64_t limit_ns = HEM_SEC(100);

enum {
    CHANNEL = 0
};

/* What the calls need beyond the buffers. The program ends with it. */
static hem_world *ranks_of_run;
static hem_sparse_result arrived;

static void need(hem_status status, const char *what) {
    if (status != HEM_OK)
        bench_die("%s: %s: %s", what, hem_status_name(status), hem_last_error());
}

static void sendrecv(void *ctx, struct bench_coll *coll) {
    hem_message send = {bench_coll_target(coll), coll->send, coll->bytes};
    hem_message recv = {bench_coll_source(coll), coll->recv, coll->bytes};

    (void)ctx;
    need(hem_sendrecv(ranks_of_run, CHANNEL, &send, &recv, limit_ns), "hem_sendrecv");
    if (recv.bytes != coll->bytes)
        bench_die("rank %d: %zu bytes came, not %zu", coll->world->rank, recv.bytes, coll->bytes);
}

static void allreduce(void *ctx, struct bench_coll *coll) {
    (void)ctx;
    need(hem_allreduce(ranks_of_run, coll->send, coll->recv, coll->bytes / sizeof(double), HEM_F64,
                       HEM_SUM, limit_ns),
         "hem_allreduce");
}

static void allgather(void *ctx, struct bench_coll *coll) {
    (void)ctx;
    need(hem_allgather(ranks_of_run, coll->send, coll->recv, coll->bytes, HEM_BYTE, limit_ns),
         "hem_allgather");
}

static void reduce_scatter(void *ctx, struct bench_coll *coll) {
    (void)ctx;
    need(hem_reduce_scatter(ranks_of_run, coll->send, coll->recv, coll->bytes / sizeof(double),
                            HEM_F64, HEM_SUM, limit_ns),
         "hem_reduce_scatter");
}

static void alltoall(void *ctx, struct bench_coll *coll) {
    (void)ctx;
    need(hem_alltoall(ranks_of_run, coll->send, coll->recv, coll->bytes, HEM_BYTE, limit_ns),
         "hem_alltoall");
}

static void bcast(void *ctx, struct bench_coll *coll) {
    (void)ctx;
    need(hem_broadcast(ranks_of_run, coll->recv, coll->bytes, HEM_BYTE, bench_coll_root(coll),
                       limit_ns),
         "hem_broadcast");
}

static void remember(struct bench_coll *coll, const hem_parcel *parcel) {
    int i = 0;

    while (i < coll->peer_count && coll->peers[i] != parcel->peer)
        i++;
    if (i == coll->peer_count || parcel->bytes != coll->bytes)
        bench_die("rank %d: rank %d sent %zu bytes unasked", coll->world->rank, parcel->peer,
                  parcel->bytes);
    coll->came[i] = parcel->data;
}

/* To free what came the last time is part of it, as whoever calls it must do that. */
static void sparse(void *ctx, struct bench_coll *coll) {
    hem_parcel parcels[2];

    (void)ctx;
    for (int i = 0; i < coll->peer_count; i++)
        parcels[i] =
            (hem_parcel){coll->peers[i], coll->bytes, coll->send + (size_t)i * coll->bytes};
    hem_sparse_free(&arrived);
    need(hem_sparse(ranks_of_run, parcels, (size_t)coll->peer_count, &arrived, limit_ns),
         "hem_sparse");
    if (arrived.count != (size_t)coll->peer_count)
        bench_die("rank %d: %zu messages came, not %d", coll->world->rank, arrived.count,
                  coll->peer_count);
    for (size_t i = 0; i < arrived.count; i++)
        remember(coll, &arrived.parcels[i]);
}

static void help(void *ctx) {
    (void)ctx;
    need(hem_progress(ranks_of_run), "hem_progress");
}

static unsigned char *buffer(bool library, size_t bytes, hem_memory **memory_p) {
    if (!library)
        return bench_alloc(bytes);
    need(hem_memory_alloc(ranks_of_run, bytes, memory_p), "hem_memory_alloc");
    return hem_memory_address(*memory_p);
}

void bench_hem_coll(const struct bench_world *world, const struct bench_args *args,
                    hem_world *ranks) {
    static const struct bench_coll_ops ops[BENCH_KINDS] = {
        [BENCH_SENDRECV] = {sendrecv, help},
        [BENCH_SENDRECV_RING] = {sendrecv, help},
        [BENCH_ALLREDUCE] = {allreduce, help},
        [BENCH_ALLGATHER] = {allgather, help},
        [BENCH_REDUCE_SCATTER] = {reduce_scatter, help},
        [BENCH_ALLTOALL] = {alltoall, help},
        [BENCH_BCAST] = {bcast, help},
        [BENCH_SPARSE] = {sparse, help},
    };
    struct bench_coll coll = {.world = world, .ops = &ops[args->kind]};
    hem_memory *send = NULL;
    hem_memory *recv = NULL;

    ranks_of_run = ranks;
    coll.send = buffer(
        args->library,
        bench_coll_largest(args->kind, world->ranks, &args->sizes, bench_coll_send_bytes), &send);
    coll.recv = coll.send;
    if (args->kind != BENCH_BCAST)
        coll.recv = buffer(
            args->library,
            bench_coll_largest(args->kind, world->ranks, &args->sizes, bench_coll_recv_bytes),
            &recv);
    bench_coll_measure(&coll, args);
    hem_sparse_free(&arrived);
    need(hem_memory_free(send), "hem_memory_free");
    need(hem_memory_free(recv), "hem_memory_free");
}
