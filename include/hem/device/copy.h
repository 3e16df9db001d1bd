/*
 * Copying by a group of threads, at any alignment of either side.
 *
 * How this works. The middle of the destination is written in aligned pieces of 16 bytes. A thread
 * takes eight at a time, all loads before the stores: an SM then has enough under way to be limited
 * by its port and not by the latency. What is before the first such piece, and after the last, is
 * less than 32 bytes, a byte per thread. Its loads go out before the middle, so that a short copy
 * takes one latency and not three.
 *
 * If source and destination are misaligned by different amounts, each piece is put together from the
 * two aligned pieces of the source that it overlaps. No byte outside of the source is read.
 *
 * There is no barrier in here: each thread returns when its own share is done. Sources are read by
 * plain loads, which see what a peer stored once a wait for its signal has ended.
 */
#ifndef HEM_DEVICE_COPY_H
#define HEM_DEVICE_COPY_H

#include <hem/device/group.h>

#if defined(__CUDACC__)

#define HEMD_UNROLL    _Pragma("unroll")
#define HEMD_NO_UNROLL _Pragma("unroll 1")

typedef uint4 hemd_vector;

HEM_DEV hemd_vector hemd_vector_load(const unsigned char *from) {
    return *(const uint4 *)from;
}

HEM_DEV void hemd_vector_store(unsigned char *to, hemd_vector vector) {
    *(uint4 *)to = vector;
}

/** The low word of hi:lo shifted right by `bits`, 0 to 24. */
HEM_DEV uint32_t hemd_funnel(uint32_t lo, uint32_t hi, uint32_t bits) {
    return __funnelshift_r(lo, hi, bits);
}

HEM_DEV uint64_t hemd_unit_get(const unsigned char *from, uint32_t width) {
    if (width == 8)
        return *(const uint64_t *)from;
    if (width == 4)
        return *(const uint32_t *)from;
    return width == 2 ? *(const uint16_t *)from : *from;
}

HEM_DEV void hemd_unit_set(unsigned char *to, uint32_t width, uint64_t value) {
    if (width == 8)
        *(uint64_t *)to = value;
    else if (width == 4)
        *(uint32_t *)to = (uint32_t)value;
    else if (width == 2)
        *(uint16_t *)to = (uint16_t)value;
    else
        *to = (unsigned char)value;
}

#else

#include <string.h>

#define HEMD_UNROLL
#define HEMD_NO_UNROLL

typedef struct hemd_vector {
    uint32_t x, y, z, w;
} hemd_vector;

HEM_DEV hemd_vector hemd_vector_load(const unsigned char *from) {
    hemd_vector vector;
    memcpy(&vector, from, sizeof vector);
    return vector;
}

HEM_DEV void hemd_vector_store(unsigned char *to, hemd_vector vector) {
    memcpy(to, &vector, sizeof vector);
}

HEM_DEV uint32_t hemd_funnel(uint32_t lo, uint32_t hi, uint32_t bits) {
    return (uint32_t)(((uint64_t)hi << 32 | lo) >> bits);
}

HEM_DEV uint64_t hemd_unit_get(const unsigned char *from, uint32_t width) {
    uint64_t value = 0;
    memcpy(&value, from, width);
    return value;
}

HEM_DEV void hemd_unit_set(unsigned char *to, uint32_t width, uint64_t value) {
    memcpy(to, &value, width);
}

#endif

/** Bytes `by` to `by` + 15 of the 32 bytes a, b. */
HEM_DEV hemd_vector hemd_vector_pick(hemd_vector a, hemd_vector b, uint32_t by) {
    bool two = (by & 8u) != 0;
    uint32_t p0 = two ? a.z : a.x, p1 = two ? a.w : a.y, p2 = two ? b.x : a.z;
    uint32_t p3 = two ? b.y : a.w, p4 = two ? b.z : b.x, p5 = two ? b.w : b.y;
    bool one = (by & 4u) != 0;
    uint32_t q0 = one ? p1 : p0, q1 = one ? p2 : p1, q2 = one ? p3 : p2;
    uint32_t q3 = one ? p4 : p3, q4 = one ? p5 : p4;
    uint32_t bits = 8u * (by & 3u);
    hemd_vector picked;
    picked.x = hemd_funnel(q0, q1, bits);
    picked.y = hemd_funnel(q1, q2, bits);
    picked.z = hemd_funnel(q2, q3, bits);
    picked.w = hemd_funnel(q3, q4, bits);
    return picked;
}

/**
 * `count` pieces of 16 bytes, both sides aligned. `lanes` threads that follow each other, all of a
 * warp or one, take eight times as many pieces that follow each other: a constant, so that addresses
 * are and registers stay few.
 */
HEM_DEV void hemd_copy_even(uint32_t rank, uint32_t size, uint32_t lanes, unsigned char *to,
                            const unsigned char *from, uint64_t count) {
    hemd_vector piece[8];
    uint64_t first = 8u * (uint64_t)(rank - rank % lanes);
    const uint64_t mine = 16u * (first + rank % lanes);
    to += mine;
    from += mine;
    for (; first < count; first += 8u * (uint64_t)size) {
        if (count - first >= 8ull * lanes) {
            HEMD_UNROLL
            for (uint32_t k = 0; k < 8; k++)
                piece[k] = hemd_vector_load(from + 16ull * k * lanes);
            HEMD_UNROLL
            for (uint32_t k = 0; k < 8; k++)
                hemd_vector_store(to + 16ull * k * lanes, piece[k]);
        } else {
            const uint32_t end = (uint32_t)(count - first);
            HEMD_UNROLL
            for (uint32_t k = 0; k < 8; k++)
                if (rank % lanes + k * lanes < end)
                    piece[k] = hemd_vector_load(from + 16ull * k * lanes);
            HEMD_UNROLL
            for (uint32_t k = 0; k < 8; k++)
                if (rank % lanes + k * lanes < end)
                    hemd_vector_store(to + 16ull * k * lanes, piece[k]);
        }
        to += 128u * (uint64_t)size;
        from += 128u * (uint64_t)size;
    }
}

/** The same where the source of each piece begins `by` bytes, 1 to 15, behind the aligned `from`. */
HEM_DEV void hemd_copy_odd(uint32_t rank, uint32_t size, uint32_t lanes, unsigned char *to,
                           const unsigned char *from, uint32_t by, uint64_t count) {
    hemd_vector low[4], high[4];
    uint64_t first = 4u * (uint64_t)(rank - rank % lanes);
    const uint64_t mine = 16u * (first + rank % lanes);
    to += mine;
    from += mine;
    for (; first < count; first += 4u * (uint64_t)size) {
        const uint32_t end = count - first < 4ull * lanes ? (uint32_t)(count - first) : 4u * lanes;
        HEMD_UNROLL
        for (uint32_t k = 0; k < 4; k++)
            if (rank % lanes + k * lanes < end) {
                low[k] = hemd_vector_load(from + 16ull * k * lanes);
                high[k] = hemd_vector_load(from + 16ull * k * lanes + 16);
            }
        HEMD_UNROLL
        for (uint32_t k = 0; k < 4; k++)
            if (rank % lanes + k * lanes < end)
                hemd_vector_store(to + 16ull * k * lanes, hemd_vector_pick(low[k], high[k], by));
        to += 64u * (uint64_t)size;
        from += 64u * (uint64_t)size;
    }
}

/** A few bytes by one thread, in units as wide as all is aligned, eight under way. */
HEM_DEV void hemd_copy_alone(unsigned char *to, const unsigned char *from, uint64_t n) {
    uint64_t mix = (uint64_t)(uintptr_t)to | (uint64_t)(uintptr_t)from | n;
    const uint32_t width = mix % 8u == 0 ? 8 : mix % 4u == 0 ? 4 : 1;
    uint64_t unit[8];
    for (uint64_t at = 0; at < n; at += 8ull * width) {
        HEMD_UNROLL
        for (uint32_t k = 0; k < 8; k++)
            if (at + (uint64_t)k * width < n)
                unit[k] = hemd_unit_get(from + at + (uint64_t)k * width, width);
        HEMD_UNROLL
        for (uint32_t k = 0; k < 8; k++)
            if (at + (uint64_t)k * width < n)
                hemd_unit_set(to + at + (uint64_t)k * width, width, unit[k]);
    }
}

/** Before and behind the aligned pieces. */
HEM_DEV void hemd_copy_edge(uint32_t rank, uint32_t size, unsigned char *to,
                            const unsigned char *from, uint64_t n) {
    if (size == 1)
        hemd_copy_alone(to, from, n);
    else
        for (uint64_t at = rank; at < n; at += size)
            to[at] = from[at];
}

/** The middle of a copy: `by` says how much more the source is misaligned than the destination. */
HEM_DEV void hemd_copy_middle(uint32_t rank, uint32_t size, uint32_t lanes, unsigned char *to,
                              const unsigned char *from, uint32_t by, uint64_t count) {
    if (by == 0)
        hemd_copy_even(rank, size, lanes, to, from, count);
    else
        hemd_copy_odd(rank, size, lanes, to, from - by, by, count);
}

/** hemd_copy as the GPU does it, where `size` is 1 or whole warps; compiles everywhere. */
HEM_DEV void hemd_copy_vectors(uint32_t rank, uint32_t size, unsigned char *to,
                               const unsigned char *from, uint64_t n) {
    const uint32_t by = (uint32_t)((uintptr_t)from - (uintptr_t)to) & 15u;
    uint32_t head = (uint32_t)(0u - (uintptr_t)to) & 15u;
    if (head < by)
        head += 16; /* or the first aligned piece of the source would begin before it */
    if (n < head + 32u) {
        hemd_copy_edge(rank, size, to, from, n);
        return;
    }
    /* The last piece of an odd copy reads 16 - by bytes behind itself. */
    const uint64_t count = by == 0 ? (n - head) / 16u : (n - head + by - 16u) / 16u;
    const uint64_t behind = head + 16u * count;
    const uint32_t tail = (uint32_t)(n - behind);
    if (size < 32) {
        hemd_copy_edge(rank, size, to, from, head);
        hemd_copy_middle(rank, size, 1, to + head, from + head, by, count);
        hemd_copy_edge(rank, size, to + behind, from + behind, tail);
        return;
    }
    unsigned char first = 0, last = 0;
    if (rank < head)
        first = from[rank];
    if (rank < tail)
        last = from[behind + rank];
    hemd_copy_middle(rank, size, 32, to + head, from + head, by, count);
    if (rank < head)
        to[rank] = first;
    if (rank < tail)
        to[behind + rank] = last;
}

/** What is a piece of 8 or 16 bytes for each thread, or less. @return whether it was. Short messages
 *  take this way, straight through: what is passed once in a microsecond waits for its code, too. */
HEM_DEV bool hemd_copy_short(uint32_t rank, uint32_t size, unsigned char *to,
                             const unsigned char *from, uint64_t n) {
    const uint64_t mix = (uint64_t)(uintptr_t)to | (uint64_t)(uintptr_t)from | n;
    if (mix % 8u == 0 && n <= 8u * (uint64_t)size) {
        const uint32_t at = 8u * rank;
        if (at < n)
            hemd_unit_set(to + at, 8, hemd_unit_get(from + at, 8));
        return true;
    }
    if (mix % 16u == 0 && n <= 16u * (uint64_t)size) {
        const uint32_t at = 16u * rank;
        if (at < n)
            hemd_vector_store(to + at, hemd_vector_load(from + at));
        return true;
    }
    return false;
}

#if defined(__CUDACC__)
/** By 1 thread or whole warps. What is aligned, as most of it is, finds its code in one piece: what
 *  is there for other copies would cost 0.4 us between. */
HEM_DEV void hemd_copy_by(uint32_t rank, uint32_t size, uint32_t lanes, unsigned char *to,
                          const unsigned char *from, uint64_t n) {
    const uint64_t mix = (uint64_t)(uintptr_t)to | (uint64_t)(uintptr_t)from | n;
    if (mix % 16u == 0)
        hemd_copy_even(rank, size, lanes, to, from, n / 16u);
    else
        hemd_copy_vectors(rank, size, to, from, n);
}
#endif

/** hemd_copy where there is much of it. */
HEM_DEV void hemd_copy_long(hem_group group, void *to, const void *from, uint64_t n) {
#if defined(__CUDACC__)
    if (group.scope == HEM_SCOPE_THREAD) {
        hemd_copy_by(0, 1, 1, (unsigned char *)to, (const unsigned char *)from, n);
    } else {
        __builtin_assume(group.size >= 32);
        hemd_copy_by(group.rank, group.size, 32, (unsigned char *)to, (const unsigned char *)from,
                     n);
    }
#else
    const uint32_t size = group.size > 0 ? group.size : 1;
    uint64_t share = (n / size + 64u) & ~(uint64_t)63u;
    uint64_t begin = share * group.rank;
    if (begin < n)
        memcpy((unsigned char *)to + begin, (const unsigned char *)from + begin,
               n - begin < share ? n - begin : share);
#endif
}

/**
 * Copy `n` bytes; they do not overlap. By all threads of the group, each of which returns when its
 * own share is done: hem_group_sync before anybody uses `to` or changes `from`.
 */
HEM_DEV void hemd_copy(hem_group group, void *to, const void *from, uint64_t n) {
    if (!hemd_copy_short(group.rank, group.size, (unsigned char *)to, (const unsigned char *)from,
                         n))
        hemd_copy_long(group, to, from, n);
}

/*
 * Words of data, for units that carry a stamp. What lies oddly is moved out of line: stored in pieces as
 * wide as addresses allow, and loaded in aligned words, of which each word of data overlaps two.
 */

/** Whether data are words, one at least and nothing else. */
HEM_DEV bool hemd_is_whole(const void *data, uint64_t n) {
    return n != 0 && (((uint64_t)(uintptr_t)data | n) & 7u) == 0;
}

/** The widest piece at an address, of the `n` bytes there, up to 4. */
HEM_DEV uint32_t hemd_piece_at(const unsigned char *at, uint32_t n) {
    const uint32_t low = (uint32_t)(uintptr_t)at;
    return low % 2u != 0 || n < 2u ? 1u : low % 4u != 0 || n < 4u ? 2u : 4u;
}

HEM_DEV_SLOW uint64_t hemd_word_get_odd(const unsigned char *from, uint64_t n) {
    const uint32_t end = n < 8u ? (uint32_t)n : 8u;
    uint64_t value = 0;
    HEMD_NO_UNROLL
    for (uint32_t at = 0; at < end;) {
        const uint32_t width = hemd_piece_at(from + at, end - at);
        value |= hemd_unit_get(from + at, width) << 8u * at;
        at += width;
    }
    return value;
}

HEM_DEV_SLOW void hemd_word_set_odd(unsigned char *to, uint64_t n, uint64_t value) {
    const uint32_t end = n < 8u ? (uint32_t)n : 8u;
    HEMD_NO_UNROLL
    for (uint32_t at = 0; at < end;) {
        const uint32_t width = hemd_piece_at(to + at, end - at);
        hemd_unit_set(to + at, width, value >> 8u * at);
        at += width;
    }
}

/** The first of `n` bytes, up to 8, as a word, at any alignment. */
HEM_DEV uint64_t hemd_word_get(const unsigned char *from, uint64_t n) {
    return n >= 8u && (uintptr_t)from % 8u == 0 ? hemd_unit_get(from, 8)
                                                : hemd_word_get_odd(from, n);
}

/** Two words. */
typedef struct hemd_words {
    uint64_t word[2];
} hemd_words;

/**
 * Two words of `n` bytes at `data`, at byte `at` and `step` bytes behind it: multiples of 8; one behind the end
 * is 0. Both are under way before one is waited for. No byte outside of the data is read: the first word, and
 * those at the end, are loaded in pieces.
 */
HEM_DEV_SLOW hemd_words hemd_words_get_odd(const unsigned char *data, uint64_t n, uint64_t at,
                                           uint64_t step) {
    const uint32_t by = (uint32_t)(uintptr_t)data & 7u;
    const uint32_t first = by == 0 ? 0 : 8u, behind = by == 0 ? 8u : 16u - by;
    uint64_t low[2] = {0, 0}, high[2] = {0, 0};
    hemd_words got;
    HEMD_UNROLL
    for (uint32_t k = 0; k < 2; k++) {
        const uint64_t place = at + k * step;
        if (place >= first && place + behind <= n) {
            low[k] = hemd_unit_get(data + place - by, 8);
            high[k] = by == 0 ? 0 : hemd_unit_get(data + place - by + 8, 8);
        }
    }
    HEMD_UNROLL
    for (uint32_t k = 0; k < 2; k++) {
        const uint64_t place = at + k * step;
        got.word[k] = low[k] >> 8u * by | high[k] << (64u - 8u * by) % 64u;
        if (place < n && (place < first || place + behind > n))
            got.word[k] = hemd_word_get_odd(data + place, n - place);
    }
    return got;
}

/** Store them. */
HEM_DEV void hemd_word_set(unsigned char *to, uint64_t n, uint64_t value) {
    if (n >= 8u && (uintptr_t)to % 8u == 0)
        hemd_unit_set(to, 8, value);
    else
        hemd_word_set_odd(to, n, value);
}

#endif
