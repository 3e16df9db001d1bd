#include "halo_copy.h"

#include "meet.h"
#include "payload.h"
#include "turns.h"

#include <stdlib.h>
#include <string.h>

/* Blocks lie in shared memory at [from][to], with as much room as the longest of them. */
struct copy {
    const struct bench_halo *halo;
    unsigned char *shared;
    unsigned char *own;
    size_t room;
    size_t bytes_per_point;
    uint64_t seq;
};

static unsigned char *block(const struct copy *copy, int from, int to) {
    return copy->shared +
           ((size_t)from * (size_t)copy->halo->world->ranks + (size_t)to) * copy->room;
}

static uint64_t number(const struct copy *copy, int from, int to) {
    return copy->seq << 24 | (uint64_t)from << 12 | (uint64_t)to;
}

static void begin(void *ctx) {
    struct copy *copy = ctx;
    int rank = copy->halo->world->rank;

    copy->seq++;
    for (size_t p = 0; p < copy->halo->peers; p++) {
        const struct bench_peer *peer = &copy->halo->peer[p];
        bench_fill(block(copy, rank, peer->rank), peer->send_points * copy->bytes_per_point,
                   number(copy, rank, peer->rank));
    }
}

static void run(void *ctx) {
    struct copy *copy = ctx;
    int rank = copy->halo->world->rank;

    for (size_t p = 0; p < copy->halo->peers; p++) {
        const struct bench_peer *peer = &copy->halo->peer[p];
        memcpy(copy->own + p * copy->room, block(copy, peer->rank, rank),
               peer->recv_points * copy->bytes_per_point);
    }
}

static void check(void *ctx) {
    const struct copy *copy = ctx;
    int rank = copy->halo->world->rank;

    for (size_t p = 0; p < copy->halo->peers; p++) {
        const struct bench_peer *peer = &copy->halo->peer[p];
        if (!bench_check(copy->own + p * copy->room, peer->recv_points * copy->bytes_per_point,
                         number(copy, peer->rank, rank)))
            bench_die("rank %d: what memcpy copied from rank %d is wrong", rank, peer->rank);
    }
}

/* The longest block of any rank. */
static size_t agree_on_room(const struct bench_halo *halo, size_t bytes_per_point) {
    size_t room = 0;

    for (size_t p = 0; p < halo->peers; p++) {
        size_t points = halo->peer[p].send_points;
        if (halo->peer[p].recv_points > points)
            points = halo->peer[p].recv_points;
        if (points * bytes_per_point > room)
            room = points * bytes_per_point;
    }
    room = bench_meet_most(halo->meet, halo->world, halo->help, room);
    return (room + 4095) / 4096 * 4096;
}

void bench_copy_measure(const struct bench_halo *halo) {
    size_t ranks = (size_t)halo->world->ranks;
    struct copy copy = {.halo = halo};

    for (size_t f = 0; f < halo->fields; f++)
        copy.bytes_per_point += halo->levels * halo->field[f].element;
    copy.room = agree_on_room(halo, copy.bytes_per_point);
    copy.shared = bench_share(halo->world, ranks * ranks * copy.room);
    if (copy.shared == NULL)
        return;
    copy.own = bench_alloc((halo->peers + 1) * copy.room);
    struct bench_turns turns = {.world = halo->world,
                                .meet = halo->meet,
                                .help = halo->help,
                                .begin = begin,
                                .run = run,
                                .check = check,
                                .ctx = &copy,
                                .touched = SIZE_MAX};
    struct bench_result result = bench_turns_measure(&turns);
    size_t moved = bench_meet_most(halo->meet, halo->world, halo->help, bench_halo_moved(halo));
    bench_print_more(halo->world, "raw-memcpy", halo->kind, halo->size, result,
                     &(struct bench_more){.moved = moved});
    free(copy.own);
    bench_unshare(copy.shared, ranks * ranks * copy.room);
}
