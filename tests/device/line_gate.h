/* Kernels that are held back by a word of the host, for the tests of lines and streams. */
#ifndef HEM_TESTS_DEVICE_LINE_GATE_H
#define HEM_TESTS_DEVICE_LINE_GATE_H

#include "line_kit.h"

#define GATE_OLD 0x5a

/** Words that kernels and the host see. */
typedef struct gate {
    uint64_t open; /* 1: go on */
    uint64_t seen; /* what a reader saw: 1 what it should, 2 something else */
} gate;

typedef struct gate_args {
    gate *word;
    unsigned char *data;
    uint64_t bytes;
    uint64_t tag; /* of the pattern; 0: GATE_OLD everywhere */
} gate_args;

#define GATE_BYTE(tag, i)                                                                          \
    ((tag) == 0 ? (unsigned char)GATE_OLD : (unsigned char)((tag) + (i)*7 + ((i) >> 8)))

DEVICE_KERNEL(gate_fill, gate_args) {
    hem_group block = hem_block();
    while (hemd_load64_relaxed(&args->word->open) == 0)
        hemd_relax();
    hemd_acquire(&args->word->open, false);
    for (uint64_t i = block.rank; i < args->bytes; i += block.size)
        args->data[i] = GATE_BYTE(args->tag, i);
}

static inline gate *gate_make(void) {
    return (gate *)device_host_alloc(sizeof(gate));
}

static inline void gate_set(uint64_t *word, uint64_t value) {
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
}

static inline uint64_t gate_get(const uint64_t *word) {
    return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

static inline gate_args gate_args_of(gate *word, void *data, size_t bytes, uint64_t tag) {
    gate_args args;
    args.word = word;
    args.data = (unsigned char *)data;
    args.bytes = bytes;
    args.tag = tag;
    return args;
}

static inline void gate_check(const void *data, hem_memory_kind kind, size_t bytes, uint64_t tag) {
    unsigned char *plain = (unsigned char *)malloc(bytes);
    CHECK(plain != NULL);
    if (kind == HEM_MEMORY_DEVICE)
        device_copy(plain, data, bytes);
    else
        memcpy(plain, data, bytes);
    for (size_t i = 0; i < bytes; i++)
        if (plain[i] != GATE_BYTE(tag, i))
            harness_fail(__FILE__, __LINE__, "byte %zu of %zu is %d", i, bytes, plain[i]);
    free(plain);
}

/** Device or pinned host memory that is GATE_OLD everywhere. */
static inline void *gate_memory(bool on_device, size_t bytes) {
    void *plain = malloc(bytes);
    void *data = on_device ? device_alloc(bytes) : device_host_alloc(bytes);
    CHECK(plain != NULL);
    memset(plain, GATE_OLD, bytes);
    if (on_device)
        device_copy(data, plain, bytes);
    else
        memcpy(data, plain, bytes);
    free(plain);
    return data;
}

static inline void gate_free(bool on_device, void *data) {
    if (on_device)
        device_free(data);
    else
        device_host_free(data);
}

#endif
