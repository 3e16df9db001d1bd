/*
 * Values that go straight into the neighbours' halos are those of the host, byte for byte, whichever way
 * was asked for: grids, meshes, cubed spheres and lists, any type, layout and alignment, several fields and
 * domains, some of them in host memory, some only read. What is said to be direct is: all of it if that
 * was asked for, nothing if it was not wanted.
 *
 * hem-test: ranks=1,2,3,4,8 modes=processes,threads timeout=180 delayed=3
 */
#include "halo_twin.h"

#define SHOWN     64 /* as many allocations as an exchange shows to neighbours */
#define ONLY_READ 4

/* The exchange of a twin once more, another way. */
static void bind_again(twin *t, hem_exchange_way way) {
    hem_exchange_options options;
    memset(&options, 0, sizeof options);
    options.struct_size = sizeof options;
    options.bindings = t->bindings;
    options.count = t->host.count;
    options.way = way;
    CHECK_OK(hem_exchange_destroy(t->exchange));
    t->exchange = NULL;
    hem_status status = hem_exchange_create(t->world, &options, &t->exchange);
    if (way == HEM_EXCHANGE_DIRECT && !t->is_device) {
        CHECK_STATUS(status, HEM_ERR_UNSUPPORTED);
        options.way = HEM_EXCHANGE_BEST;
        status = hem_exchange_create(t->world, &options, &t->exchange);
    }
    CHECK_OK(status);
}

static void check_facts(const twin *t, hem_exchange_way way, int place) {
    hem_exchange_facts facts;
    memset(&facts, 0, sizeof facts);
    facts.struct_size = sizeof facts;
    CHECK_OK(hem_exchange_info(t->exchange, &facts));
    if (way == HEM_EXCHANGE_STAGED && t->is_device)
        CHECK_EQ(facts.direct_bytes, 0);
    if (way == HEM_EXCHANGE_DIRECT && place == TWIN_DEVICE)
        CHECK_EQ(facts.direct_bytes, facts.recv_bytes);
    CHECK(facts.direct_bytes <= facts.recv_bytes);
}

static void run(twin *t, const hem_exchange_how *how, uint64_t way, device_stream stream,
                hem_stream *handle) {
    if (way % 2 != 0 || !t->is_device) {
        CHECK_OK(hem_exchange_run(t->exchange, how, LIMIT));
        return;
    }
    CHECK_OK(hem_exchange_start_on(t->exchange, how, handle));
    CHECK_OK(hem_exchange_finish_on(t->exchange, handle));
    device_stream_sync(stream);
    CHECK_OK(hem_exchange_status(t->exchange));
}

static void one_case(hem_world *world, uint64_t seed, int number) {
    harness_rng rng = harness_rng_of(seed, (uint64_t)number, 1);
    harness_rng own = harness_rng_of(seed, (uint64_t)number, 100 + (uint64_t)hem_world_rank(world));
    int kind = number % 4;
    twin_case c = twin_case_make(world, kind, &rng);
    device_stream stream = device_stream_create();
    hem_stream *handle = NULL;
    twin t;

    CHECK_OK(hem_stream_cuda(world, stream, &handle));
    memset(&t, 0, sizeof t);
    t.world = t.host.world = world;
    for (size_t f = 1 + harness_below(&rng, 4); f > 0; f--) {
        halo_spec spec = twin_spec(&c, kind, &rng);
        twin_add(&t, &c, &spec, &own);
    }
    int place = (int)harness_below(&rng, TWIN_PLACES);
    twin_freeze(&t, &own);
    twin_bind(&t, place, &own);
    for (int way = HEM_EXCHANGE_STAGED; way <= HEM_EXCHANGE_DIRECT; way++) {
        bind_again(&t, (hem_exchange_way)way);
        check_facts(&t, (hem_exchange_way)way, place);
        for (uint64_t round = 0; round < 3; round++) {
            hem_exchange_how how = twin_how((hem_combine)0, &rng);
            const hem_exchange_how *given = harness_below(&rng, 2) != 0 ? &how : NULL;
            twin_fill(&t, round);
            run(&t, given, harness_random(&rng), stream, handle);
            twin_check(&t, given);
        }
    }
    twin_free(&t);
    CHECK_OK(hem_stream_destroy(handle));
    device_stream_destroy(stream);
    twin_case_free(&c);
}

/* Before a run all words of a field are its rank's number from 1 on. */
static void check_field(const ring *r, const uint64_t *memory, bool only_read) {
    uint64_t words[RING_CELLS + 2];
    uint64_t mine = (uint64_t)r->me + 1;
    uint64_t left = only_read ? mine : (uint64_t)harness_left(r->world) + 1;
    uint64_t right = only_read ? mine : (uint64_t)harness_right(r->world) + 1;
    device_copy(words, memory, sizeof words);
    CHECK_EQ(words[0], left);
    CHECK_EQ(words[RING_CELLS + 1], right);
    for (int i = 1; i <= RING_CELLS; i++)
        CHECK_EQ(words[i], mine);
}

/* Nobody is shown the memory of fields that are only read: there is room for all others. */
static void only_read(hem_world *world) {
    ring r = ring_make(world);
    ring other = ring_make(world);
    uint64_t words[RING_CELLS + 2];
    uint64_t *memory[ONLY_READ + SHOWN];
    hem_binding bindings[ONLY_READ + SHOWN];
    hem_exchange_options options;
    hem_exchange_facts facts;
    hem_exchange *x = NULL;
    memset(bindings, 0, sizeof bindings);
    memset(&options, 0, sizeof options);
    memset(&facts, 0, sizeof facts);
    for (int i = 0; i < RING_CELLS + 2; i++)
        words[i] = (uint64_t)r.me + 1;
    for (int i = 0; i < ONLY_READ + SHOWN; i++) {
        memory[i] = (uint64_t *)device_alloc(sizeof words);
        device_copy(memory[i], words, sizeof words);
        bindings[i].pattern = i < ONLY_READ ? other.pattern : r.pattern;
        bindings[i].field.struct_size = sizeof bindings[i].field;
        bindings[i].field.dtype = HEM_U64;
        bindings[i].field.memory = memory[i];
        bindings[i].field.flags = i < ONLY_READ ? HEM_FIELD_READ_ONLY : 0;
    }
    options.struct_size = sizeof options;
    options.bindings = bindings;
    options.count = ONLY_READ + SHOWN;
    options.way = HEM_EXCHANGE_DIRECT;
    CHECK_OK(hem_exchange_create(world, &options, &x));
    facts.struct_size = sizeof facts;
    CHECK_OK(hem_exchange_info(x, &facts));
    CHECK_EQ(facts.direct_bytes, r.size > 1 ? SHOWN * 2 * sizeof(uint64_t) : 0);
    CHECK_OK(hem_exchange_run(x, NULL, LIMIT));
    for (int i = 0; i < ONLY_READ + SHOWN; i++)
        check_field(&r, memory[i], i < ONLY_READ);
    CHECK_OK(hem_exchange_destroy(x));
    for (int i = 0; i < ONLY_READ + SHOWN; i++)
        device_free(memory[i]);
    ring_free(&r);
    ring_free(&other);
}

int rank_main(hem_world *world) {
    uint64_t seed = harness_seed(world);
    CHECK_OK(hem_device_open(world, NULL));
    harness_step("only read", 0);
    only_read(world);
    for (int i = 0; i < harness_rounds(24); i++) {
        harness_step("case", (uint64_t)i);
        one_case(world, seed, i);
    }
    harness_close(world, HEM_OK);
    return 0;
}
