/*
 * Finding out over MPI who needs what, as it is done where the number of ranks is not thought of:
 * every rank gathers the boxes, or the ids of all points, of all ranks.
 *
 * grid  MPI_Allgather of the boxes; each is cut with this rank's halo, and its halo with this box
 * mesh  MPI_Allgatherv of the ids that ranks own; those in this rank's halo are found by a table of
 *       it; then MPI_Alltoall of how many, and the positions go to the owners as messages
 */
#include "mpi_setup.h"

#include "meet.h"
#include "setup.h"

#include <mpi.h>
#include <stdlib.h>
#include <string.h>

/* Memory in use, and the most there was. */
struct tally {
    size_t now;
    size_t peak;
};

static void *take(struct tally *tally, size_t count, size_t size) {
    tally->now += count * size;
    if (tally->now > tally->peak)
        tally->peak = tally->now;
    return bench_get(count, size);
}

/* Points that two ranges of all dimensions have in common. */
static size_t common(const int64_t *a, const int64_t *b, int dims, int64_t wider) {
    size_t points = 1;

    for (int d = 0; d < dims; d++) {
        int64_t low = a[d] - wider > b[d] ? a[d] - wider : b[d];
        int64_t a_end = a[d] + a[dims + d] + wider;
        int64_t b_end = b[d] + b[dims + d];
        int64_t high = a_end < b_end ? a_end : b_end;
        if (high <= low)
            return 0;
        points *= (size_t)(high - low);
    }
    return points;
}

static void find_grid(struct bench_setup *setup, struct bench_found *found_p) {
    const struct bench_box *box = &setup->halo.box;
    int ranks = setup->halo.world->ranks;
    int width = 2 * box->dims;
    struct tally tally = {0};
    int64_t mine[2 * BENCH_MOST_DIMS];
    int64_t *all = take(&tally, (size_t)ranks * (size_t)width, sizeof(*all));

    memcpy(mine, box->start, (size_t)box->dims * sizeof(*mine));
    memcpy(mine + box->dims, box->count, (size_t)box->dims * sizeof(*mine));
    MPI_Allgather(mine, width, MPI_INT64_T, all, width, MPI_INT64_T, MPI_COMM_WORLD);
    *found_p = (struct bench_found){.bytes = tally.now, .peak = tally.peak};
    for (int rank = 0; rank < ranks; rank++) {
        const int64_t *theirs = all + (size_t)rank * (size_t)width;
        int64_t wider = setup->halo.shape.value[HEMT_HALO];
        size_t comes = rank == setup->halo.world->rank ? 0 : common(mine, theirs, box->dims, wider);

        if (comes == 0)
            continue;
        found_p->neighbours++;
        found_p->recv_points += comes;
        found_p->send_points += common(theirs, mine, box->dims, wider);
    }
    free(all);
}

/* A table of the ids in this rank's halo: open addressing, at most half full. */
struct table {
    int64_t *ids; /* plus 1; 0 is free */
    size_t mask;
};

static size_t slot_of(const struct table *table, int64_t id) {
    size_t at = (size_t)((uint64_t)id * UINT64_C(0x9E3779B97F4A7C15) >> 20) & table->mask;

    while (table->ids[at] != 0 && table->ids[at] != id + 1)
        at = (at + 1) & table->mask;
    return at;
}

static struct table make_table(const struct bench_halo *halo, struct tally *tally) {
    size_t count = halo->points - halo->part.owned;
    struct table table = {.mask = 15};

    while (table.mask < 2 * count)
        table.mask = 2 * table.mask + 1;
    table.ids = take(tally, table.mask + 1, sizeof(*table.ids));
    for (size_t i = halo->part.owned; i < halo->points; i++)
        table.ids[slot_of(&table, halo->part.ids[i])] = halo->part.ids[i] + 1;
    return table;
}

struct counts {
    int *per_rank; /* ids that each rank owns */
    int *places;
    int *wanted; /* by this rank of each */
    int *asked;  /* by each of this rank */
    int64_t *ids;
    int total;
};

static void gather_ids(const struct bench_halo *halo, struct tally *tally, struct counts *counts) {
    size_t ranks = (size_t)halo->world->ranks;
    int owned = (int)halo->part.owned;

    counts->per_rank = take(tally, ranks, sizeof(int));
    counts->places = take(tally, ranks, sizeof(int));
    counts->wanted = take(tally, ranks, sizeof(int));
    counts->asked = take(tally, ranks, sizeof(int));
    MPI_Allgather(&owned, 1, MPI_INT, counts->per_rank, 1, MPI_INT, MPI_COMM_WORLD);
    for (size_t r = 0; r < ranks; r++) {
        counts->places[r] = counts->total;
        counts->total += counts->per_rank[r];
    }
    counts->ids = take(tally, (size_t)counts->total, sizeof(int64_t));
    MPI_Allgatherv(halo->part.ids, owned, MPI_INT64_T, counts->ids, counts->per_rank,
                   counts->places, MPI_INT64_T, MPI_COMM_WORLD);
}

/* The positions at the owners of this rank's halo, owner after owner. */
static void find_owners(const struct bench_halo *halo, const struct table *table,
                        struct counts *counts, int *positions) {
    size_t found = 0;

    for (int rank = 0; rank < halo->world->ranks; rank++) {
        const int64_t *ids = counts->ids + counts->places[rank];
        for (int i = 0; rank != halo->world->rank && i < counts->per_rank[rank]; i++) {
            if (table->ids[slot_of(table, ids[i])] == 0)
                continue;
            positions[found++] = i;
            counts->wanted[rank]++;
        }
    }
}

static size_t sum(const int *counts, int ranks, size_t *some_p) {
    size_t total = 0;

    for (int r = 0; r < ranks; r++) {
        total += (size_t)counts[r];
        *some_p += counts[r] > 0;
    }
    return total;
}

/* Sends the owners the positions and gets those that others want of this rank. */
static void pass_positions(const struct bench_halo *halo, const struct counts *counts,
                           const int *out, int *in, MPI_Request *requests) {
    int started = 0;

    for (int rank = 0; rank < halo->world->ranks; rank++) {
        if (counts->asked[rank] > 0)
            MPI_Irecv(in, counts->asked[rank], MPI_INT, rank, 0, MPI_COMM_WORLD,
                      &requests[started++]);
        if (counts->wanted[rank] > 0)
            MPI_Isend(out, counts->wanted[rank], MPI_INT, rank, 0, MPI_COMM_WORLD,
                      &requests[started++]);
        in += counts->asked[rank];
        out += counts->wanted[rank];
    }
    MPI_Status *statuses = bench_get((size_t)started, sizeof(MPI_Status));
    MPI_Waitall(started, requests, statuses);
    free(statuses);
}

static void free_counts(struct counts *counts) {
    free(counts->per_rank);
    free(counts->places);
    free(counts->wanted);
    free(counts->asked);
    free(counts->ids);
}

static void find_mesh(struct bench_setup *setup, struct bench_found *found_p) {
    const struct bench_halo *halo = &setup->halo;
    int ranks = halo->world->ranks;
    size_t wants = halo->points - halo->part.owned;
    struct tally tally = {0};
    struct counts counts = {0};
    struct bench_found found = {0};
    size_t senders = 0;

    struct table table = make_table(halo, &tally);
    int *out = take(&tally, wants, sizeof(*out));
    gather_ids(halo, &tally, &counts);
    find_owners(halo, &table, &counts, out);
    MPI_Alltoall(counts.wanted, 1, MPI_INT, counts.asked, 1, MPI_INT, MPI_COMM_WORLD);
    found.recv_points = sum(counts.wanted, ranks, &found.neighbours);
    found.send_points = sum(counts.asked, ranks, &senders);
    int *in = take(&tally, found.send_points, sizeof(*in));
    MPI_Request *requests = take(&tally, found.neighbours + senders, sizeof(MPI_Request));
    pass_positions(halo, &counts, out, in, requests);
    found.bytes = (size_t)counts.total * sizeof(int64_t) + found.recv_points * sizeof(int);
    found.peak = tally.peak;
    *found_p = found;
    free(requests);
    free(in);
    free(out);
    free(table.ids);
    free_counts(&counts);
}

static void help(void *ctx) {
    int flag;

    (void)ctx;
    MPI_Iprobe(MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
}

void bench_mpi_setup(const struct bench_world *world, const struct bench_args *args) {
    struct bench_setup setup = {.halo = {.world = world, .help = help}};

    setup.find = args->shape.value[HEMT_MESH] != 0 ? find_mesh : find_grid;
    setup.halo.meet = bench_meet_open(world);
    for (size_t i = 0; i < args->sizes.count; i++)
        bench_setup_measure(&setup, args, args->sizes.bytes[i]);
}
