/* Contributions of ranks to collectives, and what comes of them, one element at a time. */
#include "coll_reference.h"

#include <math.h>

enum {
    BLOCK = 256
};

/* An element while it is being combined: wide enough for each, and for f32 in place of f16. */
typedef struct slot {
    unsigned char bytes[COLL_USER_BYTES];
} slot;

/* Types. */

static bool is_half(hem_dtype dtype) {
    return dtype == HEM_F16 || dtype == HEM_BF16;
}

static bool is_float(hem_dtype dtype) {
    return is_half(dtype) || dtype == HEM_F32 || dtype == HEM_F64;
}

static bool is_complex(hem_dtype dtype) {
    return dtype == HEM_C64 || dtype == HEM_C128;
}

static bool is_signed(hem_dtype dtype) {
    return dtype >= HEM_I8 && dtype <= HEM_I64;
}

static bool is_located(hem_reduction op) {
    return op == HEM_MINLOC || op == HEM_MAXLOC;
}

static bool is_logical(hem_reduction op) {
    return op >= HEM_LAND && op <= HEM_LXOR;
}

/* HEM_BOOL has the logical operations under several names; any byte but 0 is true. */
static coll_case meant(const coll_case *c) {
    coll_case same = *c;

    if (c->dtype != HEM_BOOL || !c->op)
        return same;
    if (c->op == HEM_SUM || c->op == HEM_MAX || c->op == HEM_BOR)
        same.op = HEM_LOR;
    else if (c->op == HEM_PROD || c->op == HEM_MIN || c->op == HEM_BAND)
        same.op = HEM_LAND;
    else if (c->op == HEM_BXOR)
        same.op = HEM_LXOR;
    return same;
}

/* Numbers of 16 bits. */

static float from_bf16(uint16_t bits) {
    uint32_t wide = (uint32_t)bits << 16;
    float value;

    memcpy(&value, &wide, 4);
    return value;
}

static uint16_t to_bf16(float value) {
    uint32_t wide;

    memcpy(&wide, &value, 4);
    return (uint16_t)((wide + 0x7fff + (wide >> 16 & 1)) >> 16);
}

static float from_f16(uint16_t bits) {
    int exponent = bits >> 10 & 31;
    int mantissa = bits & 1023;
    float size = exponent == 31 ? INFINITY
                 : exponent     ? ldexpf((float)(mantissa + 1024), exponent - 25)
                                : ldexpf((float)mantissa, -24);

    return bits >> 15 ? -size : size;
}

/* Rounds to even, by scaling so that the last bit of the result is 1. */
static uint16_t to_f16(float value) {
    uint16_t sign = signbit(value) ? 0x8000 : 0;
    double size = fabs((double)value);
    int exponent = size > 0 ? ilogb(size) : -14;
    double scaled;

    if (exponent < -14)
        exponent = -14;
    if (size >= 65520)
        return sign | 0x7c00;
    scaled = rint(ldexp(size, 10 - exponent));
    return (uint16_t)(sign + (uint16_t)((exponent + 14) * 1024) + (uint16_t)scaled);
}

/* A real number of any type, exactly. */
static long double number(hem_dtype dtype, const void *at) {
    size_t size = hem_dtype_size(dtype);
    uint64_t bits = 0;
    float single = 0;
    double wide = 0;

    if (dtype == HEM_F32) {
        memcpy(&single, at, 4);
        return single;
    }
    if (dtype == HEM_F64) {
        memcpy(&wide, at, 8);
        return wide;
    }
    memcpy(&bits, at, size);
    if (dtype == HEM_F16)
        return from_f16((uint16_t)bits);
    if (dtype == HEM_BF16)
        return from_bf16((uint16_t)bits);
    if (is_signed(dtype))
        return (long double)((int64_t)(bits << (64 - 8 * size)) >> (64 - 8 * size));
    return (long double)bits;
}

/* Writes a small number in a type. */
static void put_number(hem_dtype dtype, double value, void *at) {
    float single = (float)value;
    int64_t whole = (int64_t)value;
    uint16_t half = dtype == HEM_F16 ? to_f16(single) : to_bf16(single);

    if (dtype == HEM_F64 || dtype == HEM_C128)
        memcpy(at, &value, 8);
    else if (dtype == HEM_F32 || dtype == HEM_C64)
        memcpy(at, &single, 4);
    else if (is_half(dtype))
        memcpy(at, &half, 2);
    else
        memcpy(at, &whole, hem_dtype_size(dtype));
}

/* What ranks contribute. */

static uint64_t mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

/* Different sizes, so that the order of additions shows; products stay within f16. */
static double random_real(hem_reduction op, hem_dtype dtype, uint64_t dice) {
    int reach = op == HEM_PROD ? 1 : is_half(dtype) ? 5 : 12;
    int exponent = (int)(dice >> 56) % (2 * reach + 1) - reach;
    double mantissa = 1 + (double)(dice & 0xfffffffff) / 0x1000000000;

    return ldexp(dice >> 40 & 1 ? mantissa : -mantissa, exponent);
}

/* How often a value is zero, such that the result of a few ranks is about as often true as not. */
static bool is_zero(hem_reduction op, uint64_t dice) {
    unsigned eighths = op == HEM_LAND ? 1 : op == HEM_LOR ? 6 : 4;

    return (dice >> 45) % 8 < eighths;
}

/* Few values and few locations, so that there are ties of both. */
static void make_pair(hem_dtype dtype, uint64_t dice, unsigned char *out) {
    int64_t place = (int64_t)(dice >> 32 & 15) - 8;

    memset(out, 0, 16);
    put_number(dtype, is_float(dtype) ? (double)(dice & 3) - 1.5 : (double)(dice & 3), out);
    memcpy(out + 8, &place, 8);
}

static void make_user(uint64_t dice, unsigned char *out) {
    for (int i = 0; i < 3; i++) {
        dice = mix(dice + 77);
        memcpy(out + 8 * i, &dice, 8);
    }
}

static void make_value(const coll_case *c, uint64_t dice, unsigned char *out) {
    size_t size = hem_dtype_size(c->dtype);

    if (is_located(c->op)) {
        make_pair(c->dtype, dice, out);
    } else if (is_logical(c->op) && is_zero(c->op, dice)) {
        memset(out, 0, size);
    } else if (is_complex(c->dtype)) {
        put_number(c->dtype, random_real(c->op, c->dtype, dice), out);
        put_number(c->dtype, random_real(c->op, c->dtype, mix(dice + 1)), out + size / 2);
    } else if (is_float(c->dtype)) {
        put_number(c->dtype, random_real(c->op, c->dtype, dice), out);
    } else {
        /* Odd factors: products of others would soon be 0 in all bits. */
        dice |= c->op == HEM_PROD || is_logical(c->op);
        memcpy(out, &dice, size);
    }
}

void coll_generate(const coll_case *c, int rank, int block, size_t first, size_t n, void *out) {
    coll_case plain = meant(c);
    size_t element = coll_element(c);
    unsigned char *to = out;
    uint64_t base = mix(c->seed * 1000003 + (uint64_t)rank * 131 + (uint64_t)block + 1);

    for (size_t i = 0; i < n; i++, to += element) {
        uint64_t dice = mix(base + (first + i) * 0x9e3779b97f4a7c15);

        if (c->op && c->op != HEM_USER) {
            make_value(&plain, dice, to);
        } else if (element <= 8) {
            memcpy(to, &dice, element);
        } else if (element == 16) {
            uint64_t pair[2] = {dice, mix(dice + 1)};
            memcpy(to, pair, 16);
        } else {
            make_user(dice, to);
        }
    }
}

/* Combining. */

static uint64_t combine_bits(hem_reduction op, uint64_t a, uint64_t b) {
    if (op == HEM_SUM || op == HEM_PROD)
        return op == HEM_SUM ? a + b : a * b;
    return op == HEM_BAND ? a & b : op == HEM_BOR ? a | b : a ^ b;
}

static bool truth(hem_dtype dtype, const void *at) {
    size_t half = hem_dtype_size(dtype) / 2;

    if (dtype == HEM_C64)
        return number(HEM_F32, at) != 0 || number(HEM_F32, (const unsigned char *)at + half) != 0;
    if (dtype == HEM_C128)
        return number(HEM_F64, at) != 0 || number(HEM_F64, (const unsigned char *)at + half) != 0;
    return number(dtype, at) != 0;
}

static void put_truth(hem_dtype dtype, bool value, slot *to) {
    memset(to, 0, sizeof *to);
    put_number(dtype, value, to->bytes);
}

static void fold_logical(const coll_case *c, slot *into, const void *from) {
    bool a = truth(c->dtype, into->bytes);
    bool b = truth(c->dtype, from);

    put_truth(c->dtype, c->op == HEM_LAND ? a && b : c->op == HEM_LOR ? a || b : a != b, into);
}

static void fold_extreme(const coll_case *c, slot *into, const void *from) {
    long double a = number(c->dtype, into->bytes);
    long double b = number(c->dtype, from);
    bool low = c->op == HEM_MIN || c->op == HEM_MINLOC;
    bool better = low ? b < a : b > a;
    int64_t here;
    int64_t there;

    if (is_located(c->op) && a == b) {
        memcpy(&here, into->bytes + 8, 8);
        memcpy(&there, (const unsigned char *)from + 8, 8);
        better = there < here;
    }
    if (better)
        memcpy(into->bytes, from, coll_element(c));
}

static void fold_f32(hem_reduction op, slot *into, float b) {
    float a;

    memcpy(&a, into->bytes, 4);
    a = op == HEM_SUM ? a + b : a * b;
    memcpy(into->bytes, &a, 4);
}

static float half_of(hem_dtype dtype, const void *from) {
    uint16_t bits;

    memcpy(&bits, from, 2);
    return dtype == HEM_F16 ? from_f16(bits) : from_bf16(bits);
}

static void fold_complex(const coll_case *c, slot *into, const void *from) {
    float a[2];
    float b[2];
    double x[2];
    double y[2];

    if (c->dtype == HEM_C64) {
        memcpy(a, into->bytes, sizeof a);
        memcpy(b, from, sizeof b);
        if (c->op == HEM_SUM)
            memcpy(into->bytes, (float[]){a[0] + b[0], a[1] + b[1]}, sizeof a);
        else
            memcpy(into->bytes, (float[]){a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]},
                   sizeof a);
        return;
    }
    memcpy(x, into->bytes, sizeof x);
    memcpy(y, from, sizeof y);
    if (c->op == HEM_SUM)
        memcpy(into->bytes, (double[]){x[0] + y[0], x[1] + y[1]}, sizeof x);
    else
        memcpy(into->bytes, (double[]){x[0] * y[0] - x[1] * y[1], x[0] * y[1] + x[1] * y[0]},
               sizeof x);
}

static void fold_arithmetic(const coll_case *c, slot *into, const void *from) {
    size_t size = hem_dtype_size(c->dtype);
    uint64_t a = 0;
    uint64_t b = 0;
    double x;
    double y;
    float single;

    if (is_complex(c->dtype)) {
        fold_complex(c, into, from);
    } else if (is_half(c->dtype)) {
        fold_f32(c->op, into, half_of(c->dtype, from));
    } else if (c->dtype == HEM_F32) {
        memcpy(&single, from, 4);
        fold_f32(c->op, into, single);
    } else if (c->dtype == HEM_F64) {
        memcpy(&x, into->bytes, 8);
        memcpy(&y, from, 8);
        x = c->op == HEM_SUM ? x + y : x * y;
        memcpy(into->bytes, &x, 8);
    } else {
        memcpy(&a, into->bytes, size);
        memcpy(&b, from, size);
        a = combine_bits(c->op, a, b);
        memcpy(into->bytes, &a, size);
    }
}

static bool in_f32(const coll_case *c) {
    return is_half(c->dtype) && (c->op == HEM_SUM || c->op == HEM_PROD);
}

/* The first contribution. Logical results are 0 or 1 even if there is no other. */
static void begin(const coll_case *c, slot *into, const void *from) {
    float value;

    if (in_f32(c)) {
        value = half_of(c->dtype, from);
        memcpy(into->bytes, &value, 4);
    } else if (is_logical(c->op)) {
        put_truth(c->dtype, truth(c->dtype, from), into);
    } else {
        memcpy(into->bytes, from, coll_element(c));
    }
}

static void fold(const coll_case *c, slot *into, const void *from) {
    if (c->op == HEM_USER)
        coll_user(into->bytes, from, 1, coll_user_arg);
    else if (is_logical(c->op))
        fold_logical(c, into, from);
    else if (c->op == HEM_MIN || c->op == HEM_MAX || is_located(c->op))
        fold_extreme(c, into, from);
    else
        fold_arithmetic(c, into, from);
}

static void finish(const coll_case *c, const slot *from, void *to) {
    float value;
    uint16_t bits;

    if (!in_f32(c)) {
        memcpy(to, from->bytes, coll_element(c));
        return;
    }
    memcpy(&value, from->bytes, 4);
    bits = c->dtype == HEM_F16 ? to_f16(value) : to_bf16(value);
    memcpy(to, &bits, 2);
}

static void combine_block(const coll_case *c, int block, size_t first, size_t n, void *out) {
    slot slots[BLOCK];
    unsigned char given[BLOCK * COLL_USER_BYTES];
    size_t element = coll_element(c);

    CHECK(element <= COLL_USER_BYTES);
    for (int rank = 0; rank < c->size; rank++) {
        coll_generate(c, rank, block, first, n, given);
        for (size_t i = 0; i < n; i++)
            rank ? fold(c, &slots[i], given + i * element)
                 : begin(c, &slots[i], given + i * element);
    }
    for (size_t i = 0; i < n; i++)
        finish(c, &slots[i], (unsigned char *)out + i * element);
}

void coll_combine(const coll_case *c, int block, size_t first, size_t n, void *out) {
    coll_case plain = meant(c);
    size_t element = coll_element(c);

    for (size_t done = 0; done < n; done += BLOCK)
        combine_block(&plain, block, first + done, n - done < BLOCK ? n - done : BLOCK,
                      (unsigned char *)out + done * element);
}
