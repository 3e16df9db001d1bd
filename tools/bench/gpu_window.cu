#include "gpu_window.h"

enum {
    THREADS = 1024,
    READY = 0,                /* + block: the receiver's share may be overwritten */
    DONE = GPU_WINDOW_BLOCKS, /* + block: the share is there */
    SIGNALS = 2 * GPU_WINDOW_BLOCKS
};

static const size_t turns_bytes = 2 * GPU_WINDOW_BLOCKS * sizeof(uint64_t);

struct share {
    hem_dev_window w;
    uint64_t *turns;
    const unsigned char *data;
    uint64_t bytes;
    uint64_t share; /* of a block */
    bool sends;
    bool receives;
};

static __device__ void need(hem_status status) {
    if (status != HEM_OK)
        __trap();
}

/* Each block moves its share, whole lines but for the last, and tells the peer's block of it. */
static __global__ void __launch_bounds__(THREADS) share_kernel(struct share it) {
    uint32_t block = hem_block_index();
    uint64_t from = it.share * block < it.bytes ? it.share * block : it.bytes;
    uint64_t n = it.bytes - from < it.share ? it.bytes - from : it.share;
    uint64_t *turns = it.turns + 2 * block;
    uint64_t sent = turns[0] + it.sends;
    uint64_t came = turns[1] + it.receives;
    hem_group g = hem_block();
    int peer = 1 - it.w.rank;

    hem_group_sync(g);
    if (it.receives)
        need(hem_dev_signal(it.w, g, peer, READY + block, HEM_SIGNAL_ADD, 1));
    if (it.sends) {
        need(hem_dev_wait_signal_from(it.w, g, peer, READY + block, HEM_GE, sent, HEM_SEC(5)));
        need(hem_dev_put_signal(it.w, g, peer, from, it.data + from, n, DONE + block, 1));
    }
    if (it.receives)
        need(hem_dev_wait_signal_from(it.w, g, peer, DONE + block, HEM_GE, came, HEM_SEC(5)));
    if (g.rank == 0) {
        turns[0] = sent;
        turns[1] = came;
    }
}

void gpu_window_open(struct gpu_rank *rank, size_t bytes, struct gpu_window *made_p) {
    hem_window_options options = {};

    options.struct_size = sizeof(options);
    options.kind = HEM_MEMORY_DEVICE;
    options.bytes = bytes;
    options.signals = SIGNALS;
    options.device_signals = SIGNALS;
    NEED_HEM(hem_window_create(rank->world, &options, &made_p->window));
    NEED_HEM(hem_window_device(made_p->window, &made_p->w));
    made_p->turns = (uint64_t *)(void *)gpu_alloc(rank, turns_bytes);
    NEED_CUDA(cudaMemsetAsync(made_p->turns, 0, turns_bytes, rank->stream));
    gpu_finish(rank);
}

void gpu_window_close(struct gpu_rank *rank, struct gpu_window *made) {
    gpu_meet(rank);
    NEED_HEM(hem_window_destroy(made->window));
    gpu_free(rank, made->turns);
}

unsigned char *gpu_window_memory(const struct gpu_window *made) {
    return (unsigned char *)hem_window_memory(made->window);
}

void gpu_window_sendrecv(struct gpu_rank *rank, struct gpu_window *made, const void *data,
                         size_t bytes, unsigned blocks, bool sends, bool receives) {
    size_t lines = (bytes + HEM_DEV_LINE - 1) / HEM_DEV_LINE;
    struct share share = {made->w,
                          made->turns,
                          (const unsigned char *)data,
                          bytes,
                          (lines + blocks - 1) / blocks * HEM_DEV_LINE,
                          sends,
                          receives};

    share_kernel<<<blocks, THREADS, 0, rank->stream>>>(share);
    NEED_CUDA(cudaGetLastError());
}
