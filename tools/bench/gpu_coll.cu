/*
 * gpu-allreduce: the sum of vectors of n bytes of floats, to all ranks.
 * gpu-allgather: n bytes of every rank to all ranks.
 *
 * hem   a persistent collective, started on the stream
 * nccl  ncclAllReduce, ncclAllGather
 * raw   what as many blocks can move, at the same time as the other ranks', without waiting for
 *       anything. At the least a rank loads n bytes and stores n of a sum, its share from and to
 *       everybody: a plain copy. Of an all-gather it loads its own n bytes once and stores them for
 *       each rank. Nothing is added here, and all is this rank's own memory
 *
 * Each with as many blocks as it likes, raw with its part of the multiprocessors, and then with at
 * most so many (--blocks).
 */
#include "gpu.h"
#include "gpu_nccl.h"

enum {
    THREADS = 256
};

struct coll {
    size_t bytes;
    bool reduces;
    unsigned blocks; /* at most; 0: as it likes */
    unsigned char *send;
    unsigned char *recv;
    hem_op *op;
    struct gpu_nccl *nccl;
};

/* Whole numbers, whose sums floats hold. `factor` is the rank's number plus 1, or their sum. */
static __device__ float value_of(size_t i, unsigned turn, unsigned factor) {
    return (float)(((unsigned)(i % 8191u) + turn) * factor);
}

static __global__ void fill_kernel(float *memory, size_t count, unsigned turn, unsigned factor) {
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < count;
         i += (size_t)gridDim.x * blockDim.x)
        memory[i] = value_of(i, turn, factor);
}

static __global__ void check_kernel(const float *memory, size_t count, unsigned turn,
                                    unsigned factor, unsigned *wrong) {
    unsigned mine = 0;

    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < count;
         i += (size_t)gridDim.x * blockDim.x)
        mine += memory[i] != value_of(i, turn, factor);
    if (mine > 0)
        atomicAdd(wrong, mine);
}

static void check_sum(struct gpu_rank *rank, struct coll *coll, unsigned turn) {
    int sum = rank->ranks * (rank->ranks + 1) / 2;
    unsigned factor = (unsigned)(rank->args->who == GPU_RAW ? rank->rank + 1 : sum);
    unsigned wrong = 0;

    NEED_CUDA(cudaMemsetAsync(rank->wrong, 0, sizeof(wrong), rank->stream));
    check_kernel<<<rank->processors, THREADS, 0, rank->stream>>>(
        (const float *)(void *)coll->recv, coll->bytes / sizeof(float), turn, factor, rank->wrong);
    NEED_CUDA(cudaGetLastError());
    NEED_CUDA(
        cudaMemcpyAsync(&wrong, rank->wrong, sizeof(wrong), cudaMemcpyDeviceToHost, rank->stream));
    gpu_finish(rank);
    if (wrong > 0)
        gpu_die("rank %d: %u sums of %zu are wrong", rank->rank, wrong,
                coll->bytes / sizeof(float));
}

static size_t recv_bytes(const struct gpu_rank *rank, const struct coll *coll) {
    return coll->reduces ? coll->bytes : coll->bytes * (size_t)rank->ranks;
}

static void by_nccl(struct gpu_rank *rank, struct coll *coll) {
    if (coll->reduces)
        gpu_nccl_allreduce(rank, coll->nccl, coll->send, coll->recv, coll->bytes);
    else
        gpu_nccl_allgather(rank, coll->nccl, coll->send, coll->recv, coll->bytes);
}

static void by_copy(struct gpu_rank *rank, const struct coll *coll) {
    int devices = 1;
    NEED_CUDA(cudaGetDeviceCount(&devices));
    int together = (rank->ranks + devices - 1) / devices; /* ranks of a GPU */
    unsigned share = (unsigned)max(rank->processors / together, 1);
    unsigned blocks = coll->blocks > 0 ? coll->blocks : share;

    if (coll->reduces)
        gpu_copy(rank, coll->recv, coll->send, coll->bytes, blocks);
    else
        gpu_spread(rank, coll->recv, coll->send, coll->bytes, (unsigned)rank->ranks, blocks);
}

static void body(struct gpu_rank *rank, void *ctx) {
    struct coll *coll = (struct coll *)ctx;

    if (rank->args->who == GPU_HEM)
        NEED_HEM(hem_op_start_on(coll->op, rank->hem));
    else if (rank->args->who == GPU_RAW)
        by_copy(rank, coll);
    else
        by_nccl(rank, coll);
}

static void verify(struct gpu_rank *rank, struct coll *coll, unsigned turn) {
    bool raw = rank->args->who == GPU_RAW;

    if (coll->reduces)
        fill_kernel<<<rank->processors, THREADS, 0, rank->stream>>>((float *)(void *)coll->send,
                                                                    coll->bytes / sizeof(float),
                                                                    turn, (unsigned)rank->rank + 1);
    else
        gpu_fill(rank, coll->send, coll->bytes, 100 * turn + (unsigned)rank->rank);
    NEED_CUDA(cudaGetLastError());
    NEED_CUDA(cudaMemsetAsync(coll->recv, 0x55, recv_bytes(rank, coll), rank->stream));
    gpu_finish(rank);
    gpu_meet(rank);
    body(rank, coll);
    gpu_finish(rank);
    gpu_meet(rank);
    if (coll->reduces)
        check_sum(rank, coll, turn);
    for (int from = 0; from < rank->ranks && !coll->reduces; from++)
        gpu_check(rank, coll->recv + (size_t)from * coll->bytes, coll->bytes,
                  100 * turn + (unsigned)(raw ? rank->rank : from));
}

static void plan(struct gpu_rank *rank, struct coll *coll) {
    hem_coll what = {};

    what.struct_size = sizeof(what);
    what.kind = coll->reduces ? HEM_ALLREDUCE : HEM_ALLGATHER;
    what.dtype = coll->reduces ? HEM_F32 : HEM_BYTE;
    what.op = coll->reduces ? HEM_SUM : (hem_reduction)0;
    what.send = coll->send;
    what.recv = coll->recv;
    what.count = coll->reduces ? coll->bytes / sizeof(float) : coll->bytes;
    what.blocks = coll->blocks;
    NEED_HEM(hem_coll_plan(rank->world, &what, &coll->op));
}

static void run_size(struct gpu_rank *rank, struct coll *coll) {
    struct gpu_line line = {NULL, coll->blocks, coll->bytes, 0, 0};

    if (rank->args->who == GPU_RAW && coll->bytes % 16 != 0)
        return; /* plain copies are of whole vectors */
    gpu_watch(rank, "%u blocks, %zu bytes", coll->blocks, coll->bytes);
    line.touched = (coll->bytes + recv_bytes(rank, coll)) * (size_t)rank->ranks;
    if (rank->args->who == GPU_HEM)
        plan(rank, coll);
    verify(rank, coll, 1);
    struct gpu_result result = gpu_measure(rank, body, coll, gpu_inner(coll->bytes));
    verify(rank, coll, 2);
    if (coll->nccl != NULL)
        gpu_nccl_check(rank);
    if (coll->blocks > 0 && result.blocks > coll->blocks)
        gpu_die("%u blocks were launched where %u are allowed", result.blocks, coll->blocks);
    gpu_print(rank, &line, result);
    gpu_meet(rank);
    if (coll->op != NULL)
        NEED_HEM(hem_op_free(coll->op));
    coll->op = NULL;
}

/* With at most so many blocks; 0: as many as each likes. */
static void run_blocks(struct gpu_rank *rank, struct coll *coll, unsigned blocks) {
    const struct hemt_sizes *sizes = &rank->args->sizes;

    coll->blocks = blocks;
    gpu_watch(rank, "set-up with %u blocks", blocks);
    if (rank->args->who == GPU_NCCL)
        coll->nccl = gpu_nccl_open(rank, blocks);
    for (size_t i = 0; i < sizes->count; i++) {
        coll->bytes = sizes->bytes[i];
        run_size(rank, coll);
    }
    if (coll->nccl != NULL)
        gpu_nccl_close(rank, coll->nccl);
    coll->nccl = NULL;
}

void gpu_coll(struct gpu_rank *rank) {
    const struct hemt_sizes *sizes = &rank->args->sizes;
    struct coll coll = {};
    size_t most = 0;

    coll.reduces = rank->args->kind == BENCH_GPU_ALLREDUCE;
    for (size_t i = 0; i < sizes->count; i++) {
        most = sizes->bytes[i] > most ? sizes->bytes[i] : most;
        if (coll.reduces && sizes->bytes[i] % sizeof(float) != 0)
            gpu_die("sizes of gpu-allreduce are multiples of 4");
    }
    coll.bytes = most;
    coll.send = gpu_alloc(rank, most);
    coll.recv = gpu_alloc(rank, recv_bytes(rank, &coll));
    run_blocks(rank, &coll, 0);
    for (size_t b = 0; b < rank->args->blocks.count; b++)
        run_blocks(rank, &coll, (unsigned)rank->args->blocks.bytes[b]);
    if (rank->args->who == GPU_NCCL)
        gpu_nccl_tell(rank);
    gpu_free(rank, coll.send);
    gpu_free(rank, coll.recv);
}
