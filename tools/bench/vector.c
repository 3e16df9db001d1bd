#include "vector.h"

#include "payload.h"
#include "wide.h"

/*
 * The top 20 bits of a word of the payload, put into the low bits of the double 2^52, are a whole
 * number above 2^52 that a subtraction brings back: this way to convert exists in every vector
 * unit.
 */
#define LANES 4
#define SHIFT 44

typedef uint64_t words __attribute__((vector_size(LANES * sizeof(uint64_t))));
typedef double doubles __attribute__((vector_size(LANES * sizeof(double))));
typedef int64_t marks __attribute__((vector_size(LANES * sizeof(int64_t))));

static const double two_52 = 4503599627370496.0;
static const uint64_t bits_of_two_52 = UINT64_C(0x4330000000000000);

static double element(uint64_t word) {
    return (double)(word >> SHIFT) + 1;
}

WIDE void bench_vector_fill(double *to, size_t count, size_t first, uint64_t seq, double factor) {
    const uint64_t step = LANES * BENCH_WORD_STEP;
    words next = {bench_word(seq, first), bench_word(seq, first + 1), bench_word(seq, first + 2),
                  bench_word(seq, first + 3)};
    size_t i = 0;

    for (; i + LANES <= count; i += LANES) {
        words bits = next >> SHIFT | bits_of_two_52;
        doubles values;
        memcpy(&values, &bits, sizeof(values));
        values = (values - (two_52 - 1)) * factor;
        memcpy(to + i, &values, sizeof(values));
        next += step;
    }
    for (; i < count; i++)
        to[i] = element(bench_word(seq, first + i)) * factor;
}

WIDE bool bench_vector_check(const double *from, size_t count, size_t first, uint64_t seq,
                             double factor) {
    const uint64_t step = LANES * BENCH_WORD_STEP;
    words next = {bench_word(seq, first), bench_word(seq, first + 1), bench_word(seq, first + 2),
                  bench_word(seq, first + 3)};
    marks wrong = {0};
    size_t i = 0;

    for (; i + LANES <= count; i += LANES) {
        words bits = next >> SHIFT | bits_of_two_52;
        doubles wanted;
        doubles found;
        memcpy(&wanted, &bits, sizeof(wanted));
        memcpy(&found, from + i, sizeof(found));
        wrong |= (marks)(found != (wanted - (two_52 - 1)) * factor);
        next += step;
    }
    bool right = (wrong[0] | wrong[1] | wrong[2] | wrong[3]) == 0;
    for (; i < count; i++)
        right = right && from[i] == element(bench_word(seq, first + i)) * factor;
    return right;
}
