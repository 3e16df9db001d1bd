/*
 * One block with the fixed codes of the standard. Repetitions are found through a table that keeps,
 * for each hash of four bytes, the place where they were seen last. A smooth picture shrinks to
 * about a third.
 */
#include "deflate.h"

#include <string.h>

#define SHORTEST  4 /* A shorter repetition may cost more bits than its bytes: see deflate_bound. */
#define LONGEST   258
#define FARTHEST  32768
#define HASH_BITS 15

struct bits {
    uint8_t *out;
    size_t bytes;
    uint32_t pending;
    unsigned count;
};

/* Bits fill each byte from its lowest bit. */
static void put_bits(struct bits *bits, uint32_t value, unsigned count) {
    bits->pending |= value << bits->count;
    bits->count += count;
    while (bits->count >= 8) {
        bits->out[bits->bytes++] = (uint8_t)bits->pending;
        bits->pending >>= 8;
        bits->count -= 8;
    }
}

/* Huffman codes go in from their highest bit. */
static void put_code(struct bits *bits, uint32_t code, unsigned count) {
    while (count-- > 0)
        put_bits(bits, (code >> count) & 1, 1);
}

/* The fixed code for bytes (0 to 255), the end of the block (256), and lengths (257 and up). */
static void put_symbol(struct bits *bits, unsigned symbol) {
    if (symbol < 144)
        put_code(bits, 0x30 + symbol, 8);
    else if (symbol < 256)
        put_code(bits, 0x190 + symbol - 144, 9);
    else if (symbol < 280)
        put_code(bits, symbol - 256, 7);
    else
        put_code(bits, 0xc0 + symbol - 280, 8);
}

static void put_length(struct bits *bits, unsigned length) {
    unsigned extra = 0;
    unsigned rest = length - 3;

    if (length == LONGEST) {
        put_symbol(bits, 285);
        return;
    }
    /* Four lengths share one number of extra bits, after the first eight, which have none. */
    while ((rest >> extra) >= 8)
        extra++;
    put_symbol(bits, 257 + 4 * extra + (rest >> extra));
    put_bits(bits, rest & ((1u << extra) - 1), extra);
}

static void put_distance(struct bits *bits, unsigned distance) {
    unsigned extra = 0;
    unsigned rest = distance - 1;

    while ((rest >> extra) >= 4)
        extra++;
    put_code(bits, 2 * extra + (rest >> extra), 5);
    put_bits(bits, rest & ((1u << extra) - 1), extra);
}

static unsigned hash(const uint8_t *data) {
    uint32_t word;
    memcpy(&word, data, sizeof word);
    return (word * 2654435761u) >> (32 - HASH_BITS);
}

static unsigned match_length(const uint8_t *here, const uint8_t *there, size_t left) {
    unsigned most = left < LONGEST ? (unsigned)left : LONGEST;
    unsigned length = 0;

    while (length < most && here[length] == there[length])
        length++;
    return length;
}

static void put_block(struct bits *bits, const uint8_t *data, size_t bytes) {
    static const size_t nowhere = (size_t)-1;
    size_t seen[1 << HASH_BITS];

    for (size_t i = 0; i < sizeof seen / sizeof *seen; i++)
        seen[i] = nowhere;

    for (size_t at = 0; at < bytes;) {
        unsigned length = 0;
        size_t last = nowhere;

        if (bytes - at >= SHORTEST) {
            unsigned slot = hash(data + at);
            last = seen[slot];
            seen[slot] = at;
        }
        if (last != nowhere && at - last <= FARTHEST)
            length = match_length(data + at, data + last, bytes - at);
        if (length >= SHORTEST) {
            put_length(bits, length);
            put_distance(bits, (unsigned)(at - last));
            at += length;
        } else {
            put_symbol(bits, data[at++]);
        }
    }
}

static uint32_t adler32(const uint8_t *data, size_t bytes) {
    uint32_t low = 1, high = 0;

    for (size_t i = 0; i < bytes; i++) {
        low = (low + data[i]) % 65521;
        high = (high + low) % 65521;
    }
    return high << 16 | low;
}

/* A byte costs at most 9 bits, and a repetition at most 31, which is less than four bytes. */
size_t deflate_bound(size_t bytes) {
    return bytes + bytes / 8 + 16;
}

size_t deflate_zlib(const uint8_t *data, size_t bytes, uint8_t *out) {
    struct bits bits = {.out = out};
    uint32_t sum = adler32(data, bytes);

    put_bits(&bits, 0x0178, 16); /* deflate, a window of 32 KiB, no dictionary */
    put_bits(&bits, 1, 1);       /* the last block */
    put_bits(&bits, 1, 2);       /* with fixed codes */
    put_block(&bits, data, bytes);
    put_symbol(&bits, 256);
    put_bits(&bits, 0, (8 - bits.count) % 8);
    for (int shift = 24; shift >= 0; shift -= 8)
        put_bits(&bits, (sum >> shift) & 0xff, 8);
    return bits.bytes;
}
