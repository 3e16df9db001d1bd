#ifndef BENCH_GPU_NCCL_H
#define BENCH_GPU_NCCL_H

/* NCCL, opened at run time: libnccl.so.2 from wherever the loader finds it, 2.30.3 or newer, which
 * takes several ranks on one GPU. */

#include "gpu.h"

/* A communicator of all ranks. */
struct gpu_nccl;

/* At most `blocks` blocks per kernel; 0: as many as NCCL likes. Collective. Ends the program with a
 * reason where there is no NCCL that can do it. */
struct gpu_nccl *gpu_nccl_open(struct gpu_rank *rank, unsigned blocks);
void gpu_nccl_close(struct gpu_rank *rank, struct gpu_nccl *nccl);

/* On the rank's stream. A negative peer means that there is no such half. */
void gpu_nccl_sendrecv(struct gpu_rank *rank, struct gpu_nccl *nccl, int to, const void *send,
                       int from, void *recv, size_t bytes);

/* Sum of floats, or `bytes` of every rank to all. */
void gpu_nccl_allreduce(struct gpu_rank *rank, struct gpu_nccl *nccl, const void *send, void *recv,
                        size_t bytes);
void gpu_nccl_allgather(struct gpu_rank *rank, struct gpu_nccl *nccl, const void *send, void *recv,
                        size_t bytes);

/* To be called before a line is printed: where NCCL went through host memory or a network, or does not
 * say how it went, the program ends, since that is another thing than what is compared here. */
void gpu_nccl_check(struct gpu_rank *rank);

/* At the end: which version it is and how it reached its peers, as a note. */
void gpu_nccl_tell(struct gpu_rank *rank);

#endif
