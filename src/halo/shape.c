/*
 * Making shapes.
 *
 * Axes of one step are dropped, a list that goes by equal steps becomes a plain axis, axes that
 * continue each other are merged, and the innermost one becomes part of the chunk where it is
 * contiguous. What is left of a list is grouped into equal runs, which are just longer chunks, or
 * kept as runs of their own.
 */
#include "halo/shape_inside.h"

#include "base/status.h"

#include <stdlib.h>
#include <string.h>

/* Runs of different length are copied one by one if they have on average so many bytes and steps.
 * With shorter ones it is faster to move each step by itself: a branch that is not foreseen costs
 * as much as some steps. */
#define RUN_BYTES 64
#define RUN_STEPS 2

/* A shape in the making. */
typedef struct draft {
    int64_t base;
    uint64_t element;
    uint64_t chunk;
    uint64_t unit; /* the chunk before neighbours in the list were joined */
    size_t axis_count;
    size_t list_at; /* axis_count if there is no list */
    hemi_shape_axis axes[HEMI_SHAPE_AXES];
    int64_t *offsets; /* of the list, in bytes */
    uint64_t runs;    /* if not 0, as many runs are in the list */
} draft;

static bool has_list(const draft *d) {
    return d->list_at < d->axis_count;
}

/* Checking a specification. */

static hem_status too_large(void) {
    return hemi_fail(HEM_ERR_LIMIT, "the points of a field span more than 63 bits can count");
}

static bool is_empty(const hemi_shape_spec *spec) {
    for (size_t k = 0; k < spec->axis_count; k++) {
        if (spec->axes[k].count == 0)
            return true;
    }
    return false;
}

/* Whether all bytes can be counted, hence products of counts. Offsets are checked in the end. */
static bool is_countable(const hemi_shape_spec *spec) {
    uint64_t bytes = spec->element;

    for (size_t k = 0; k < spec->axis_count; k++) {
        if (__builtin_mul_overflow(bytes, spec->axes[k].count, &bytes))
            return false;
    }
    return bytes <= INT64_MAX;
}

static hem_status check_spec(const hemi_shape_spec *spec) {
    if (spec->element == 0 || spec->axis_count > HEMI_SHAPE_AXES ||
        (spec->list != NULL && spec->list_axis >= spec->axis_count))
        return hemi_fail(HEM_ERR_ARG, "a shape of %zu axes over elements of %zu bytes, list at %zu",
                         spec->axis_count, spec->element, spec->list_axis);
    return HEM_OK;
}

/* Lists. */

static hem_status take_list(draft *d, const hemi_shape_spec *spec) {
    const hemi_shape_axis *axis = &spec->axes[spec->list_axis];
    uint64_t count = axis->count;

    d->offsets = count > SIZE_MAX / sizeof(int64_t) ? NULL : malloc(count * sizeof(int64_t));
    if (d->offsets == NULL)
        return hemi_fail(HEM_ERR_MEMORY, "no memory for a list of %llu points",
                         (unsigned long long)count);
    for (uint64_t i = 0; i < count; i++) {
        if (__builtin_mul_overflow(spec->list[i], axis->stride, &d->offsets[i]))
            return too_large();
    }
    d->list_at = spec->list_axis;
    return HEM_OK;
}

/* If all steps of the list are equal, it is an axis like the others. */
static void straighten(draft *d) {
    hemi_shape_axis *axis = &d->axes[d->list_at];
    int64_t step = 0;
    int64_t base;

    if (!has_list(d))
        return;
    for (uint64_t i = 1; i < axis->count; i++) {
        int64_t next;
        if (__builtin_sub_overflow(d->offsets[i], d->offsets[i - 1], &next))
            return;
        if (i > 1 && next != step)
            return;
        step = next;
    }
    if (__builtin_add_overflow(d->base, d->offsets[0], &base))
        return;
    d->base = base;
    axis->stride = step;
    d->list_at = d->axis_count;
}

static void drop_axis(draft *d, size_t k) {
    memmove(&d->axes[k], &d->axes[k + 1], (d->axis_count - k - 1) * sizeof d->axes[0]);
    d->axis_count--;
    if (d->list_at > k)
        d->list_at--;
}

/* Whether axis k and the one inside of it go by the same steps all the way. */
static bool continues(const draft *d, size_t k) {
    const hemi_shape_axis *inner = &d->axes[k + 1];
    int64_t all;

    return k != d->list_at && k + 1 != d->list_at &&
           !__builtin_mul_overflow((int64_t)inner->count, inner->stride, &all) &&
           d->axes[k].stride == all;
}

static void merge(draft *d) {
    for (size_t k = d->axis_count; k-- > 0;) {
        if (k != d->list_at && d->axes[k].count == 1)
            drop_axis(d, k);
    }
    for (size_t k = d->axis_count; k-- > 1;) {
        if (continues(d, k - 1)) {
            d->axes[k].count *= d->axes[k - 1].count;
            drop_axis(d, k - 1);
        }
    }
    while (d->axis_count > 0 && d->list_at != d->axis_count - 1 &&
           d->axes[d->axis_count - 1].stride == (int64_t)d->chunk) {
        d->chunk *= d->axes[d->axis_count - 1].count;
        drop_axis(d, d->axis_count - 1);
    }
}

/* Whether step i of the list begins where step i - 1 ends. */
static bool is_next(const draft *d, uint64_t i) {
    int64_t step;

    return !__builtin_sub_overflow(d->offsets[i], d->offsets[i - 1], &step) &&
           step == (int64_t)d->chunk;
}

/* Join neighbours in a list that is innermost: in equal runs, or else as runs if they are long. */
static void group(draft *d) {
    uint64_t count = has_list(d) ? d->axes[d->list_at].count : 0;
    uint64_t runs = 1;
    uint64_t length = 1; /* of the run that step i ends */
    uint64_t equal = 0;  /* of all finished ones, if that is the same */
    bool all_equal = true;

    if (count == 0 || d->list_at != d->axis_count - 1)
        return;
    for (uint64_t i = 1; i < count; i++) {
        if (is_next(d, i)) {
            length++;
            continue;
        }
        all_equal = all_equal && (equal == 0 || equal == length);
        equal = length;
        length = 1;
        runs++;
    }
    if (all_equal && (equal == 0 || equal == length)) {
        for (uint64_t i = 0; i < runs; i++)
            d->offsets[i] = d->offsets[i * length];
        d->axes[d->list_at].count = runs;
        d->chunk *= length;
        straighten(d);
    } else if (count / runs >= RUN_STEPS && count / runs * d->chunk >= RUN_BYTES) {
        d->runs = runs;
    }
}

/* Whether the offsets fit into 32 bits when they are counted from `*middle_p`. */
static bool is_near(const draft *d, int64_t *middle_p) {
    uint64_t count = d->axes[d->list_at].count;
    int64_t low = d->offsets[0];
    int64_t high = d->offsets[0];
    int64_t span;

    for (uint64_t i = 1; i < count; i++) {
        low = d->offsets[i] < low ? d->offsets[i] : low;
        high = d->offsets[i] > high ? d->offsets[i] : high;
    }
    if (__builtin_sub_overflow(high, low, &span) || span > UINT32_MAX)
        return false;
    *middle_p = span > INT32_MAX ? low - INT32_MIN : low;
    return true;
}

static void write_near(hemi_shape *s, const draft *d, int64_t middle) {
    int32_t *near = (int32_t *)s->room;

    for (uint64_t i = 0; i < d->axes[d->list_at].count; i++)
        near[i] = (int32_t)(d->offsets[i] - middle);
}

static void write_runs(hemi_shape *s, const draft *d) {
    hemi_shape_run *run = (hemi_shape_run *)s->room;

    *run = (hemi_shape_run){d->offsets[0], d->chunk};
    for (uint64_t i = 1; i < d->axes[d->list_at].count; i++) {
        if (is_next(d, i))
            run->bytes += d->chunk;
        else
            *++run = (hemi_shape_run){d->offsets[i], d->chunk};
    }
}

hemi_shape *hemi_shape_alloc(uint32_t list_kind, uint64_t count) {
    size_t step = list_kind == HEMI_LIST_NONE ? 0 : hemi_shape_step(list_kind);
    hemi_shape *s;

    if (step != 0 && count > (SIZE_MAX - sizeof *s) / step)
        return NULL;
    s = malloc(sizeof *s + step * (size_t)count);
    if (s == NULL)
        return NULL;
    memset(s, 0, sizeof *s);
    s->list_kind = list_kind;
    s->list = s->room;
    return s;
}

/* Allocate the shape of a draft and copy everything into it. */
static hemi_shape *cast(draft *d) {
    int64_t middle = 0;
    int64_t base = d->base;
    uint32_t kind = HEMI_LIST_NONE;
    hemi_shape *s;

    if (d->runs > 0)
        kind = HEMI_LIST_RUNS;
    else if (has_list(d))
        kind = is_near(d, &middle) && !__builtin_add_overflow(d->base, middle, &base)
                   ? HEMI_LIST_NEAR
                   : HEMI_LIST_FAR;
    s = hemi_shape_alloc(kind,
                         d->runs > 0 ? d->runs : (has_list(d) ? d->axes[d->list_at].count : 0));
    if (s == NULL)
        return NULL;
    s->base = kind == HEMI_LIST_NEAR ? base : d->base;
    s->element = d->element;
    s->chunk = d->chunk;
    s->unit = d->unit;
    s->axis_count = (uint32_t)d->axis_count;
    s->list_at = (uint32_t)d->list_at;
    for (size_t k = 0; k < d->axis_count; k++)
        s->axes[k] = (hemi_shape_loop){.count = d->axes[k].count, .stride = d->axes[k].stride};
    if (kind == HEMI_LIST_RUNS) {
        write_runs(s, d);
        s->axes[d->list_at].count = d->runs;
    } else if (kind == HEMI_LIST_NEAR) {
        write_near(s, d, middle);
    } else if (kind == HEMI_LIST_FAR) {
        memcpy(s->room, d->offsets, d->axes[d->list_at].count * sizeof(int64_t));
    }
    return s;
}

static hem_status make(draft *d, const hemi_shape_spec *spec, hemi_shape **shape_p) {
    hem_status status = spec->list != NULL ? take_list(d, spec) : HEM_OK;

    if (status != HEM_OK)
        return status;
    straighten(d);
    merge(d);
    d->unit = d->chunk;
    group(d);
    merge(d);
    *shape_p = cast(d);
    if (*shape_p == NULL)
        return hemi_fail(HEM_ERR_MEMORY, "no memory for the shape of a field");
    status = hemi_shape_settle(*shape_p);
    if (status != HEM_OK)
        free(*shape_p);
    return status;
}

static hem_status make_empty(const hemi_shape_spec *spec, hemi_shape **shape_p) {
    hemi_shape *s = hemi_shape_alloc(HEMI_LIST_NONE, 0);

    if (s == NULL)
        return hemi_fail(HEM_ERR_MEMORY, "no memory for the shape of a field");
    s->element = spec->element;
    hemi_shape_settle_empty(s);
    *shape_p = s;
    return HEM_OK;
}

hem_status hemi_shape_make(const hemi_shape_spec *spec, hemi_shape **shape_p) {
    draft d = {.base = spec->base,
               .element = spec->element,
               .chunk = spec->element,
               .axis_count = spec->axis_count,
               .list_at = spec->axis_count};
    hem_status status = check_spec(spec);
    hemi_shape *shape;

    if (status != HEM_OK)
        return status;
    if (is_empty(spec))
        return make_empty(spec, shape_p);
    if (!is_countable(spec))
        return too_large();
    memcpy(d.axes, spec->axes, spec->axis_count * sizeof spec->axes[0]);
    status = make(&d, spec, &shape);
    free(d.offsets);
    if (status == HEM_OK)
        *shape_p = shape;
    return status;
}

void hemi_shape_free(hemi_shape *shape) {
    free(shape);
}

uint64_t hemi_shape_bytes(const hemi_shape *shape) {
    return shape->bytes;
}

void hemi_shape_bounds(const hemi_shape *shape, int64_t *first_p, int64_t *end_p) {
    *first_p = shape->first;
    *end_p = shape->end;
}
