/*
 * gpu-signal: round trips between two kernels, one per rank, of one block each.
 *
 * weak    hem_dev_signal without order, as a bare store, answered by the same
 * signal  hem_dev_signal that publishes what was put before
 * thread, warp, block
 *         hem_dev_put_signal of n bytes by such a group, answered by as many
 * stamped hem_dev_put_stamped of n bytes by a block, taken into a buffer and answered by as many
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
    SIGNAL_ID = 0,
    BLOCK_THREADS = 512,
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

template <hem_scope SCOPE, enum what WHAT>
static __global__ void __launch_bounds__(BLOCK_THREADS) trip_kernel(struct trip trip) {
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

template <hem_scope SCOPE, enum what WHAT> static void launch(struct gpu_rank *rank, void *ctx) {
    unsigned threads = SCOPE == HEM_SCOPE_THREAD ? 1 : SCOPE == HEM_SCOPE_WARP ? 32 : BLOCK_THREADS;

    trip_kernel<SCOPE, WHAT><<<1, threads, 0, rank->stream>>>(*(struct trip *)ctx);
    NEED_CUDA(cudaGetLastError());
}

struct ways {
    const char *name;
    void (*body)(struct gpu_rank *rank, void *ctx);
    bool data;
    size_t most; /* bytes, beyond which it takes longer than anybody would have it */
};

static const struct ways all_ways[] = {
    {"weak", launch<HEM_SCOPE_THREAD, WEAK>, false, SIZE_MAX},
    {"signal", launch<HEM_SCOPE_THREAD, SIGNAL>, false, SIZE_MAX},
    {"thread", launch<HEM_SCOPE_THREAD, PUT_SIGNAL>, true, 8192},
    {"warp", launch<HEM_SCOPE_WARP, PUT_SIGNAL>, true, SIZE_MAX},
    {"block", launch<HEM_SCOPE_BLOCK, PUT_SIGNAL>, true, SIZE_MAX},
    {"stamped", launch<HEM_SCOPE_BLOCK, STAMPED>, true, SIZE_MAX},
};

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
    struct gpu_line line = {way->name, 0, bytes, 0, 4 * bytes};

    gpu_watch(rank, "%s, %zu bytes", way->name, bytes);
    trip->bytes = way->data ? bytes : 0;
    trip->rounds = ROUNDS_CHECKED;
    trip->checked = true;
    gpu_meet(rank);
    way->body(rank, trip);
    look_for_failures(rank, trip);
    trip->rounds = ROUNDS;
    trip->checked = false;
    struct gpu_result result = gpu_measure(rank, way->body, trip, 1);
    look_for_failures(rank, trip);
    result.us /= ROUNDS;
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

void gpu_signal(struct gpu_rank *rank) {
    const struct hemt_sizes *sizes = &rank->args->sizes;
    hem_window_options options = {};
    struct trip trip = {};
    hem_window *window;

    if (rank->ranks != 2 || rank->args->who != GPU_HEM)
        gpu_die("gpu-signal is measured with 2 ranks over Hem");
    options.struct_size = sizeof(options);
    options.kind = HEM_MEMORY_DEVICE;
    for (size_t i = 0; i < sizes->count; i++)
        options.bytes = sizes->bytes[i] > options.bytes ? sizes->bytes[i] : options.bytes;
    size_t most = options.bytes;
    options.bytes = 2 * most + 16; /* stamped data take twice the room */
    NEED_HEM(hem_window_create(rank->world, &options, &window));
    NEED_HEM(hem_window_device(window, &trip.w));
    trip.source = gpu_alloc(rank, most);
    trip.taken = gpu_alloc(rank, most);
    trip.turn = (uint64_t *)(void *)gpu_alloc(rank, 256);
    trip.failed = (unsigned *)(void *)(trip.turn + 1);
    NEED_CUDA(cudaMemsetAsync(trip.source, 0, most, rank->stream));
    NEED_CUDA(cudaMemsetAsync(trip.turn, 0, 256, rank->stream));
    gpu_finish(rank);
    run_all(rank, &trip);
    gpu_meet(rank);
    NEED_HEM(hem_window_destroy(window));
    gpu_free(rank, trip.source);
    gpu_free(rank, trip.taken);
    gpu_free(rank, trip.turn);
}
