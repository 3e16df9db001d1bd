/*
 * Very large faces: 1 GiB for the neighbour in a few thousand rows of odd length, and more than 2 GiB in one
 * piece, on a GPU; half a MiB on the stand-in. In stream order, twice each, staged, straight into halos, by copy
 * engines, and backwards as a sum. The device checks every byte, also of what must stay as it is. With what the
 * library holds for staging it takes 17 GiB on a GPU that both ranks share.
 *
 * hem-test: ranks=2 modes=processes,threads timeout=120
 */
#include "huge_kit.h"

#include <hem/exchange.h>

/* A field of u8. Each row has a halo, some bytes that nobody gets, and as many as the halo has for the other. */
typedef struct face {
    int64_t rows;
    int64_t width;
    int64_t kept;
} face;

/* What a part of all rows holds. */
typedef struct part_args {
    unsigned char *first;
    uint64_t pitch;
    uint64_t width;
    uint64_t rows;
    uint64_t tag;
    uint64_t plus;   /* another tag, whose bytes are added; 0: none */
    uint64_t *wrong; /* NULL: write it */
} part_args;

DEVICE_KERNEL(parts, part_args) {
    const uint64_t step = (uint64_t)hem_block().size * hem_block_count();
    uint64_t wrong = 0;
    for (uint64_t i = hem_block_index() * (uint64_t)hem_block().size + hem_block().rank;
         i < args->width * args->rows; i += step) {
        unsigned char *at = args->first + i / args->width * args->pitch + i % args->width;
        unsigned char want = (unsigned char)(huge_byte(args->tag, i) + huge_byte(args->plus, i));
        if (args->wrong == NULL)
            *at = want;
        else
            wrong += *at != want;
    }
    if (wrong != 0)
        hemd_add64_relaxed(args->wrong, wrong);
}

enum {
    HALO,
    STAYS,
    SENT
};

static void run_part(huge *t, const face *f, int which, uint64_t tag, uint64_t plus, bool check) {
    part_args args;
    args.first = t->from + (which == HALO ? 0 : which == STAYS ? f->width : f->width + f->kept);
    args.pitch = (uint64_t)(2 * f->width + f->kept);
    args.width = (uint64_t)(which == STAYS ? f->kept : f->width);
    args.rows = (uint64_t)f->rows;
    args.tag = tag;
    args.plus = plus;
    args.wrong = check ? t->wrong : NULL;
    device_launch(parts, t->stream, huge_blocks(), huge_warps(), &args);
}

static void expect_part(huge *t, const face *f, int which, uint64_t tag, uint64_t plus,
                        const char *what) {
    run_part(t, f, which, tag, plus, true);
    huge_check(t, what);
}

/* Side by side, and round again: the low halo is what the other one has on its high side. */
static hem_pattern *make_pattern(const huge *t, const face *f) {
    hem_grid_domain domain;
    hem_grid_options options;
    hem_pattern *pattern = NULL;
    memset(&domain, 0, sizeof domain);
    memset(&options, 0, sizeof options);
    domain.id = t->rank;
    domain.box.start[1] = (f->width + f->kept) * t->rank;
    domain.box.count[0] = f->rows;
    domain.box.count[1] = f->width + f->kept;
    options.struct_size = sizeof options;
    options.dims = 2;
    options.extent[0] = f->rows;
    options.extent[1] = (f->width + f->kept) * 2;
    options.periodic[1] = true;
    options.halo_low[1] = f->width;
    options.domains = &domain;
    options.domain_count = 1;
    CHECK_OK(hem_pattern_grid(t->world, &options, &pattern));
    return pattern;
}

/* @return NULL if this device has not what copy engines need. */
static hem_exchange *make_exchange(const huge *t, const face *f, hem_exchange_way way) {
    hem_pattern *pattern = make_pattern(t, f);
    hem_exchange *exchange = NULL;
    hem_exchange_options options;
    hem_binding binding;
    memset(&options, 0, sizeof options);
    memset(&binding, 0, sizeof binding);
    binding.pattern = pattern;
    binding.field.struct_size = sizeof binding.field;
    binding.field.dtype = HEM_U8;
    binding.field.memory = t->from;
    binding.field.bytes = (size_t)t->bytes;
    options.struct_size = sizeof options;
    options.bindings = &binding;
    options.count = 1;
    options.way = way;
    hem_status status = hem_exchange_create(t->world, &options, &exchange);
    if (status == HEM_ERR_UNSUPPORTED && way == HEM_EXCHANGE_ENGINES)
        printf("rank %d: left out: %s\n", t->rank, hem_last_error());
    else
        CHECK_OK(status);
    CHECK_OK(hem_pattern_destroy(pattern));
    return exchange;
}

static void check_facts(const face *f, const hem_exchange *exchange, hem_exchange_way way) {
    const uint64_t bytes = (uint64_t)f->rows * (uint64_t)f->width;
    hem_exchange_facts facts;
    memset(&facts, 0, sizeof facts);
    facts.struct_size = sizeof facts;
    CHECK_OK(hem_exchange_info(exchange, &facts));
    CHECK_EQ(facts.neighbours, 1);
    CHECK_EQ(facts.send_bytes, bytes);
    CHECK_EQ(facts.recv_bytes, bytes);
    CHECK_EQ(facts.direct_bytes, way == HEM_EXCHANGE_STAGED ? 0 : bytes);
}

static void put_run(huge *t, hem_exchange *exchange, hem_combine combine) {
    hem_exchange_how how;
    memset(&how, 0, sizeof how);
    how.struct_size = sizeof how;
    how.combine = combine;
    CHECK_OK(hem_exchange_start_on(exchange, &how, t->handle));
    CHECK_OK(hem_exchange_finish_on(exchange, t->handle));
}

static void run_once(huge *t, const face *f, hem_exchange *exchange, hem_combine combine,
                     uint64_t tag) {
    const uint64_t me = tag + (uint64_t)t->rank, other = tag + (uint64_t)t->other;
    run_part(t, f, HALO, me, 0, false);
    run_part(t, f, STAYS, me + 2, 0, false);
    run_part(t, f, SENT, me + 4, 0, false);
    put_run(t, exchange, combine);
    bool back = combine != 0;
    expect_part(t, f, HALO, back ? me : other + 4, 0, back ? "sent halo" : "halo");
    expect_part(t, f, STAYS, me + 2, 0, "bytes that nobody gets");
    expect_part(t, f, SENT, me + 4, back ? other : 0, back ? "sums" : "sent bytes");
    CHECK_OK(hem_exchange_status(exchange));
}

static void check_way(huge *t, const face *f, hem_exchange_way way, uint64_t tag) {
    hem_exchange *exchange = make_exchange(t, f, way);
    if (exchange == NULL)
        return;
    check_facts(f, exchange, way);
    for (uint64_t i = 0; i < 2; i++) {
        harness_step("forward", tag + i);
        run_once(t, f, exchange, (hem_combine)0, tag + 10 * i);
    }
    for (uint64_t i = 0; way == HEM_EXCHANGE_STAGED && i < 2; i++) {
        harness_step("backwards", tag + i);
        run_once(t, f, exchange, HEM_COMBINE_SUM, tag + 50 + 10 * i);
    }
    CHECK_OK(hem_exchange_destroy(exchange));
    /* What it held is freed when the other has given it up, too. */
    CHECK_OK(hem_sync(t->world, LIMIT));
}

static void check_face(huge *t, const face *f, uint64_t tag) {
    CHECK((uint64_t)(f->rows * (2 * f->width + f->kept)) <= t->bytes);
    check_way(t, f, HEM_EXCHANGE_STAGED, tag + 100);
    check_way(t, f, HEM_EXCHANGE_DIRECT, tag + 200);
    check_way(t, f, HEM_EXCHANGE_ENGINES, tag + 300);
}

static huge open_field(hem_world *world, const face *most) {
    huge t;
    memset(&t, 0, sizeof t);
    t.world = world;
    t.rank = hem_world_rank(world);
    t.other = 1 - t.rank;
    t.bytes = (uint64_t)most->rows * (uint64_t)(2 * most->width + most->kept);
    t.stream = device_stream_create();
    CHECK_OK(hem_stream_cuda(world, t.stream, &t.handle));
    t.wrong = (uint64_t *)device_alloc(8);
    t.from = (unsigned char *)device_alloc((size_t)t.bytes);
    return t;
}

int rank_main(hem_world *world) {
    bool few = device_stands_in(), fewer = harness_sanitized();
    /* 1.0007 GiB; 2 GiB and some; 15.5 MiB in 3.99 GiB. */
    const face rows = {few ? 53 : 4099, few ? (fewer ? 1009 : 9011) : 262133, 3};
    const face piece = {1, few ? (fewer ? 60001 : 500001) : (1ll << 31) + 12345, 3};
    const face apart = {31, few ? 913 : 524287, few ? 2003 : 137000000};
    huge t = open_field(world, &piece);
    check_face(&t, &apart, 3000);
    check_face(&t, &rows, 1000);
    check_face(&t, &piece, 2000);
    huge_close(&t);
    harness_close(world, HEM_OK);
    return 0;
}
