/*
 * A sparse exchange brings every message to whom it was addressed, exactly once, ordered by sender
 * and as each sent them: none, one or many per destination, empty ones, to oneself, large among
 * small, from ranks that send nothing. Totals agree.
 *
 * hem-test: ranks=1,2,3,4,5,8 modes=processes,threads timeout=60
 */
#include "harness.h"

enum {
    MOST = 24,
    BIG = 1 << 20
};

/* What one rank sends in a round; every rank can work it out. */
struct mail {
    hem_parcel parcels[MOST];
    size_t count;
};

static size_t some_size(harness_rng *rng, bool big) {
    switch (harness_below(rng, 5)) {
    case 0:
        return 0;
    case 1:
        return harness_below(rng, 41);
    case 2:
        return 38 + harness_below(rng, 5);
    case 3:
        return harness_below(rng, 9000);
    default:
        return big && harness_below(rng, 4) == 0 ? BIG - 3 + harness_below(rng, 7)
                                                 : harness_below(rng, 300);
    }
}

static void plan_mail(uint64_t seed, uint64_t round, int sender, int size, struct mail *mail) {
    harness_rng rng = harness_rng_of(seed, round, (uint64_t)sender);
    size_t favourite = harness_below(&rng, (size_t)size);

    mail->count = harness_below(&rng, 4) ? harness_below(&rng, MOST + 1) : 0;
    if (round % 16 == 7)
        mail->count = 0;
    for (size_t i = 0; i < mail->count; i++) {
        bool usual = harness_below(&rng, 3) == 0;

        mail->parcels[i].peer = (int)(usual ? favourite : harness_below(&rng, (size_t)size));
        mail->parcels[i].bytes = some_size(&rng, round % 8 == 3);
        mail->parcels[i].data = NULL;
    }
}

static uint64_t tag_of(int sender, size_t index, uint64_t round) {
    return round * 10007 + (uint64_t)sender * 101 + index;
}

/* Fill in contents, at odd addresses. Returns the memory behind them. */
static unsigned char *write_mail(struct mail *mail, int me, uint64_t round, hem_memory *library) {
    size_t total = 1;
    unsigned char *memory;
    unsigned char *at;

    for (size_t i = 0; i < mail->count; i++)
        total += mail->parcels[i].bytes;
    memory = malloc(total);
    CHECK(memory != NULL);
    at = library && total <= hem_memory_size(library) ? hem_memory_address(library) : memory;
    for (size_t i = 0; i < mail->count; i++) {
        harness_fill(at, mail->parcels[i].bytes, tag_of(me, i, round));
        mail->parcels[i].data = mail->parcels[i].bytes || i % 2 ? at : NULL;
        at += mail->parcels[i].bytes;
    }
    return memory;
}

static size_t check_from(const hem_sparse_result *got, size_t next, int sender, int me, int size,
                         uint64_t seed, uint64_t round) {
    struct mail mail;

    plan_mail(seed, round, sender, size, &mail);
    for (size_t i = 0; i < mail.count; i++) {
        if (mail.parcels[i].peer != me)
            continue;
        CHECK(next < got->count);
        CHECK_EQ(got->parcels[next].peer, sender);
        CHECK_EQ(got->parcels[next].bytes, mail.parcels[i].bytes);
        CHECK(got->parcels[next].data || !mail.parcels[i].bytes);
        CHECK_FILLED(got->parcels[next].data, mail.parcels[i].bytes, tag_of(sender, i, round));
        next++;
    }
    return next;
}

static void exchange(hem_world *world, const struct mail *mail, hem_sparse_result *got,
                     bool starts) {
    hem_op *op = NULL;

    if (!starts) {
        CHECK_OK(hem_sparse(world, mail->parcels, mail->count, got, LIMIT));
        return;
    }
    CHECK_OK(hem_sparse_start(world, mail->parcels, mail->count, got, &op));
    CHECK_OK(hem_op_wait(op, LIMIT));
    CHECK_OK(hem_op_free(op));
}

static void one_round(hem_world *world, uint64_t seed, uint64_t round, hem_memory *library,
                      uint64_t *totals) {
    int me = hem_world_rank(world);
    int size = hem_world_size(world);
    hem_sparse_result got = {0};
    struct mail mail;
    unsigned char *memory;
    size_t next = 0;

    plan_mail(seed, round, me, size, &mail);
    memory = write_mail(&mail, me, round, round % 3 == 1 ? library : NULL);
    exchange(world, &mail, &got, round % 2);
    if (round % 5 == 0)
        free(memory);
    for (int sender = 0; sender < size; sender++)
        next = check_from(&got, next, sender, me, size, seed, round);
    CHECK_EQ(got.count, next);
    totals[0] += mail.count;
    totals[1] += got.count;
    hem_sparse_free(&got);
    if (round % 5)
        free(memory);
}

/* Two started exchanges and a collective between them, waited for the wrong way round. */
static void overlapped(hem_world *world, uint64_t seed, uint64_t round) {
    int me = hem_world_rank(world);
    int size = hem_world_size(world);
    hem_sparse_result got[2] = {{0}, {0}};
    struct mail mail[2];
    unsigned char *memory[2];
    hem_op *ops[2] = {NULL, NULL};
    int64_t sum = 0;
    int64_t one = 1;

    for (uint64_t i = 0; i < 2; i++) {
        plan_mail(seed, round + i, me, size, &mail[i]);
        memory[i] = write_mail(&mail[i], me, round + i, NULL);
        CHECK_OK(hem_sparse_start(world, mail[i].parcels, mail[i].count, &got[i], &ops[i]));
        if (i == 0)
            CHECK_OK(hem_allreduce(world, &one, &sum, 1, HEM_I64, HEM_SUM, LIMIT));
    }
    CHECK_EQ(sum, size);
    for (int i = 1; i >= 0; i--) {
        size_t next = 0;

        CHECK_OK(hem_op_wait(ops[i], LIMIT));
        for (int sender = 0; sender < size; sender++)
            next = check_from(&got[i], next, sender, me, size, seed, round + (uint64_t)i);
        CHECK_EQ(got[i].count, next);
        CHECK_OK(hem_op_free(ops[i]));
        hem_sparse_free(&got[i]);
        free(memory[i]);
    }
}

/* Everything anybody sent was received by somebody. */
static void check_totals(hem_world *world, const uint64_t *totals) {
    uint64_t sums[2] = {0, 0};

    CHECK_OK(hem_allreduce(world, totals, sums, 2, HEM_U64, HEM_SUM, LIMIT));
    CHECK_EQ(sums[0], sums[1]);
}

static void refused(hem_world *world) {
    int size = hem_world_size(world);
    hem_parcel bad = {size, 3, "abc"};
    hem_sparse_result got = {0};
    hem_op *op = NULL;

    CHECK_STATUS(hem_sparse(world, &bad, 1, &got, LIMIT), HEM_ERR_RANGE);
    CHECK_STATUS(hem_sparse_start(world, &bad, 1, &got, &op), HEM_ERR_RANGE);
    bad.peer = -1;
    CHECK_STATUS(hem_sparse(world, &bad, 1, &got, LIMIT), HEM_ERR_RANGE);
    bad = (hem_parcel){0, 3, NULL};
    CHECK_STATUS(hem_sparse(world, &bad, 1, &got, LIMIT), HEM_ERR_ARG);
    CHECK_STATUS(hem_sparse(world, NULL, 1, &got, LIMIT), HEM_ERR_ARG);
    CHECK_STATUS(hem_sparse(world, NULL, 0, NULL, LIMIT), HEM_ERR_ARG);
    CHECK_STATUS(hem_sparse(NULL, NULL, 0, &got, LIMIT), HEM_ERR_ARG);
    CHECK_STATUS(hem_sparse(world, NULL, 0, &got, -5), HEM_ERR_ARG);
    CHECK_STATUS(hem_sparse_start(world, NULL, 0, &got, NULL), HEM_ERR_ARG);
    CHECK(op == NULL && got.count == 0 && got.parcels == NULL);
    hem_sparse_free(NULL);
    hem_sparse_free(&got);
}

int rank_main(hem_world *world) {
    uint64_t seed = harness_seed(world);
    uint64_t rounds = (uint64_t)harness_rounds(200);
    uint64_t totals[2] = {0, 0};
    hem_memory *library = NULL;

    CHECK_OK(hem_memory_alloc(world, 3 * BIG, &library));
    refused(world);
    for (uint64_t round = 0; round < rounds; round++) {
        harness_step("round", round);
        one_round(world, seed, round, library, totals);
        if (round % 10 == 9)
            overlapped(world, seed, round + 100000);
    }
    check_totals(world, totals);
    CHECK_OK(hem_memory_free(library));
    harness_close(world, HEM_OK);
    return 0;
}
