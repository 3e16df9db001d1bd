/* Reading a fuzz input from front to back. Behind its end there are only zeros. */
#ifndef HEM_FUZZ_INPUT_H
#define HEM_FUZZ_INPUT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct fuzz_input {
    const uint8_t *data;
    size_t left;
} fuzz_input;

/** A promise of the library that does not hold ends the run, so that the fuzzer keeps the input. */
#define FUZZ_CHECK(cond)                                                                           \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            (void)fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #cond);         \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

static inline void fuzz_take(fuzz_input *in, void *to, size_t n) {
    size_t there = n < in->left ? n : in->left;
    memset(to, 0, n);
    if (there > 0)
        memcpy(to, in->data, there);
    in->data += there;
    in->left -= there;
}

static inline uint8_t fuzz_u8(fuzz_input *in) {
    uint8_t value;
    fuzz_take(in, &value, sizeof value);
    return value;
}

static inline uint32_t fuzz_u32(fuzz_input *in) {
    uint32_t value;
    fuzz_take(in, &value, sizeof value);
    return value;
}

static inline uint64_t fuzz_u64(fuzz_input *in) {
    uint64_t value;
    fuzz_take(in, &value, sizeof value);
    return value;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
