/*
 * gpu-put: a kernel of rank 0 moves n bytes with so many blocks into memory of rank 1.
 *
 * hem     hem_dev_put by each block, of its share. Source and target are aligned. Of "odd" both begin
 *         1 byte behind an aligned address; of "apart" only the source does, so that aligned pieces
 *         of the two never meet. "proxy" is the same put and a flush, in a window whose peers are
 *         reached through their hosts; not for long ones
 * raw     a plain copy kernel with as many blocks, between two buffers of one GPU, always aligned
 * raw-engine  cudaMemcpyAsync between them
 */
#include "gpu.h"

#include <hem/device.cuh>

enum {
    PUT_THREADS = 1024,
    PUT_SHIFT = 256 /* room for what is not aligned */
};

/* Through a host a put takes so much longer that it is measured up to this length only. */
static const size_t longest_proxied = 8u << 20;

struct put_way {
    const char *name;
    size_t from; /* bytes by which the source is misaligned */
    size_t to;   /* the same of the target */
    bool proxied;
};

static const struct put_way aligned = {NULL, 0, 0, false};
static const struct put_way by_engine = {"engine", 0, 0, false};
static const struct put_way by_proxy = {"proxy", 0, 0, true};
static const struct put_way shifted[] = {{"odd", 1, 1, false}, {"apart", 1, 0, false}};

struct put {
    const struct put_way *way;
    size_t bytes;
    unsigned blocks; /* 0: by cudaMemcpyAsync */
    hem_window *window;
    hem_dev_window w;
    unsigned char *source;
    unsigned char *target; /* where it arrives: rank 1's, or with raw rank 0's own */
};

/* What a kernel moves. */
struct load {
    const unsigned char *source;
    uint64_t offset; /* in the window */
    uint64_t bytes;
    uint64_t share; /* of each block but the last */
};

template <bool FLUSHES>
static __global__ void __launch_bounds__(PUT_THREADS) put_kernel(hem_dev_window w, struct load it) {
    uint64_t from = it.share * hem_block_index();

    if (from >= it.bytes)
        return;
    uint64_t n = it.bytes - from < it.share ? it.bytes - from : it.share;
    if (hem_dev_put(w, hem_block(), 1, it.offset + from, it.source + from, n) != HEM_OK)
        __trap();
    if (FLUSHES && hem_dev_flush(w, hem_block(), 1) != HEM_OK)
        __trap();
}

static unsigned char *source(const struct put *put) {
    return put->source + put->way->from;
}

static unsigned char *target(const struct put *put) {
    return put->target + put->way->to;
}

/* Shares are whole lines, but for the last. Divided here: in the kernel that takes 0.3 us. */
static uint64_t share_of(const struct put *put) {
    uint64_t share = (put->bytes + put->blocks - 1) / put->blocks;
    return (share + HEM_DEV_LINE - 1) / HEM_DEV_LINE * HEM_DEV_LINE;
}

static void by_hem(struct gpu_rank *rank, const struct put *put) {
    struct load load = {source(put), put->way->to, put->bytes, share_of(put)};

    if (put->way->proxied)
        put_kernel<true><<<put->blocks, PUT_THREADS, 0, rank->stream>>>(put->w, load);
    else
        put_kernel<false><<<put->blocks, PUT_THREADS, 0, rank->stream>>>(put->w, load);
    NEED_CUDA(cudaGetLastError());
}

static void body(struct gpu_rank *rank, void *ctx) {
    const struct put *put = (const struct put *)ctx;

    if (rank->rank != 0)
        return;
    if (rank->args->who == GPU_HEM)
        by_hem(rank, put);
    else if (put->blocks > 0)
        gpu_copy(rank, target(put), source(put), put->bytes, put->blocks);
    else
        NEED_CUDA(cudaMemcpyAsync(target(put), source(put), put->bytes, cudaMemcpyDeviceToDevice,
                                  rank->stream));
}

static void verify(struct gpu_rank *rank, struct put *put, uint32_t seed) {
    bool here = rank->rank == (rank->args->who == GPU_HEM ? 1 : 0);

    if (here)
        gpu_fill(rank, target(put), put->bytes, ~seed);
    if (rank->rank == 0)
        gpu_fill(rank, source(put), put->bytes, seed);
    gpu_finish(rank);
    gpu_meet(rank);
    body(rank, put);
    gpu_finish(rank);
    gpu_meet(rank);
    if (here)
        gpu_check(rank, target(put), put->bytes, seed);
}

/* Through a host few are enough: nothing of a launch's time is seen there. */
static unsigned inner_of(const struct put *put) {
    unsigned inner = gpu_inner(put->bytes);
    return put->way->proxied && inner > 4 ? 4 : inner;
}

static void run_size(struct gpu_rank *rank, struct put *put, const struct put_way *way,
                     unsigned blocks) {
    struct gpu_line line = {way->name, blocks, put->bytes, 0, 2 * put->bytes};

    put->way = way;
    put->blocks = blocks;
    gpu_watch(rank, "%s, %u blocks, %zu bytes", way->name != NULL ? way->name : "aligned", blocks,
              put->bytes);
    verify(rank, put, 3);
    struct gpu_result result = gpu_measure(rank, body, put, inner_of(put));
    verify(rank, put, 4);
    gpu_print(rank, &line, result);
}

static void open_window(struct gpu_rank *rank, struct put *put, size_t bytes, bool proxied) {
    hem_window_options options = {};
    int peer = 1 - rank->rank;

    options.struct_size = sizeof(options);
    options.kind = HEM_MEMORY_DEVICE;
    options.bytes = bytes;
    options.proxy_peers = proxied ? &peer : NULL;
    options.proxy_peer_count = proxied ? 1 : 0;
    NEED_HEM(hem_window_create(rank->world, &options, &put->window));
    NEED_HEM(hem_window_device(put->window, &put->w));
    put->target = (unsigned char *)hem_window_memory(put->window);
}

static void open_memory(struct gpu_rank *rank, struct put *put, size_t most, bool proxied) {
    put->source = gpu_alloc(rank, most + PUT_SHIFT);
    if (rank->args->who == GPU_HEM)
        open_window(rank, put, most + PUT_SHIFT, proxied);
    else
        put->target = gpu_alloc(rank, most + PUT_SHIFT);
}

static void close_memory(struct gpu_rank *rank, struct put *put) {
    gpu_meet(rank);
    if (put->window != NULL)
        NEED_HEM(hem_window_destroy(put->window));
    else
        gpu_free(rank, put->target);
    gpu_free(rank, put->source);
    put->window = NULL;
}

/* All ways but that through hosts. */
static void run_ways(struct gpu_rank *rank, struct put *put) {
    const struct hemt_sizes *blocks = &rank->args->blocks;

    for (size_t b = 0; b < blocks->count; b++) {
        run_size(rank, put, &aligned, (unsigned)blocks->bytes[b]);
        for (const struct put_way &way : shifted) {
            if (rank->args->who == GPU_HEM)
                run_size(rank, put, &way, (unsigned)blocks->bytes[b]);
        }
    }
    if (rank->args->who == GPU_RAW)
        run_size(rank, put, &by_engine, 0);
}

static void run_proxied(struct gpu_rank *rank, struct put *put) {
    const struct hemt_sizes *blocks = &rank->args->blocks;

    for (size_t b = 0; b < blocks->count; b++)
        run_size(rank, put, &by_proxy, (unsigned)blocks->bytes[b]);
}

/* The largest size up to `most`, or 0. */
static size_t largest(const struct hemt_sizes *sizes, size_t most) {
    size_t found = 0;

    for (size_t i = 0; i < sizes->count; i++) {
        if (sizes->bytes[i] <= most && sizes->bytes[i] > found)
            found = sizes->bytes[i];
    }
    return found;
}

static void run_sizes(struct gpu_rank *rank, size_t most, bool proxied) {
    const struct hemt_sizes *sizes = &rank->args->sizes;
    struct put put = {};

    if (most == 0)
        return;
    gpu_watch(rank, "set-up%s", proxied ? " of the way through hosts" : "");
    open_memory(rank, &put, most, proxied);
    for (size_t i = 0; i < sizes->count; i++) {
        put.bytes = sizes->bytes[i];
        if (put.bytes <= most && proxied)
            run_proxied(rank, &put);
        else if (put.bytes <= most)
            run_ways(rank, &put);
    }
    close_memory(rank, &put);
}

/* The way through hosts comes last: where it does not work, all the others have been printed. */
void gpu_put(struct gpu_rank *rank) {
    const struct hemt_sizes *sizes = &rank->args->sizes;

    if (rank->ranks != 2)
        gpu_die("gpu-put is measured with 2 ranks");
    run_sizes(rank, largest(sizes, SIZE_MAX), false);
    if (rank->args->who == GPU_HEM)
        run_sizes(rank, largest(sizes, longest_proxied), true);
}
