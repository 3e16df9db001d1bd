/*
 * A kernel that exchanges its own edges for a thousand steps: `edges 4`, or `hem run -n 4 edges`. How
 * it works is told in edges.cuh. At the end the ring is compared with one that was computed in one
 * piece on the host.
 */
#include "edges.cuh"
#include "program.cuh"

enum {
    COUNT = 1000, /* cells of a thread block */
    BLOCKS = 4,
    THREADS = 256,
    STEPS = 1000,
    LAUNCHES = 2
};

static __global__ void __launch_bounds__(THREADS) edges(const __grid_constant__ edges_args args) {
    edges_kernel(&args);
}

static uint64_t at_first(uint64_t cell) {
    return (cell + 1) * 0x9e3779b97f4a7c15u;
}

/* The whole ring on the host. */
static uint64_t *compute(uint64_t cells) {
    uint64_t *now = (uint64_t *)malloc(cells * sizeof *now);
    uint64_t *next = (uint64_t *)malloc(cells * sizeof *next);
    for (uint64_t i = 0; i < cells; i++)
        now[i] = at_first(i);
    for (int step = 0; step < STEPS * LAUNCHES; step++) {
        for (uint64_t i = 0; i < cells; i++)
            next[i] = now[(i + cells - 1) % cells] + 2 * now[i] + now[(i + 1) % cells];
        uint64_t *swap = now;
        now = next;
        next = swap;
    }
    free(next);
    return now;
}

static void compare(const struct program *p, const uint64_t *mine) {
    const uint64_t here = (uint64_t)COUNT * BLOCKS;
    uint64_t *want = compute(here * (uint64_t)p->ranks);
    for (uint64_t i = 0; i < here; i++)
        if (mine[i] != want[(uint64_t)p->rank * here + i]) {
            fprintf(stderr, "edges: rank %d: cell %llu is wrong\n", p->rank, (unsigned long long)i);
            exit(1);
        }
    free(want);
}

static void run(struct program *p) {
    const uint64_t here = (uint64_t)COUNT * BLOCKS;
    uint64_t *mine = (uint64_t *)host_memory(p, here * sizeof *mine);
    edges_args args;

    make_window(p, EDGES_BYTES * BLOCKS, 1);
    args.w = p->dev;
    args.places = 0;
    args.count = COUNT;
    args.steps = STEPS;
    args.cells[0] = (uint64_t *)device_memory(p, here * sizeof *mine);
    args.cells[1] = (uint64_t *)device_memory(p, here * sizeof *mine);
    args.ghosts = (uint64_t *)device_memory(p, 2 * BLOCKS * sizeof *mine);
    args.done = (uint64_t *)device_memory(p, BLOCKS * sizeof *mine);
    args.failed = p->failed;
    load_kernel(p, (const void *)edges);
    for (uint64_t i = 0; i < here; i++)
        mine[i] = at_first((uint64_t)p->rank * here + i);
    copy(p, args.cells[0], mine, here * sizeof *mine);
    all_ready(p);
    for (int launch = 0; launch < LAUNCHES; launch++)
        edges<<<BLOCKS, THREADS, 0, p->stream>>>(args);
    check(p, cudaGetLastError());
    copy(p, mine, args.cells[0], here * sizeof *mine); /* an even number of steps */
    finish(p);
    compare(p, mine);
    drop_window(p);
    if (p->rank == 0)
        printf("edges          %d ranks, %d cells, %d launches of %d steps: as computed in one "
               "piece\n",
               p->ranks, (int)here * p->ranks, LAUNCHES, STEPS);
}

int main(int argc, char **argv) {
    return run_program("edges", argc, argv, run);
}
