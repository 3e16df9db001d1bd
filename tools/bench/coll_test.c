/*
 * hem-test: timeout=120
 * The loops and checks of messages and collectives, over the plainest implementation that there is,
 * once as it must be and once with a single wrong byte or a stale result in a late iteration.
 */
#include "coll.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

enum {
    BYTES = 2048,
    MOST_RANKS = 4,
    FAULT_AT = 4 /* bcast: when the root is rank 0 and the last rank receives */
};

enum fault {
    NONE,
    FLIPPED,
    STALE
};

/* What the forked ranks share: everybody's `send` and what rank 0 said. */
struct area {
    pthread_barrier_t barrier;
    uint64_t agreed;
    unsigned char send[MOST_RANKS][MOST_RANKS * BYTES];
};

struct job {
    struct area *area;
    enum bench_kind kind;
    enum fault fault;
    int ranks;
    int rank;
    struct hemt_sizes sizes;
};

static uint64_t agree(void *ctx, uint64_t value) {
    struct job *job = ctx;

    if (job->rank == 0)
        job->area->agreed = value;
    pthread_barrier_wait(&job->area->barrier);
    value = job->area->agreed;
    pthread_barrier_wait(&job->area->barrier);
    return value;
}

static void add_up(const struct job *job, size_t offset, size_t bytes, unsigned char *to) {
    for (size_t at = 0; at < bytes; at += sizeof(double)) {
        double sum = 0;
        for (int from = 0; from < job->ranks; from++) {
            double part;
            memcpy(&part, job->area->send[from] + offset + at, sizeof(part));
            sum += part;
        }
        memcpy(to + at, &sum, sizeof(sum));
    }
}

/* The place of the message for `to` in what `from` sends: it has one, or one per neighbour. */
static size_t parcel_of(const struct job *job, int from, int to) {
    return job->ranks > 2 && (from + 1) % job->ranks == to ? 1 : 0;
}

static void take(const struct job *job, struct bench_coll *coll) {
    size_t bytes = coll->bytes;

    switch (coll->kind) {
    case BENCH_ALLREDUCE:
        add_up(job, 0, bytes, coll->recv);
        return;
    case BENCH_REDUCE_SCATTER:
        add_up(job, (size_t)job->rank * bytes, bytes, coll->recv);
        return;
    case BENCH_ALLGATHER:
    case BENCH_ALLTOALL:
        for (size_t from = 0; from < (size_t)job->ranks; from++)
            memcpy(coll->recv + from * bytes,
                   job->area->send[from] +
                       (coll->kind == BENCH_ALLTOALL ? (size_t)job->rank * bytes : 0),
                   bytes);
        return;
    case BENCH_SPARSE:
        for (int i = 0; i < coll->peer_count; i++) {
            size_t place = parcel_of(job, coll->peers[i], job->rank) * bytes;
            coll->came[i] = coll->recv + (size_t)i * bytes;
            memcpy(coll->recv + (size_t)i * bytes, job->area->send[coll->peers[i]] + place, bytes);
        }
        return;
    case BENCH_BCAST:
        memcpy(coll->recv, job->area->send[bench_coll_root(coll)], bytes);
        return;
    default:
        memcpy(coll->recv, job->area->send[bench_coll_source(coll)], bytes);
    }
}

static void run(void *ctx, struct bench_coll *coll) {
    struct job *job = ctx;
    bool now = job->rank == job->ranks - 1 && coll->seq == FAULT_AT;

    memcpy(job->area->send[job->rank], coll->send,
           bench_coll_send_bytes(coll->kind, job->ranks, coll->bytes));
    pthread_barrier_wait(&job->area->barrier);
    if (!now || job->fault != STALE)
        take(job, coll);
    if (now && job->fault == FLIPPED)
        coll->recv[coll->bytes - 2] ^= 1;
    pthread_barrier_wait(&job->area->barrier);
}

static void help(void *ctx) {
    (void)ctx;
}

static int be_rank(int rank, void *arg) {
    static const struct bench_coll_ops ops = {run, help};
    struct job *job = arg;
    struct bench_world world = {
        .impl = "plain", .rank = rank, .ranks = job->ranks, .agree = agree, .ctx = job};
    struct bench_args args = {.kind = job->kind, .ranks = job->ranks, .sizes = job->sizes};
    struct bench_coll coll = {.world = &world, .ops = &ops};

    job->rank = rank;
    coll.send = bench_alloc((size_t)job->ranks * BYTES);
    coll.recv = job->kind == BENCH_BCAST ? coll.send : bench_alloc((size_t)job->ranks * BYTES);
    bench_coll_measure(&coll, &args);
    return 0;
}

static int ends_with(enum bench_kind kind, int ranks, size_t bytes, enum fault fault) {
    struct job job = {.kind = kind, .ranks = ranks, .fault = fault};
    pthread_barrierattr_t shared;

    job.sizes = (struct hemt_sizes){.bytes = {bytes}, .count = 1};
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

static void accepts_what_is_right(void **state) {
    (void)state;
    for (enum bench_kind kind = BENCH_SENDRECV; kind <= BENCH_SPARSE; kind++) {
        for (int ranks = 2; ranks <= MOST_RANKS; ranks += 2) {
            assert_int_equal(ends_with(kind, ranks, 8, NONE), 0);
            assert_int_equal(ends_with(kind, ranks, BYTES, NONE), 0);
        }
        if (kind != BENCH_SENDRECV)
            assert_int_equal(ends_with(kind, 3, 64, NONE), 0);
    }
}

static void ends_on_a_wrong_byte(void **state) {
    (void)state;
    for (enum bench_kind kind = BENCH_SENDRECV; kind <= BENCH_SPARSE; kind++) {
        assert_int_equal(ends_with(kind, 2, 8, FLIPPED), 3);
        assert_int_equal(ends_with(kind, 4, BYTES, FLIPPED), 3);
    }
}

static void ends_on_a_stale_result(void **state) {
    (void)state;
    for (enum bench_kind kind = BENCH_SENDRECV; kind <= BENCH_SPARSE; kind++)
        assert_int_equal(ends_with(kind, 2, BYTES, STALE), 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accepts_what_is_right),
        cmocka_unit_test(ends_on_a_wrong_byte),
        cmocka_unit_test(ends_on_a_stale_result),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
