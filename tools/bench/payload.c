#include "payload.h"

#include "wide.h"

/* The ping-pong fills and checks inside the measured loop, so this works on four words at a time. */
#define LANES 4

typedef uint64_t lanes __attribute__((vector_size(LANES * sizeof(uint64_t))));

static const lanes lane_step = {LANES * BENCH_WORD_STEP, LANES *BENCH_WORD_STEP,
                                LANES *BENCH_WORD_STEP, LANES *BENCH_WORD_STEP};

/* Fewer than four words, and a last one that may be cut short. */
static void fill_rest(unsigned char *to, size_t bytes, uint64_t word) {
    while (bytes > 0) {
        size_t n = bytes < sizeof(word) ? bytes : sizeof(word);
        memcpy(to, &word, n);
        to += n;
        bytes -= n;
        word += BENCH_WORD_STEP;
    }
}

static bool check_rest(const unsigned char *from, size_t bytes, uint64_t word) {
    while (bytes > 0) {
        size_t n = bytes < sizeof(word) ? bytes : sizeof(word);
        if (memcmp(from, &word, n) != 0)
            return false;
        from += n;
        bytes -= n;
        word += BENCH_WORD_STEP;
    }
    return true;
}

WIDE void bench_fill_bulk(void *buffer, size_t bytes, uint64_t seq) {
    unsigned char *to = buffer;
    size_t blocks = bytes / sizeof(lanes);
    lanes words = {bench_word(seq, 0), bench_word(seq, 1), bench_word(seq, 2), bench_word(seq, 3)};

    for (size_t i = 0; i < blocks; i++) {
        memcpy(to + i * sizeof(words), &words, sizeof(words));
        words += lane_step;
    }
    fill_rest(to + blocks * sizeof(words), bytes % sizeof(words), bench_word(seq, blocks * LANES));
}

WIDE bool bench_check_bulk(const void *buffer, size_t bytes, uint64_t seq) {
    const unsigned char *from = buffer;
    size_t blocks = bytes / sizeof(lanes);
    lanes wanted = {bench_word(seq, 0), bench_word(seq, 1), bench_word(seq, 2), bench_word(seq, 3)};
    lanes wrong = {0};

    for (size_t i = 0; i < blocks; i++) {
        lanes words;
        memcpy(&words, from + i * sizeof(words), sizeof(words));
        wrong |= words ^ wanted;
        wanted += lane_step;
    }
    if ((wrong[0] | wrong[1] | wrong[2] | wrong[3]) != 0)
        return false;
    return check_rest(from + blocks * sizeof(lanes), bytes % sizeof(lanes),
                      bench_word(seq, blocks * LANES));
}
