/*
 * All-gather round a ring, with messages between buffers of GPUs: `ring_allgather 4`, or
 * `hem run -n 4 ring_allgather`.
 *
 * Every rank has a block and wants the blocks of all. In each of N - 1 steps a rank sends the block
 * that it got last to its right neighbour, and receives one from its left; in the first step it sends
 * its own. Both halves of a step are one call, hem_pipe_sendrecv, and so one kernel: a ring in which
 * everybody first sends and then receives would wait for itself as soon as the staging is full.
 *
 * No step needs a barrier. Calls are in the order of the stream, and messages arrive in the order of
 * calls, so that the block which a step passes on has come before. The steps are captured into a
 * graph once; each of its replays is one more all-gather, and the host waits only to look at what came.
 */
#include "program.cuh"

enum {
    COUNT = 100003,
    ROUNDS = 200
};

struct ring {
    const struct program *p;
    hem_pipe *pipe;
    hem_stream *stream;
    int64_t *all; /* of the GPU: the blocks of all ranks */
};

/* The peers of a rank are its two neighbours, which are the same one if there are two ranks. */
static void make_pipe(struct ring *ring) {
    const struct program *p = ring->p;
    int peers[2] = {(p->rank + 1) % p->ranks, (p->rank + p->ranks - 1) % p->ranks};
    hem_pipe_options options;
    memset(&options, 0, sizeof options);
    options.struct_size = sizeof options;
    options.peers = peers;
    options.peer_count = p->ranks > 2 ? 2 : 1;
    check(p, hem_pipe_create(p->world, &options, &ring->pipe));
    check(p, hem_stream_cuda(p->world, p->stream, &ring->stream));
}

static hem_pipe_half half(struct ring *ring, int peer, int block) {
    int ranks = ring->p->ranks;
    hem_pipe_half it;
    it.peer = (peer + ranks) % ranks;
    it.data = ring->all + (size_t)((block + 2 * ranks) % ranks) * COUNT;
    it.bytes = COUNT * sizeof *ring->all;
    return it;
}

static void all_gather(struct ring *ring) {
    int me = ring->p->rank;
    for (int step = 0; step < ring->p->ranks - 1; step++) {
        hem_pipe_half send = half(ring, me + 1, me - step);
        hem_pipe_half recv = half(ring, me - 1, me - step - 1);
        check(ring->p, hem_pipe_sendrecv(ring->pipe, &send, &recv, NULL, ring->stream));
    }
}

static cudaGraphExec_t capture(struct ring *ring) {
    const struct program *p = ring->p;
    cudaGraph_t graph = NULL;
    cudaGraphExec_t steps = NULL;
    check(p, cudaStreamBeginCapture(p->stream, cudaStreamCaptureModeThreadLocal));
    all_gather(ring);
    check(p, cudaStreamEndCapture(p->stream, &graph));
    check(p, cudaGraphInstantiate(&steps, graph, 0));
    check(p, cudaGraphDestroy(graph));
    return steps;
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
                    "ring_allgather: rank %d, round %d: number %d of rank %d is %lld, not %lld\n",
                    p->rank, round, i, r, (long long)got, (long long)number(r, i, round));
            exit(1);
        }
}

static void run_rounds(struct ring *ring, cudaGraphExec_t steps, int64_t *mine, int64_t *out) {
    const struct program *p = ring->p;
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < COUNT; i++)
            mine[i] = number(p->rank, i, round);
        copy(p, ring->all + (size_t)p->rank * COUNT, mine, COUNT * sizeof *mine);
        check(p, cudaGraphLaunch(steps, p->stream));
        copy(p, out, ring->all, (size_t)p->ranks * COUNT * sizeof *out);
        finish(p);
        check(p, hem_pipe_status(ring->pipe));
        compare(p, out, round);
    }
}

static void run(struct program *p) {
    struct ring ring = {p, NULL, NULL, NULL};
    const size_t bytes = (size_t)p->ranks * COUNT * sizeof(int64_t);
    int64_t *mine = (int64_t *)host_memory(p, COUNT * sizeof *mine),
            *out = (int64_t *)host_memory(p, bytes);

    ring.all = (int64_t *)device_memory(p, bytes);
    make_pipe(&ring);
    make_window(p, 0, 1); /* for all_ready */
    cudaGraphExec_t steps = capture(&ring);
    all_ready(p);
    run_rounds(&ring, steps, mine, out);
    check(p, cudaGraphExecDestroy(steps));
    check(p, hem_stream_destroy(ring.stream));
    check(p, hem_pipe_destroy(ring.pipe));
    drop_window(p);
    if (p->rank == 0)
        printf("ring all-gather  %d ranks, %d replays of %d numbers each: all as they should be\n",
               p->ranks, ROUNDS, COUNT);
}

int main(int argc, char **argv) {
    return run_program("ring_allgather", argc, argv, run);
}
