#include "bench_kind.h"

#include <string.h>

#define TOGETHER_SIZES "8,64,512,4k,32k,256k,1M,8M,64M"

static const size_t largest_buffer = (size_t)128 << 20;

static const struct hemt_kind kinds[BENCH_KINDS] = {
    [BENCH_RAW] = {.name = "raw",
                   .sizes = "8,4k,64k,1M,16M",
                   .help = "the hardware alone: a cache line between two cores, and memcpy",
                   .headline = "what the hardware does alone: half round trip of a cache line, and "
                               "memcpy"},
    [BENCH_SIGNAL] = {.name = "signal",
                      .sizes = "8,64,512,4k,64k",
                      .help = "half round trip of a put of n bytes and its signal",
                      .headline = "half round trip of a put of n bytes and its signal, every "
                                  "payload checked"},
    [BENCH_PUT] = {.name = "put",
                   .sizes = "4k,64k,1M,16M",
                   .help = "puts of n bytes back to back, then flush and a handshake",
                   .headline = "time of one put of n bytes, many back to back, every payload "
                               "checked"},
    [BENCH_GET] = {.name = "get",
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
        if (all.bytes[i] <= largest_buffer / blocks)
            sizes_p->bytes[sizes_p->count++] = all.bytes[i];
    }
}

const char *hemt_kind_refuses(enum bench_kind kind, int ranks, const struct hemt_sizes *sizes) {
    const struct hemt_kind *info = &kinds[kind];

    if (info->sizes == NULL && sizes->count > 0)
        return "a barrier has no sizes";
    if (info->sizes != NULL && !info->together && ranks != 2)
        return "this benchmark is measured with 2 ranks only";
    if (kind == BENCH_SENDRECV && ranks % 2 != 0)
        return "sendrecv is measured between pairs: the number of ranks must be even";
    for (size_t i = 0; info->reduces && i < sizes->count; i++) {
        if (sizes->bytes[i] % sizeof(double) != 0)
            return "sizes of reductions are multiples of 8";
    }
    return NULL;
}
