/*
 * All-reduce as a kernel: `allreduce 4`, or `hem run -n 4 allreduce`. The kernel and how it works are
 * in allreduce.cuh. Here it is launched a thousand times, every other time by a CUDA graph in which
 * the launch was captured once, and every sum is looked at.
 */
#include "allreduce.cuh"
#include "program.cuh"

enum {
    COUNT = 10007,
    BLOCKS = 4,
    THREADS = 256,
    ROUNDS = 1000
};

static __global__ void __launch_bounds__(THREADS)
    allreduce(const __grid_constant__ allreduce_args args) {
    allreduce_kernel(&args);
}

static void compare(const struct program *p, const double *out, int round) {
    const double n = p->ranks;
    for (int i = 0; i < COUNT; i++) {
        double want = n * i + 100 * n * (n - 1) / 2 + n * 1e6 * round;
        if (out[i] == want)
            continue;
        fprintf(stderr, "allreduce: rank %d, round %d: number %d is %.0f, not %.0f\n", p->rank,
                round, i, out[i], want);
        exit(1);
    }
}

static cudaGraphExec_t capture(const struct program *p, const allreduce_args *args) {
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    check(p, cudaStreamBeginCapture(p->stream, cudaStreamCaptureModeThreadLocal));
    allreduce<<<BLOCKS, THREADS, 0, p->stream>>>(*args);
    check(p, cudaStreamEndCapture(p->stream, &graph));
    check(p, cudaGraphInstantiate(&exec, graph, 0));
    check(p, cudaGraphDestroy(graph));
    check(p, cudaGraphUpload(exec, p->stream));
    return exec;
}

static void run_rounds(const struct program *p, const allreduce_args *args, cudaGraphExec_t graph,
                       double *mine, double *numbers, double *out) {
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < COUNT; i++)
            numbers[i] = i + 100.0 * p->rank + 1e6 * round;
        copy(p, mine, numbers, COUNT * sizeof *mine);
        if (round % 2 == 0)
            allreduce<<<BLOCKS, THREADS, 0, p->stream>>>(*args);
        else
            check(p, cudaGraphLaunch(graph, p->stream));
        check(p, cudaGetLastError());
        copy(p, out, args->out, COUNT * sizeof *out);
        finish(p);
        compare(p, out, round);
    }
}

static void run(struct program *p) {
    const size_t all = COUNT * sizeof(double);
    double *numbers = (double *)host_memory(p, all), *out = (double *)host_memory(p, all);
    double *mine = (double *)device_memory(p, all);
    allreduce_args args;

    make_window(p, 2 * all, ALLREDUCE_BARRIERS * BLOCKS);
    args.w = p->dev;
    args.scratch[0] = 0;
    args.scratch[1] = all;
    args.count = COUNT;
    args.mine = mine;
    args.out = (double *)device_memory(p, all);
    args.turns = (uint64_t *)device_memory(p, BLOCKS * sizeof *args.turns);
    args.failed = p->failed;
    load_kernel(p, (const void *)allreduce);
    cudaGraphExec_t graph = capture(p, &args);
    all_ready(p);
    run_rounds(p, &args, graph, mine, numbers, out);
    drop_window(p);
    check(p, cudaGraphExecDestroy(graph));
    if (p->rank == 0)
        printf("all-reduce     %d ranks, %d launches of %d numbers each: all as they should be\n",
               p->ranks, ROUNDS, COUNT);
}

int main(int argc, char **argv) {
    return run_program("allreduce", argc, argv, run);
}
