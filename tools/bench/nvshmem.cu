/*
 * hem-bench-nvshmem: NVSHMEM on the benchmarks gpu-signal and gpu-put, in the same ways as Hem.
 *
 * NVSHMEM's device code has to be linked, so this is a program of its own that is built only where
 * NVSHMEM was found; nothing else of Hem knows of it. Its ranks are processes. Hem starts them, lets
 * them meet, and carries NVSHMEM's name for the job from rank 0 to the others. "block-1024" has
 * blocks of 1024 threads instead of 512.
 */
#include "gpu.h"

#include <nvshmem.h>
#include <nvshmemx.h>

enum {
    ROUNDS = 500,
    ROUNDS_CHECKED = 50,
    BLOCK_THREADS = 512,
    WIDE_THREADS = 1024,
    PUT_THREADS = 1024
};

enum what {
    SIGNAL,
    THREAD,
    WARP,
    BLOCK
};

struct trip {
    uint64_t *flag;        /* symmetric */
    unsigned char *target; /* symmetric */
    unsigned char *source;
    size_t bytes;
    uint64_t *turn; /* how many round trips there were, for ever */
    unsigned *wrong;
    unsigned rounds;
    bool checked;
    int rank;
};

static __device__ unsigned char byte_of(int rank, uint64_t turn, uint64_t i) {
    return (unsigned char)(i * 7 + turn * 13 + (uint64_t)rank * 101 + (i >> 8));
}

template <enum what WHAT> static __device__ void send_one(const struct trip &trip, uint64_t turn) {
    int peer = 1 - trip.rank;

    if (trip.checked && WHAT != SIGNAL) {
        for (uint64_t i = threadIdx.x; i < trip.bytes; i += blockDim.x)
            trip.source[i] = byte_of(trip.rank, turn, i);
        __syncthreads();
    }
    if (WHAT == SIGNAL)
        nvshmemx_signal_op(trip.flag, turn, NVSHMEM_SIGNAL_SET, peer);
    else if (WHAT == THREAD)
        nvshmem_putmem_signal_nbi(trip.target, trip.source, trip.bytes, trip.flag, turn,
                                  NVSHMEM_SIGNAL_SET, peer);
    else if (WHAT == WARP)
        nvshmemx_putmem_signal_nbi_warp(trip.target, trip.source, trip.bytes, trip.flag, turn,
                                        NVSHMEM_SIGNAL_SET, peer);
    else
        nvshmemx_putmem_signal_nbi_block(trip.target, trip.source, trip.bytes, trip.flag, turn,
                                         NVSHMEM_SIGNAL_SET, peer);
}

template <enum what WHAT> static __device__ void await_one(const struct trip &trip, uint64_t turn) {
    if (threadIdx.x == 0)
        nvshmem_signal_wait_until(trip.flag, NVSHMEM_CMP_GE, turn);
    __syncthreads();
    if (!trip.checked || WHAT == SIGNAL)
        return;
    bool wrong = false;
    for (uint64_t i = threadIdx.x; i < trip.bytes; i += blockDim.x)
        wrong |= trip.target[i] != byte_of(1 - trip.rank, turn, i);
    if (wrong)
        atomicMax(trip.wrong, 1u);
    __syncthreads();
}

/* MOST: the threads of a block. */
template <enum what WHAT, unsigned MOST>
static __global__ void __launch_bounds__(MOST) trip_kernel(struct trip trip) {
    uint64_t turn = *trip.turn;

    __syncthreads();
    for (unsigned i = 0; i < trip.rounds; i++) {
        turn++;
        if (trip.rank == 0)
            send_one<WHAT>(trip, turn);
        await_one<WHAT>(trip, turn);
        if (trip.rank == 1)
            send_one<WHAT>(trip, turn);
    }
    if (threadIdx.x == 0)
        *trip.turn = turn;
}

template <enum what WHAT, unsigned MOST = BLOCK_THREADS>
static void launch(struct gpu_rank *rank, void *ctx) {
    unsigned threads = WHAT <= THREAD ? 1 : WHAT == WARP ? 32 : MOST;

    trip_kernel<WHAT, MOST><<<1, threads, 0, rank->stream>>>(*(struct trip *)ctx);
    NEED_CUDA(cudaGetLastError());
}

struct ways {
    const char *name;
    void (*body)(struct gpu_rank *rank, void *ctx);
    bool data;
    size_t most; /* bytes, beyond which it takes longer than anybody would have it */
};

static const struct ways all_ways[] = {
    {"signal", launch<SIGNAL>, false, SIZE_MAX},
    {"thread", launch<THREAD>, true, 8192},
    {"warp", launch<WARP>, true, SIZE_MAX},
    {"block", launch<BLOCK>, true, SIZE_MAX},
    {"block-1024", launch<BLOCK, WIDE_THREADS>, true, SIZE_MAX},
};

/* NVSHMEM itself. */

static void need(int error, const char *what) {
    if (error != 0)
        gpu_die("%s failed: %d", what, error);
}

static void begin(struct gpu_rank *rank) {
    nvshmemx_uniqueid_t id = NVSHMEMX_UNIQUEID_INITIALIZER;
    nvshmemx_init_attr_t attributes = NVSHMEMX_INIT_ATTR_INITIALIZER;

    if (rank->args->who != GPU_NVSHMEM || !rank->args->processes)
        gpu_die("ranks of NVSHMEM are processes");
    if (rank->ranks != 2)
        gpu_die("NVSHMEM is measured with 2 ranks");
    if (rank->rank == 0)
        need(nvshmemx_get_uniqueid(&id), "nvshmemx_get_uniqueid");
    NEED_HEM(hem_broadcast(rank->world, &id, sizeof(id), HEM_U8, 0, GPU_LIMIT_NS));
    need(nvshmemx_set_attr_uniqueid_args(rank->rank, rank->ranks, &id, &attributes),
         "nvshmemx_set_attr_uniqueid_args");
    need(nvshmemx_init_attr(NVSHMEMX_INIT_WITH_UNIQUEID, &attributes), "nvshmemx_init_attr");
    if (nvshmem_ptr(nvshmem_malloc(8), 1 - rank->rank) == NULL)
        gpu_die("NVSHMEM has not mapped the other rank's memory: it would go another way");
    gpu_note(rank, "NVSHMEM %d.%d", NVSHMEM_VENDOR_MAJOR_VERSION, NVSHMEM_VENDOR_MINOR_VERSION);
}

static void *symmetric(size_t bytes) {
    void *memory = nvshmem_malloc(bytes);

    if (memory == NULL)
        gpu_die("nvshmem_malloc has no %zu bytes", bytes);
    return memory;
}

static size_t largest(const struct gpu_rank *rank) {
    size_t most = 0;

    for (size_t i = 0; i < rank->args->sizes.count; i++)
        most = rank->args->sizes.bytes[i] > most ? rank->args->sizes.bytes[i] : most;
    return most;
}

static void look(struct gpu_rank *rank, const struct trip *trip) {
    unsigned wrong = 0;

    NEED_CUDA(
        cudaMemcpyAsync(&wrong, trip->wrong, sizeof(wrong), cudaMemcpyDeviceToHost, rank->stream));
    gpu_finish(rank);
    if (wrong != 0)
        gpu_die("rank %d: a payload of %zu bytes is wrong", rank->rank, trip->bytes);
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
    look(rank, trip);
    trip->rounds = ROUNDS;
    trip->checked = false;
    struct gpu_result result = gpu_measure(rank, way->body, trip, 1);
    result.us /= ROUNDS;
    gpu_print(rank, &line, result);
}

void gpu_signal(struct gpu_rank *rank) {
    const struct hemt_sizes *sizes = &rank->args->sizes;
    struct trip trip = {};
    size_t most = largest(rank);

    begin(rank);
    trip.rank = rank->rank;
    trip.flag = (uint64_t *)symmetric(256);
    trip.target = (unsigned char *)symmetric(most);
    trip.source = (unsigned char *)symmetric(most);
    trip.turn = (uint64_t *)(void *)gpu_alloc(rank, 256);
    trip.wrong = (unsigned *)(void *)(trip.turn + 1);
    NEED_CUDA(cudaMemsetAsync(trip.flag, 0, 256, rank->stream));
    NEED_CUDA(cudaMemsetAsync(trip.turn, 0, 256, rank->stream));
    gpu_finish(rank);
    gpu_meet(rank);
    for (size_t i = 0; i < sizes->count; i++) {
        for (const struct ways &way : all_ways) {
            if ((way.data || i == 0) && sizes->bytes[i] <= way.most)
                run_way(rank, &trip, &way, sizes->bytes[i]);
        }
    }
    gpu_free(rank, trip.turn);
}

/* gpu-put. */

struct put {
    unsigned char *target; /* symmetric */
    unsigned char *source;
    size_t bytes;
    unsigned blocks;
};

static __global__ void __launch_bounds__(PUT_THREADS) put_kernel(struct put put) {
    size_t share = (put.bytes + gridDim.x - 1) / gridDim.x;
    share = (share + 127) / 128 * 128;
    size_t from = share * blockIdx.x;

    if (from >= put.bytes)
        return;
    size_t n = put.bytes - from < share ? put.bytes - from : share;
    nvshmemx_putmem_nbi_block(put.target + from, put.source + from, n, 1);
}

static void put_body(struct gpu_rank *rank, void *ctx) {
    const struct put *put = (const struct put *)ctx;

    if (rank->rank == 0)
        put_kernel<<<put->blocks, PUT_THREADS, 0, rank->stream>>>(*put);
    NEED_CUDA(cudaGetLastError());
}

static void verify(struct gpu_rank *rank, struct put *put, uint32_t seed) {
    gpu_fill(rank, rank->rank == 1 ? put->target : put->source, put->bytes,
             rank->rank == 1 ? ~seed : seed);
    gpu_finish(rank);
    gpu_meet(rank);
    put_body(rank, put);
    gpu_finish(rank);
    gpu_meet(rank);
    if (rank->rank == 1)
        gpu_check(rank, put->target, put->bytes, seed);
}

void gpu_put(struct gpu_rank *rank) {
    const struct gpu_args *args = rank->args;
    struct put put = {};
    size_t most = largest(rank);

    begin(rank);
    put.target = (unsigned char *)symmetric(most);
    put.source = (unsigned char *)symmetric(most);
    for (size_t i = 0; i < args->sizes.count; i++) {
        for (size_t b = 0; b < args->blocks.count; b++) {
            put.bytes = args->sizes.bytes[i];
            put.blocks = (unsigned)args->blocks.bytes[b];
            struct gpu_line line = {NULL, put.blocks, put.bytes, 0, 2 * put.bytes};
            gpu_watch(rank, "%u blocks, %zu bytes", put.blocks, put.bytes);
            verify(rank, &put, 3);
            struct gpu_result result = gpu_measure(rank, put_body, &put, gpu_inner(put.bytes));
            verify(rank, &put, 4);
            gpu_print(rank, &line, result);
        }
    }
}

/* The others are not compared. */

void gpu_sendrecv(struct gpu_rank *rank) {
    (void)rank;
    gpu_die("NVSHMEM is not measured here");
}

void gpu_exchange(struct gpu_rank *rank) {
    gpu_sendrecv(rank);
}

void gpu_coll(struct gpu_rank *rank) {
    gpu_sendrecv(rank);
}
