/*
 * All-gather as a kernel: `allgather 4`, or `hem run -n 4 allgather`. The kernel and how it works are
 * in allgather.cuh; here it is launched a thousand times, and every number is looked at.
 */
#include "allgather.cuh"
#include "program.cuh"

enum {
    COUNT = 10007,
    BLOCKS = 4,
    THREADS = 256,
    ROUNDS = 1000
};

static __global__ void __launch_bounds__(THREADS)
    allgather(const __grid_constant__ allgather_args args) {
    allgather_kernel(&args);
}

static int64_t number(int rank, int i, int round) {
    return rank * 100 + i + (int64_t)round * 1000000;
}

static void compare(const struct program *p, const int64_t *out, int round) {
    for (int r = 0; r < p->ranks; r++)
        for (int i = 0; i < COUNT; i++) {
            int64_t got = out[(size_t)r * COUNT + i];
            if (got == number(r, i, round))
                continue;
            fprintf(stderr,
                    "allgather: rank %d, round %d: number %d of rank %d is %lld, not %lld\n",
                    p->rank, round, i, r, (long long)got, (long long)number(r, i, round));
            exit(1);
        }
}

static void run_rounds(const struct program *p, const allgather_args *args, int64_t *mine,
                       int64_t *numbers, int64_t *out) {
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < COUNT; i++)
            numbers[i] = number(p->rank, i, round);
        copy(p, mine, numbers, COUNT * sizeof *mine);
        allgather<<<BLOCKS, THREADS, 0, p->stream>>>(*args);
        check(p, cudaGetLastError());
        copy(p, out, args->out, (size_t)p->ranks * COUNT * sizeof *out);
        finish(p);
        compare(p, out, round);
    }
}

static void run(struct program *p) {
    const size_t all = (size_t)p->ranks * COUNT * sizeof(int64_t);
    int64_t *numbers = (int64_t *)host_memory(p, COUNT * sizeof *numbers),
            *out = (int64_t *)host_memory(p, all);
    int64_t *mine = (int64_t *)device_memory(p, COUNT * sizeof *mine);
    allgather_args args;

    make_window(p, COUNT * sizeof(int64_t), ALLGATHER_BARRIERS * BLOCKS);
    args.w = p->dev;
    args.scratch = 0;
    args.count = COUNT;
    args.mine = mine;
    args.out = (int64_t *)device_memory(p, all);
    args.failed = p->failed;
    load_kernel(p, (const void *)allgather);
    all_ready(p);
    run_rounds(p, &args, mine, numbers, out);
    drop_window(p);
    if (p->rank == 0)
        printf("all-gather     %d ranks, %d launches of %d numbers each: all as they should be\n",
               p->ranks, ROUNDS, COUNT);
}

int main(int argc, char **argv) {
    return run_program("allgather", argc, argv, run);
}
