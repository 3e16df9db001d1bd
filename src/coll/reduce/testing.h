/*
 * What the tests of the reductions share: a naive reference that goes one element at a time and has
 * nothing in common with the kernels.
 */
#ifndef HEMI_COLL_REDUCE_TESTING_H
#define HEMI_COLL_REDUCE_TESTING_H

#include "base/testing.h"
#include "coll/reduce/reduce.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#define TESTING_SETS 3

/** f16 or bf16: bits after the point, and the exponents of normal numbers. */
typedef struct half_format {
    int fraction;
    int least;
    int most;
} half_format;

static const half_format format_f16 = {10, -14, 15};
static const half_format format_bf16 = {7, -126, 127};

static double half_value(uint16_t bits, half_format f) {
    int exponent = (bits & 0x7fff) >> f.fraction;
    int fraction = bits & ((1 << f.fraction) - 1);
    double sign = (bits & 0x8000) != 0 ? -1.0 : 1.0;

    if (exponent == f.most - f.least + 2)
        return fraction != 0 ? NAN : sign * INFINITY;
    if (exponent == 0)
        return sign * ldexp(fraction, f.least - f.fraction);
    return sign * ldexp(fraction + (1 << f.fraction), exponent - 1 + f.least - f.fraction);
}

/** To nearest even, by scaling so that the last bit counts 1, and rounding that to an integer. */
static uint16_t half_bits(double value, half_format f) {
    int infinity = (f.most - f.least + 2) << f.fraction;
    int sign = signbit(value) ? 0x8000 : 0;
    int exponent;

    if (isnan(value))
        return (uint16_t)(infinity | 1 << (f.fraction - 1));
    if (isinf(value))
        return (uint16_t)(sign | infinity);
    if (value == 0.0)
        return (uint16_t)sign;
    (void)frexp(value, &exponent);
    exponent = exponent - 1 < f.least ? f.least : exponent - 1;
    int steps = (int)nearbyint(ldexp(fabs(value), f.fraction - exponent));
    int magnitude = ((exponent - f.least) << f.fraction) + steps;
    return (uint16_t)(sign | (magnitude > infinity ? infinity : magnitude));
}

/** One element as the reference sees it. */
typedef union element {
    unsigned char bytes[16];
    uint8_t u8;
    uint16_t u16;
    uint32_t u32;
    uint64_t u64;
    int8_t i8;
    int16_t i16;
    int32_t i32;
    int64_t i64;
    float f32;
    double f64;
    float c64[2];
    double c128[2];
    int64_t words[2];
} element;

static bool is_signed(hem_dtype t) {
    return t >= HEM_I8 && t <= HEM_I64;
}

static bool is_real(hem_dtype t) {
    return t >= HEM_F16 && t <= HEM_F64;
}

static bool is_complex(hem_dtype t) {
    return t == HEM_C64 || t == HEM_C128;
}

static uint64_t load_integer(hem_dtype t, const element *e) {
    switch (t) {
    case HEM_I8:
        return (uint64_t)e->i8;
    case HEM_I16:
        return (uint64_t)e->i16;
    case HEM_I32:
        return (uint64_t)e->i32;
    case HEM_U16:
        return e->u16;
    case HEM_U32:
        return e->u32;
    case HEM_I64:
    case HEM_U64:
        return e->u64;
    default:
        return e->u8;
    }
}

/** The bytes of a little-endian integer are the first ones of a longer one. */
static element integer_element(uint64_t value) {
    element e = {{0}};
    memcpy(e.bytes, &value, sizeof value);
    return e;
}

static double load_real(hem_dtype t, const element *e) {
    switch (t) {
    case HEM_F16:
        return half_value(e->u16, format_f16);
    case HEM_BF16:
        return half_value(e->u16, format_bf16);
    case HEM_F32:
        return (double)e->f32;
    default:
        return e->f64;
    }
}

static element real_element(hem_dtype t, double value) {
    element e = {{0}};

    if (isnan(value))
        value = NAN;
    if (t == HEM_F16)
        e.u16 = half_bits(value, format_f16);
    else if (t == HEM_BF16)
        e.u16 = half_bits(value, format_bf16);
    else if (t == HEM_F32)
        e.f32 = (float)value;
    else
        e.f64 = value;
    return e;
}

static bool truth_of(hem_dtype t, const element *e) {
    if (is_real(t))
        return load_real(t, e) != 0.0;
    if (t == HEM_C64)
        return e->c64[0] != 0.0f || e->c64[1] != 0.0f;
    if (t == HEM_C128)
        return e->c128[0] != 0.0 || e->c128[1] != 0.0;
    return load_integer(t, e) != 0;
}

static element truth_element(hem_dtype t, bool truth) {
    element e = {{0}};

    if (is_real(t))
        return real_element(t, truth);
    if (t == HEM_C64)
        e.c64[0] = truth;
    else if (t == HEM_C128)
        e.c128[0] = truth;
    else
        e.u8 = truth;
    return e;
}

static bool logical(hem_reduction op, bool a, bool b) {
    return op == HEM_LAND ? a && b : op == HEM_LOR ? a || b : a != b;
}

static uint64_t combine_integers(hem_dtype t, hem_reduction op, uint64_t a, uint64_t b) {
    bool less = is_signed(t) ? (int64_t)b < (int64_t)a : b < a;

    switch (op) {
    case HEM_SUM:
        return a + b;
    case HEM_PROD:
        return a * b;
    case HEM_MIN:
        return less ? b : a;
    case HEM_MAX:
        return less ? a : b;
    case HEM_BAND:
        return a & b;
    case HEM_BOR:
        return a | b;
    default:
        return a ^ b;
    }
}

/** Rounded to f32 after each step but in f64. A sum or product of two f32 is the same when it is
 *  first rounded to f64. */
static double combine_reals(hem_dtype t, hem_reduction op, double a, double b) {
    if (op == HEM_MIN || op == HEM_MAX) {
        if (isnan(a) || isnan(b))
            return NAN;
        return (op == HEM_MIN ? b < a : b > a) ? b : a;
    }
    double exact = op == HEM_SUM ? a + b : a * b;
    return t == HEM_F64 ? exact : (double)(float)exact;
}

static void combine_complex(hem_reduction op, bool wide, double *a, const double *b) {
    volatile double product[4] = {a[0] * b[0], a[1] * b[1], a[0] * b[1], a[1] * b[0]};
    double re = a[0] + b[0];
    double im = a[1] + b[1];

    if (op == HEM_PROD) {
        for (int i = 0; !wide && i < 4; i++)
            product[i] = (double)(float)product[i];
        re = product[0] - product[1];
        im = product[2] + product[3];
    }
    a[0] = wide ? re : (double)(float)re;
    a[1] = wide ? im : (double)(float)im;
}

/** Whether pair `b` replaces `a`. */
static bool pair_wins(hem_dtype t, hem_reduction op, const element *a, const element *b) {
    bool less;
    bool more;

    if (is_real(t)) {
        double x = load_real(t, a);
        double y = load_real(t, b);
        less = isnan(y) ? !isnan(x) : y < x;
        more = isnan(x) ? !isnan(y) : y > x;
        if (op == HEM_MAXLOC) {
            less = isnan(x) ? !isnan(y) : y < x;
            more = isnan(y) ? !isnan(x) : y > x;
        }
    } else {
        uint64_t x = load_integer(t, a);
        uint64_t y = load_integer(t, b);
        less = is_signed(t) ? (int64_t)y < (int64_t)x : y < x;
        more = is_signed(t) ? (int64_t)y > (int64_t)x : y > x;
    }
    if (less || more)
        return op == HEM_MINLOC ? less : more;
    return b->words[1] < a->words[1];
}

static element complex_reference(hem_dtype t, hem_reduction op, const element *e, size_t n) {
    bool wide = t == HEM_C128;
    double sum[2] = {wide ? e->c128[0] : (double)e->c64[0], wide ? e->c128[1] : (double)e->c64[1]};
    element result = {{0}};

    for (size_t s = 1; s < n; s++) {
        double b[2] = {wide ? e[s].c128[0] : (double)e[s].c64[0],
                       wide ? e[s].c128[1] : (double)e[s].c64[1]};
        combine_complex(op, wide, sum, b);
    }
    for (int i = 0; i < 2; i++) {
        double part = isnan(sum[i]) ? (double)NAN : sum[i];
        if (wide)
            result.c128[i] = part;
        else
            result.c64[i] = (float)part;
    }
    return result;
}

/** BOOL has the logical operations under several names. */
static hem_reduction bool_name(hem_reduction op) {
    if (op == HEM_SUM || op == HEM_MAX || op == HEM_BOR)
        return HEM_LOR;
    if (op == HEM_PROD || op == HEM_MIN || op == HEM_BAND)
        return HEM_LAND;
    return op == HEM_BXOR ? HEM_LXOR : op;
}

/** What `n` elements, one per source, become. */
static element reference(hem_dtype t, hem_reduction op, const element *e, size_t n) {
    if (t == HEM_BOOL)
        op = bool_name(op);
    if (op >= HEM_LAND && op <= HEM_LXOR) {
        bool truth = truth_of(t, &e[0]);
        for (size_t s = 1; s < n; s++)
            truth = logical(op, truth, truth_of(t, &e[s]));
        return truth_element(t, truth);
    }
    if (n == 1)
        return e[0];
    if (op == HEM_MINLOC || op == HEM_MAXLOC) {
        element best = e[0];
        for (size_t s = 1; s < n; s++)
            best = pair_wins(t, op, &best, &e[s]) ? e[s] : best;
        return best;
    }
    if (is_complex(t))
        return complex_reference(t, op, e, n);
    if (is_real(t)) {
        double result = load_real(t, &e[0]);
        for (size_t s = 1; s < n; s++)
            result = combine_reals(t, op, result, load_real(t, &e[s]));
        return real_element(t, result);
    }
    uint64_t result = load_integer(t, &e[0]);
    for (size_t s = 1; s < n; s++)
        result = combine_integers(t, op, result, load_integer(t, &e[s]));
    return integer_element(result);
}

#endif
