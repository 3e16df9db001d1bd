/*
 * Halo exchange by MPI_Neighbor_alltoallw: the library packs, by one datatype per peer and side
 * that names all points of all fields where they lie.
 */
#include "mpi_halo.h"

#include "halo_pack.h"

#include <stdlib.h>

struct by_types {
    struct bench_halo *halo;
    MPI_Comm comm;
    MPI_Datatype *out;
    MPI_Datatype *in;
    int *ones;
    MPI_Aint *zeros;
};

static MPI_Datatype basic_type(const struct bench_field *field) {
    return field->type == BENCH_F64   ? MPI_DOUBLE
           : field->type == BENCH_F32 ? MPI_FLOAT
                                      : MPI_INT32_T;
}

/* A box of the grid's storage. */
static MPI_Datatype box_type(const struct bench_halo *halo, const struct bench_piece *piece,
                             MPI_Datatype basic) {
    int dims = halo->box.dims;
    int edge = (int)halo->size + 2 * halo->shape.value[HEMT_HALO];
    int whole[BENCH_MOST_DIMS];
    int part[BENCH_MOST_DIMS];
    int start[BENCH_MOST_DIMS];
    size_t at = piece->start;
    MPI_Datatype type;

    for (int d = dims - 1; d >= 0; d--) {
        whole[d] = edge;
        part[d] = (int)piece->count[BENCH_MOST_DIMS - dims + d];
        start[d] = (int)(at % (size_t)edge);
        at /= (size_t)edge;
    }
    MPI_Type_create_subarray(dims, whole, part, start, MPI_ORDER_C, basic, &type);
    return type;
}

/* Points of a mesh: one run, or blocks of all levels wherever they are. */
static MPI_Datatype points_type(const struct bench_halo *halo, const struct bench_piece *piece,
                                MPI_Datatype basic) {
    int levels = (int)halo->levels;
    int *at = bench_get(piece->points, sizeof(*at));
    MPI_Datatype type;

    for (size_t i = 0; i < piece->points; i++)
        at[i] = (piece->index != NULL ? piece->index[i] : (int)(piece->start + i)) * levels;
    if (piece->index != NULL)
        MPI_Type_create_indexed_block((int)piece->points, levels, at, basic, &type);
    else
        MPI_Type_create_indexed_block(1, (int)piece->points * levels, at, basic, &type);
    free(at);
    return type;
}

/* All fields and pieces for one peer, by their addresses. */
static MPI_Datatype peer_type(const struct bench_halo *halo, const struct bench_pieces *pieces,
                              size_t first, size_t count) {
    size_t total = halo->fields * count;
    MPI_Datatype *types = bench_get(total, sizeof(MPI_Datatype));
    MPI_Aint *places = bench_get(total, sizeof(*places));
    int *ones = bench_get(total, sizeof(*ones));
    MPI_Datatype all;

    for (size_t i = 0; i < total; i++) {
        const struct bench_field *field = &halo->field[i / count];
        const struct bench_piece *piece = &pieces->piece[first + i % count];
        types[i] = halo->kind == BENCH_MESH ? points_type(halo, piece, basic_type(field))
                                            : box_type(halo, piece, basic_type(field));
        ones[i] = 1;
        MPI_Get_address(field->memory, &places[i]);
    }
    MPI_Type_create_struct((int)total, ones, places, types, &all);
    MPI_Type_commit(&all);
    for (size_t i = 0; i < total; i++)
        MPI_Type_free(&types[i]);
    free(types);
    free(places);
    free(ones);
    return all;
}

static MPI_Comm make_graph(const struct bench_halo *halo) {
    int *ranks = bench_get(halo->peers, sizeof(*ranks));
    int *weights = bench_get(halo->peers, sizeof(*weights));
    int count = (int)halo->peers;
    MPI_Comm comm;

    for (int i = 0; i < count; i++) {
        ranks[i] = halo->peer[i].rank;
        weights[i] = 1;
    }
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, count, ranks, weights, count, ranks, weights,
                                   MPI_INFO_NULL, 0, &comm);
    free(ranks);
    free(weights);
    return comm;
}

static void *open_types(struct bench_halo *halo) {
    struct by_types *by = bench_get(1, sizeof(*by));

    by->halo = halo;
    by->comm = make_graph(halo);
    by->out = bench_get(halo->peers, sizeof(MPI_Datatype));
    by->in = bench_get(halo->peers, sizeof(MPI_Datatype));
    by->ones = bench_get(halo->peers, sizeof(*by->ones));
    by->zeros = bench_get(halo->peers, sizeof(*by->zeros));
    for (size_t i = 0; i < halo->peers; i++) {
        const struct bench_peer *peer = &halo->peer[i];
        by->ones[i] = 1;
        by->out[i] = peer_type(halo, &halo->sends, peer->first_send, peer->sends);
        by->in[i] = peer_type(halo, &halo->recvs, peer->first_recv, peer->recvs);
    }
    return by;
}

static void run(void *ctx) {
    struct by_types *by = ctx;

    MPI_Neighbor_alltoallw(MPI_BOTTOM, by->ones, by->zeros, by->out, MPI_BOTTOM, by->ones,
                           by->zeros, by->in, by->comm);
    bench_copy_self(by->halo);
}

static void close_types(void *ctx) {
    struct by_types *by = ctx;

    for (size_t i = 0; i < by->halo->peers; i++) {
        MPI_Type_free(&by->out[i]);
        MPI_Type_free(&by->in[i]);
    }
    MPI_Comm_free(&by->comm);
    free(by->out);
    free(by->in);
    free(by->ones);
    free(by->zeros);
    free(by);
}

const struct mpi_halo_way bench_mpi_alltoallw = {BENCH_IMPL "-alltoallw", open_types, run,
                                                 close_types};
