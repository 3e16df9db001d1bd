/*
 * A world that is revoked or closed under patterns, exchanges and streams: runs that wait end, every
 * later call says so, and everything can still be given up. The memory of fields that are read-only is
 * never written. Making and giving up exchanges for ever takes no memory.
 *
 * hem-test: ranks=1,2,3,5 modes=processes,threads timeout=60
 */
#include "halo_bad.h"

#include <dirent.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct rank {
    hem_world *world;
    hem_world *own; /**< of the same ranks, to be spoilt */
    int me;
    int size;
    halo_grid g;
    halo_case c;
    halo_set s;
    hem_pattern *pattern;
    hem_exchange *exchange;
};

static void begin(struct rank *r) {
    harness_rng rng = {7};
    halo_spec spec = halo_spec_plain(5);

    CHECK_OK(hem_world_split(r->world, 0, 0, &r->own));
    r->g = halo_ring(r->size);
    r->c = halo_grid_case(&r->g, r->size);
    r->pattern = halo_grid_pattern(r->own, &r->g, &r->c);
    r->s = (halo_set){.world = r->own};
    halo_set_add(&r->s, r->pattern, &r->c, &spec, HALO_C, HALO_PRIVATE, &rng);
    r->exchange = halo_set_exchange(&r->s);
    halo_set_run(&r->s, r->exchange, NULL, 1);
}

static void end(struct rank *r) {
    halo_set_free(&r->s);
    halo_case_free(&r->c);
    halo_grid_free(&r->g);
}

static void calls_say_closed(struct rank *r) {
    hem_exchange_facts facts = {.struct_size = sizeof facts};
    hem_exchange_options options = halo_set_options(&r->s);
    hem_exchange *exchange = NULL;
    bool done = false;

    CHECK_STATUS(hem_exchange_prepare(r->exchange, NULL), HEM_ERR_CLOSED);
    CHECK_STATUS(hem_exchange_start(r->exchange, NULL), HEM_ERR_CLOSED);
    CHECK_STATUS(hem_exchange_run(r->exchange, NULL, LIMIT), HEM_ERR_CLOSED);
    CHECK_STATUS(hem_exchange_finish(r->exchange, LIMIT), HEM_ERR_CLOSED);
    CHECK_STATUS(hem_exchange_test(r->exchange, &done), HEM_ERR_CLOSED);
    CHECK_STATUS(hem_exchange_info(r->exchange, &facts), HEM_ERR_CLOSED);
    CHECK(hem_pattern_validate(r->pattern, LIMIT) == HEM_ERR_CLOSED);
    /* Its pattern is of no world any more, least of all of this one. */
    CHECK(hem_exchange_create(r->world, &options, &exchange) != HEM_OK);
    CHECK(exchange == NULL);
}

static void closed(struct rank *r, bool under_way) {
    hem_pattern_facts facts = {.struct_size = sizeof facts};
    hem_stream *stream = NULL;

    begin(r);
    CHECK_OK(hem_stream_create(r->own, &stream));
    if (under_way) {
        CHECK_OK(hem_exchange_start_on(r->exchange, NULL, stream));
        CHECK_OK(hem_exchange_finish_on(r->exchange, stream));
    }
    CHECK_OK(hem_world_close(r->own));
    calls_say_closed(r);
    CHECK_OK(hem_pattern_info(r->pattern, &facts));
    CHECK_EQ(facts.domains, 1);
    CHECK_OK(hem_exchange_destroy(r->exchange));
    hem_pattern_destroy(r->pattern);
    hem_stream_destroy(stream);
    end(r);
}

/* The last rank does not run, but revokes. */
static void revoked(struct rank *r, bool on_stream) {
    hem_stream *stream = NULL;

    begin(r);
    CHECK_OK(hem_stream_create(r->own, &stream));
    if (r->me == r->size - 1) {
        harness_sleep_ms(10);
        CHECK_OK(hem_world_revoke(r->own));
    } else {
        hem_status status = HEM_OK;

        while (status == HEM_OK && on_stream) {
            status = hem_exchange_start_on(r->exchange, NULL, stream);
            if (status == HEM_OK)
                status = hem_exchange_finish_on(r->exchange, stream);
            if (status == HEM_OK)
                status = hem_stream_sync(stream, LIMIT);
        }
        while (status == HEM_OK)
            status = hem_exchange_run(r->exchange, NULL, LIMIT);
        CHECK_EQ((uint64_t)status, (uint64_t)HEM_ERR_REVOKED);
    }
    CHECK_STATUS(hem_exchange_run(r->exchange, NULL, LIMIT), HEM_ERR_REVOKED);
    hem_stream_destroy(stream);
    hem_exchange_destroy(r->exchange);
    hem_pattern_destroy(r->pattern);
    hem_world_close(r->own);
    end(r);
}

/* The fields of every other rank are only read: nothing is sent there. A point goes either way round the ring. */
static void check_bytes(const struct rank *r, const hem_exchange *exchange) {
    hem_exchange_facts facts = {.struct_size = sizeof facts};
    const int size = hem_world_size(r->world);
    const bool left = harness_left(r->world) % 2 != 0;
    const bool right = harness_right(r->world) % 2 != 0;

    CHECK_OK(hem_exchange_info(exchange, &facts));
    CHECK_EQ(facts.recv_bytes, size > 1 && r->me % 2 != 0 ? 2 * sizeof(int64_t) : 0);
    CHECK_EQ(facts.send_bytes, size > 1 ? ((size_t)left + right) * sizeof(int64_t) : 0);
    CHECK_EQ(facts.local_bytes, 0);
}

/* Fields in pages that cannot be written. */
static void read_only(struct rank *r) {
    size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
    int64_t *source = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int64_t sink[6] = {-1, 1, 2, 3, 4, -1};
    hem_exchange_how how = {.struct_size = sizeof how, .combine = HEM_COMBINE_SUM};
    hem_binding b = {.field = {.struct_size = sizeof b.field, .dtype = HEM_I64}};
    hem_exchange_options o = {.struct_size = sizeof o, .bindings = &b, .count = 1};
    hem_exchange *exchange = NULL;
    bool mine = r->me % 2 == 0;

    begin(r);
    CHECK(source != MAP_FAILED);
    for (int i = 0; i < 4; i++)
        source[i + 1] = sink[i + 1] = 10 * r->me + i;
    CHECK_EQ(mprotect(source, bytes, PROT_READ), 0);
    b.pattern = r->pattern;
    b.field.memory = mine ? source : sink;
    b.field.flags = mine ? HEM_FIELD_READ_ONLY : 0;
    CHECK_OK(hem_exchange_create(r->own, &o, &exchange));
    check_bytes(r, exchange);
    for (int i = 0; i < 3; i++)
        CHECK_OK(hem_exchange_run(exchange, NULL, LIMIT));
    CHECK_EQ(source[0], 0);
    CHECK_EQ(sink[0], mine ? -1 : 10 * harness_left(r->world) + 3);
    CHECK_EQ(sink[5], mine ? -1 : 10 * harness_right(r->world));
    CHECK_OK(hem_exchange_run(exchange, &how, LIMIT));
    CHECK_OK(hem_exchange_destroy(exchange));
    CHECK_OK(hem_exchange_destroy(r->exchange));
    hem_pattern_destroy(r->pattern);
    CHECK_OK(hem_world_close(r->own));
    munmap(source, bytes);
    end(r);
}

/* What the arena, a memfd, holds: that is where landing places are. */
static long shared_kib(void) {
    DIR *folder = opendir("/proc/self/fd");
    const struct dirent *entry;
    long blocks = 0;

    CHECK(folder != NULL);
    while ((entry = readdir(folder)) != NULL) {
        char name[300];
        char target[300] = "";
        struct stat st;

        snprintf(name, sizeof name, "/proc/self/fd/%s", entry->d_name);
        if (readlink(name, target, sizeof target - 1) > 0 && strstr(target, "memfd:") &&
            stat(name, &st) == 0)
            blocks += (long)st.st_blocks;
    }
    closedir(folder);
    CHECK(blocks > 0);
    return blocks / 2;
}

/* Landing places of a megabyte, hundreds of times. Each rank may keep some for the next one. */
static void no_leak(struct rank *r) {
    harness_rng rng = {3};
    halo_grid g = {.dims = 2, .extent = {2 * r->size, 1 << 16}, .periodic = {true}, .low = {1}};
    halo_spec spec = halo_spec_plain(1);
    halo_set s = {.world = r->world};
    int times = harness_sanitized() ? 40 : 600;
    long before = 0;
    halo_case c;

    for (int i = 0; i < r->size; i++)
        halo_grid_add(&g, &(hem_box){{2 * i, 0}, {2, 1 << 16}}, i);
    c = halo_grid_case(&g, r->size);
    for (int i = 0; i < times; i++) {
        hem_pattern *pattern = halo_grid_pattern(r->world, &g, NULL);
        hem_exchange *exchange;

        halo_set_add(&s, pattern, &c, &spec, HALO_C, HALO_PRIVATE, &rng);
        exchange = halo_set_exchange(&s);
        if (i % 100 == 0)
            halo_set_run(&s, exchange, NULL, (uint64_t)i);
        hem_pattern_destroy(pattern);
        CHECK_OK(hem_exchange_destroy(exchange));
        halo_set_free(&s);
        harness_same(r->world, 1);
        if (i == 10)
            before = shared_kib();
    }
    if (shared_kib() > before + 8192L * r->size)
        harness_fail(__FILE__, __LINE__, "shared memory went from %ld to %ld KiB", before,
                     shared_kib());
    halo_case_free(&c);
    halo_grid_free(&g);
}

int rank_main(hem_world *world) {
    struct rank r = {.world = world, .me = hem_world_rank(world), .size = hem_world_size(world)};

    for (int i = 0; i < 4; i++) {
        harness_step("closed", (uint64_t)i);
        closed(&r, i % 2);
        harness_step("revoked", (uint64_t)i);
        revoked(&r, i % 2);
        harness_step("read-only", (uint64_t)i);
        read_only(&r);
    }
    harness_step("leak", 0);
    no_leak(&r);
    halo_works(world);
    harness_close(world, HEM_OK);
    return 0;
}
