/*
 * gpu-signal: round trips between two kernels, one per rank, of one block each.
 *
 * weak    hem_dev_signal without order, as a bare store, answered by the same
 * signal  hem_dev_signal that publishes what was put before
 * thread, warp, block
 *         hem_dev_put_signal of n bytes by such a group, answered by as many
 * stamped hem_dev_put_stamped of n bytes by a block, taken into a buffer and answered by as many
 * block-1024, stamped-1024
 *         the same by a block of 1024 threads; the others have 512
 * proxied as block, but the peers are reached through their hosts; not for long payloads
 *
 * A launch makes many round trips, of which the time is the mean. Each way is also run with payloads
 * that differ from turn to turn and are compared by the receiver.
 */
#include "gpu.h"

#include <hem/device.cuh>
#include <hem/device/stamped.h>

enum {
    ROUNDS = 500,
    ROUNDS_CHECKED = 50,
    ROUNDS_PROXIED = 50, /* which take much longer each */
    SIGNAL_ID = 0,
    BLOCK_THREADS = 512,
    WIDE_THREADS = 1024,
    WRONG_DATA = 100
};

enum what {
    WEAK,
    SIGNAL,
    PUT_SIGNAL,
    STAMPED
};

struct trip {
    hem_dev_window w;
    unsigned char *source;
    unsigned char *taken; /* where stamped data go */
    uint64_t bytes;
    uint64_t *turn; /* how many round trips there were, for ever */
    unsigned *failed;
    unsigned rounds;
    bool checked;
};

static __device__ unsigned char byte_of(int rank, uint64_t turn, uint64_t i) {
    return (unsigned char)(i * 7 + turn * 13 + (uint64_t)rank * 101 + (i >> 8));
}

template <enum what WHAT>
static __device__ hem_status send_one(const struct trip &trip, hem_group g, uint64_t turn) {
    int peer = 1 - trip.w.rank;

    if (WHAT == WEAK)
        return hem_dev_signal(trip.w, g, peer, SIGNAL_ID, HEM_SIGNAL_SET | HEM_SIGNAL_WEAK, turn);
    if (WHAT == SIGNAL)
        return hem_dev_signal(trip.w, g, peer, SIGNAL_ID, HEM_SIGNAL_SET, turn);
    if (trip.checked) {
        for (uint64_t i = g.rank; i < trip.bytes; i += g.size)
            trip.source[i] = byte_of(trip.w.rank, turn, i);
        hem_group_sync(g);
    }
    if (WHAT == STAMPED)
        return hem_dev_put_stamped(trip.w, g, peer, 0, trip.source, trip.bytes, turn);
    return hem_dev_put_signal_op(trip.w, g, peer, 0, trip.source, trip.bytes, SIGNAL_ID,
                                 HEM_SIGNAL_SET, turn);
}

template <enum what WHAT>
static __device__ hem_status await_one(const struct trip &trip, hem_group g, uint64_t turn) {
    int peer = 1 - trip.w.rank;

    if (WHAT == WEAK)
        return hem_dev_wait_signal_weak(trip.w, g, peer, SIGNAL_ID, HEM_GE, turn, HEM_SEC(5));
    hem_status status =
        WHAT == STAMPED
            ? hem_dev_take_stamped(trip.w, g, peer, 0, trip.taken, trip.bytes, turn, HEM_SEC(5))
            : hem_dev_wait_signal_from(trip.w, g, peer, SIGNAL_ID, HEM_GE, turn, HEM_SEC(5));
    if (status != HEM_OK || !trip.checked || WHAT == SIGNAL)
        return status;
    const unsigned char *came =
        WHAT == STAMPED ? trip.taken
                        : (const unsigned char *)hem_dev_address(trip.w, trip.w.rank, 0);
    bool wrong = false;
    for (uint64_t i = g.rank; i < trip.bytes; i += g.size)
        wrong |= came[i] != byte_of(peer, turn, i);
    if (wrong)
        atomicMax(trip.failed, WRONG_DATA);
    hem_group_sync(g);
    return HEM_OK;
}

/* MOST: the threads of a block. */
template <hem_scope SCOPE, enum what WHAT, unsigned MOST>
static __global__ void __launch_bounds__(MOST) trip_kernel(struct trip trip) {
    hem_group g = SCOPE == HEM_SCOPE_THREAD ? hem_thread()
                  : SCOPE == HEM_SCOPE_WARP ? hem_warp()
                                            : hem_block();
    uint64_t turn = *trip.turn;
    hem_status status = HEM_OK;

    hem_group_sync(g);
    for (unsigned i = 0; i < trip.rounds && status == HEM_OK; i++) {
        turn++;
        if (trip.w.rank == 0)
            status = send_one<WHAT>(trip, g, turn);
        if (status == HEM_OK)
            status = await_one<WHAT>(trip, g, turn);
        if (status == HEM_OK && trip.w.rank == 1)
            status = send_one<WHAT>(trip, g, turn);
    }
    if (g.rank == 0)
        *trip.turn = turn;
    if (g.rank == 0 && status != HEM_OK)
        atomicMax(trip.failed, (unsigned)-status);
}

template <hem_scope SCOPE, enum what WHAT, unsigned MOST = BLOCK_THREADS>
static void launch(struct gpu_rank *rank, void *ctx) {
    unsigned threads = SCOPE == HEM_SCOPE_THREAD ? 1 : SCOPE == HEM_SCOPE_WARP ? 32 : MOST;

    trip_kernel<SCOPE, WHAT, MOST><<<1, threads, 0, rank->stream>>>(*(struct trip *)ctx);
    NEED_CUDA(cudaGetLastError());
}

struct ways {
    const char *name;
    void (*body)(struct gpu_rank *rank, void *ctx);
    bool data;
    size_t most;      /* bytes, beyond which it takes longer than anybody would have it */
    unsigned touched; /* by both ranks, times the bytes */
    unsigned rounds;
};

static const struct ways all_ways[] = {
    {"weak", launch<HEM_SCOPE_THREAD, WEAK>, false, SIZE_MAX, 0, ROUNDS},
    {"signal", launch<HEM_SCOPE_THREAD, SIGNAL>, false, SIZE_MAX, 0, ROUNDS},
    {"thread", launch<HEM_SCOPE_THREAD, PUT_SIGNAL>, true, 8192, 4, ROUNDS},
    {"warp", launch<HEM_SCOPE_WARP, PUT_SIGNAL>, true, SIZE_MAX, 4, ROUNDS},
    {"block", launch<HEM_SCOPE_BLOCK, PUT_SIGNAL>, true, SIZE_MAX, 4, ROUNDS},
    {"block-1024", launch<HEM_SCOPE_BLOCK, PUT_SIGNAL, WIDE_THREADS>, true, SIZE_MAX, 4, ROUNDS},
    {"stamped", launch<HEM_SCOPE_BLOCK, STAMPED>, true, SIZE_MAX, 8, ROUNDS},
    {"stamped-1024", launch<HEM_SCOPE_BLOCK, STAMPED, WIDE_THREADS>, true, SIZE_MAX, 8, ROUNDS},
};

/* In a window of its own. */
static const struct ways proxied = {
    "proxied", launch<HEM_SCOPE_BLOCK, PUT_SIGNAL>, true, 65536, 4, ROUNDS_PROXIED};

static void look_for_failures(struct gpu_rank *rank, const struct trip *trip) {
    unsigned failed = 0;

    NEED_CUDA(cudaMemcpyAsync(&failed, trip->failed, sizeof(failed), cudaMemcpyDeviceToHost,
                              rank->stream));
    gpu_finish(rank);
    if (failed == WRONG_DATA)
        gpu_die("rank %d: a payload of %zu bytes is wrong", rank->rank, (size_t)trip->bytes);
    if (failed != 0)
        gpu_die("rank %d: a kernel ended with %s", rank->rank,
                hem_status_name((hem_status) - (int)failed));
}

static void run_way(struct gpu_rank *rank, struct trip *trip, const struct ways *way,
                    size_t bytes) {
    struct gpu_line line = {way->name, 0, bytes, 0, way->touched * bytes};

    gpu_watch(rank, "%s, %zu bytes", way->name, bytes);
    trip->bytes = way->data ? bytes : 0;
    trip->rounds = ROUNDS_CHECKED;
    trip->checked = true;
    gpu_meet(rank);
    way->body(rank, trip);
    look_for_failures(rank, trip);
    trip->rounds = way->rounds;
    trip->checked = false;
    struct gpu_result result = gpu_measure(rank, way->body, trip, 1);
    look_for_failures(rank, trip);
    result.us /= way->rounds;
    gpu_print(rank, &line, result);
}

static void run_all(struct gpu_rank *rank, struct trip *trip) {
    const struct hemt_sizes *sizes = &rank->args->sizes;

    for (size_t i = 0; i < sizes->count; i++) {
        for (const struct ways &way : all_ways) {
            if ((way.data || i == 0) && sizes->bytes[i] <= way.most)
                run_way(rank, trip, &way, sizes->bytes[i]);
        }
    }
}

static void run_proxied(struct gpu_rank *rank, struct trip *trip) {
    const struct hemt_sizes *sizes = &rank->args->sizes;

    for (size_t i = 0; i < sizes->count; i++) {
        if (sizes->bytes[i] <= proxied.most)
            run_way(rank, trip, &proxied, sizes->bytes[i]);
    }
}

/* `through_hosts`: the peer is reached through its host. */
static void run_window(struct gpu_rank *rank, struct trip *trip, size_t bytes, bool through_hosts) {
    hem_window_options options = {};
    int peer = 1 - rank->rank;
    hem_window *window;

    gpu_watch(rank, "set-up%s", through_hosts ? " of the way through hosts" : "");
    options.struct_size = sizeof(options);
    options.kind = HEM_MEMORY_DEVICE;
    options.bytes = bytes;
    options.proxy_peers = through_hosts ? &peer : NULL;
    options.proxy_peer_count = through_hosts ? 1 : 0;
    NEED_HEM(hem_window_create(rank->world, &options, &window));
    NEED_HEM(hem_window_device(window, &trip->w));
    if (through_hosts)
        run_proxied(rank, trip);
    else
        run_all(rank, trip);
    gpu_meet(rank);
    NEED_HEM(hem_window_destroy(window));
}

static size_t largest(const struct hemt_sizes *sizes) {
    size_t most = 0;

    for (size_t i = 0; i < sizes->count; i++)
        most = sizes->bytes[i] > most ? sizes->bytes[i] : most;
    return most;
}

/* The way through hosts comes last: where it does not work, all the others have been printed. Turns
 * go on counting, so that its first signal is a large number. */
void gpu_signal(struct gpu_rank *rank) {
    size_t most = largest(&rank->args->sizes);
    struct trip trip = {};

    if (rank->ranks != 2 || rank->args->who != GPU_HEM)
        gpu_die("gpu-signal is measured with 2 ranks over Hem");
    trip.source = gpu_alloc(rank, most);
    trip.taken = gpu_alloc(rank, most);
    trip.turn = (uint64_t *)(void *)gpu_alloc(rank, 256);
    trip.failed = (unsigned *)(void *)(trip.turn + 1);
    NEED_CUDA(cudaMemsetAsync(trip.source, 0, most, rank->stream));
    NEED_CUDA(cudaMemsetAsync(trip.turn, 0, 256, rank->stream));
    gpu_finish(rank);
    run_window(rank, &trip, 2 * most + 16, false); /* stamped data take twice the room */
    run_window(rank, &trip, most, true);
    gpu_free(rank, trip.source);
    gpu_free(rank, trip.taken);
    gpu_free(rank, trip.turn);
}
