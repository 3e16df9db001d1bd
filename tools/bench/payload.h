#ifndef BENCH_PAYLOAD_H
#define BENCH_PAYLOAD_H

/*
 * What the messages of every benchmark hold. Each 64-bit word depends on the number of the message
 * and on its place in it, so that every byte of every message is new, and a stale, torn or
 * misplaced one is seen. Sender and receiver run this same code whatever carries the bytes.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define BENCH_SEQ_STEP  UINT64_C(0x9E3779B97F4A7C15)
#define BENCH_WORD_STEP UINT64_C(0xBF58476D1CE4E5B9)

static inline uint64_t bench_word(uint64_t seq, uint64_t index) {
    return seq * BENCH_SEQ_STEP + index * BENCH_WORD_STEP;
}

void bench_fill_bulk(void *buffer, size_t bytes, uint64_t seq);
bool bench_check_bulk(const void *buffer, size_t bytes, uint64_t seq);

/* Write message `seq`. One word is written in place: it is what latencies are measured with. */
static inline void bench_fill(void *buffer, size_t bytes, uint64_t seq) {
    if (bytes == sizeof(uint64_t)) {
        uint64_t word = bench_word(seq, 0);
        memcpy(buffer, &word, sizeof(word));
        return;
    }
    bench_fill_bulk(buffer, bytes, seq);
}

/* Whether every byte of the buffer is that of message `seq`. */
static inline bool bench_check(const void *buffer, size_t bytes, uint64_t seq) {
    if (bytes == sizeof(uint64_t)) {
        uint64_t word;
        memcpy(&word, buffer, sizeof(word));
        return word == bench_word(seq, 0);
    }
    return bench_check_bulk(buffer, bytes, seq);
}

#endif
