/* From shapes to what kernels walk: units, axes, lists of offsets. */
#include "halo/exchange/device.h"
#include "halo/shape_inside.h"

#include <stdlib.h>
#include <string.h>

static uint64_t divisor(uint64_t a, uint64_t b) {
    while (b != 0) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static hem_status no_memory(void) {
    return hemi_fail(HEM_ERR_MEMORY, "hem_exchange_create: no memory for the list of a field");
}

/* Runs of different length become steps of the longest length that divides all. */
static hem_status cut_runs(const hemi_shape *s, hemi_halo_list *list) {
    uint64_t runs = s->axes[s->list_at].count;
    uint64_t chunk = 0;
    uint64_t bytes = 0;
    for (uint64_t i = 0; i < runs; i++) {
        chunk = divisor(s->runs[i].bytes, chunk);
        bytes += s->runs[i].bytes;
    }
    list->count = chunk == 0 ? 0 : bytes / chunk;
    list->chunk = chunk;
    list->width = s->first >= 0 && s->end <= INT32_MAX && s->base >= 0 ? 4 : 8;
    list->steps = malloc(list->count * list->width);
    if (list->steps == NULL)
        return no_memory();
    uint64_t n = 0;
    for (uint64_t i = 0; i < runs; i++)
        for (uint64_t at = 0; at < s->runs[i].bytes; at += chunk, n++) {
            int64_t offset = s->runs[i].offset + (int64_t)at;
            if (list->width == 4)
                ((int32_t *)list->steps)[n] = (int32_t)offset;
            else
                ((int64_t *)list->steps)[n] = offset;
            list->bits |= (uint64_t)offset;
        }
    return HEM_OK;
}

hem_status hemi_halo_list_make(const hemi_shape *s, hemi_halo_list *list) {
    *list = (hemi_halo_list){0};
    if (s->bytes == 0 || s->list_at >= s->axis_count || s->list_kind == HEMI_LIST_NONE)
        return HEM_OK;
    if (s->list_kind == HEMI_LIST_RUNS)
        return cut_runs(s, list);
    list->count = s->axes[s->list_at].count;
    list->chunk = s->chunk;
    list->width = s->list_kind == HEMI_LIST_NEAR ? 4 : 8;
    list->steps = malloc(list->count * list->width);
    if (list->steps == NULL)
        return no_memory();
    memcpy(list->steps, s->list, list->count * list->width);
    for (uint64_t i = 0; i < list->count; i++)
        list->bits |= (uint64_t)hemi_shape_offset(s, i);
    return HEM_OK;
}

uint32_t hemi_halo_grain(const hemi_part *part) {
    const hemi_shape *s = part->shape;
    uint64_t bits = HEMD_HALO_ALIGN | (uint64_t)((uintptr_t)part->memory + (uint64_t)s->base);
    bits |= part->list != NULL ? part->list->chunk | part->list->bits : s->chunk;
    for (uint32_t k = 0; k < s->axis_count; k++)
        if (k != s->list_at && s->axes[k].count > 1)
            bits |= (uint64_t)s->axes[k].stride;
    return (uint32_t)(bits & (0 - bits));
}

_Static_assert(HEMD_HALO_AXES > HEMI_SHAPE_AXES, "every shape has room, cut into units");

static void add_axis(hemd_halo_side *side, uint64_t count, int64_t stride) {
    hemd_halo_axis *axis = &side->axes[side->axis_count++];
    uint32_t shift = 0;
    *axis = (hemd_halo_axis){.count = count, .stride = stride};
    if (count > INT32_MAX)
        return;
    while (1ull << shift < count)
        shift++;
    axis->shift = shift;
    axis->magic = (uint32_t)((((1ull << shift) - count) << 32) / count + 1);
}

void hemi_halo_side_make(const hemi_part *part, uint32_t unit, const unsigned char *tables,
                         hemd_halo_side *side) {
    const hemi_shape *s = part->shape;
    const hemi_halo_list *list = part->list;
    uint64_t chunk = list != NULL ? list->chunk : s->chunk;
    *side = (hemd_halo_side){.base = part->memory + s->base, .list_at = HEMD_HALO_AXES};
    if (chunk > unit)
        add_axis(side, chunk / unit, unit);
    for (uint32_t k = s->axis_count; k-- > 0;) {
        if (list != NULL && k == s->list_at) {
            side->list_at = side->axis_count;
            side->list = tables != NULL ? tables + list->at : list->steps;
            side->list_width = (uint8_t)list->width;
            add_axis(side, list->count, 0);
        } else if (s->axes[k].count > 1) {
            add_axis(side, s->axes[k].count, s->axes[k].stride);
        }
    }
    if (side->axis_count == 0)
        add_axis(side, 1, 0);
}

void hemi_halo_side_message(uint64_t total, uint32_t unit, hemd_halo_side *side) {
    *side = (hemd_halo_side){.list_at = HEMD_HALO_AXES, .is_message = 1};
    add_axis(side, total, unit);
}

void hemi_halo_side_cut(hemd_halo_side *side, uint64_t first, uint64_t count) {
    uint8_t k = (uint8_t)(side->axis_count - 1);
    uint64_t inside = 1;
    for (uint8_t i = 0; i < k; i++)
        inside *= side->axes[i].count;
    uint64_t step = first / inside;
    if (k == side->list_at)
        side->list = (const unsigned char *)side->list + step * side->list_width;
    else
        side->base += (int64_t)step * side->axes[k].stride;
    int64_t stride = side->axes[k].stride;
    side->axis_count = k;
    add_axis(side, count / inside, stride);
}

void hemi_halo_part_settle(hemd_halo_part *part) {
    part->few = part->total <= INT32_MAX && part->from.axis_count <= HEMD_HALO_FEW &&
                part->to.axis_count <= HEMD_HALO_FEW && part->width == part->unit &&
                part->change == HEMD_HALO_AS_IS;
}

uint32_t hemi_halo_change(hem_dtype dtype, uint32_t *change_p) {
    switch (dtype) {
    case HEM_I8:
    case HEM_I16:
    case HEM_I32:
    case HEM_I64:
        *change_p = HEMD_HALO_MINUS;
        return (uint32_t)hem_dtype_size(dtype);
    case HEM_F16:
    case HEM_BF16:
    case HEM_F32:
    case HEM_F64:
        *change_p = HEMD_HALO_SIGN;
        return (uint32_t)hem_dtype_size(dtype);
    case HEM_C64:
    case HEM_C128:
        *change_p = HEMD_HALO_SIGN;
        return (uint32_t)hem_dtype_size(dtype) / 2;
    default:
        *change_p = HEMD_HALO_AS_IS;
        return 0;
    }
}
