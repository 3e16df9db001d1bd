/*
 * gpu-sendrecv: n bytes between ranks 0 and 1, both ways at once ("both") or from rank 0 to rank 1
 * ("one"), with at most so many blocks per rank.
 *
 * hem   hem_pipe_sendrecv through staging. Three ways more copy once, into a buffer in a window:
 *       "straight" is hem_pipe_sendrecv with both buffers in the window of the pipe, of which each side
 *       copies a half; "into" is the same with only the receiver's there, so that the sender copies
 *       all; "window" is a kernel written by hand that puts, with a handshake before and a signal
 *       after, always with all blocks. The first two are not for short messages. "engines" is the
 *       copy engines' way, which takes no block at all: an exchange between the two ranks.
 *       Through staging and straight also with buffers that are "odd", which both begin 1 byte
 *       behind an aligned address, and "apart", of which only the sender's does. Staging itself is
 *       aligned: both copies of "odd" are between different alignments there, and one of "apart"
 * nccl  ncclSend and ncclRecv in a group; once more as "straight", to be compared
 * raw   what as many blocks can copy, at the same time as the other rank's, without waiting for
 *       anything. A message through staging is copied twice, by the sender's blocks and by the
 *       receiver's, so each rank copies n bytes (one), or 2 n (both); straight, half of that.
 *       "engines" is cudaMemcpyAsync of n bytes by who sends. All is aligned
 */
#include "gpu.h"
#include "gpu_engines.h"
#include "gpu_nccl.h"
#include "gpu_window.h"

enum form {
    STAGED,
    STRAIGHT,
    INTO,
    WINDOW,
    ENGINES
};

struct way {
    const char *names[2]; /* one way, both ways */
    enum form form;
    size_t from; /* bytes by which what is sent is misaligned */
    size_t to;   /* the same of where it is received */
};

static const struct way all_ways[] = {
    {{"one", "both"}, STAGED, 0, 0},
    {{"odd-one", "odd-both"}, STAGED, 1, 1},
    {{"apart-one", "apart-both"}, STAGED, 1, 0},
    {{"straight-one", "straight-both"}, STRAIGHT, 0, 0},
    {{"straight-odd-one", "straight-odd-both"}, STRAIGHT, 1, 1},
    {{"straight-apart-one", "straight-apart-both"}, STRAIGHT, 1, 0},
    {{"into-one", "into-both"}, INTO, 0, 0},
    {{"window-one", "window-both"}, WINDOW, 0, 0},
    {{"engines-one", "engines-both"}, ENGINES, 0, 0},
};

/* Short messages, by default up to this length, do not go straight. */
static const size_t shortest_straight = 65537;

/* Beyond this misaligned buffers take as long per byte as before. */
static const size_t longest_misaligned = 64u << 20;

/* What hem_pipe_options has by default: staging per block, in which pieces of messages go round. */
enum {
    RING_TURNS = 4,
    RING_BYTES = 16 * RING_TURNS * 32768
};

struct sendrecv {
    size_t bytes;
    unsigned blocks;
    bool both;
    const struct way *way;
    enum form form; /* the way's */
    size_t most;    /* bytes of any message, and room for what is not aligned */
    unsigned char *send;
    unsigned char *recv;
    hem_pipe *pipe;
    hem_pipe *straight; /* with a window */
    struct gpu_nccl *nccl;
    struct gpu_window in;
    struct gpu_engines engines;
};

static bool sends(const struct gpu_rank *rank, const struct sendrecv *it) {
    return it->both || rank->rank == 0;
}

static bool receives(const struct gpu_rank *rank, const struct sendrecv *it) {
    return it->both || rank->rank == 1;
}

/* Where the rank sends from and receives into. Of Hem's window the first half is for receiving. */
static unsigned char *source(const struct gpu_rank *rank, const struct sendrecv *it) {
    bool hem = rank->args->who == GPU_HEM;

    if (hem && it->form == ENGINES)
        return gpu_engines_source(&it->engines);
    unsigned char *start =
        hem && it->form == STRAIGHT ? gpu_window_memory(&it->in) + it->most : it->send;
    return start + it->way->from;
}

static unsigned char *target(const struct gpu_rank *rank, const struct sendrecv *it) {
    bool hem = rank->args->who == GPU_HEM;

    if (hem && it->form == ENGINES)
        return gpu_engines_target(rank, &it->engines);
    unsigned char *start = hem && it->form != STAGED ? gpu_window_memory(&it->in) : it->recv;
    return start + it->way->to;
}

static void by_hem(struct gpu_rank *rank, struct sendrecv *it) {
    hem_pipe_half send = {1 - rank->rank, source(rank, it), it->bytes};
    hem_pipe_half recv = {1 - rank->rank, target(rank, it), it->bytes};

    if (it->form == ENGINES) {
        gpu_engines_sendrecv(rank, &it->engines);
        return;
    }
    if (it->form == WINDOW) {
        gpu_window_sendrecv(rank, &it->in, it->send, it->bytes, it->blocks, sends(rank, it),
                            receives(rank, it));
        return;
    }
    NEED_HEM(hem_pipe_sendrecv(it->form == STAGED ? it->pipe : it->straight,
                               sends(rank, it) ? &send : NULL, receives(rank, it) ? &recv : NULL,
                               NULL, rank->hem));
}

static void by_nccl(struct gpu_rank *rank, struct sendrecv *it) {
    gpu_nccl_sendrecv(rank, it->nccl, sends(rank, it) ? 1 - rank->rank : -1, it->send,
                      receives(rank, it) ? 1 - rank->rank : -1, it->recv, it->bytes);
}

/* What a rank copies in a plain copy. */
static size_t raw_bytes(const struct gpu_rank *rank, const struct sendrecv *it) {
    size_t bytes = it->both ? 2 * it->bytes : it->bytes;

    if (it->form == ENGINES)
        return sends(rank, it) ? it->bytes : 0;
    return it->form == STRAIGHT ? bytes / 2 : bytes;
}

/* One kernel, as the others have one: its buffers hold what both halves copy. */
static void by_copy(struct gpu_rank *rank, struct sendrecv *it) {
    size_t bytes = raw_bytes(rank, it);

    if (it->form != ENGINES)
        gpu_copy(rank, it->recv, it->send, bytes, it->blocks);
    else if (bytes > 0)
        NEED_CUDA(
            cudaMemcpyAsync(it->recv, it->send, bytes, cudaMemcpyDeviceToDevice, rank->stream));
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
    case GPU_NVSHMEM:
        gpu_die("gpu-sendrecv is not measured over NVSHMEM");
    }
}

static uint32_t seed_of(int rank, uint32_t turn) {
    return 1000 * turn + (uint32_t)rank;
}

/* Run it once with fresh data and look at every byte that came. */
static void verify(struct gpu_rank *rank, struct sendrecv *it, uint32_t turn) {
    bool raw = rank->args->who == GPU_RAW;
    size_t bytes = raw ? raw_bytes(rank, it) : it->bytes;

    gpu_fill(rank, source(rank, it), bytes, seed_of(rank->rank, turn));
    gpu_fill(rank, target(rank, it), bytes, ~seed_of(rank->rank, turn));
    gpu_finish(rank);
    gpu_meet(rank);
    body(rank, it);
    gpu_finish(rank);
    if (it->pipe != NULL)
        NEED_HEM(hem_pipe_status(it->pipe));
    if (it->straight != NULL)
        NEED_HEM(hem_pipe_status(it->straight));
    gpu_meet(rank);
    if (raw)
        gpu_check(rank, target(rank, it), bytes, seed_of(rank->rank, turn));
    else if (receives(rank, it))
        gpu_check(rank, target(rank, it), bytes, seed_of(1 - rank->rank, turn));
}

/* What both ranks read and write: of each message its source and its target, or what is copied
 * instead; and staging, in which messages go round from one to the next. Of NCCL's nothing is known.
 * Short messages go through places of their own, which fit anywhere. */
static size_t touched(const struct gpu_rank *rank, const struct sendrecv *it) {
    size_t messages = it->both ? 2 : 1;
    size_t ring = (size_t)it->blocks * RING_BYTES;

    if (rank->args->who == GPU_RAW && it->form == STAGED)
        return 4 * messages * it->bytes;
    if (rank->args->who != GPU_HEM || it->form != STAGED || it->bytes < shortest_straight)
        return 2 * messages * it->bytes;
    return messages *
           (2 * it->bytes + (RING_TURNS * it->bytes < ring ? RING_TURNS * it->bytes : ring));
}

static void run_size(struct gpu_rank *rank, struct sendrecv *it) {
    struct gpu_line line = {it->way->names[it->both ? 1 : 0], it->blocks, it->bytes, 0,
                            touched(rank, it)};
    bool engines = rank->args->who == GPU_HEM && it->form == ENGINES;

    gpu_watch(rank, "%s, %u blocks, %zu bytes", line.way, it->blocks, it->bytes);
    if (engines)
        gpu_engines_open(rank, it->bytes, it->both, &it->engines);
    verify(rank, it, 1);
    struct gpu_result result = gpu_measure(rank, body, it, gpu_inner(it->bytes));
    verify(rank, it, 2);
    if (it->nccl != NULL)
        gpu_nccl_check(rank);
    gpu_print(rank, &line, result);
    if (engines)
        gpu_engines_close(rank, &it->engines);
}

static void open_way(struct gpu_rank *rank, struct sendrecv *it) {
    gpu_watch(rank, "set-up with %u blocks", it->blocks);
    if (rank->args->who == GPU_HEM) {
        hem_pipe_options options = {};
        options.struct_size = sizeof(options);
        options.blocks = it->blocks;
        NEED_HEM(hem_pipe_create(rank->world, &options, &it->pipe));
        options.window = it->in.window;
        NEED_HEM(hem_pipe_create(rank->world, &options, &it->straight));
    } else if (rank->args->who == GPU_NCCL) {
        it->nccl = gpu_nccl_open(rank, it->blocks);
    }
}

static void close_way(struct gpu_rank *rank, struct sendrecv *it) {
    gpu_watch(rank, "the end with %u blocks", it->blocks);
    if (it->pipe != NULL)
        NEED_HEM(hem_pipe_destroy(it->pipe));
    if (it->straight != NULL)
        NEED_HEM(hem_pipe_destroy(it->straight));
    if (it->nccl != NULL)
        gpu_nccl_close(rank, it->nccl);
    it->pipe = it->straight = NULL;
    it->nccl = NULL;
}

static size_t largest(const struct hemt_sizes *sizes) {
    size_t most = 0;

    for (size_t i = 0; i < sizes->count; i++)
        most = sizes->bytes[i] > most ? sizes->bytes[i] : most;
    return most;
}

/* The others have no window; what they do is compared with Hem's best. */
static bool is_measured(const struct gpu_rank *rank, const struct sendrecv *it) {
    if (it->way->from > 0 && (rank->args->who != GPU_HEM || it->bytes > longest_misaligned))
        return false;
    if (it->blocks == 0 || it->form == ENGINES)
        return it->blocks == 0 && it->form == ENGINES && rank->args->who != GPU_NCCL;
    if (it->form == STAGED)
        return true;
    if (it->form == WINDOW)
        return rank->args->who == GPU_HEM;
    return it->bytes >= shortest_straight && (rank->args->who == GPU_HEM || it->form == STRAIGHT);
}

static void run_sizes(struct gpu_rank *rank, struct sendrecv *it) {
    const struct hemt_sizes *sizes = &rank->args->sizes;

    for (size_t i = 0; i < sizes->count; i++) {
        it->bytes = sizes->bytes[i];
        for (const struct way &way : all_ways) {
            it->way = &way;
            it->form = way.form;
            if (!is_measured(rank, it))
                continue;
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
    it.most = (most + 256) / 256 * 256;
    it.send = gpu_alloc(rank, 2 * it.most);
    it.recv = gpu_alloc(rank, 2 * it.most);
    if (args->who == GPU_HEM)
        gpu_window_open(rank, 2 * it.most, &it.in);
    for (size_t b = 0; b < args->blocks.count; b++) {
        it.blocks = (unsigned)args->blocks.bytes[b];
        open_way(rank, &it);
        run_sizes(rank, &it);
        close_way(rank, &it);
    }
    it.blocks = 0;
    run_sizes(rank, &it);
    if (args->who == GPU_NCCL)
        gpu_nccl_tell(rank);
    if (args->who == GPU_HEM)
        gpu_window_close(rank, &it.in);
    gpu_free(rank, it.send);
    gpu_free(rank, it.recv);
}
