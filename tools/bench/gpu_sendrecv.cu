/*
 * gpu-sendrecv: n bytes between ranks 0 and 1, both ways at once ("both") or from rank 0 to rank 1
 * ("one"), with at most so many blocks per rank.
 *
 * hem   hem_pipe_sendrecv through staging; "window-both" and "window-one" are a kernel written by
 *       hand that puts into a buffer in a window, with a handshake before and a signal after: one
 *       copy, always with all blocks
 * nccl  ncclSend and ncclRecv in a group
 * raw   what as many blocks can copy: a message through staging is copied twice, by the sender's
 *       blocks and by the receiver's. So each rank copies n bytes (one), or 2 n (both), at the same
 *       time as the other, without waiting for anything.
 */
#include "gpu.h"
#include "gpu_nccl.h"
#include "gpu_window.h"

struct sendrecv {
    size_t bytes;
    unsigned blocks;
    bool both;
    bool window; /* Hem: into a window */
    unsigned char *send;
    unsigned char *recv;
    hem_pipe *pipe;
    struct gpu_nccl *nccl;
    struct gpu_window in;
};

static bool sends(const struct gpu_rank *rank, const struct sendrecv *it) {
    return it->both || rank->rank == 0;
}

static bool receives(const struct gpu_rank *rank, const struct sendrecv *it) {
    return it->both || rank->rank == 1;
}

static void by_hem(struct gpu_rank *rank, struct sendrecv *it) {
    hem_pipe_half send = {1 - rank->rank, it->send, it->bytes};
    hem_pipe_half recv = {1 - rank->rank, it->recv, it->bytes};

    if (it->window) {
        gpu_window_sendrecv(rank, &it->in, it->send, it->bytes, it->blocks, sends(rank, it),
                            receives(rank, it));
        return;
    }
    NEED_HEM(hem_pipe_sendrecv(it->pipe, sends(rank, it) ? &send : NULL,
                               receives(rank, it) ? &recv : NULL, NULL, rank->hem));
}

static void by_nccl(struct gpu_rank *rank, struct sendrecv *it) {
    gpu_nccl_sendrecv(rank, it->nccl, sends(rank, it) ? 1 - rank->rank : -1, it->send,
                      receives(rank, it) ? 1 - rank->rank : -1, it->recv, it->bytes);
}

/* One kernel, as the others have one: its buffers hold what both halves copy. */
static void by_copy(struct gpu_rank *rank, struct sendrecv *it) {
    gpu_copy(rank, it->recv, it->send, it->both ? 2 * it->bytes : it->bytes, it->blocks);
}

static void body(struct gpu_rank *rank, void *ctx) {
    struct sendrecv *it = (struct sendrecv *)ctx;

    switch (rank->args->who) {
    case GPU_HEM:
        by_hem(rank, it);
        return;
    case GPU_NCCL:
        by_nccl(rank, it);
        return;
    case GPU_RAW:
        by_copy(rank, it);
        return;
    }
}

static unsigned char *target(const struct sendrecv *it) {
    return it->window ? gpu_window_memory(&it->in) : it->recv;
}

static uint32_t seed_of(int rank, uint32_t turn) {
    return 1000 * turn + (uint32_t)rank;
}

/* Run it once with fresh data and look at every byte that came. */
static void verify(struct gpu_rank *rank, struct sendrecv *it, uint32_t turn) {
    bool raw = rank->args->who == GPU_RAW;
    size_t bytes = raw && it->both ? 2 * it->bytes : it->bytes;

    gpu_fill(rank, it->send, bytes, seed_of(rank->rank, turn));
    gpu_fill(rank, target(it), bytes, ~seed_of(rank->rank, turn));
    gpu_finish(rank);
    gpu_meet(rank);
    body(rank, it);
    gpu_finish(rank);
    if (it->pipe != NULL)
        NEED_HEM(hem_pipe_status(it->pipe));
    gpu_meet(rank);
    if (raw)
        gpu_check(rank, target(it), bytes, seed_of(rank->rank, turn));
    else if (receives(rank, it))
        gpu_check(rank, target(it), bytes, seed_of(1 - rank->rank, turn));
}

static const char *way_of(const struct sendrecv *it) {
    if (it->window)
        return it->both ? "window-both" : "window-one";
    return it->both ? "both" : "one";
}

static void run_size(struct gpu_rank *rank, struct sendrecv *it) {
    struct gpu_line line = {way_of(it), it->blocks, it->bytes, 0, 0};

    gpu_watch(rank, "%s, %u blocks, %zu bytes", line.way, it->blocks, it->bytes);
    line.touched = it->bytes * (it->both ? 4 : 2);
    verify(rank, it, 1);
    struct gpu_result result = gpu_measure(rank, body, it, gpu_inner(it->bytes));
    verify(rank, it, 2);
    gpu_print(rank, &line, result);
}

static void open_way(struct gpu_rank *rank, struct sendrecv *it) {
    gpu_watch(rank, "set-up with %u blocks", it->blocks);
    if (rank->args->who == GPU_HEM) {
        hem_pipe_options options = {};
        options.struct_size = sizeof(options);
        options.blocks = it->blocks;
        NEED_HEM(hem_pipe_create(rank->world, &options, &it->pipe));
    } else if (rank->args->who == GPU_NCCL) {
        it->nccl = gpu_nccl_open(rank, it->blocks);
    }
}

static void close_way(struct gpu_rank *rank, struct sendrecv *it) {
    gpu_watch(rank, "the end with %u blocks", it->blocks);
    if (it->pipe != NULL)
        NEED_HEM(hem_pipe_destroy(it->pipe));
    if (it->nccl != NULL)
        gpu_nccl_close(rank, it->nccl);
    it->pipe = NULL;
    it->nccl = NULL;
}

static size_t largest(const struct hemt_sizes *sizes) {
    size_t most = 0;

    for (size_t i = 0; i < sizes->count; i++)
        most = sizes->bytes[i] > most ? sizes->bytes[i] : most;
    return most;
}

static void run_sizes(struct gpu_rank *rank, struct sendrecv *it) {
    const struct hemt_sizes *sizes = &rank->args->sizes;
    int windows = rank->args->who == GPU_HEM ? 2 : 1;

    for (size_t i = 0; i < sizes->count; i++) {
        it->bytes = sizes->bytes[i];
        for (int window = 0; window < windows; window++) {
            it->window = window != 0;
            it->both = true;
            run_size(rank, it);
            it->both = false;
            run_size(rank, it);
        }
    }
}

void gpu_sendrecv(struct gpu_rank *rank) {
    const struct gpu_args *args = rank->args;
    struct sendrecv it = {};
    size_t most = largest(&args->sizes);

    if (rank->ranks != 2)
        gpu_die("gpu-sendrecv is measured with 2 ranks");
    it.send = gpu_alloc(rank, 2 * most);
    it.recv = gpu_alloc(rank, 2 * most);
    if (args->who == GPU_HEM)
        gpu_window_open(rank, most, &it.in);
    for (size_t b = 0; b < args->blocks.count; b++) {
        it.blocks = (unsigned)args->blocks.bytes[b];
        open_way(rank, &it);
        run_sizes(rank, &it);
        close_way(rank, &it);
    }
    if (args->who == GPU_NCCL)
        gpu_nccl_tell(rank);
    if (args->who == GPU_HEM)
        gpu_window_close(rank, &it.in);
    gpu_free(rank, it.send);
    gpu_free(rank, it.recv);
}
