/* Fields: what the caller says of them, checked and with all defaults filled in; their shapes. */
#include "base/options.h"
#include "halo/exchange/device.h"

#include <stdlib.h>

#define NUMBERS 64u

/* The axes of a field: those of its points, then levels, then components. */
typedef struct axes {
    size_t count;
    uint64_t counts[HEMI_PART_AXES];
    int64_t *strides[HEMI_PART_AXES];
} axes;

static axes axes_of(const hem_pattern *pattern, hem_field *f) {
    const hemi_domain *domain = &pattern->domains[f->domain];
    axes a = {0};
    if (!hemi_pattern_has_boxes(pattern)) {
        a.counts[a.count] = domain->points;
        a.strides[a.count++] = &f->stride[0];
    }
    for (int d = 0; hemi_pattern_has_boxes(pattern) && d < pattern->dims; d++) {
        a.counts[a.count] =
            (uint64_t)(pattern->halo_low[d] + domain->box.count[d] + pattern->halo_high[d]);
        a.strides[a.count++] = &f->stride[d];
    }
    a.counts[a.count] = f->levels;
    a.strides[a.count++] = &f->level_stride;
    a.counts[a.count] = f->components;
    a.strides[a.count++] = &f->component_stride;
    return a;
}

static hem_status too_large(size_t b) {
    return hemi_fail(HEM_ERR_LIMIT, "hem_exchange_create: field %zu is larger than 2^63 bytes", b);
}

/* Contiguous, in C order, components innermost. */
static hem_status default_strides(const axes *a, size_t b, size_t element) {
    int64_t stride = (int64_t)element;
    for (size_t i = a->count; i-- > 0;) {
        *a->strides[i] = stride;
        if (a->counts[i] > INT64_MAX ||
            (a->counts[i] > 0 && __builtin_mul_overflow(stride, (int64_t)a->counts[i], &stride)))
            return too_large(b);
    }
    return HEM_OK;
}

/* Where there is a choice, zero means contiguous; elsewhere nobody can tell what it means. */
static hem_status check_strides(const axes *a, size_t b, const hem_field *f, size_t points) {
    for (size_t i = 0; i < a->count; i++) {
        int64_t stride = *a->strides[i];
        if (stride < 0)
            return hemi_fail(HEM_ERR_ARG,
                             "hem_exchange_create: field %zu has the negative stride %lld, "
                             "which Hem does not take: pass the lowest address and positive ones",
                             b, (long long)stride);
        if (stride != 0 || a->counts[i] <= 1)
            continue;
        if (i < points)
            return hemi_fail(HEM_ERR_ARG,
                             "hem_exchange_create: field %zu has a stride of 0 for dimension %zu",
                             b, i);
        return hemi_fail(HEM_ERR_ARG,
                         "hem_exchange_create: field %zu has %zu %s, but no stride "
                         "for them",
                         b, i == points ? f->levels : f->components,
                         i == points ? "levels" : "components");
    }
    return HEM_OK;
}

/* From the smallest stride to the largest, each must step over all that is inside of it. */
static hem_status check_apart(const axes *a, size_t b, size_t element) {
    bool used[HEMI_PART_AXES] = {false};
    int64_t span = (int64_t)element;
    for (size_t n = 0; n < a->count; n++) {
        size_t next = a->count;
        for (size_t i = 0; i < a->count; i++)
            if (!used[i] && a->counts[i] > 1 &&
                (next == a->count || *a->strides[i] < *a->strides[next]))
                next = i;
        if (next == a->count)
            return HEM_OK;
        used[next] = true;
        if (*a->strides[next] < span)
            return hemi_fail(HEM_ERR_RANGE,
                             "hem_exchange_create: elements of field %zu overlap: a stride is "
                             "%lld, but what it steps over takes %lld bytes",
                             b, (long long)*a->strides[next], (long long)span);
        int64_t more = 0;
        if (__builtin_mul_overflow(*a->strides[next], (int64_t)(a->counts[next] - 1), &more) ||
            __builtin_add_overflow(span, more, &span))
            return too_large(b);
    }
    return HEM_OK;
}

static hem_status fill_in_strides(const hem_pattern *pattern, hem_field *f, size_t b) {
    axes a = axes_of(pattern, f);
    size_t points = a.count - 2;
    bool given = f->level_stride != 0 || f->component_stride != 0;
    for (size_t i = 0; i < points; i++)
        given = given || *a.strides[i] != 0;
    if (!given && f->has_origin)
        return hemi_fail(HEM_ERR_ARG,
                         "hem_exchange_create: field %zu has an origin of its own and "
                         "must have strides, too",
                         b);
    hem_status status = HEM_OK;
    if (given)
        status = check_strides(&a, b, f, points);
    else
        status = default_strides(&a, b, f->element);
    return status == HEM_OK ? check_apart(&a, b, f->element) : status;
}

static hem_status check_element(hem_field *f, size_t b) {
    size_t size = f->dtype != 0 ? hem_dtype_size(f->dtype) : f->element;
    if (size == 0)
        return hemi_fail(HEM_ERR_ARG,
                         "hem_exchange_create: field %zu has neither a type nor an "
                         "element size",
                         b);
    if (f->dtype != 0 && f->element != 0 && f->element != size)
        return hemi_fail(HEM_ERR_ARG,
                         "hem_exchange_create: the type of field %zu has %zu bytes, "
                         "its element %zu",
                         b, size, f->element);
    if (size > INT32_MAX)
        return too_large(b);
    f->element = size;
    return HEM_OK;
}

static hem_status check_flags(const hem_field *f, size_t b) {
    if ((f->flags & ~(unsigned)(HEM_FIELD_READ_ONLY | HEM_FIELD_VECTOR)) != 0)
        return hemi_fail(HEM_ERR_ARG, "hem_exchange_create: field %zu has unknown flags %#x", b,
                         f->flags);
    if ((f->flags & HEM_FIELD_VECTOR) == 0)
        return HEM_OK;
    if (f->components != 2)
        return hemi_fail(HEM_ERR_ARG,
                         "hem_exchange_create: field %zu is a vector of %zu "
                         "components, not of 2",
                         b, f->components);
    if (!hemi_shape_can_negate(f->dtype))
        return hemi_fail(HEM_ERR_UNSUPPORTED,
                         "hem_exchange_create: field %zu is a vector of a type without sign", b);
    return HEM_OK;
}

static hem_status check_origin(const hem_pattern *pattern, hem_field *f, size_t b) {
    for (int d = 0; hemi_pattern_has_boxes(pattern) && d < pattern->dims; d++) {
        if (!f->has_origin)
            f->origin[d] = pattern->halo_low[d];
        else if (f->origin[d] < pattern->halo_low[d])
            return hemi_fail(HEM_ERR_RANGE,
                             "hem_exchange_create: field %zu starts %lld points before its "
                             "domain in dimension %d, but the halo has %lld",
                             b, (long long)f->origin[d], d, (long long)pattern->halo_low[d]);
    }
    return HEM_OK;
}

static hem_status check_field(const hem_pattern *pattern, hem_field *f, size_t b) {
    if (f->domain >= pattern->domain_count)
        return hemi_fail(HEM_ERR_RANGE,
                         "hem_exchange_create: field %zu is on domain %zu, but this "
                         "rank has %zu",
                         b, f->domain, pattern->domain_count);
    if (f->memory == NULL && pattern->domains[f->domain].points > 0)
        return hemi_fail(HEM_ERR_ARG, "hem_exchange_create: the memory of field %zu is NULL", b);
    f->levels = f->levels == 0 ? 1 : f->levels;
    f->components = f->components == 0 ? 1 : f->components;
    hem_status status = check_element(f, b);
    if (status == HEM_OK)
        status = check_flags(f, b);
    if (status == HEM_OK)
        status = check_origin(pattern, f, b);
    return status == HEM_OK ? fill_in_strides(pattern, f, b) : status;
}

static hem_status check_binding(hem_world *world, const hem_binding *given, hem_binding *into,
                                size_t b) {
    *into = *given;
    if (given->pattern == NULL)
        return hemi_fail(HEM_ERR_ARG, "hem_exchange_create: binding %zu has no pattern", b);
    if (given->pattern->world_id != world->id)
        return hemi_fail(HEM_ERR_ARG,
                         "hem_exchange_create: binding %zu is of a pattern of another "
                         "world",
                         b);
    hem_status status =
        hemi_options_read(&into->field, sizeof into->field, &given->field, "hem_field");
    if (status == HEM_OK && given->number > NUMBERS)
        status = hemi_fail(HEM_ERR_LIMIT,
                           "hem_exchange_create: binding %zu has number %u; there "
                           "are 1 to %u",
                           b, given->number, NUMBERS);
    return status == HEM_OK ? check_field(given->pattern, &into->field, b) : status;
}

/* Number the fields of each domain as they come, or see that no two have the same number. */
static hem_status number_binding(hem_exchange *x, size_t b, bool counted) {
    hem_binding *binding = &x->bindings[b];
    uint32_t before = 0;
    for (size_t i = 0; i < b; i++) {
        const hem_binding *other = &x->bindings[i];
        if (other->pattern != binding->pattern || other->field.domain != binding->field.domain)
            continue;
        before++;
        if (!counted && other->number == binding->number)
            return hemi_fail(HEM_ERR_ARG,
                             "hem_exchange_create: bindings %zu and %zu are both number %u of the "
                             "same domain",
                             i, b, binding->number);
    }
    if (counted)
        binding->number = before + 1;
    if (binding->number > NUMBERS)
        return hemi_fail(HEM_ERR_LIMIT, "hem_exchange_create: a domain has more than %u fields",
                         NUMBERS);
    return HEM_OK;
}

/* The numbers bound on one domain, as bits. */
static uint64_t numbers_of(const hem_exchange *x, const hem_pattern *pattern, size_t domain) {
    uint64_t bits = 0;
    for (size_t i = 0; i < x->binding_count; i++)
        if (x->bindings[i].pattern == pattern && x->bindings[i].field.domain == domain)
            bits |= 1ull << (x->bindings[i].number - 1);
    return bits;
}

static hem_status check_domains(const hem_exchange *x, const hem_pattern *pattern) {
    uint64_t first = numbers_of(x, pattern, 0);
    for (size_t d = 1; d < pattern->domain_count; d++)
        if (numbers_of(x, pattern, d) != first)
            return hemi_fail(HEM_ERR_MISMATCH,
                             "hem_exchange_create: domains 0 and %zu of this rank do not have the "
                             "same fields",
                             d);
    return HEM_OK;
}

static hem_status number_all(hem_exchange *x, const bool *numbered) {
    hem_status status = HEM_OK;
    for (size_t b = 0; b < x->binding_count && status == HEM_OK; b++) {
        for (size_t i = 0; i < b; i++)
            if (x->bindings[i].pattern == x->bindings[b].pattern && numbered[i] != numbered[b])
                return hemi_fail(HEM_ERR_ARG,
                                 "hem_exchange_create: binding %zu has a number and "
                                 "binding %zu of the same pattern has none",
                                 numbered[i] ? i : b, numbered[i] ? b : i);
        status = number_binding(x, b, !numbered[b]);
    }
    for (size_t b = 0; b < x->binding_count && status == HEM_OK; b++)
        status = check_domains(x, x->bindings[b].pattern);
    return status;
}

hem_status hemi_fields_check(hem_exchange *x, hem_world *world,
                             const hem_exchange_options *options) {
    if (options->count > 0 && options->bindings == NULL)
        return hemi_fail(HEM_ERR_ARG, "hem_exchange_create: the bindings are NULL");
    if (options->count > UINT32_MAX)
        return hemi_fail(HEM_ERR_LIMIT, "hem_exchange_create: there are too many bindings");
    x->bindings = calloc(options->count + 1, sizeof *x->bindings);
    bool *numbered = calloc(options->count + 1, sizeof *numbered);
    hem_status status = HEM_OK;
    if (x->bindings == NULL || numbered == NULL)
        status = hemi_fail(HEM_ERR_MEMORY, "hem_exchange_create: no memory for %zu bindings",
                           options->count);
    for (size_t b = 0; b < options->count && status == HEM_OK; b++) {
        status = check_binding(world, &options->bindings[b], &x->bindings[b], b);
        if (status != HEM_OK)
            break;
        numbered[b] = options->bindings[b].number != 0;
        hemi_pattern_hold(x->bindings[b].pattern);
        x->binding_count++;
    }
    if (status == HEM_OK)
        status = number_all(x, numbered);
    free(numbered);
    return status == HEM_OK ? hemi_halo_find_device(x, world) : status;
}

/* Count and stride of axis `a` of a part: those of the link's points first. */
static hemi_shape_axis axis_of(const hemi_part *part, size_t a) {
    const hemi_points *points = &part->link->points;
    const hem_field *f = part->field;
    if (a == part->dims)
        return (hemi_shape_axis){f->levels, f->level_stride};
    if (a > part->dims)
        return (hemi_shape_axis){part->key.half != 0 ? 1 : f->components, f->component_stride};
    if (points->list != NULL)
        return (hemi_shape_axis){points->total, f->stride[0]};
    return (hemi_shape_axis){(uint64_t)points->count[a],
                             f->stride[points->axis[a]] * points->step[a]};
}

static size_t axes_in(const hemi_part *part) {
    return (size_t)part->dims + 2;
}

void hemi_part_order(const hemi_part *part, uint8_t *order) {
    size_t n = axes_in(part);
    for (size_t i = 0; i < n; i++) {
        uint64_t stride = (uint64_t)llabs(axis_of(part, i).stride);
        size_t at = i;
        for (; at > 0 && (uint64_t)llabs(axis_of(part, order[at - 1]).stride) < stride; at--)
            order[at] = order[at - 1];
        order[at] = (uint8_t)i;
    }
}

/* Bytes from the field's memory to the first element of a part. */
static int64_t base_of(const hemi_part *part) {
    const hemi_points *points = &part->link->points;
    const hem_field *f = part->field;
    int64_t base = 0;
    if (points->list == NULL)
        for (size_t k = 0; k < part->dims; k++) {
            uint8_t d = points->axis[k];
            base += (f->origin[d] + points->start[k]) * f->stride[d];
        }
    return base + f->component_stride * part->component;
}

hem_status hemi_part_shape(hemi_part *part) {
    size_t n = axes_in(part);
    bool seen[HEMI_PART_AXES] = {false};
    hemi_shape_spec spec = {
        .base = base_of(part),
        .element = part->field->element,
        .axis_count = n,
        .list = part->link->points.list,
    };
    for (size_t i = 0; i < n; i++) {
        size_t a = part->order[i];
        if (a >= n || seen[a])
            return hemi_fail(HEM_ERR_MISMATCH,
                             "hem_exchange_create: rank %u sends an order of "
                             "axes that is none",
                             part->link->peer);
        seen[a] = true;
        spec.axes[i] = axis_of(part, a);
        if (a == 0)
            spec.list_axis = i;
    }
    hem_status status = hemi_shape_make(&spec, &part->shape);
    if (status != HEM_OK)
        return status;
    int64_t first = 0;
    int64_t end = 0;
    hemi_shape_bounds(part->shape, &first, &end);
    if (part->field->bytes != 0 && (first < 0 || (end > 0 && (uint64_t)end > part->field->bytes)))
        return hemi_fail(HEM_ERR_RANGE,
                         "hem_exchange_create: field %u of domain %u has %zu bytes, but its points "
                         "take bytes %lld to %lld",
                         part->key.number, part->link->here, part->field->bytes, (long long)first,
                         (long long)end);
    part->bytes = hemi_shape_bytes(part->shape);
    return HEM_OK;
}
