/*
 * Pipes, exchanges and collectives are made, used and given up over and over, in turns: no descriptor, no
 * mapping, no memory and no thread is left behind, and none sees what an earlier one held. So are worlds
 * with all of them, which may go with everything in them.
 *
 * hem-test: ranks=2,3 modes=processes,threads timeout=180
 */
#include "all_kit.h"

#include <dirent.h>

typedef struct test {
    hem_world *world;
    hem_window *gate;
    ring ring;
    pipe_kit kit;
    uint64_t *memory;
} test;

typedef struct held {
    int files;
    int mappings;
    int threads;
    long resident;
} held;

static int count_threads(void) {
    int count = 0;
    DIR *tasks = opendir("/proc/self/task");
    CHECK(tasks != NULL);
    while (readdir(tasks) != NULL)
        count++;
    closedir(tasks);
    return count;
}

/* What this process has, while no rank of it does anything. Counting opens files, so one counts.
 * Threads of streams that were given up end when they are scheduled: they are waited for. */
static held look(const test *t, int threads) {
    held now;
    memset(&now, 0, sizeof now);
    harness_barrier(t->gate);
    if (!harness_threads() || hem_world_rank(t->world) == 0) {
        int64_t until = harness_now() + HEM_SEC(5);
        now.threads = count_threads();
        while (now.threads > threads + 24 && harness_now() < until) {
            harness_sleep_ms(20);
            now.threads = count_threads();
        }
        now.files = harness_open_files();
        now.mappings = harness_mappings();
        now.resident = harness_resident_kib();
    }
    harness_barrier(t->gate);
    return now;
}

static void use_pipe(test *t, int i) {
    static const size_t slots[3] = {1024, 4096, 65536};
    hem_pipe_options o = pipe_kit_options(1 + (uint32_t)i % 3, slots[i % 3], 2, 0);
    hem_pipe_how how = pipe_kit_how(1, 1, 1, 0);
    unsigned char *data = (unsigned char *)t->memory;
    size_t bytes = i % 2 == 0 ? 300 : 60000;
    uint64_t tag = (uint64_t)i;
    CHECK_OK(hem_pipe_create(t->world, &o, &t->kit.pipe));
    pipe_kit_fill(data, bytes, tag);
    pipe_kit_call(&t->kit, harness_right(t->world), data, bytes, harness_left(t->world),
                  data + 65552, bytes, &how);
    device_stream_sync(t->kit.native);
    CHECK_OK(hem_pipe_status(t->kit.pipe));
    unsigned char *got = (unsigned char *)malloc(bytes);
    CHECK(got != NULL);
    device_copy(got, data + 65552, bytes);
    CHECK_FILLED(got, bytes, tag);
    free(got);
    CHECK_OK(hem_pipe_destroy(t->kit.pipe));
}

static void use_exchange(test *t, int i) {
    uint64_t cells[RING_CELLS + 2];
    uint64_t left = (uint64_t)harness_left(t->world), number = (uint64_t)i;
    hem_exchange *x = ring_bind(&t->ring, t->memory, 1 + i % 4, 0);
    for (size_t c = 0; c < RING_CELLS + 2; c++)
        cells[c] = number * 100 + (uint64_t)t->ring.me;
    device_copy(t->memory, cells, sizeof cells);
    CHECK_OK(hem_exchange_start_on(x, NULL, t->ring.handle));
    CHECK_OK(hem_exchange_finish_on(x, t->ring.handle));
    device_stream_sync(t->ring.stream);
    CHECK_OK(hem_exchange_status(x));
    if (i % 3 == 0)
        CHECK_OK(hem_exchange_run(x, NULL, LIMIT));
    device_copy(cells, t->memory, sizeof cells);
    CHECK_EQ(cells[0], number * 100 + left);
    CHECK_OK(hem_exchange_destroy(x));
}

static void use_coll(test *t, int i) {
    hem_coll c;
    uint64_t own = (uint64_t)i + 1, size = (uint64_t)hem_world_size(t->world);
    memset(&c, 0, sizeof c);
    c.struct_size = sizeof c;
    c.kind = HEM_ALLREDUCE;
    c.dtype = HEM_U64;
    c.op = HEM_SUM;
    c.send = t->memory;
    c.recv = t->memory + ALL_LONG;
    c.count = i % 2 == 0 ? ALL_LONG : 20;
    c.blocks = DEVICE_FEW_BLOCKS;
    device_copy(t->memory, &own, sizeof own);
    if (i % 3 == 0) {
        CHECK_OK(hem_coll_run(t->world, &c, LIMIT));
    } else {
        hem_op *op = NULL;
        CHECK_OK(hem_coll_plan(t->world, &c, &op));
        CHECK_OK(hem_op_start_on(op, t->ring.handle));
        device_stream_sync(t->ring.stream);
        CHECK_OK(hem_op_status(op));
        CHECK_OK(hem_op_free(op));
    }
    device_copy(&own, t->memory + ALL_LONG, sizeof own);
    CHECK_EQ(own, ((uint64_t)i + 1) * size);
}

/* The world is closed first, or last. */
static void use_world(test *t, int i) {
    hem_world *world = NULL;
    CHECK_OK(hem_world_split(t->world, 0, i % 2 == 0 ? 0 : -hem_world_rank(t->world), &world));
    all_kit kit = all_open(world, false);
    for (int step = 0; step < 3; step++)
        for (int part = 0; part < ALL_PARTS; part++)
            all_step(&kit, part, step > 0);
    all_check(&kit, 3);
    if (i % 3 != 0) {
        all_close(&kit, HEM_OK);
        CHECK_OK(hem_world_close(world));
        return;
    }
    all_close_streams(&kit);
    CHECK_OK(hem_world_close(world));
    CHECK_OK(hem_exchange_destroy(kit.exchange));
    CHECK_OK(hem_op_free(kit.ops[0]));
    CHECK_OK(hem_op_free(kit.ops[1]));
    CHECK_OK(hem_pattern_destroy(kit.pattern));
    CHECK_OK(hem_pipe_destroy(kit.pipe));
    CHECK_OK(hem_window_destroy(kit.window));
    device_free(kit.state);
}

static void once(test *t, int i) {
    use_pipe(t, i);
    use_exchange(t, i);
    use_coll(t, i);
    if (i % 10 == 0) /* closed last: nothing stays */
        use_world(t, 1 + i / 10 % 2);
}

int rank_main(hem_world *world) {
    test t;
    int rounds = harness_rounds(100);
    memset(&t, 0, sizeof t);
    t.world = world;
    t.gate = harness_window(world, 64);
    t.ring = ring_make(world);
    t.kit.native = t.ring.stream;
    t.kit.stream = t.ring.handle;
    t.memory = (uint64_t *)device_alloc(2 * (ALL_LONG + 16) * 8);
    /* The device keeps what is left in a world that is closed first, so these are not counted. */
    for (int i = 0; i < 6; i++)
        use_world(&t, i);
    for (int i = 0; i < (harness_sanitized() ? 6 : 30); i++)
        once(&t, i);
    held before = look(&t, 1000);
    for (int i = 0; i < rounds; i++) {
        harness_step("round", (uint64_t)i);
        once(&t, i);
    }
    held after = look(&t, before.threads);
    /* Who gives an exchange up before its neighbours has the last one's memory for a while yet. */
    CHECK(after.files <= before.files + 12);
    /* The device keeps streams, each with as many threads as its largest kernel had warps. */
    CHECK(after.threads <= before.threads + 24);
    /* So do their stacks; neighbouring mappings are joined or not as they come to lie. */
    if (!harness_sanitized()) {
        CHECK(after.mappings <= before.mappings + 64);
        CHECK(after.resident <= before.resident + 8192);
    }
    harness_destroy(t.gate);
    ring_free(&t.ring);
    device_free(t.memory);
    harness_close(world, HEM_OK);
    return 0;
}
