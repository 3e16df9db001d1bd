/*
 * Fields in host memory that are only read, in pages that cannot be written, beside fields in device memory: what they
 * own gets to the neighbours, forwards; backwards their halos do, and they stay as they are. Every other rank
 * has such a field. The same pages are in two exchanges at a time.
 *
 * hem-test: ranks=1,2,3,4 timeout=60
 */
#include "halo_ring.h"

#include <sys/mman.h>
#include <unistd.h>

enum {
    ALL = RING_CELLS + 2
};

typedef struct frozen {
    ring r;
    bool mine;        /* the host field here is only read */
    size_t page;      /* bytes */
    uint64_t *memory; /* of that field, on a page of its own */
    uint64_t *device;
} frozen;

static uint64_t value_of(int field, int rank, int cell, uint64_t round) {
    return round * 1000000u + (uint64_t)rank * 1000u + (uint64_t)field * 100u + (uint64_t)cell;
}

static hem_exchange *bind(const frozen *f, hem_exchange_way way) {
    hem_binding bindings[2];
    hem_exchange_options options;
    hem_exchange *exchange = NULL;
    memset(bindings, 0, sizeof bindings);
    memset(&options, 0, sizeof options);
    for (int i = 0; i < 2; i++) {
        bindings[i].pattern = f->r.pattern;
        bindings[i].field.struct_size = sizeof bindings[i].field;
        bindings[i].field.dtype = HEM_U64;
        bindings[i].field.memory = i == 0 ? f->device : f->memory;
    }
    bindings[1].field.flags = f->mine ? HEM_FIELD_READ_ONLY : 0;
    options.struct_size = sizeof options;
    options.bindings = bindings;
    options.count = 2;
    options.way = way;
    CHECK_OK(hem_exchange_create(f->r.world, &options, &exchange));
    return exchange;
}

static void protect(const frozen *f, int how) {
    CHECK_EQ(mprotect(f->memory, f->page, how), 0);
}

/* What is in both fields before a run; only what is kept of the field is made when pages are frozen. */
static void fill(const frozen *f, uint64_t round) {
    uint64_t cells[ALL];
    for (int field = 0; field < 2; field++) {
        for (int i = 0; i < ALL; i++)
            cells[i] = value_of(field, f->r.me, i, round);
        if (field == 0)
            device_copy(f->device, cells, sizeof cells);
        else if (!f->mine)
            memcpy(f->memory, cells, sizeof cells);
    }
}

/* The page holds what the first round had. */
static uint64_t round_of(int field, int rank, uint64_t round) {
    return field == 1 && rank % 2 == 0 ? 1 : round;
}

static void check(const frozen *f, int field, bool back, uint64_t round) {
    const int left = harness_left(f->r.world), right = harness_right(f->r.world);
    const uint64_t here = round_of(field, f->r.me, round);
    const uint64_t there[2] = {round_of(field, left, round), round_of(field, right, round)};
    uint64_t cells[ALL], want[ALL];
    device_copy(cells, field == 0 ? f->device : f->memory, sizeof cells);
    for (int i = 0; i < ALL; i++)
        want[i] = value_of(field, f->r.me, i, here);
    if (field == 1 && f->mine) {
        CHECK_EQ(memcmp(cells, want, sizeof cells), 0);
        return;
    }
    if (back) {
        /* My edges got the halos of those beside me. */
        want[1] += value_of(field, left, ALL - 1, there[0]);
        want[ALL - 2] += value_of(field, right, 0, there[1]);
        want[0] = want[ALL - 1] = 0; /* not looked at: a reverse run leaves them undefined */
        cells[0] = cells[ALL - 1] = 0;
    } else {
        want[0] = value_of(field, left, ALL - 2, there[0]);
        want[ALL - 1] = value_of(field, right, 1, there[1]);
    }
    for (int i = 0; i < ALL; i++)
        CHECK_EQ(cells[i], want[i]);
}

static void run(const frozen *f, hem_exchange *exchange, bool back, uint64_t round) {
    hem_exchange_how how;
    memset(&how, 0, sizeof how);
    how.struct_size = sizeof how;
    how.combine = back ? HEM_COMBINE_SUM : (hem_combine)0;
    fill(f, round);
    CHECK_OK(hem_exchange_start_on(exchange, &how, f->r.handle));
    CHECK_OK(hem_exchange_finish_on(exchange, f->r.handle));
    device_stream_sync(f->r.stream);
    CHECK_OK(hem_exchange_status(exchange));
    CHECK_OK(hem_sync(f->r.world, LIMIT));
    for (int field = 0; field < 2; field++)
        check(f, field, back, round);
}

int rank_main(hem_world *world) {
    static const hem_exchange_way ways[] = {HEM_EXCHANGE_STAGED, HEM_EXCHANGE_BEST};
    frozen f;
    hem_exchange *exchanges[2];
    memset(&f, 0, sizeof f);
    f.r = ring_make(world);
    f.mine = f.r.me % 2 == 0;
    f.page = (size_t)sysconf(_SC_PAGESIZE);
    void *page = mmap(NULL, f.page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(page != MAP_FAILED);
    f.memory = (uint64_t *)page;
    f.device = (uint64_t *)device_alloc(ALL * sizeof *f.device);
    for (int i = 0; i < ALL; i++)
        f.memory[i] = value_of(1, f.r.me, i, 1);
    if (f.mine)
        protect(&f, PROT_READ);
    for (int w = 0; w < 2; w++)
        exchanges[w] = bind(&f, ways[w]);
    for (uint64_t round = 1; round <= 6; round++)
        run(&f, exchanges[round % 2], round > 3, round);
    CHECK_OK(hem_sync(world, LIMIT));
    for (int w = 0; w < 2; w++)
        CHECK_OK(hem_exchange_destroy(exchanges[w]));
    munmap(page, f.page);
    device_free(f.device);
    ring_free(&f.r);
    harness_close(world, HEM_OK);
    return 0;
}
