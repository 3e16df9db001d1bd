/*
 * The stand-in device as the library sees it: the module's table. Memory is exported to and imported
 * from other ranks, what is malformed is refused with a sentence, the stream operations do what
 * device.h says, nothing is left behind, and warps that are stopped anywhere do no harm.
 *
 * hem-test: ranks=1,3 timeout=90 labels=standin
 */
#include "device.h"

#include "base/status.h"
#include "device/device.h"
#include "device/standin/standin.h"

#include <fcntl.h>
#include <unistd.h>

const hemi_device_module *hemi_device_module_get(void);

static const char *no_environment(const char *name) {
    (void)name;
    return NULL;
}

static const hemi_device_host host = {HEMI_DEVICE_VERSION, hemi_fail, no_environment};

typedef struct test {
    hem_world *world;
    const hemi_device_memory_ops *memory;
    const hemi_device_stream_ops *stream;
    void *context;
    hem_window *window;
} test;

/* What a rank shows the others: a name, and a descriptor as /proc has it. */
typedef struct shown {
    hemi_device_name name;
    int fd;
    int pid;
} shown;

static void check_open(test *t) {
    hemi_device_host wrong = host;
    hemi_device_facts facts;
    const hemi_device_module *module = hemi_device_module_get();
    CHECK_EQ(module->version, HEMI_DEVICE_VERSION);
    wrong.version++;
    CHECK_STATUS(module->open(&wrong, &t->context, &facts), HEM_ERR_UNSUPPORTED);
    CHECK_SENTENCE("version");
    CHECK_OK(module->open(&host, &t->context, &facts));
    CHECK(strlen(facts.name) > 0 && facts.warp == 1 && facts.processors > 0);
    t->memory = module->memory;
    t->stream = module->stream;
}

static void check_memory(test *t) {
    hemi_device_memory mine, again;
    unsigned char local[64] = {1, 2, 3};
    void *seen = NULL;
    int fd = -1;
    hemi_device_name name;

    CHECK_OK(t->memory->alloc(t->context, 3 << 20, &mine));
    CHECK_EQ((uintptr_t)mine.address % (2u << 20), 0);
    CHECK_ALL(mine.address, 3 << 20, 0);
    CHECK_EQ(t->memory->kind(t->context, mine.address), HEM_MEMORY_DEVICE);
    CHECK_EQ(t->memory->kind(t->context, (char *)mine.address + (3 << 20) - 1), HEM_MEMORY_DEVICE);
    CHECK_EQ(t->memory->kind(t->context, local), HEM_MEMORY_HOST);
    for (size_t n = 0; n <= sizeof local; n++) {
        harness_fill(local, sizeof local, n);
        CHECK_OK(t->memory->copy(t->context, (char *)mine.address + n % 3, local, n));
        CHECK_FILLED((char *)mine.address + n % 3, n, n);
    }
    /* What is sent comes in its order, and is there with the next copy. */
    harness_fill(local, sizeof local, 1);
    CHECK_OK(t->memory->send(t->context, mine.address, local, 40));
    for (uint64_t i = 0; i < 30; i++)
        CHECK_OK(t->memory->send(t->context, (char *)mine.address + 8, &i, sizeof i));
    CHECK_OK(t->memory->copy(t->context, NULL, NULL, 0));
    CHECK_EQ(*(uint64_t *)((char *)mine.address + 8), 29);
    CHECK_EQ(memcmp((char *)mine.address + 16, local + 16, 24), 0);
    CHECK_OK(t->memory->adopt(t->context, (char *)mine.address + 4096, 100, &again));
    CHECK(again.address == (char *)mine.address + 4096 && again.bytes == 100);
    CHECK_OK(t->memory->name(t->context, &again, &name, &fd));
    CHECK(fd >= 0 && name.kind == HEMI_DEVICE_NAME_FD && name.offset == 4096);
    close(fd);
    t->memory->release(t->context, &again);
    CHECK_EQ(t->memory->kind(t->context, mine.address), HEM_MEMORY_DEVICE);
    CHECK_STATUS(t->memory->adopt(t->context, local, 1, &again), HEM_ERR_ARG);
    CHECK_STATUS(t->memory->adopt(t->context, mine.address, 5 << 20, &again), HEM_ERR_ARG);
    CHECK_STATUS(t->memory->alloc(t->context, UINT64_MAX - 5, &again), HEM_ERR_MEMORY);
    CHECK_OK(t->memory->map_host(t->context, local, sizeof local, false, &seen));
    CHECK(seen == local);
    t->memory->unmap_host(t->context, local, sizeof local);
    t->memory->release(t->context, &mine);
    t->memory->release(t->context, &mine);
}

/* Names that a peer may not have written so are refused. */
static void check_bad_names(test *t, const shown *peer, int fd) {
    hemi_device_memory got;
    hemi_device_name name = peer->name;
    name.uuid[0] ^= 1;
    CHECK_STATUS(t->memory->map(t->context, &name, fd, false, &got), HEM_ERR_UNSUPPORTED);
    name = peer->name;
    name.kind = HEMI_DEVICE_NAME_HANDLE;
    CHECK_STATUS(t->memory->map(t->context, &name, fd, false, &got), HEM_ERR_ARG);
    name = peer->name;
    name.offset = name.whole + 1;
    CHECK_STATUS(t->memory->map(t->context, &name, fd, false, &got), HEM_ERR_ARG);
    name = peer->name;
    name.bytes = UINT64_MAX;
    CHECK_STATUS(t->memory->map(t->context, &name, fd, false, &got), HEM_ERR_ARG);
    name = peer->name;
    name.whole *= 2;
    CHECK_STATUS(t->memory->map(t->context, &name, fd, false, &got), HEM_ERR_ARG);
    CHECK_STATUS(t->memory->map(t->context, &peer->name, -1, false, &got), HEM_ERR_ARG);
    name = peer->name;
    name.address = (uintptr_t)&got;
    CHECK_STATUS(t->memory->map(t->context, &name, fd, true, &got), HEM_ERR_ARG);
}

/* Map what the right neighbour shows, write into it, and find what the left one wrote here. */
static void check_peer(test *t, const hemi_device_memory *mine) {
    int right = harness_right(t->world);
    hemi_device_memory theirs;
    char path[64];
    shown peer;
    CHECK_OK(hem_get(t->window, right, 0, &peer, sizeof peer));
    (void)snprintf(path, sizeof path, "/proc/%d/fd/%d", peer.pid, peer.fd);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    CHECK(fd >= 0);
    check_bad_names(t, &peer, fd);
    /* Also within a process the descriptor leads to the same memory. */
    CHECK_OK(t->memory->map(t->context, &peer.name, fd, false, &theirs));
    close(fd);
    CHECK_EQ(theirs.bytes, mine->bytes);
    CHECK_EQ(t->memory->kind(t->context, theirs.address), HEM_MEMORY_DEVICE);
    harness_fill(theirs.address, 1000, (uint64_t)right);
    if (peer.pid == getpid()) {
        hemi_device_memory same;
        CHECK_OK(t->memory->map(t->context, &peer.name, -1, true, &same));
        CHECK_EQ((uintptr_t)same.address, peer.name.address);
        t->memory->release(t->context, &same);
    }
    harness_barrier(t->window);
    CHECK_FILLED(mine->address, 1000, (uint64_t)hem_world_rank(t->world));
    harness_barrier(t->window);
    t->memory->release(t->context, &theirs);
}

static void check_share(test *t) {
    hemi_device_memory whole, mine;
    shown *own = hem_window_memory(t->window);
    CHECK_OK(t->memory->alloc(t->context, 100000, &whole));
    CHECK_OK(t->memory->adopt(t->context, (char *)whole.address + 512, 5000, &mine));
    CHECK_OK(t->memory->name(t->context, &mine, &own->name, &own->fd));
    own->pid = getpid();
    harness_barrier(t->window);
    check_peer(t, &mine);
    close(own->fd);
    t->memory->release(t->context, &mine);
    t->memory->release(t->context, &whole);
}

static void count_call(void *arg) {
    uint64_t *counter = arg;
    __atomic_store_n(counter, *counter + 1, __ATOMIC_RELEASE);
}

static void wait_done(test *t, void *stream) {
    int64_t until = harness_now() + LIMIT;
    hem_status status;
    while ((status = t->stream->query(t->context, stream)) == HEM_ERR_TIMEOUT) {
        CHECK(harness_now() < until);
        harness_sleep_ms(1);
    }
    CHECK_OK(status);
}

static void check_words(test *t) {
    uint64_t *words = hemi_standin_alloc(4096);
    uint64_t counter = 0;
    uint64_t value = 9;
    void *one, *two;
    void *to[2] = {&words[8], &words[16]};
    const void *from[2] = {&words[0], &words[1]};
    size_t bytes[2] = {8, 8};

    CHECK_OK(t->stream->make(t->context, &one));
    CHECK_OK(t->stream->make(t->context, &two));
    CHECK_OK(t->stream->check(t->context, one, true));
    CHECK_STATUS(t->stream->check(t->context, NULL, true), HEM_ERR_UNSUPPORTED);
    CHECK_OK(t->stream->check(t->context, NULL, false));
    CHECK_STATUS(t->stream->check(t->context, words, false), HEM_ERR_ARG);
    CHECK_OK(t->stream->await(t->context, one, &words[0], 9));
    CHECK_OK(t->stream->call(t->context, one, count_call, &counter));
    CHECK_OK(t->stream->store(t->context, one, &words[1], 5));
    CHECK_OK(t->stream->copy(t->context, one, 2, to, from, bytes));
    CHECK_OK(t->stream->order(t->context, one, two));
    CHECK_OK(t->stream->store(t->context, two, &words[2], 6));
    CHECK_EQ(t->stream->query(t->context, two), HEM_ERR_TIMEOUT);
    CHECK_EQ(__atomic_load_n(&counter, __ATOMIC_ACQUIRE), 0);
    CHECK_EQ(__atomic_load_n(&words[2], __ATOMIC_ACQUIRE), 0);
    CHECK_OK(t->memory->copy(t->context, &words[0], &value, sizeof value));
    wait_done(t, two);
    CHECK_EQ(counter, 1);
    CHECK(words[1] == 5 && words[2] == 6 && words[8] == 9 && words[16] == 5);
    CHECK_OK(t->stream->store(t->context, NULL, &words[3], 8));
    wait_done(t, NULL);
    CHECK_EQ(words[3], 8);
    /* Words 1 and 2 to 33 and 36, word 8 to 40. */
    const hemi_device_rows rows[2] = {{&words[33], &words[1], 8, 2, 24, 8},
                                      {&words[40], &words[8], 8, 1, 0, 0}};
    CHECK_OK(t->stream->copy_rows(t->context, one, 2, rows));
    wait_done(t, one);
    CHECK(words[33] == 5 && words[36] == 6 && words[40] == 9 && words[34] == 0);
    t->stream->destroy(t->context, one);
    t->stream->destroy(t->context, two);
    hemi_standin_free(words);
}

/* Work that is left on a stream when it is destroyed is still done. */
static void check_destroy(test *t) {
    uint64_t *words = hemi_standin_alloc(4096);
    int64_t until = harness_now() + LIMIT;
    uint64_t value = 1;
    void *stream;
    CHECK_OK(t->stream->make(t->context, &stream));
    CHECK_OK(t->stream->await(t->context, stream, &words[0], 1));
    CHECK_OK(t->stream->store(t->context, stream, &words[1], 1));
    t->stream->destroy(t->context, stream);
    CHECK_OK(t->memory->copy(t->context, &words[0], &value, sizeof value));
    while (__atomic_load_n(&words[1], __ATOMIC_ACQUIRE) == 0)
        CHECK(harness_now() < until);
    hemi_standin_free(words);
}

static void check_refusals(test *t) {
    uint64_t args[256] = {0};
    hemi_launch launch = {HEMI_KERNELS, 1, 32, args, 8};
    hemi_standin_graph *graph;
    void *one, *two;
    CHECK_OK(t->stream->make(t->context, &one));
    CHECK_OK(t->stream->make(t->context, &two));
    CHECK_STATUS(t->stream->launch(t->context, one, &launch), HEM_ERR_SYSTEM);
    launch.kernel = HEMI_KERNEL_SENDRECV;
    launch.bytes = 1;
    CHECK_STATUS(t->stream->launch(t->context, one, &launch), HEM_ERR_SYSTEM);
    launch.threads = 33;
    CHECK_STATUS(t->stream->launch(t->context, one, &launch), HEM_ERR_ARG);
    CHECK(t->stream->fit(t->context, HEMI_KERNEL_SENDRECV, 256) >= 1);
    /* Captured streams: nobody waits for them, and they wait for nobody else. */
    CHECK_OK(hemi_standin_capture_begin(one));
    CHECK_STATUS(t->stream->query(t->context, one), HEM_ERR_UNSUPPORTED);
    CHECK_STATUS(t->stream->order(t->context, two, one), HEM_ERR_UNSUPPORTED);
    CHECK_OK(t->stream->order(t->context, one, two));
    CHECK_EQ(hemi_standin_capture_end(two, &graph), HEM_ERR_ARG);
    CHECK_EQ(hemi_standin_capture_end(one, &graph), HEM_ERR_ARG);
    CHECK_OK(t->stream->query(t->context, one));
    CHECK_OK(t->stream->query(t->context, two));
    t->stream->destroy(t->context, one);
    t->stream->destroy(t->context, two);
}

typedef struct walk_args {
    uint64_t *cells;
    uint64_t rounds;
    uint64_t *errors;
} walk_args;

DEVICE_KERNEL(walk, walk_args) {
    hem_group block = hem_block();
    uint64_t *cells = args->cells + 16 * hem_block_index();
    for (uint64_t round = 1; round <= args->rounds; round++) {
        cells[block.rank] = round;
        hem_group_sync(block);
        if (cells[(block.rank + 1) % block.size] != round)
            hemd_add64_relaxed(args->errors, 1);
        hem_group_sync(block);
    }
}

/* With warps that are stopped anywhere the barriers still hold. */
static void check_delays(test *t) {
    uint64_t *words = hemi_standin_alloc(4096);
    uint64_t before = hemi_standin_delays();
    walk_args args = {words, (uint64_t)harness_rounds(20), words + 256};
    device_stream stream = device_stream_create();
    int64_t until = harness_now() + LIMIT / 2;
    harness_barrier(t->window);
    CHECK_EQ(hemi_standin_delay(300), HEM_OK);
    while (hemi_standin_delays() < before + 5) {
        CHECK(harness_now() < until);
        device_launch(walk, stream, 2, 4, &args);
        device_stream_sync(stream);
    }
    harness_barrier(t->window);
    CHECK_EQ(hemi_standin_delay(0), HEM_OK);
    CHECK_EQ(words[256], 0);
    device_stream_destroy(stream);
    hemi_standin_free(words);
}

int rank_main(hem_world *world) {
    test t = {.world = world};
    size_t held;
    t.window = harness_window(world, sizeof(shown));
    harness_barrier(t.window);
    held = hemi_standin_held();
    harness_barrier(t.window);
    check_open(&t);
    check_memory(&t);
    check_share(&t);
    check_words(&t);
    check_destroy(&t);
    check_refusals(&t);
    check_delays(&t);
    hemi_device_module_get()->close(t.context);
    harness_barrier(t.window);
    CHECK_EQ(hemi_standin_held(), held);
    harness_destroy(t.window);
    harness_close(world, HEM_OK);
    return 0;
}
