/*
 * Halo exchange over MPI as people write it by hand:
 *
 * fields      a message per field and peer: receives are posted, then each is packed and sent, and
 *             what comes is unpacked as it comes; where the points are one run, nothing is packed
 * packed      the same with all fields in one message per peer
 * persistent  the same with persistent requests
 * alltoallw   MPI_Neighbor_alltoallw, in mpi_halo_types.c
 */
#include "mpi_halo.h"

#include "halo_pack.h"
#include "meet.h"

#include <stdlib.h>

/* A message to or from a peer: one field, or all of them. */
struct message {
    const struct bench_peer *peer;
    size_t first_field;
    size_t fields;
    void *buffer; /* of the message, or where the run lies in the field */
    size_t bytes;
    bool in_place;
    int tag;
};

struct by_hand {
    struct bench_halo *halo;
    struct message *in;
    struct message *out;
    MPI_Request *receives;
    MPI_Request *sends;
    MPI_Status *statuses;
    int count;
};

static int count_of(size_t bytes) {
    if (bytes > INT32_MAX)
        bench_die("a message of %zu bytes is too long", bytes);
    return (int)bytes;
}

static size_t message_bytes(const struct bench_halo *halo, const struct message *message,
                            size_t points) {
    size_t bytes = 0;

    /* The other side may have it in place, where there is no room to round up. */
    if (message->fields == 1)
        return points * halo->levels * halo->field[message->first_field].element;
    for (size_t f = 0; f < message->fields; f++)
        bytes += bench_packed_bytes(halo, &halo->field[message->first_field + f], points);
    return bytes;
}

/* One field whose points for this peer are one run needs no buffer. */
static void place_message(const struct bench_halo *halo, const struct bench_pieces *pieces,
                          size_t first, size_t count, size_t points, struct message *message) {
    const struct bench_field *field = &halo->field[message->first_field];
    const struct bench_piece *piece = &pieces->piece[first];

    message->bytes = message_bytes(halo, message, points);
    message->in_place = message->fields == 1 && count == 1 && bench_piece_is_run(piece);
    message->buffer = message->in_place
                          ? field->memory + piece->start * halo->levels * field->element
                          : bench_alloc(message->bytes);
}

static void *open_by_hand(struct bench_halo *halo, size_t fields_per_message) {
    struct by_hand *hand = bench_get(1, sizeof(*hand));
    size_t most = halo->peers * halo->fields;

    hand->halo = halo;
    hand->in = bench_get(most, sizeof(*hand->in));
    hand->out = bench_get(most, sizeof(*hand->out));
    hand->receives = bench_get(most, sizeof(MPI_Request));
    hand->sends = bench_get(most, sizeof(MPI_Request));
    hand->statuses = bench_get(most, sizeof(*hand->statuses));
    for (size_t p = 0; p < halo->peers; p++) {
        const struct bench_peer *peer = &halo->peer[p];
        for (size_t f = 0; f < halo->fields; f += fields_per_message) {
            struct message message = {
                .peer = peer, .first_field = f, .fields = fields_per_message, .tag = (int)f};
            struct message *in = &hand->in[hand->count];
            struct message *out = &hand->out[hand->count++];
            *in = message;
            *out = message;
            place_message(halo, &halo->recvs, peer->first_recv, peer->recvs, peer->recv_points, in);
            place_message(halo, &halo->sends, peer->first_send, peer->sends, peer->send_points,
                          out);
        }
    }
    return hand;
}

static void pack_message(const struct bench_halo *halo, const struct message *message) {
    unsigned char *at = message->buffer;

    if (message->in_place)
        return;
    for (size_t f = 0; f < message->fields; f++) {
        const struct bench_field *field = &halo->field[message->first_field + f];
        bench_pack(halo, field, message->peer, at);
        at += bench_packed_bytes(halo, field, message->peer->send_points);
    }
}

static void unpack_message(const struct bench_halo *halo, const struct message *message) {
    const unsigned char *at = message->buffer;

    if (message->in_place)
        return;
    for (size_t f = 0; f < message->fields; f++) {
        const struct bench_field *field = &halo->field[message->first_field + f];
        bench_unpack(halo, field, message->peer, at);
        at += bench_packed_bytes(halo, field, message->peer->recv_points);
    }
}

/* What this rank copies itself is done while messages are on their way. */
static void finish(struct by_hand *hand) {
    bench_copy_self(hand->halo);
    for (int i = 0; i < hand->count; i++) {
        int which = 0;

        if (hand->count == 1)
            MPI_Wait(hand->receives, MPI_STATUS_IGNORE);
        else
            MPI_Waitany(hand->count, hand->receives, &which, MPI_STATUS_IGNORE);
        unpack_message(hand->halo, &hand->in[which]);
    }
    MPI_Waitall(hand->count, hand->sends, hand->statuses);
}

static void run_started(void *ctx) {
    struct by_hand *hand = ctx;

    for (int i = 0; i < hand->count; i++)
        MPI_Irecv(hand->in[i].buffer, count_of(hand->in[i].bytes), MPI_BYTE, hand->in[i].peer->rank,
                  hand->in[i].tag, MPI_COMM_WORLD, &hand->receives[i]);
    for (int i = 0; i < hand->count; i++) {
        pack_message(hand->halo, &hand->out[i]);
        MPI_Isend(hand->out[i].buffer, count_of(hand->out[i].bytes), MPI_BYTE,
                  hand->out[i].peer->rank, hand->out[i].tag, MPI_COMM_WORLD, &hand->sends[i]);
    }
    finish(hand);
}

static void run_persistent(void *ctx) {
    struct by_hand *hand = ctx;

    if (hand->count > 0)
        MPI_Startall(hand->count, hand->receives);
    for (int i = 0; i < hand->count; i++) {
        pack_message(hand->halo, &hand->out[i]);
        MPI_Start(&hand->sends[i]);
    }
    finish(hand);
}

static void close_by_hand(void *ctx) {
    struct by_hand *hand = ctx;

    for (int i = 0; i < hand->count; i++) {
        if (!hand->in[i].in_place)
            free(hand->in[i].buffer);
        if (!hand->out[i].in_place)
            free(hand->out[i].buffer);
    }
    free(hand->in);
    free(hand->out);
    free(hand->receives);
    free(hand->sends);
    free(hand->statuses);
    free(hand);
}

static void *open_fields(struct bench_halo *halo) {
    return open_by_hand(halo, 1);
}

static void *open_packed(struct bench_halo *halo) {
    return open_by_hand(halo, halo->fields);
}

static void *open_persistent(struct bench_halo *halo) {
    struct by_hand *hand = open_by_hand(halo, halo->fields);

    for (int i = 0; i < hand->count; i++) {
        MPI_Recv_init(hand->in[i].buffer, count_of(hand->in[i].bytes), MPI_BYTE,
                      hand->in[i].peer->rank, 0, MPI_COMM_WORLD, &hand->receives[i]);
        MPI_Send_init(hand->out[i].buffer, count_of(hand->out[i].bytes), MPI_BYTE,
                      hand->out[i].peer->rank, 0, MPI_COMM_WORLD, &hand->sends[i]);
    }
    return hand;
}

static void close_persistent(void *ctx) {
    struct by_hand *hand = ctx;

    for (int i = 0; i < hand->count; i++) {
        MPI_Request_free(&hand->receives[i]);
        MPI_Request_free(&hand->sends[i]);
    }
    close_by_hand(hand);
}

static void help(void *ctx) {
    int flag;

    (void)ctx;
    MPI_Iprobe(MPI_ANY_SOURCE, BENCH_MOST_FIELDS, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
}

void bench_mpi_halo(const struct bench_world *world, const struct bench_args *args) {
    const struct mpi_halo_way ways[] = {
        {BENCH_IMPL "-fields", open_fields, run_started, close_by_hand},
        {BENCH_IMPL "-packed", open_packed, run_started, close_by_hand},
        {BENCH_IMPL "-persistent", open_persistent, run_persistent, close_persistent},
        bench_mpi_alltoallw,
    };
    struct bench_halo halo = {.world = world, .help = help};

    halo.meet = bench_meet_open(world);
    for (size_t i = 0; i < args->sizes.count; i++) {
        bench_halo_make(&halo, args->kind, &args->shape, args->sizes.bytes[i]);
        bench_halo_alloc(&halo);
        for (size_t w = 0; w < sizeof(ways) / sizeof(ways[0]); w++) {
            halo.ctx = ways[w].open(&halo);
            halo.run = ways[w].run;
            bench_halo_measure(&halo, ways[w].impl);
            MPI_Barrier(MPI_COMM_WORLD);
            ways[w].close(halo.ctx);
        }
        bench_halo_release(&halo);
        bench_halo_free(&halo);
    }
}
