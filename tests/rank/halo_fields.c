/* Fields of every layout, their values, and what runs must leave in them; see halo_kit.h. */
#include "halo_kit.h"

enum {
    GUARD = 64,
    AXES = HEM_DIMS + 2
};

/* Values. */

static uint64_t mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

/* 1.f x 2^e of a whole number below 2048 fits every floating type but bf16, which takes 256. */
static uint16_t half_of(int64_t value, int exponent_bits) {
    uint64_t size = (uint64_t)(value < 0 ? -value : value);
    int mantissa_bits = 15 - exponent_bits;
    int bias = (1 << (exponent_bits - 1)) - 1;
    int e = 0;
    uint64_t bits = value < 0 ? 0x8000 : 0;

    if (!size)
        return 0;
    while (size >> (e + 1))
        e++;
    size = (size << mantissa_bits) >> e;
    bits |= (uint64_t)(bias + e) << mantissa_bits;
    return (uint16_t)(bits | (size & ((1u << mantissa_bits) - 1)));
}

static int64_t of_half(uint16_t bits, int exponent_bits) {
    int mantissa_bits = 15 - exponent_bits;
    int bias = (1 << (exponent_bits - 1)) - 1;
    int e = (bits & 0x7fff) >> mantissa_bits;
    int64_t size = (bits & ((1 << mantissa_bits) - 1)) | 1 << mantissa_bits;

    if (!(bits & 0x7fff))
        return 0;
    e -= bias + mantissa_bits;
    size = e < 0 ? size >> -e : size << e;
    return bits & 0x8000 ? -size : size;
}

void halo_put_number(hem_dtype dtype, int64_t value, void *out) {
    float f[2] = {(float)value, (float)(2 * value)};
    double d[2] = {(double)value, (double)(2 * value)};
    uint16_t half = half_of(value, dtype == HEM_F16 ? 5 : 8);
    const void *from = &value;

    if (dtype == HEM_F16 || dtype == HEM_BF16)
        from = &half;
    else if (dtype == HEM_F32 || dtype == HEM_C64)
        from = f;
    else if (dtype == HEM_F64 || dtype == HEM_C128)
        from = d;
    memcpy(out, from, hem_dtype_size(dtype));
}

int64_t halo_get_number(hem_dtype dtype, const void *in) {
    int64_t value = 0;
    size_t bytes = hem_dtype_size(dtype);
    uint16_t half;
    float f;
    double d;

    if (dtype == HEM_F16 || dtype == HEM_BF16)
        return memcpy(&half, in, 2), of_half(half, dtype == HEM_F16 ? 5 : 8);
    if (dtype == HEM_F32 || dtype == HEM_C64)
        return memcpy(&f, in, 4), (int64_t)f;
    if (dtype == HEM_F64 || dtype == HEM_C128)
        return memcpy(&d, in, 8), (int64_t)d;
    memcpy(&value, in, bytes);
    if (dtype >= HEM_I8 && dtype <= HEM_I64 && bytes < 8)
        value = (int64_t)((uint64_t)value << (64 - 8 * bytes)) >> (64 - 8 * bytes);
    return value;
}

/* Not 0, whose negative has other bits. */
static int64_t small_number(uint64_t hash) {
    int64_t value = 1 + (int64_t)(hash % 50);

    return hash >> 32 & 1 ? -value : value;
}

void halo_value(const halo_spec *spec, uint64_t round, int64_t key, size_t level, size_t component,
                void *out) {
    uint64_t hash = mix(spec->seed + round * 0x9e3779b97f4a7c15);
    unsigned char *to = out;

    hash = mix(hash ^ mix((uint64_t)key + 1)) + (level << 20) + component;
    if (spec->numbers) {
        halo_put_number(spec->dtype, small_number(mix(hash)), out);
        return;
    }
    for (size_t at = 0; at < spec->element; at += 8) {
        uint64_t word = mix(hash + (at << 40));

        memcpy(to + at, &word, spec->element - at < 8 ? spec->element - at : 8);
    }
}

/* Layouts. */

/* Steps of up to 3 along each of six axes make an array up to 729 times as large. Beyond so many bytes
 * those of outer axes are left out, as far as it takes. */
#define SLICED_MOST ((int64_t)256 << 10)

/* The axes of an array, in the order of hem_field: dimensions, levels, components. */
struct array {
    int dims;
    int64_t count[AXES];
    int order[AXES]; /**< outermost first */
    int64_t step[AXES];
    int64_t pad[AXES]; /**< bytes after all of an axis */
    int64_t stride[AXES];
    int64_t before[HEM_DIMS]; /**< room in front of the halo */
};

static struct array start_array(const halo_field *f) {
    struct array a = {.dims = f->domain->dims};

    for (int i = 0; i < a.dims; i++)
        a.count[i] = f->domain->shape[i];
    a.count[a.dims] = (int64_t)f->spec.levels;
    a.count[a.dims + 1] = (int64_t)f->spec.components;
    for (int i = 0; i < a.dims + 2; i++) {
        a.order[i] = i;
        a.step[i] = 1;
    }
    return a;
}

static void more_room(struct array *a, harness_rng *rng) {
    for (int i = 0; i < a->dims; i++) {
        a->before[i] = (int64_t)harness_below(rng, 3);
        a->count[i] += a->before[i] + (int64_t)harness_below(rng, 3);
    }
}

static void shuffle_axes(struct array *a, harness_rng *rng) {
    for (int i = a->dims + 1; i > 0; i--) {
        int j = (int)harness_below(rng, (size_t)i + 1);
        int kept = a->order[i];

        a->order[i] = a->order[j];
        a->order[j] = kept;
    }
}

static void arrange(struct array *a, const halo_field *f, int layout, harness_rng *rng) {
    int last = a->dims + 1;
    int64_t element = (int64_t)f->spec.element;

    if (layout == HALO_FORTRAN)
        for (int i = 0; i <= last; i++)
            a->order[i] = last - i;
    if (layout == HALO_LEVELS_FIRST)
        for (int i = 0; i <= last; i++)
            a->order[i] = (i + a->dims) % (last + 1);
    if (layout == HALO_ANY)
        shuffle_axes(a, rng);
    if (layout >= HALO_PADDED && f->domain->is_grid)
        more_room(a, rng);
    for (int i = 0; i <= last; i++) {
        if (layout == HALO_PADDED)
            a->pad[i] = element * (int64_t)harness_below(rng, 4);
        if (layout == HALO_ANY)
            a->pad[i] = (int64_t)harness_below(rng, 20);
        if (layout == HALO_SLICED)
            a->step[i] = 1 + (int64_t)harness_below(rng, 3);
    }
}

/* @return the bytes of the whole array. */
static int64_t lay_out(struct array *a, const halo_field *f) {
    int64_t bytes = (int64_t)f->spec.element;

    for (int i = a->dims + 1; i >= 0; i--) {
        int axis = a->order[i];

        a->stride[axis] = bytes * a->step[axis];
        /* An empty domain has strides, too. */
        bytes = a->stride[axis] * (a->count[axis] ? a->count[axis] : 1) + a->pad[axis];
    }
    return bytes;
}

static void describe(halo_field *f, const struct array *a, int layout, size_t bytes) {
    hem_field *to = &f->field;

    to->struct_size = sizeof *to;
    to->bytes = f->spec.seed & 1 ? bytes : 0;
    to->dtype = f->spec.dtype;
    to->element = f->spec.dtype ? 0 : f->spec.element;
    to->domain = f->domain->index;
    to->levels = f->spec.levels > 1 ? f->spec.levels : 0;
    to->components = f->spec.components > 1 ? f->spec.components : 0;
    to->flags = f->spec.flags;
    for (int i = 0; i < a->dims; i++) {
        to->origin[i] = a->before[i] + f->domain->first[i];
        to->has_origin |= a->before[i] > 0;
    }
    if (layout == HALO_DEFAULT)
        return;
    for (int i = 0; i < a->dims; i++)
        to->stride[i] = a->stride[i];
    to->level_stride = a->stride[a->dims];
    to->component_stride = a->stride[a->dims + 1];
}

static unsigned char *allocate(halo_set *s, halo_field *f, int memory, harness_rng *rng) {
    if (memory == HALO_MIXED)
        memory = harness_below(rng, 2) ? HALO_LIBRARY : HALO_PRIVATE;
    if (memory == HALO_LIBRARY) {
        CHECK_OK(hem_memory_alloc(s->world, f->size, &f->memory));
        return hem_memory_address(f->memory);
    }
    if (memory == HALO_POOL) {
        unsigned char *at = s->pool + s->pool_used;

        s->pool_used += (f->size + 63) / 64 * 64;
        CHECK(s->pool_used <= s->pool_bytes);
        f->pooled = true;
        return at;
    }
    return malloc(f->size);
}

/* How far elements lie from the field's address; the image of HALO_DEFAULT must know, too. */
static void remember_strides(halo_field *f, const struct array *a) {
    for (int i = 0; i < a->dims; i++) {
        f->strides[i] = a->stride[i];
        f->offset += a->before[i] * a->stride[i];
    }
    f->strides[HEM_DIMS] = a->stride[a->dims];
    f->strides[HEM_DIMS + 1] = a->stride[a->dims + 1];
}

static size_t lay_out_within_reason(struct array *a, const halo_field *f) {
    int64_t bytes = lay_out(a, f);

    for (int i = 0; i < a->dims + 2 && bytes > SLICED_MOST; i++) {
        a->step[a->order[i]] = 1;
        bytes = lay_out(a, f);
    }
    return (size_t)bytes;
}

void halo_field_make(halo_set *s, halo_field *f, int layout, int memory, harness_rng *rng) {
    struct array a;
    size_t bytes;
    size_t shift;

    if (f->spec.dtype)
        f->spec.element = hem_dtype_size(f->spec.dtype);
    a = start_array(f);
    arrange(&a, f, layout, rng);
    bytes = lay_out_within_reason(&a, f);
    shift = layout == HALO_ANY ? harness_below(rng, 16) : 0;
    f->size = GUARD + shift + bytes + GUARD;
    f->base = allocate(s, f, memory, rng);
    f->image = malloc(f->size);
    CHECK(f->base && f->image);
    describe(f, &a, layout, bytes);
    f->field.memory = f->base + GUARD + shift;
    remember_strides(f, &a);
}

unsigned char *halo_at(const halo_field *f, size_t cell, size_t level, size_t component) {
    const halo_domain *d = f->domain;
    int64_t at = f->offset + (int64_t)level * f->strides[HEM_DIMS] +
                 (int64_t)component * f->strides[HEM_DIMS + 1];

    for (int i = d->dims - 1; i >= 0; i--) {
        at += (int64_t)(cell % (size_t)d->shape[i]) * f->strides[i];
        cell /= (size_t)d->shape[i];
    }
    return (unsigned char *)f->field.memory + at;
}

/* The same place in the image. */
static unsigned char *in_image(const halo_field *f, size_t cell, size_t level, size_t component) {
    return f->image + (halo_at(f, cell, level, component) - f->base);
}

/* Filling, expecting, checking. */

static void poison(halo_field *f, uint64_t round) {
    for (size_t at = 0; at < f->size; at += 8) {
        uint64_t word = mix(mix(at + 7) ^ (round * 3 + 1)) ^ f->number;

        memcpy(f->base + at, &word, f->size - at < 8 ? f->size - at : 8);
    }
}

static void fill(halo_field *f, uint64_t round) {
    const halo_domain *d = f->domain;

    poison(f, round);
    for (size_t k = 0; k < d->count; k++) {
        if (d->cells[k].kind != HALO_OWN)
            continue;
        for (size_t l = 0; l < f->spec.levels; l++)
            for (size_t c = 0; c < f->spec.components; c++)
                halo_value(&f->spec, round, d->cells[k].key, l, c, halo_at(f, k, l, c));
    }
    memcpy(f->image, f->base, f->size);
}

void halo_set_fill(halo_set *s, uint64_t round) {
    for (size_t i = 0; i < s->count; i++)
        fill(&s->fields[i], round);
}

static void expect_vector(halo_field *f, uint64_t round, size_t k, size_t level) {
    const halo_cell *cell = &f->domain->cells[k];
    unsigned char bytes[16];
    int64_t v[2];

    for (size_t c = 0; c < 2; c++) {
        halo_value(&f->spec, round, cell->key, level, c, bytes);
        v[c] = halo_get_number(f->spec.dtype, bytes);
    }
    for (size_t c = 0; c < 2; c++)
        halo_put_number(f->spec.dtype, cell->turn[2 * c] * v[0] + cell->turn[2 * c + 1] * v[1],
                        in_image(f, k, level, c));
}

static void expect_cell(halo_field *f, uint64_t round, size_t k) {
    for (size_t l = 0; l < f->spec.levels; l++) {
        if (f->spec.flags & HEM_FIELD_VECTOR) {
            expect_vector(f, round, k, l);
            continue;
        }
        for (size_t c = 0; c < f->spec.components; c++)
            halo_value(&f->spec, round, f->domain->cells[k].key, l, c, in_image(f, k, l, c));
    }
}

void halo_set_expect(halo_set *s, const hem_exchange_how *how, uint64_t round) {
    for (size_t i = 0; i < s->count; i++) {
        halo_field *f = &s->fields[i];
        const halo_domain *d = f->domain;

        if (f->spec.flags & HEM_FIELD_READ_ONLY)
            continue;
        if (how && how->fields && !(how->fields >> (f->number - 1) & 1))
            continue;
        for (size_t k = 0; k < d->count; k++) {
            bool left_out = how && how->sides && (d->cells[k].sides & ~how->sides);

            if (d->cells[k].kind == HALO_COPY && !left_out)
                expect_cell(f, round, k);
        }
    }
}

/* Say which element is wrong, or that it is none. */
static void complain(const halo_field *f, size_t at) {
    static const char *const names[] = {"outside", "hole", "owned", "halo"};
    const halo_domain *d = f->domain;

    for (size_t k = 0; k < d->count; k++)
        for (size_t l = 0; l < f->spec.levels; l++)
            for (size_t c = 0; c < f->spec.components; c++) {
                size_t place = (size_t)(halo_at(f, k, l, c) - f->base);
                const halo_cell *cell = &d->cells[k];

                if (at < place || at >= place + f->spec.element)
                    continue;
                harness_fail(__FILE__, __LINE__,
                             "field %u of domain %zu: %s cell %zu (point %lld of rank %d, sides "
                             "%#x), level %zu, component %zu: byte %zu is %#x, not %#x",
                             f->number, d->index, names[cell->kind], k, (long long)cell->key,
                             cell->owner, cell->sides, l, c, at - place, f->base[at], f->image[at]);
            }
    harness_fail(__FILE__, __LINE__,
                 "field %u of domain %zu: byte %zu of %zu, which is no element, is %#x, not %#x",
                 f->number, d->index, at, f->size, f->base[at], f->image[at]);
}

void halo_set_check(const halo_set *s) {
    for (size_t i = 0; i < s->count; i++) {
        const halo_field *f = &s->fields[i];

        if (memcmp(f->base, f->image, f->size) == 0)
            continue;
        for (size_t at = 0; at < f->size; at++)
            if (f->base[at] != f->image[at])
                complain(f, at);
    }
}
