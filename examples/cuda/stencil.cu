/*
 * A stencil in three dimensions over several GPUs, or several ranks of one: `stencil 4`, or `hem run -n
 * 4 stencil`. The kernel is in stencil.cuh.
 *
 * Two fields take turns. A step is, on two streams,
 *
 *     stream:    fork ── inside of the box ─────────── join ── surface of the box
 *     exchange:       └─ start ── finish (the halos) ─┘
 *
 * so the halos travel while the inside is computed. Two steps, one in each direction, are captured
 * into a graph once, and the graph is replayed: from then on the host has nothing to do with it. There
 * is nothing to reset between replays, since runs are counted in device memory.
 */
#include "program.cuh"
#include "stencil.cuh"

#include <stdint.h>

enum {
    EXTENT = 64, /* cells of the whole grid, in each dimension */
    REPLAYS = 100,
    BLOCKS = 64,
    THREADS = 256
};

struct stencil {
    struct program *p;
    hem_box box;
    hem_pattern *pattern;
    hem_exchange *exchange;
    cudaStream_t side; /* the stream of the exchange */
    hem_stream *side_handle;
    cudaEvent_t fork;
    cudaEvent_t join;
    uint32_t *fields[2];
    size_t cells; /* of a field, with halo */
};

static __global__ void __launch_bounds__(THREADS)
    stencil(const __grid_constant__ stencil_args args) {
    stencil_kernel(&args);
}

/* This rank's box, and who owes it which halos: the grid goes round in every dimension. */
static void make_pattern(struct stencil *s) {
    const int64_t extent[3] = {EXTENT, EXTENT, EXTENT};
    hem_grid_cut cut;
    hem_grid_domain domain;
    hem_grid_options options;

    check(s->p, hem_grid_balance(3, extent, s->p->ranks, &cut));
    memset(&domain, 0, sizeof domain);
    memset(&options, 0, sizeof options);
    domain.id = s->p->rank;
    check(s->p, hem_grid_part(&cut, s->p->rank, &domain.box));
    s->box = domain.box;
    options.struct_size = sizeof options;
    options.dims = 3;
    for (int d = 0; d < 3; d++) {
        options.extent[d] = EXTENT;
        options.periodic[d] = true;
        options.halo_low[d] = options.halo_high[d] = 1;
    }
    options.faces_only = true;
    options.domains = &domain;
    options.domain_count = 1;
    check(s->p, hem_pattern_grid(s->p->world, &options, &s->pattern));
}

/* Both fields are bound to one exchange; each run says which of them it is for. */
static void make_exchange(struct stencil *s) {
    hem_binding bindings[2];
    hem_exchange_options options;

    s->cells = 1;
    for (int d = 0; d < 3; d++)
        s->cells *= (size_t)s->box.count[d] + 2;
    memset(bindings, 0, sizeof bindings);
    memset(&options, 0, sizeof options);
    for (int f = 0; f < 2; f++) {
        s->fields[f] = (uint32_t *)device_memory(s->p, s->cells * sizeof(uint32_t));
        bindings[f].pattern = s->pattern;
        bindings[f].field.struct_size = sizeof bindings[f].field;
        bindings[f].field.dtype = HEM_U32;
        bindings[f].field.memory = s->fields[f];
    }
    options.struct_size = sizeof options;
    options.bindings = bindings;
    options.count = 2;
    check(s->p, hem_exchange_create(s->p->world, &options, &s->exchange));
    check(s->p, cudaStreamCreateWithFlags(&s->side, cudaStreamNonBlocking));
    check(s->p, hem_stream_cuda(s->p->world, s->side, &s->side_handle));
    check(s->p, cudaEventCreateWithFlags(&s->fork, cudaEventDisableTiming));
    check(s->p, cudaEventCreateWithFlags(&s->join, cudaEventDisableTiming));
}

static void launch(const struct stencil *s, int from, int surface) {
    stencil_args args;
    args.from = s->fields[from];
    args.to = s->fields[1 - from];
    for (int d = 0; d < 3; d++)
        args.count[d] = s->box.count[d];
    args.surface = surface;
    stencil<<<BLOCKS, THREADS, 0, s->p->stream>>>(args);
    check(s->p, cudaGetLastError());
}

/* A run of the exchange is for the field that the step reads. */
static hem_exchange_how halos_of(int from) {
    hem_exchange_how how;
    memset(&how, 0, sizeof how);
    how.struct_size = sizeof how;
    how.fields = (uint64_t)1 << from;
    return how;
}

/* Nothing here waits: all of it is put on streams, or into the graph that captures them. */
static void step(const struct stencil *s, int from) {
    const hem_exchange_how how = halos_of(from);
    check(s->p, cudaEventRecord(s->fork, s->p->stream));
    check(s->p, cudaStreamWaitEvent(s->side, s->fork, 0));
    check(s->p, hem_exchange_start_on(s->exchange, &how, s->side_handle));
    check(s->p, hem_exchange_finish_on(s->exchange, s->side_handle));
    check(s->p, cudaEventRecord(s->join, s->side));
    launch(s, from, 0);
    check(s->p, cudaStreamWaitEvent(s->p->stream, s->join, 0));
    launch(s, from, 1);
}

static cudaGraphExec_t capture(const struct stencil *s) {
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    check(s->p, cudaStreamBeginCapture(s->p->stream, cudaStreamCaptureModeThreadLocal));
    step(s, 0);
    step(s, 1);
    check(s->p, cudaStreamEndCapture(s->p->stream, &graph));
    check(s->p, cudaGraphInstantiate(&exec, graph, 0));
    check(s->p, cudaGraphDestroy(graph));
    check(s->p, cudaGraphUpload(exec, s->p->stream));
    return exec;
}

static uint32_t first_value(int64_t x, int64_t y, int64_t z) {
    return (uint32_t)((x * EXTENT + y) * EXTENT + z) * 2654435761u;
}

/* From the whole grid, which goes round, to the box with its halo. */
static void cut_out(const struct stencil *s, const uint32_t *whole, uint32_t *box) {
    size_t i = 0;
    for (int64_t x = -1; x <= s->box.count[0]; x++)
        for (int64_t y = -1; y <= s->box.count[1]; y++)
            for (int64_t z = -1; z <= s->box.count[2]; z++)
                box[i++] = whole[((x + s->box.start[0] + EXTENT) % EXTENT * EXTENT +
                                  (y + s->box.start[1] + EXTENT) % EXTENT) *
                                     EXTENT +
                                 (z + s->box.start[2] + EXTENT) % EXTENT];
}

/* The same steps by plain loops over the whole grid. */
static void compute_whole(uint32_t *now, uint32_t *next, int steps) {
    const int64_t n = EXTENT;
    for (int s = 0; s < steps; s++) {
        for (int64_t x = 0; x < n; x++)
            for (int64_t y = 0; y < n; y++)
                for (int64_t z = 0; z < n; z++)
                    next[(x * n + y) * n + z] = 3 * now[(x * n + y) * n + z] +
                                                now[(x * n + y) * n + (z + n - 1) % n] +
                                                5 * now[(x * n + y) * n + (z + 1) % n] +
                                                now[(x * n + (y + n - 1) % n) * n + z] +
                                                7 * now[(x * n + (y + 1) % n) * n + z] +
                                                now[((x + n - 1) % n * n + y) * n + z] +
                                                11 * now[((x + 1) % n * n + y) * n + z];
        uint32_t *swap = now;
        now = next;
        next = swap;
    }
}

/* Own cells only: the halos are those of the step before. */
static void compare(const struct stencil *s, const uint32_t *got, const uint32_t *want) {
    stencil_args args;
    for (int d = 0; d < 3; d++)
        args.count[d] = s->box.count[d];
    for (int64_t x = 0; x < args.count[0]; x++)
        for (int64_t y = 0; y < args.count[1]; y++)
            for (int64_t z = 0; z < args.count[2]; z++) {
                size_t i =
                    (size_t)(((x + 1) * (args.count[1] + 2) + y + 1) * (args.count[2] + 2) + z + 1);
                if (got[i] == want[i])
                    continue;
                fprintf(stderr, "stencil: rank %d: cell %lld %lld %lld is %u, not %u\n", s->p->rank,
                        (long long)x, (long long)y, (long long)z, got[i], want[i]);
                exit(1);
            }
}

/*
 * What the runs need is made ahead, since a capture can make nothing. Then come two steps that are not
 * captured: the two kinds mix. To make a graph may need the whole GPU, so nobody does before all have done
 * those steps, and nobody's kernels wait for others again before all have their graphs.
 */
static void run_steps(const struct stencil *s) {
    for (int from = 0; from < 2; from++) {
        const hem_exchange_how how = halos_of(from);
        check(s->p, hem_exchange_prepare(s->exchange, &how));
    }
    all_ready(s->p);
    step(s, 0);
    step(s, 1);
    all_ready(s->p);
    cudaGraphExec_t graph = capture(s);
    all_ready(s->p);
    for (int i = 0; i < REPLAYS; i++)
        check(s->p, cudaGraphLaunch(graph, s->p->stream));
    finish(s->p);
    check(s->p, hem_exchange_status(s->exchange));
    check(s->p, cudaGraphExecDestroy(graph));
}

static void run(struct program *p) {
    struct stencil s;
    const size_t all = (size_t)EXTENT * EXTENT * EXTENT;
    memset(&s, 0, sizeof s);
    s.p = p;
    load_kernel(p, (const void *)stencil);
    make_window(p, 0, 1);
    make_pattern(&s);
    make_exchange(&s);
    uint32_t *whole = (uint32_t *)malloc(2 * all * sizeof *whole);
    uint32_t *box = (uint32_t *)host_memory(p, 2 * s.cells * sizeof *box);
    for (int64_t x = 0; x < EXTENT; x++)
        for (int64_t y = 0; y < EXTENT; y++)
            for (int64_t z = 0; z < EXTENT; z++)
                whole[(x * EXTENT + y) * EXTENT + z] = first_value(x, y, z);
    cut_out(&s, whole, box);
    copy(p, s.fields[0], box, s.cells * sizeof *box);
    finish(p);
    run_steps(&s);
    copy(p, box, s.fields[0], s.cells * sizeof *box);
    finish(p);
    compute_whole(whole, whole + all, 2 * (REPLAYS + 1));
    cut_out(&s, whole, box + s.cells);
    compare(&s, box, box + s.cells);
    all_ready(p); /* nor while memory is given back */
    check(p, hem_exchange_destroy(s.exchange));
    check(p, hem_pattern_destroy(s.pattern));
    check(p, hem_stream_destroy(s.side_handle));
    drop_window(p);
    free(whole);
    if (p->rank == 0)
        printf("stencil: %d ranks, %d steps of %d x %d x %d cells, all as computed by one\n",
               p->ranks, 2 * (REPLAYS + 1), EXTENT, EXTENT, EXTENT);
}

int main(int argc, char **argv) {
    return run_program("stencil", argc, argv, run);
}
