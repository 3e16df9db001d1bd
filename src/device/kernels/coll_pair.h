/*
 * Pairs of a value and its location in a vector of 16 bytes: which of two stays, by the rules at the
 * top of coll/reduce/reduce.h.
 *
 * A value becomes a key of 64 bits in the order of its type, with 0 and -0 alike, and NaN beyond all
 * numbers on the side that wins. Keys of numbers are never 0 or UINT64_MAX where the type has NaN.
 */
#ifndef HEMD_KERNELS_COLL_PAIR_H
#define HEMD_KERNELS_COLL_PAIR_H

#include "device/kernels/coll_element.h"
#include "device/kernels/coll_table.h"

/** The key of an integer of `bits` bits, which has a sign or not. */
HEM_DEV uint64_t hemd_pair_integer(uint64_t value, uint32_t bits, bool has_sign) {
    const uint64_t sign = 1ull << (bits - 1u);
    const uint64_t own = value & (sign | (sign - 1u));
    return has_sign ? own ^ sign : own;
}

/** The key of a real number of `bits` bits; those of the infinity are `infinity`. */
HEM_DEV uint64_t hemd_pair_real(uint64_t value, uint32_t bits, uint64_t infinity, uint64_t none) {
    const uint64_t sign = 1ull << (bits - 1u);
    const uint64_t magnitude = value & (sign - 1u);
    if (magnitude > infinity)
        return none;
    return (value & sign) != 0 ? sign - magnitude : sign + magnitude;
}

HEM_DEV uint64_t hemd_pair_key(uint32_t type, uint64_t value, uint64_t none) {
    switch (type) {
    case HEMD_COLL_F16:
        return hemd_pair_real(value, 16, 0x7c00u, none);
    case HEMD_COLL_BF16:
        return hemd_pair_real(value, 16, 0x7f80u, none);
    case HEMD_COLL_F32:
        return hemd_pair_real(value, 32, 0x7f800000u, none);
    case HEMD_COLL_F64:
        return hemd_pair_real(value, 64, 0x7ff0000000000000ull, none);
    default: /* U8, U16, U32, U64, and then those with a sign */
        return hemd_pair_integer(value, 8u << (type - HEMD_COLL_U8) % 4u, type >= HEMD_COLL_I8);
    }
}

/** Whether the second pair wins: the better value, the lower location, and then the first. */
HEM_DEV_SLOW bool hemd_pair_second_wins(uint32_t type, bool largest, uint64_t value,
                                        int64_t location, uint64_t second_value,
                                        int64_t second_location) {
    const uint64_t none = largest ? UINT64_MAX : 0;
    const uint64_t key = hemd_pair_key(type, value, none);
    const uint64_t second = hemd_pair_key(type, second_value, none);
    if (key == second)
        return second_location < location;
    return largest ? second > key : second < key;
}

#endif
