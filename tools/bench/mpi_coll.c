/*
 * Messages and collectives over MPI, by the calls that are named after them.
 *
 * sparse: MPI_Alltoall of the sizes, then MPI_Irecv and MPI_Isend of what there is, as people do by
 * hand. The receive buffer is there already and long enough.
 */
#include "mpi_coll.h"

#include "coll.h"

#include <mpi.h>
#include <stdlib.h>
#include <string.h>

/* What sparse needs for one size per rank. The program ends with it. */
static int *sizes_out;
static int *sizes_in;

static void sendrecv(void *ctx, struct bench_coll *coll) {
    int count = (int)coll->bytes;

    (void)ctx;
    MPI_Sendrecv(coll->send, count, MPI_BYTE, bench_coll_target(coll), 0, coll->recv, count,
                 MPI_BYTE, bench_coll_source(coll), 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void allreduce(void *ctx, struct bench_coll *coll) {
    (void)ctx;
    MPI_Allreduce(coll->send, coll->recv, (int)(coll->bytes / sizeof(double)), MPI_DOUBLE, MPI_SUM,
                  MPI_COMM_WORLD);
}

static void allgather(void *ctx, struct bench_coll *coll) {
    int count = (int)coll->bytes;

    (void)ctx;
    MPI_Allgather(coll->send, count, MPI_BYTE, coll->recv, count, MPI_BYTE, MPI_COMM_WORLD);
}

static void reduce_scatter(void *ctx, struct bench_coll *coll) {
    (void)ctx;
    MPI_Reduce_scatter_block(coll->send, coll->recv, (int)(coll->bytes / sizeof(double)),
                             MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static void alltoall(void *ctx, struct bench_coll *coll) {
    int count = (int)coll->bytes;

    (void)ctx;
    MPI_Alltoall(coll->send, count, MPI_BYTE, coll->recv, count, MPI_BYTE, MPI_COMM_WORLD);
}

static void bcast(void *ctx, struct bench_coll *coll) {
    (void)ctx;
    MPI_Bcast(coll->recv, (int)coll->bytes, MPI_BYTE, bench_coll_root(coll), MPI_COMM_WORLD);
}

static void remember(struct bench_coll *coll, int from, int bytes, const void *place) {
    int i = 0;

    while (i < coll->peer_count && coll->peers[i] != from)
        i++;
    if (i == coll->peer_count || (size_t)bytes != coll->bytes)
        bench_die("rank %d: rank %d sent %d bytes unasked", coll->world->rank, from, bytes);
    coll->came[i] = place;
}

static int start_receives(struct bench_coll *coll, MPI_Request *requests) {
    int count = 0;
    size_t used = 0;

    for (int from = 0; from < coll->world->ranks; from++) {
        if (sizes_in[from] == 0)
            continue;
        remember(coll, from, sizes_in[from], coll->recv + used);
        MPI_Irecv(coll->recv + used, sizes_in[from], MPI_BYTE, from, 1, MPI_COMM_WORLD,
                  &requests[count++]);
        used += (size_t)sizes_in[from];
    }
    return count;
}

static int start_sends(const struct bench_coll *coll, MPI_Request *requests) {
    for (int i = 0; i < coll->peer_count; i++)
        MPI_Isend(coll->send + (size_t)i * coll->bytes, (int)coll->bytes, MPI_BYTE, coll->peers[i],
                  1, MPI_COMM_WORLD, &requests[i]);
    return coll->peer_count;
}

static void wait_all(int count, MPI_Request *requests) {
    MPI_Status statuses[4];

    MPI_Waitall(count, requests, statuses);
}

static void sparse(void *ctx, struct bench_coll *coll) {
    MPI_Request requests[4];

    (void)ctx;
    memset(sizes_out, 0, (size_t)coll->world->ranks * sizeof(int));
    for (int i = 0; i < coll->peer_count; i++)
        sizes_out[coll->peers[i]] = (int)coll->bytes;
    MPI_Alltoall(sizes_out, 1, MPI_INT, sizes_in, 1, MPI_INT, MPI_COMM_WORLD);
    int count = start_receives(coll, requests);
    count += start_sends(coll, requests + count);
    wait_all(count, requests);
}

static void help(void *ctx) {
    int flag;

    (void)ctx;
    MPI_Iprobe(MPI_ANY_SOURCE, 2, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
}

static void *zeroed_ints(int count) {
    void *ints = calloc((size_t)count, sizeof(int));

    if (ints == NULL)
        bench_die("no memory for %d sizes", count);
    return ints;
}

void bench_mpi_coll(const struct bench_world *world, const struct bench_args *args) {
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
    int ranks = world->ranks;

    sizes_out = zeroed_ints(ranks);
    sizes_in = zeroed_ints(ranks);
    coll.send =
        bench_alloc(bench_coll_largest(args->kind, ranks, &args->sizes, bench_coll_send_bytes));
    coll.recv = args->kind == BENCH_BCAST
                    ? coll.send
                    : bench_alloc(bench_coll_largest(args->kind, ranks, &args->sizes,
                                                     bench_coll_recv_bytes));
    bench_coll_measure(&coll, args);
}
