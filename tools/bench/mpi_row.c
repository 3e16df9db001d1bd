/*
 * Lines and rolling windows over MPI as people write them by hand:
 *
 * line     probe   both are sent; MPI_Mprobe finds out what comes, which is then received
 *          sizes   sizes go ahead in messages of their own, so that receives can be posted
 * rolling  hops    each rank passes on what it got, one neighbour at a time
 *          direct  every rank sends its rows to all who need them at once
 *
 * Buffers are there already and long enough. The lengths of rolling's blocks are known.
 */
#include "mpi_row.h"

#include "row.h"

#include <mpi.h>
#include <stdlib.h>

/* Tags are the side to which the sender gave it; sizes have tags of their own. */
enum {
    SIZE_TAG = 2,
    BLOCK_TAG = 4,
    UNUSED_TAG
};

static unsigned char *inbox[BENCH_SIDES];
static size_t inbox_bytes;
static MPI_Request *requests;
static MPI_Status *statuses;

static int opposite(int side) {
    return BENCH_SIDES - 1 - side;
}

static void take_note(struct bench_row *row, int side, int bytes) {
    if ((size_t)bytes > inbox_bytes)
        bench_die("%d bytes came, which is too much", bytes);
    row->came[side] = inbox[side];
    row->came_bytes[side] = (size_t)bytes;
}

static void send_data(const struct bench_row *row, MPI_Request *sends) {
    for (int side = 0; side < BENCH_SIDES; side++)
        MPI_Isend(row->send[side], (int)row->size, MPI_BYTE, row->neighbour[side], side,
                  MPI_COMM_WORLD, &sends[side]);
}

static void run_probe(struct bench_row *row) {
    send_data(row, requests);
    for (int side = 0; side < BENCH_SIDES; side++) {
        MPI_Message message;
        MPI_Status status;
        int bytes;

        MPI_Mprobe(row->neighbour[side], opposite(side), MPI_COMM_WORLD, &message, &status);
        MPI_Get_count(&status, MPI_BYTE, &bytes);
        take_note(row, side, bytes);
        MPI_Imrecv(inbox[side], bytes, MPI_BYTE, &message, &requests[BENCH_SIDES + side]);
    }
    MPI_Waitall(2 * BENCH_SIDES, requests, statuses);
}

static void run_sizes(struct bench_row *row) {
    MPI_Request asked[2 * BENCH_SIDES];
    int coming[BENCH_SIDES];
    int size = (int)row->size;

    for (int side = 0; side < BENCH_SIDES; side++)
        MPI_Irecv(&coming[side], 1, MPI_INT, row->neighbour[side], SIZE_TAG + opposite(side),
                  MPI_COMM_WORLD, &asked[side]);
    for (int side = 0; side < BENCH_SIDES; side++)
        MPI_Isend(&size, 1, MPI_INT, row->neighbour[side], SIZE_TAG + side, MPI_COMM_WORLD,
                  &asked[BENCH_SIDES + side]);
    send_data(row, requests);
    MPI_Waitall(BENCH_SIDES, asked, statuses);
    for (int side = 0; side < BENCH_SIDES; side++) {
        take_note(row, side, coming[side]);
        MPI_Irecv(inbox[side], coming[side], MPI_BYTE, row->neighbour[side], opposite(side),
                  MPI_COMM_WORLD, &requests[BENCH_SIDES + side]);
    }
    MPI_Waitall(2 * BENCH_SIDES, requests, statuses);
    MPI_Waitall(BENCH_SIDES, asked + BENCH_SIDES, statuses);
}

/* In hop k a rank has something to give if there are k - 1 ranks before it. */
static void run_hops(struct bench_row *row) {
    int rank = row->world->rank;
    int count = (int)row->size;

    for (int hop = 1; hop <= row->hops; hop++) {
        bool gives = rank >= hop - 1 && rank + 1 < row->world->ranks;
        const uint64_t *given = hop == 1 || !gives ? row->rows : bench_row_block(row, hop - 1);

        MPI_Sendrecv(given, count, MPI_UINT64_T, gives ? rank + 1 : MPI_PROC_NULL, BLOCK_TAG,
                     bench_row_block(row, hop), count, MPI_UINT64_T,
                     rank >= hop ? rank - 1 : MPI_PROC_NULL, BLOCK_TAG, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
    }
}

static void run_direct(struct bench_row *row) {
    int rank = row->world->rank;
    int count = (int)row->size;
    int started = 0;

    for (int hop = 1; hop <= row->hops && hop <= rank; hop++)
        MPI_Irecv(bench_row_block(row, hop), count, MPI_UINT64_T, rank - hop, BLOCK_TAG,
                  MPI_COMM_WORLD, &requests[started++]);
    for (int hop = 1; hop <= row->hops && rank + hop < row->world->ranks; hop++)
        MPI_Isend(row->rows, count, MPI_UINT64_T, rank + hop, BLOCK_TAG, MPI_COMM_WORLD,
                  &requests[started++]);
    MPI_Waitall(started, requests, statuses);
}

static void help(void *ctx) {
    int flag;

    (void)ctx;
    MPI_Iprobe(MPI_ANY_SOURCE, UNUSED_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
}

static void open_buffers(struct bench_row *row, const struct bench_args *args) {
    size_t bytes = bench_row_send_bytes(args);
    size_t most = 2 * ((size_t)row->hops + BENCH_SIDES);

    requests = calloc(most, sizeof(MPI_Request));
    statuses = calloc(most, sizeof(MPI_Status));
    if (requests == NULL || statuses == NULL)
        bench_die("no memory for %zu requests", most);
    if (args->kind == BENCH_ROLLING) {
        row->rows = bench_alloc(bytes);
        row->before = bench_alloc(bench_row_before_bytes(row, args));
        return;
    }
    inbox_bytes = bytes;
    for (int side = 0; side < BENCH_SIDES; side++) {
        row->send[side] = bench_alloc(bytes);
        inbox[side] = bench_alloc(bytes);
    }
}

void bench_mpi_row(const struct bench_world *world, const struct bench_args *args) {
    bool rolling = args->kind == BENCH_ROLLING;
    struct bench_row row = {.world = world, .help = help};

    bench_row_open(&row, args);
    open_buffers(&row, args);
    for (size_t i = 0; i < args->sizes.count; i++) {
        row.size = args->sizes.bytes[i];
        row.run = rolling ? run_hops : run_probe;
        bench_row_measure(&row, rolling ? BENCH_IMPL "-hops" : BENCH_IMPL "-probe");
        row.run = rolling ? run_direct : run_sizes;
        bench_row_measure(&row, rolling ? BENCH_IMPL "-direct" : BENCH_IMPL "-sizes");
    }
}
