/*
 * Making windows in device memory: every rank has its own number of bytes, also none; host and kernels
 * agree on where everything is; all that peers may write begins as zero; and every rank's kernels reach
 * every rank's memory.
 *
 * hem-test: ranks=1,2,3,5,8 timeout=90
 */
#include "window_kit.h"

#define RANKS_MAX 8

/* What a kernel finds in the tables. */
typedef struct found {
    hemd_peer peers[RANKS_MAX];
    hemd_home home;
    uint64_t dirty; /* words that are not zero */
    int64_t wrong;  /* calls that went wrong */
} found;

typedef struct look_args {
    hem_dev_window w;
    found *found_p;
} look_args;

HEM_DEV void count_dirty(uint64_t *dirty, const uint64_t *words, uint64_t n) {
    for (uint64_t i = 0; i < n; i++)
        *dirty += words[i] != 0;
}

DEVICE_KERNEL(look, look_args) {
    hem_dev_window w = args->w;
    found *f = args->found_p;
    if (hem_block().rank != 0)
        return;
    f->home = *w.home;
    for (int r = 0; r < w.size; r++) {
        uint64_t value = 1;
        f->peers[r] = w.peers[r];
        count_dirty(&f->dirty, (const uint64_t *)hem_dev_address(w, r, 0), w.peers[r].bytes / 8);
        count_dirty(&f->dirty, (const uint64_t *)w.peers[r].out, 2 * w.home->device_signals);
        count_dirty(&f->dirty, (const uint64_t *)w.peers[r].in, 2 * w.home->device_signals);
        count_dirty(&f->dirty, w.peers[r].in_arrivals, 2 * w.home->barriers);
        count_dirty(&f->dirty, w.peers[r].pair_epochs, w.home->barriers);
        for (uint32_t id = 0; id < w.home->device_signals; id++) {
            f->wrong += hem_dev_read_signal_from(w, r, id, &value) != HEM_OK;
            f->dirty += value != 0;
        }
    }
    count_dirty(&f->dirty, w.home->epochs, w.home->barriers);
    count_dirty(&f->dirty, w.home->counters, w.home->counter_count);
    f->wrong += hem_dev_trouble(w) != HEM_OK;
}

/* Rank `from` leaves its mark at offset 8 * from of everybody who has room. */
DEVICE_KERNEL(mark, look_args) {
    hem_dev_window w = args->w;
    for (int r = 0; r < w.size; r++) {
        uint64_t value = 1000 + (uint64_t)w.rank;
        if (w.peers[r].bytes < 8 * (uint64_t)w.size || hem_block().rank != 0)
            continue;
        *(uint64_t *)hem_dev_address(w, r, 8 * (uint64_t)w.rank) = value + 10 * (uint64_t)r;
    }
}

typedef struct test {
    hem_world *world;
    hem_window *window;
    device_stream stream;
    found *device;
    found host;
    int rank;
    int size;
} test;

/* Different for every rank; rank 1 and, in a world of five, rank 4 have nothing. */
static size_t bytes_of(int rank, size_t scale) {
    static const size_t bytes[] = {64, 0, 4096 + 8, 40, 0};
    return bytes[rank % 5] * scale;
}

static void check_host_side(test *t, size_t scale) {
    for (int r = 0; r < t->size; r++) {
        size_t bytes = bytes_of(r, scale);
        unsigned char *start = (unsigned char *)hem_window_peer_address(t->window, r, 0);
        CHECK_EQ(hem_window_bytes(t->window, r), bytes);
        CHECK((start == NULL) == (bytes == 0));
        CHECK(hem_window_peer_address(t->window, r, bytes) == NULL);
        if (bytes > 0)
            CHECK(hem_window_peer_address(t->window, r, bytes - 1) == start + bytes - 1);
        CHECK(t->host.peers[r].data == start || bytes == 0);
    }
    unsigned char *own = (unsigned char *)hem_window_memory(t->window);
    size_t bytes = bytes_of(t->rank, scale);
    for (int r = 0; bytes > 0 && r < t->size; r++)
        CHECK(hem_window_translate(t->window, own + bytes - 1, r) ==
              hem_window_peer_address(t->window, r, bytes - 1));
    if (bytes > 0)
        CHECK(hem_window_peer_address(t->window, t->rank, 0) == own);
    CHECK(hem_window_translate(t->window, own + bytes, t->rank) == NULL);
}

static void check_tables(test *t, size_t scale, uint32_t signals, uint32_t device_signals) {
    const hemd_home *home = &t->host.home;
    CHECK_EQ(home->signals, signals);
    CHECK_EQ(home->device_signals, device_signals);
    CHECK_EQ(home->barriers, 3);
    CHECK_EQ(home->counter_count, 5);
    CHECK_EQ(home->proxy_limit_ns, scale == 3 ? 77 : HEM_FOREVER);
    for (int r = 0; r < t->size; r++) {
        const hemd_peer *peer = &t->host.peers[r];
        CHECK_EQ(peer->route, r == t->rank ? HEMD_ROUTE_SELF : HEMD_ROUTE_DIRECT);
        CHECK_EQ(peer->bytes, bytes_of(r, scale));
        CHECK(peer->in != NULL && peer->out != NULL && peer->pair_epochs != NULL);
        CHECK((peer->out_host == NULL) == (signals == device_signals));
        CHECK((peer->in_host == NULL) == (signals == device_signals));
        /* Words of different writers share no line. */
        CHECK_EQ((uintptr_t)peer->in % HEM_DEV_LINE, 0);
        CHECK_EQ((uintptr_t)peer->in_arrivals % HEM_DEV_LINE, 0);
    }
    CHECK(t->host.peers[t->rank].out == t->host.peers[t->rank].in);
}

static void run_look(test *t) {
    look_args args;
    args.w = window_kit_dev(t->window);
    args.found_p = t->device;
    memset(&t->host, 0, sizeof t->host);
    device_copy(t->device, &t->host, sizeof t->host);
    CHECK_EQ(args.w.rank, t->rank);
    CHECK_EQ(args.w.size, t->size);
    device_launch(look, t->stream, 1, 1, &args);
    device_stream_sync(t->stream);
    device_copy(&t->host, t->device, sizeof t->host);
    CHECK_EQ(t->host.dirty, 0);
    CHECK_EQ(t->host.wrong, 0);
}

static void check_marks(test *t, size_t scale) {
    look_args args;
    args.w = window_kit_dev(t->window);
    args.found_p = t->device;
    harness_barrier(t->window);
    device_launch(mark, t->stream, 1, 1, &args);
    device_stream_sync(t->stream);
    harness_barrier(t->window);
    for (int r = 0; r < t->size; r++)
        for (int from = 0; from < t->size; from++) {
            uint64_t value = 0;
            if (bytes_of(r, scale) < 8 * (size_t)t->size)
                continue;
            CHECK_OK(hem_get(t->window, r, 8 * (size_t)from, &value, sizeof value));
            CHECK_EQ(value, 1000 + from + 10 * r);
        }
    harness_barrier(t->window);
}

static void check_one(test *t, size_t scale, uint32_t signals, uint32_t device_signals) {
    hem_window_options options = window_kit_options(bytes_of(t->rank, scale));
    options.signals = signals;
    options.device_signals = device_signals;
    options.barriers = 3;
    options.counters = 5;
    options.proxy_timeout_ns = scale == 3 ? 77 : 0;
    t->window = window_kit_create(t->world, &options);
    run_look(t);
    if (signals == 0)
        signals = 16;
    if (device_signals == 0)
        device_signals = signals > 4 ? signals - 4 : 0;
    check_tables(t, scale, signals, device_signals);
    check_host_side(t, scale);
    check_marks(t, scale);
    CHECK_OK(hem_window_destroy(t->window));
}

static void check_buffers(test *t) {
    hem_buffer buffers[2];
    hem_window_options options = window_kit_options(0);
    hem_buffer found_buffer;
    memset(buffers, 0, sizeof buffers);
    buffers[0].name = "a";
    buffers[0].dtype = HEM_F32;
    buffers[0].count = 3;
    buffers[1].name = "b";
    buffers[1].dtype = HEM_I64;
    buffers[1].count = 7 + (size_t)t->rank;
    options.buffers = buffers;
    options.buffer_count = 2;
    t->window = window_kit_create(t->world, &options);
    CHECK_OK(hem_window_buffer(t->window, "b", &found_buffer));
    CHECK_EQ(found_buffer.offset, 64);
    for (int r = 0; r < t->size; r++)
        CHECK_EQ(hem_window_bytes(t->window, r), 64 + 8 * (7 + (size_t)r));
    harness_barrier(t->window);
    CHECK_OK(hem_window_destroy(t->window));
}

int rank_main(hem_world *world) {
    test *t = (test *)calloc(1, sizeof *t);
    CHECK(t != NULL);
    t->world = world;
    t->rank = hem_world_rank(world);
    t->size = hem_world_size(world);
    t->stream = device_stream_create();
    t->device = (found *)device_alloc(sizeof *t->device);
    check_one(t, 1, 0, 0);
    check_one(t, 1000, 6, 0);
    check_one(t, 1, 7, 7);
    check_one(t, 3, 2, 1);
    check_one(t, 0, 4, 0);
    check_one(t, 1, 4096, 4000);
    check_buffers(t);
    device_free(t->device);
    device_stream_destroy(t->stream);
    free(t);
    harness_close(world, HEM_OK);
    return 0;
}
