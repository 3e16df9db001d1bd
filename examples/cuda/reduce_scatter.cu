/*
 * Reduce-scatter as a kernel: `reduce_scatter 4`, or `hem run -n 4 reduce_scatter`. The kernel and how
 * it works are in reduce_scatter.cuh; here it is launched a thousand times, and every sum is looked
 * at.
 */
#include "program.cuh"
#include "reduce_scatter.cuh"

enum {
    COUNT = 5003,
    BLOCKS = 4,
    THREADS = 256,
    ROUNDS = 1000
};

static __global__ void __launch_bounds__(THREADS)
    begin(const __grid_constant__ reduce_scatter_args args) {
    reduce_scatter_begin_kernel(&args);
}

static __global__ void __launch_bounds__(THREADS)
    reduce_scatter(const __grid_constant__ reduce_scatter_args args) {
    reduce_scatter_kernel(&args);
}

static void compare(const struct program *p, const double *out, int round) {
    const double n = p->ranks;
    for (int i = 0; i < COUNT; i++) {
        double want = n * (p->rank * COUNT + i) + 100 * n * (n - 1) / 2 + n * 1e6 * round;
        if (out[i] == want)
            continue;
        fprintf(stderr, "reduce_scatter: rank %d, round %d: number %d is %.0f, not %.0f\n", p->rank,
                round, i, out[i], want);
        exit(1);
    }
}

static void run_rounds(const struct program *p, const reduce_scatter_args *args, double *mine,
                       double *numbers, double *out) {
    const int all = p->ranks * COUNT;
    begin<<<BLOCKS, THREADS, 0, p->stream>>>(*args);
    check(p, cudaGetLastError());
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < all; i++)
            numbers[i] = i + 100.0 * p->rank + 1e6 * round;
        copy(p, mine, numbers, (size_t)all * sizeof *mine);
        reduce_scatter<<<BLOCKS, THREADS, 0, p->stream>>>(*args);
        check(p, cudaGetLastError());
        copy(p, out, args->out, COUNT * sizeof *out);
        finish(p);
        compare(p, out, round);
    }
}

static void run(struct program *p) {
    const size_t all = (size_t)p->ranks * COUNT * sizeof(double);
    double *numbers = (double *)host_memory(p, all),
           *out = (double *)host_memory(p, COUNT * sizeof *out);
    double *mine = (double *)device_memory(p, all);
    reduce_scatter_args args;

    make_window(p, all, REDUCE_SCATTER_BARRIERS * BLOCKS);
    args.w = p->dev;
    args.scratch = 0;
    args.count = COUNT;
    args.mine = mine;
    args.out = (double *)device_memory(p, COUNT * sizeof(double));
    args.failed = p->failed;
    load_kernel(p, (const void *)begin);
    load_kernel(p, (const void *)reduce_scatter);
    all_ready(p);
    run_rounds(p, &args, mine, numbers, out);
    drop_window(p);
    if (p->rank == 0)
        printf("reduce-scatter %d ranks, %d launches of %d numbers each: all as they should be\n",
               p->ranks, ROUNDS, COUNT);
}

int main(int argc, char **argv) {
    return run_program("reduce_scatter", argc, argv, run);
}
