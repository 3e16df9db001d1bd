/*
 * hem-test: timeout=120
 * The halo problems and their checks, over a plain transport through shared memory: what is right
 * is accepted for all shapes and numbers of ranks, and one wrong value or a stale halo ends the run.
 */
#include "halo.h"

#include "halo_pack.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

enum {
    MOST_RANKS = 6,
    ROOM = 1 << 19, /* bytes between two ranks */
    ROUNDS = 4,
    FAULT_AT = 3
};

enum fault {
    NONE,
    FLIPPED,
    STALE
};

struct area {
    pthread_barrier_t barrier;
    unsigned char message[MOST_RANKS][MOST_RANKS][ROOM];
};

struct job {
    struct area *area;
    enum bench_kind kind;
    struct hemt_shape shape;
    size_t size;
    int ranks;
    enum fault fault;
};

struct rank {
    struct job *job;
    struct bench_halo halo;
};

static void pass_on(struct rank *rank) {
    const struct bench_halo *halo = &rank->halo;
    unsigned char(*message)[MOST_RANKS][ROOM] = rank->job->area->message;

    for (size_t p = 0; p < halo->peers; p++) {
        const struct bench_peer *peer = &halo->peer[p];
        unsigned char *at = message[halo->world->rank][peer->rank];
        for (size_t f = 0; f < halo->fields; f++) {
            bench_pack(halo, &halo->field[f], peer, at);
            at += bench_packed_bytes(halo, &halo->field[f], peer->send_points);
        }
    }
    pthread_barrier_wait(&rank->job->area->barrier);
    for (size_t p = 0; p < halo->peers; p++) {
        const struct bench_peer *peer = &halo->peer[p];
        unsigned char *at = message[peer->rank][halo->world->rank];
        for (size_t f = 0; f < halo->fields; f++) {
            bench_unpack(halo, &halo->field[f], peer, at);
            at += bench_packed_bytes(halo, &halo->field[f], peer->recv_points);
        }
    }
}

/* The last value of the last piece that came is wrong in its lowest bit. */
static void flip(struct bench_halo *halo) {
    const struct bench_piece *piece = &halo->recvs.piece[halo->recvs.count - 1];
    const struct bench_field *field = &halo->field[halo->fields - 1];
    size_t last = piece->start;

    for (int k = 0; k < BENCH_MOST_DIMS; k++)
        last += (piece->count[k] - 1) * piece->stride[k];
    field->memory[((last + 1) * halo->levels - 1) * field->element + 2] ^= 1;
}

static void run(void *ctx) {
    struct rank *rank = ctx;
    struct bench_halo *halo = &rank->halo;
    bool now = halo->world->rank == rank->job->ranks - 1 && halo->seq == FAULT_AT;

    if (now && rank->job->fault == STALE) {
        pthread_barrier_wait(&rank->job->area->barrier);
    } else {
        pass_on(rank);
        bench_copy_self(halo);
    }
    if (now && rank->job->fault == FLIPPED)
        flip(halo);
    pthread_barrier_wait(&rank->job->area->barrier);
}

static int be_rank(int number, void *arg) {
    struct job *job = arg;
    struct bench_world world = {.impl = "plain", .rank = number, .ranks = job->ranks};
    struct rank rank = {.job = job, .halo = {.world = &world}};

    bench_halo_make(&rank.halo, job->kind, &job->shape, job->size);
    bench_halo_alloc(&rank.halo);
    for (int i = 0; i < ROUNDS; i++) {
        rank.halo.seq++;
        bench_halo_fill(&rank.halo);
        run(&rank);
        bench_halo_check(&rank.halo);
    }
    bench_halo_release(&rank.halo);
    bench_halo_free(&rank.halo);
    return 0;
}

static int ends_with(enum bench_kind kind, const char *shape, size_t size, int ranks,
                     enum fault fault) {
    struct job job = {.kind = kind, .size = size, .ranks = ranks, .fault = fault};
    pthread_barrierattr_t shared;

    assert_null(hemt_shape_read(shape, &job.shape));
    hemt_shape_fill(kind, &job.shape);
    job.area =
        mmap(NULL, sizeof(*job.area), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(job.area != MAP_FAILED);
    pthread_barrierattr_init(&shared);
    pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
    assert_int_equal(pthread_barrier_init(&job.area->barrier, &shared, (unsigned)ranks), 0);
    int code = bench_fork(ranks, be_rank, &job);
    munmap(job.area, sizeof(*job.area));
    return code;
}

static const char *const grids[] = {
    "dims=2:halo=1:fields=1",  "dims=2:halo=3:fields=3:axis=1", "dims=2:halo=2:fields=2:periodic=1",
    "dims=3:halo=1:fields=16", "dims=3:halo=3:fields=4:axis=2", "dims=3:halo=2:fields=3:periodic=1",
};

static const char *const meshes[] = {
    "halo=1:fields=1:levels=1",
    "halo=2:fields=3:levels=5",
    "halo=3:fields=2:levels=12",
};

static void accepts_what_is_right(void **state) {
    (void)state;
    for (int ranks = 1; ranks <= MOST_RANKS; ranks++) {
        for (size_t i = 0; i < sizeof(grids) / sizeof(grids[0]); i++)
            assert_int_equal(ends_with(BENCH_GRID, grids[i], 7, ranks, NONE), 0);
        for (size_t i = 0; i < sizeof(meshes) / sizeof(meshes[0]); i++)
            assert_int_equal(ends_with(BENCH_MESH, meshes[i], 1500, ranks, NONE), 0);
    }
}

static void ends_on_a_wrong_value(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof(grids) / sizeof(grids[0]); i++)
        assert_int_equal(ends_with(BENCH_GRID, grids[i], 7, 3, FLIPPED), 3);
    for (size_t i = 0; i < sizeof(meshes) / sizeof(meshes[0]); i++)
        assert_int_equal(ends_with(BENCH_MESH, meshes[i], 1500, 3, FLIPPED), 3);
}

static void ends_on_a_stale_halo(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof(grids) / sizeof(grids[0]); i++)
        assert_int_equal(ends_with(BENCH_GRID, grids[i], 7, 2, STALE), 3);
    for (size_t i = 0; i < sizeof(meshes) / sizeof(meshes[0]); i++)
        assert_int_equal(ends_with(BENCH_MESH, meshes[i], 1500, 2, STALE), 3);
}

/* Every rank has points, and rings of a halo are as wide as they are asked to be. */
static void parts_are_ragged_but_whole(void **state) {
    size_t owned = 0;
    size_t last_halo = 0;

    (void)state;
    for (int rank = 0; rank < 4; rank++) {
        struct bench_world world = {.rank = rank, .ranks = 4};
        struct bench_halo halo = {.world = &world};
        struct hemt_shape shape = {.value = {0}};

        hemt_shape_fill(BENCH_MESH, &shape);
        bench_halo_make(&halo, BENCH_MESH, &shape, 10000);
        assert_true(halo.part.owned > 1500 && halo.part.owned < 3500);
        /* A straight cut of such a block has no more than its four edges of fifty points. */
        assert_true(halo.points - halo.part.owned > 200);
        owned += halo.part.owned;
        last_halo = halo.points - halo.part.owned;
        bench_halo_free(&halo);
        shape.value[HEMT_HALO] = 2;
        bench_halo_make(&halo, BENCH_MESH, &shape, 10000);
        assert_true(halo.points - halo.part.owned > last_halo + 150);
        bench_halo_free(&halo);
    }
    assert_int_equal(owned, 10000);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accepts_what_is_right),
        cmocka_unit_test(ends_on_a_wrong_value),
        cmocka_unit_test(ends_on_a_stale_halo),
        cmocka_unit_test(parts_are_ragged_but_whole),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
