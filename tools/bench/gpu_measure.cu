/* Capture, replay, events, medians: see gpu.h. */
#include "gpu.h"

#include <cuda.h>
#include <dlfcn.h>
#include <stdlib.h>

enum {
    SAMPLES_MOST = 15,
    SAMPLES_LEAST = 3,
    NODES_MOST = 4096
};

/* All samples of a configuration together take about so long. */
static const double samples_us = 150e3;
static const unsigned long long warm_ns = 200000000;

struct replay {
    cudaGraph_t graph;
    cudaGraphExec_t ready;
    cudaEvent_t before;
    cudaEvent_t after;
};

typedef CUresult (*kernel_params_fn)(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS *params);

/* The runtime does not know kernels that were launched through the driver, as NCCL's are. The driver
 * is loaded already. */
static kernel_params_fn find_kernel_params(void) {
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    void *fn = driver != NULL ? dlsym(driver, "cuGraphKernelNodeGetParams_v2") : NULL;

    if (fn == NULL)
        gpu_die("the driver has no cuGraphKernelNodeGetParams_v2");
    return (kernel_params_fn)fn;
}

static unsigned largest_grid(cudaGraph_t graph) {
    static thread_local cudaGraphNode_t nodes[NODES_MOST];
    kernel_params_fn kernel_params = find_kernel_params();
    size_t count = NODES_MOST;
    unsigned largest = 0;

    NEED_CUDA(cudaGraphGetNodes(graph, nodes, &count));
    for (size_t i = 0; i < count && i < NODES_MOST; i++) {
        CUDA_KERNEL_NODE_PARAMS params;
        cudaGraphNodeType type;
        /* The runtime has no name for stream memory operations. */
        if (cudaGraphNodeGetType(nodes[i], &type) != cudaSuccess) {
            (void)cudaGetLastError();
            continue;
        }
        if (type == cudaGraphNodeTypeKernel && kernel_params(nodes[i], &params) == CUDA_SUCCESS &&
            params.gridDimX * params.gridDimY * params.gridDimZ > largest)
            largest = params.gridDimX * params.gridDimY * params.gridDimZ;
    }
    return largest;
}

/* A graph that is made while a kernel of another rank waits for this one could wait for it. So all
 * ranks have theirs, on the device already, before anybody runs one. */
static void capture(struct gpu_rank *rank, gpu_body body, void *ctx, unsigned inner,
                    struct replay *replay) {
    gpu_finish(rank);
    gpu_meet(rank);
    NEED_CUDA(cudaEventCreate(&replay->before));
    NEED_CUDA(cudaEventCreate(&replay->after));
    NEED_CUDA(cudaStreamBeginCapture(rank->stream, cudaStreamCaptureModeRelaxed));
    for (unsigned i = 0; i < inner && body != NULL; i++)
        body(rank, ctx);
    NEED_CUDA(cudaStreamEndCapture(rank->stream, &replay->graph));
    NEED_CUDA(cudaGraphInstantiate(&replay->ready, replay->graph, 0));
    NEED_CUDA(cudaGraphUpload(replay->ready, rank->stream));
    gpu_finish(rank);
    gpu_meet(rank);
}

static void destroy(struct gpu_rank *rank, struct replay *replay) {
    gpu_finish(rank);
    gpu_meet(rank);
    NEED_CUDA(cudaGraphExecDestroy(replay->ready));
    NEED_CUDA(cudaGraphDestroy(replay->graph));
    NEED_CUDA(cudaEventDestroy(replay->before));
    NEED_CUDA(cudaEventDestroy(replay->after));
    gpu_meet(rank);
}

/* The microseconds of one replay on this rank. */
static double sample(struct gpu_rank *rank, const struct replay *replay) {
    float ms = 0;

    gpu_meet(rank);
    NEED_CUDA(cudaGraphLaunch(replay->ready, rank->stream));
    NEED_CUDA(cudaEventRecord(replay->before, rank->stream));
    NEED_CUDA(cudaGraphLaunch(replay->ready, rank->stream));
    NEED_CUDA(cudaEventRecord(replay->after, rank->stream));
    gpu_finish(rank);
    NEED_CUDA(cudaEventElapsedTime(&ms, replay->before, replay->after));
    return (double)ms * 1000;
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a;
    double y = *(const double *)b;

    return (x > y) - (x < y);
}

static __global__ void spin_kernel(unsigned long long ns) {
    unsigned long long begin, now;

    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
    do {
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    } while (now - begin < ns);
}

void gpu_warm(struct gpu_rank *rank) {
    spin_kernel<<<rank->processors, 256, 0, rank->stream>>>(warm_ns);
    NEED_CUDA(cudaGetLastError());
    gpu_finish(rank);
    gpu_meet(rank);
}

/* An odd number, the same on all ranks. */
static int samples_for(struct gpu_rank *rank, double us) {
    gpu_max(rank, &us, 1);
    double fit = samples_us / (2 * us + 1);
    int count = fit > SAMPLES_MOST ? SAMPLES_MOST : (int)fit;

    return count < SAMPLES_LEAST ? SAMPLES_LEAST : count | 1;
}

struct gpu_result gpu_measure(struct gpu_rank *rank, gpu_body body, void *ctx, unsigned inner) {
    struct replay replay;
    double us[SAMPLES_MOST];
    struct gpu_result result;

    capture(rank, body, ctx, inner, &replay);
    result.blocks = largest_grid(replay.graph);
    (void)sample(rank, &replay);
    int count = samples_for(rank, sample(rank, &replay));
    for (int i = 0; i < count; i++)
        us[i] = sample(rank, &replay);
    gpu_max(rank, us, (size_t)count);
    qsort(us, (size_t)count, sizeof(us[0]), compare);
    result.us = us[count / 2] / inner;
    destroy(rank, &replay);
    return result;
}

unsigned gpu_inner(size_t bytes) {
    return bytes <= 65536 ? 64 : bytes <= (1u << 20) ? 16 : bytes <= (16u << 20) ? 4 : 1;
}
