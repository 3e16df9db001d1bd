#include "bench_kind.h"

#include <string.h>

#define TOGETHER_SIZES "8,64,512,4k,32k,256k,1M,8M,64M"

static const size_t largest_buffer = (size_t)128 << 20;

static const struct hemt_kind kinds[BENCH_KINDS] = {
    [BENCH_RAW] = {.name = "raw",
                   .pair = true,
                   .sizes = "8,4k,64k,1M,16M",
                   .help = "the hardware alone: a cache line between two cores, and memcpy",
                   .headline = "what the hardware does alone: half round trip of a cache line, and "
                               "memcpy"},
    [BENCH_SIGNAL] = {.name = "signal",
                      .pair = true,
                      .sizes = "8,64,512,4k,64k",
                      .help = "half round trip of a put of n bytes and its signal",
                      .headline = "half round trip of a put of n bytes and its signal, every "
                                  "payload checked"},
    [BENCH_PUT] = {.name = "put",
                   .pair = true,
                   .sizes = "4k,64k,1M,16M",
                   .help = "puts of n bytes back to back, then flush and a handshake",
                   .headline = "time of one put of n bytes, many back to back, every payload "
                               "checked"},
    [BENCH_GET] = {.name = "get",
                   .pair = true,
                   .sizes = "4k,64k,1M,16M",
                   .help = "gets of n bytes back to back",
                   .headline = "time of one get of n bytes, many back to back, every payload "
                               "checked"},
    [BENCH_BARRIER] = {.name = "barrier",
                       .help = "one barrier of all ranks",
                       .headline = "time of one barrier"},
    [BENCH_SENDRECV] = {.name = "sendrecv",
                        .sizes = TOGETHER_SIZES,
                        .help = "pairs of ranks send n bytes each way at the same time",
                        .headline = "n bytes each way between two ranks at the same time",
                        .together = true},
    [BENCH_SENDRECV_RING] = {.name = "sendrecv-ring",
                             .sizes = TOGETHER_SIZES,
                             .help = "n bytes to the next rank and n from the one before",
                             .headline = "n bytes to the next rank, n bytes from the one before",
                             .together = true},
    [BENCH_ALLREDUCE] = {.name = "allreduce",
                         .sizes = TOGETHER_SIZES,
                         .help = "sum of a vector of doubles of n bytes, to all ranks",
                         .headline = "sum of vectors of n bytes of doubles, to all ranks",
                         .together = true,
                         .reduces = true},
    [BENCH_ALLGATHER] = {.name = "allgather",
                         .sizes = TOGETHER_SIZES,
                         .help = "n bytes of every rank to all ranks",
                         .headline = "n bytes of every rank to all ranks",
                         .together = true,
                         .blocks = true},
    [BENCH_REDUCE_SCATTER] = {.name = "reduce-scatter",
                              .sizes = TOGETHER_SIZES,
                              .help = "sum of vectors of doubles, of which each rank gets n bytes",
                              .headline = "sum of vectors of ranks x n bytes of doubles, n bytes "
                                          "to each rank",
                              .together = true,
                              .blocks = true,
                              .reduces = true},
    [BENCH_ALLTOALL] = {.name = "alltoall",
                        .sizes = TOGETHER_SIZES,
                        .help = "n bytes from every rank to every rank",
                        .headline = "n bytes from every rank to every rank",
                        .together = true,
                        .blocks = true},
    [BENCH_BCAST] = {.name = "bcast",
                     .sizes = TOGETHER_SIZES,
                     .help = "n bytes of one rank to all; the next time it is the next rank",
                     .headline = "n bytes of one rank to all ranks, the root changing every time",
                     .together = true},
    [BENCH_SPARSE] = {.name = "sparse",
                      .sizes = TOGETHER_SIZES,
                      .help = "n bytes to each neighbour in a ring, of which receivers do not know",
                      .headline = "n bytes to each neighbour in a ring, sizes not known to the "
                                  "receivers",
                      .together = true},
    [BENCH_GRID] = {.name = "grid",
                    .sizes = "16,32,64,128,256",
                    .help = "halo exchange of a grid, n points along each edge of a rank's box",
                    .headline = "one halo exchange of a grid, every halo value checked",
                    .unit = "edge"},
    [BENCH_MESH] = {.name = "mesh",
                    .sizes = "10000,100000,1000000",
                    .help = "halo exchange of a mesh of n points, cut into ragged parts",
                    .headline = "one halo exchange of a mesh, every halo value checked",
                    .unit = "points"},
    [BENCH_LINE] = {.name = "line",
                    .sizes = "8,512,4k,32k,256k,1M,8M",
                    .help = "n bytes to both neighbours in a ring, sizes not known to receivers",
                    .headline = "n bytes to both neighbours in a ring, sizes not known to the "
                                "receivers"},
    [BENCH_ROLLING] = {.name = "rolling",
                       .sizes = "64,1k,16k,256k",
                       .help = "the rows before one's own that wide windows need, n rows per rank",
                       .headline = "fetching the rows before one's own that wide windows need",
                       .unit = "rows",
                       .ranks = "8"},
    [BENCH_PATTERN_SETUP] = {.name = "pattern-setup",
                             .sizes = "1024",
                             .help = "making a pattern, n points per rank; -n takes a list",
                             .headline = "making a pattern; messages, bytes and memory are those "
                                         "of the busiest rank",
                             .unit = "points",
                             .ranks = "2,8,32,64,256",
                             .lists = true},
    [BENCH_STREAM] = {.name = "stream",
                      .sizes = "16,64",
                      .help = "host time of starting an exchange on a stream",
                      .headline = "host time of a stream-ordered start, the worker awake (hem) or "
                                  "asleep",
                      .unit = "edge"},
    [BENCH_GPU_SIGNAL] = {.name = "gpu-signal",
                          .sizes = "8,64,512,4k,8k,16k,64k",
                          .help = "round trip of a kernel's signal, and of n bytes with it",
                          .headline =
                              "round trip between kernels: a signal alone, and put_signal of "
                              "n bytes by a thread, warp or block",
                          .pair = true,
                          .gpu = true},
    [BENCH_GPU_PUT] = {.name = "gpu-put",
                       .sizes = "64k,1M,8M,64M,512M",
                       .help = "a kernel's put of n bytes by so many blocks",
                       .headline = "a kernel puts n bytes with so many blocks; raw is a plain copy "
                                   "kernel with as many",
                       .pair = true,
                       .gpu = true},
    [BENCH_GPU_SENDRECV] = {.name = "gpu-sendrecv",
                            .sizes = "32,1k,8k,64k,512k,4M,32M,256M,1G",
                            .help = "n bytes between two ranks on GPUs, both ways and one way",
                            .headline = "n bytes each way (both) or one way (one), with at most so "
                                        "many blocks; raw is what they can copy",
                            .pair = true,
                            .gpu = true},
    [BENCH_GPU_EXCHANGE] = {.name = "gpu-exchange",
                            .sizes = "8,16,32,64",
                            .help = "halos of 16 fields over 6 faces, n points along each edge",
                            .headline =
                                "halos of 16 fields over 6 faces; raw is a kernel per field "
                                "and face",
                            .unit = "edge",
                            .ranks = "8",
                            .gpu = true},
    [BENCH_GPU_ALLREDUCE] = {.name = "gpu-allreduce",
                             .sizes = "1k,8k,64k,512k,4M,32M,256M",
                             .help = "sum of vectors of n bytes of floats on GPUs, to all ranks",
                             .headline =
                                 "sum of vectors of n bytes of floats, to all ranks; raw is "
                                 "what as many blocks can copy",
                             .gpu = true},
    [BENCH_GPU_ALLGATHER] = {.name = "gpu-allgather",
                             .sizes = "1k,8k,64k,512k,4M,32M,256M",
                             .help = "n bytes of every rank to all ranks on GPUs",
                             .headline = "n bytes of every rank to all ranks; raw is what as many "
                                         "blocks can store",
                             .blocks = true,
                             .gpu = true},
};

const struct hemt_kind *hemt_kind(enum bench_kind kind) {
    return &kinds[kind];
}

bool hemt_kind_find(const char *name, enum bench_kind *kind_p) {
    for (enum bench_kind kind = 0; kind < BENCH_KINDS; kind++) {
        if (strcmp(name, kinds[kind].name) == 0) {
            *kind_p = kind;
            return true;
        }
    }
    return false;
}

void hemt_kind_sizes(enum bench_kind kind, int ranks, struct hemt_sizes *sizes_p) {
    struct hemt_sizes all = {.count = 0};

    *sizes_p = (struct hemt_sizes){.count = 0};
    if (kinds[kind].sizes == NULL || hemt_sizes_parse(kinds[kind].sizes, &all) != NULL)
        return;
    size_t blocks = kinds[kind].blocks ? (size_t)ranks : 1;
    for (size_t i = 0; i < all.count; i++) {
        if (kinds[kind].gpu || all.bytes[i] <= largest_buffer / blocks)
            sizes_p->bytes[sizes_p->count++] = all.bytes[i];
    }
}

const char *hemt_kind_refuses(enum bench_kind kind, int ranks, const struct hemt_sizes *sizes) {
    const struct hemt_kind *info = &kinds[kind];

    if (info->sizes == NULL && sizes->count > 0)
        return "a barrier has no sizes";
    if (info->pair && ranks != 2)
        return "this benchmark is measured with 2 ranks only";
    if (kind == BENCH_SENDRECV && ranks % 2 != 0)
        return "sendrecv is measured between pairs: the number of ranks must be even";
    for (size_t i = 0; info->reduces && i < sizes->count; i++) {
        if (sizes->bytes[i] % sizeof(double) != 0)
            return "sizes of reductions are multiples of 8";
    }
    return NULL;
}
