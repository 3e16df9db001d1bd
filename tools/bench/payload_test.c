#include "payload.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum {
    LARGEST = 300,
    SEQ = 12345
};

/* Every size and every alignment, with bytes around it that must stay as they are. */
static void fills_exactly_what_it_checks(void **state) {
    unsigned char memory[LARGEST + 80];

    (void)state;
    for (size_t bytes = 1; bytes <= LARGEST; bytes++) {
        for (size_t shift = 0; shift < 16; shift++) {
            memset(memory, 0xA5, sizeof(memory));
            bench_fill(memory + 32 + shift, bytes, SEQ);
            assert_true(bench_check(memory + 32 + shift, bytes, SEQ));
            assert_int_equal(memory[31 + shift], 0xA5);
            assert_int_equal(memory[32 + shift + bytes], 0xA5);
        }
    }
}

static void sees_every_wrong_bit(void **state) {
    static const size_t sizes[] = {1, 7, 8, 9, 31, 32, 33, 64, 100};
    unsigned char memory[128];

    (void)state;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        bench_fill(memory, sizes[i], SEQ);
        for (size_t bit = 0; bit < 8 * sizes[i]; bit++) {
            memory[bit / 8] ^= (unsigned char)(1u << bit % 8);
            assert_false(bench_check(memory, sizes[i], SEQ));
            memory[bit / 8] ^= (unsigned char)(1u << bit % 8);
        }
        assert_true(bench_check(memory, sizes[i], SEQ));
    }
}

/* Two lines exchanged, which a plain sum would not see. */
static void sees_misplaced_lines(void **state) {
    unsigned char memory[256];
    unsigned char line[64];

    (void)state;
    bench_fill(memory, sizeof(memory), SEQ);
    memcpy(line, memory + 64, 64);
    memcpy(memory + 64, memory + 128, 64);
    memcpy(memory + 128, line, 64);
    assert_false(bench_check(memory, sizeof(memory), SEQ));
}

/* No word of a message equals the word at that place in the messages around it. */
static void sees_a_stale_word(void **state) {
    (void)state;
    for (uint64_t seq = 1; seq < 1000; seq++) {
        for (uint64_t index = 0; index < 16; index++)
            assert_true(bench_word(seq, index) != bench_word(seq - 1, index));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fills_exactly_what_it_checks),
        cmocka_unit_test(sees_every_wrong_bit),
        cmocka_unit_test(sees_misplaced_lines),
        cmocka_unit_test(sees_a_stale_word),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
