/*
 * The copy of kernels, as the GPU does it: every alignment of either side, lengths around every
 * border, groups of one thread to several warps. It reads nothing outside of its source, writes
 * nothing outside of its destination, and does all but the edges in pieces of 16 bytes. Words
 * of data that lie oddly are loaded and stored whole, too, within their bytes.
 *
 * The threads of a group go one after the other here: a copy has no barrier in it.
 */
#include <hem/device/group.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

__thread hem_host_place hem_host_here;

uint64_t hem_host_now_ns(void) {
    return 0;
}

void hem_host_relax(void) {
}

/* Where loads may be (NULL: anywhere), where stores may be, and how many whole pieces there were. */
static const unsigned char *source;
static unsigned char *target;
static uint64_t length;
static uint64_t pieces;

static int within(const unsigned char *at, size_t n, const unsigned char *begin) {
    return at >= begin && (uint64_t)(at - begin) + n <= length;
}

/* On the host all of the copy's loads and stores but those of single bytes are calls of memcpy. */
static void watched(void *to, const void *from, size_t n) {
    const unsigned char *load = from;
    unsigned char *store = to;
    if (source == NULL) {
        memcpy(to, from, n);
        return;
    }
    if (within(store, n, target)) {
        pieces += n == 16;
        assert_int_equal((uintptr_t)store % n, 0);
    } else {
        assert_true(within(load, n, source));
        assert_int_equal((uintptr_t)load % n, 0);
    }
    memcpy(to, from, n);
}

#define memcpy(to, from, n) watched((to), (from), (n))
#include <hem/device/copy.h>
#undef memcpy

enum {
    MARGIN = 64,
    MOST = 5000,
    ROOM = MARGIN + 16 + MOST + MARGIN
};

typedef struct rooms {
    unsigned char from[ROOM];
    unsigned char to[ROOM];
    unsigned char want[ROOM];
} rooms;

static void copy_once(rooms *r, uint32_t size, uint32_t align_to, uint32_t align_from, uint64_t n) {
    source = r->from + MARGIN + align_from;
    target = r->to + MARGIN + align_to;
    length = n;
    pieces = 0;
    memset(r->to, 0xee, sizeof r->to);
    memset(r->want, 0xee, sizeof r->want);
    memcpy(r->want + MARGIN + align_to, source, n);
    for (uint32_t rank = 0; rank < size; rank++)
        hemd_copy_vectors(rank, size, target, source, n);
    assert_memory_equal(r->to, r->want, sizeof r->to);
    assert_true(16 * pieces + 62 >= n);
}

static rooms *rooms_make(void) {
    rooms *r = aligned_alloc(64, (sizeof *r + 63) / 64 * 64);
    assert_non_null(r);
    for (uint32_t i = 0; i < ROOM; i++)
        r->from[i] = (unsigned char)(i * 7 + i / 251);
    return r;
}

static void all_alignments(uint32_t size, const uint64_t *lengths, size_t count) {
    rooms *r = rooms_make();
    for (uint32_t to = 0; to < 16; to++)
        for (uint32_t from = 0; from < 16; from++)
            for (size_t i = 0; i < count; i++)
                copy_once(r, size, to, from, lengths[i]);
    free(r);
}

static void short_copies(void **state) {
    (void)state;
    static const uint32_t sizes[] = {1, 2, 31, 32, 96};
    uint64_t lengths[130];
    for (uint64_t n = 0; n < 130; n++)
        lengths[n] = n;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        all_alignments(sizes[i], lengths, 130);
}

static void long_copies(void **state) {
    (void)state;
    /* Around a round of one thread, of a warp, and of two. */
    static const uint64_t lengths[] = {128,  143,  176,  1000, 2047, 2048, 2049,
                                       2100, 4095, 4096, 4097, 4127, 4160, MOST};
    static const uint32_t sizes[] = {1, 3, 32, 64, 128};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        all_alignments(sizes[i], lengths, sizeof lengths / sizeof lengths[0]);
}

static void picks(void **state) {
    (void)state;
    static _Alignas(16) unsigned char bytes[32], got[16];
    for (unsigned i = 0; i < 32; i++)
        bytes[i] = (unsigned char)(200 - i * 3);
    source = bytes;
    target = got;
    length = 32;
    for (uint32_t by = 0; by < 16; by++) {
        hemd_vector_store(
            got, hemd_vector_pick(hemd_vector_load(bytes), hemd_vector_load(bytes + 16), by));
        assert_memory_equal(got, bytes + by, 16);
    }
}

/* Words of `n` bytes that begin at `from`, two at a time and `step` words apart, and one by one into `to`. */
static void move_words(uint64_t n, uint64_t step) {
    const uint64_t count = (n + 7) / 8;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t want[2] = {0, 0};
        for (uint64_t k = 0; k < 2; k++)
            for (uint64_t b = 0; b < 8 && 8 * (i + k * step) + b < n; b++)
                want[k] |= (uint64_t)source[8 * (i + k * step) + b] << 8 * b;
        const hemd_words got = hemd_words_get_odd(source, n, 8 * i, 8 * step);
        assert_int_equal(got.word[0], want[0]);
        assert_int_equal(got.word[1], want[1]);
        assert_int_equal(hemd_word_get(source + 8 * i, n - 8 * i), want[0]);
        hemd_word_set(target + 8 * i, n - 8 * i, want[0]);
    }
}

static void words(void **state) {
    (void)state;
    rooms *r = rooms_make();
    for (uint32_t by = 0; by < 64; by++)
        for (uint64_t n = 0; n < 80; n++) {
            source = r->from + MARGIN + by % 8;
            target = r->to + MARGIN + by / 8;
            length = n;
            memset(r->to, 0xee, sizeof r->to);
            memset(r->want, 0xee, sizeof r->want);
            memcpy(r->want + MARGIN + by / 8, source, n);
            for (uint64_t step = 1; step < 5; step++)
                move_words(n, step);
            assert_memory_equal(r->to, r->want, sizeof r->to);
        }
    free(r);
}

/* Where host threads stand in, each copies a share. */
static void shares(void **state) {
    (void)state;
    rooms *r = rooms_make();
    source = NULL;
    for (uint32_t size = 1; size < 9; size++)
        for (uint64_t n = 0; n < 700; n += n < 140 ? 1 : 61) {
            hem_group group = {HEM_SCOPE_BLOCK, 0, size, NULL};
            memset(r->to, 0xee, sizeof r->to);
            memset(r->want, 0xee, sizeof r->want);
            memcpy(r->want + 3, r->from, n);
            for (group.rank = 0; group.rank < size; group.rank++)
                hemd_copy(group, r->to + 3, r->from, n);
            assert_memory_equal(r->to, r->want, sizeof r->to);
        }
    free(r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(picks), cmocka_unit_test(short_copies), cmocka_unit_test(long_copies),
        cmocka_unit_test(words), cmocka_unit_test(shares),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
