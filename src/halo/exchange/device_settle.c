/* What kernels need of the fields: fields of the host are shown, lists and lanes become tables. */
#include "halo/exchange/device.h"

#include <stdlib.h>
#include <string.h>

static hem_status no_memory(void) {
    return hemi_fail(HEM_ERR_MEMORY, "hem_exchange_create: no memory for an exchange on a device");
}

/* Every part of an exchange, one after the other. */
typedef struct part_walk {
    const hem_exchange *x;
    size_t lane;
    size_t i;
    bool recvs;
} part_walk;

static hemi_part *next_part(part_walk *w) {
    for (; w->lane < w->x->lane_count; w->lane++) {
        for (;;) {
            hemi_halo_lane *lane = &w->x->lanes[w->lane];
            const hemi_parts *parts = w->recvs ? &lane->recvs : &lane->sends;
            if (w->i < parts->count)
                return &parts->parts[w->i++];
            w->i = 0;
            w->recvs = !w->recvs;
            if (!w->recvs)
                break;
        }
    }
    return NULL;
}

/* What the parts of a field touch, from its address. */
typedef struct span {
    int64_t first;
    int64_t end;
} span;

static span find_span(const hem_exchange *x, const hem_field *field) {
    part_walk w = {.x = x};
    span all = {0, 0};
    for (const hemi_part *part = next_part(&w); part != NULL; part = next_part(&w)) {
        span one = {0, 0};
        if (part->field != field || part->bytes == 0)
            continue;
        hemi_shape_bounds(part->shape, &one.first, &one.end);
        if (all.end == all.first)
            all = one;
        all.first = one.first < all.first ? one.first : all.first;
        all.end = one.end > all.end ? one.end : all.end;
    }
    return all;
}

/* From now on the parts of this field are where kernels see them. */
static void move_parts(const hem_exchange *x, const hem_field *field, int64_t by) {
    part_walk w = {.x = x};
    for (hemi_part *part = next_part(&w); part != NULL; part = next_part(&w))
        if (part->field == field)
            part->memory = (unsigned char *)((uintptr_t)part->memory + (uintptr_t)(intptr_t)by);
}

static hem_status show_field(hem_exchange *x, const hem_field *field) {
    hemi_halo_device *d = x->device;
    const hemi_device_memory_ops *ops = d->device->module->memory;
    if (field->memory == NULL || ops->kind(d->device->context, field->memory) == HEM_MEMORY_DEVICE)
        return HEM_OK;
    span all = find_span(x, field);
    if (all.end == all.first)
        return HEM_OK;
    unsigned char *host = (unsigned char *)field->memory + all.first;
    hemi_halo_pin *pin = &d->pins[d->pin_count];
    *pin = (hemi_halo_pin){host, (uint64_t)(all.end - all.first)};
    void *device = NULL;
    const bool frozen = (field->flags & HEM_FIELD_READ_ONLY) != 0;
    hem_status status = hemi_device_pin(d->root, pin->host, pin->bytes, frozen, &device);
    if (status != HEM_OK)
        return status;
    d->pin_count++;
    move_parts(x, field, (int64_t)((uintptr_t)device - (uintptr_t)host));
    return HEM_OK;
}

hem_status hemi_halo_show_fields(hem_exchange *x) {
    hem_status status = HEM_OK;
    x->device->pins = calloc(x->binding_count + 1, sizeof *x->device->pins);
    if (x->device->pins == NULL)
        return no_memory();
    for (size_t b = 0; b < x->binding_count && status == HEM_OK; b++)
        status = show_field(x, &x->bindings[b].field);
    return status;
}

/* Fields of one type on one mesh have the same lists: one is enough. */
static bool take_same(hemi_halo_device *d, hemi_halo_list *list) {
    for (size_t i = 0; i < d->list_count; i++) {
        const hemi_halo_list *other = &d->lists[i];
        if (other->same == 0 && other->count == list->count && other->chunk == list->chunk &&
            other->width == list->width && other->bits == list->bits &&
            memcmp(other->steps, list->steps, list->count * list->width) == 0) {
            list->at = other->at;
            list->same = 1;
            free(list->steps);
            list->steps = other->steps;
            return true;
        }
    }
    return false;
}

static size_t count_parts(const hem_exchange *x) {
    size_t count = 0;
    part_walk w = {.x = x};
    for (const hemi_part *part = next_part(&w); part != NULL; part = next_part(&w))
        count += part->there != NULL ? 2 : 1;
    return count;
}

static hem_status make_list(hemi_halo_device *d, hemi_part *part, uint64_t *at) {
    hemi_halo_list *list = &d->lists[d->list_count];
    hem_status status = hemi_halo_list_make(part->shape, list);
    if (status != HEM_OK || list->count == 0)
        return status;
    part->list = list;
    if (!take_same(d, list)) {
        list->at = *at;
        *at += (list->count * list->width + HEM_DEV_LINE - 1) / HEM_DEV_LINE * HEM_DEV_LINE;
    }
    d->list_count++;
    return HEM_OK;
}

/* Lists of all parts, and where they will be behind `at`. */
static hem_status make_lists(hem_exchange *x, uint64_t *at) {
    hemi_halo_device *d = x->device;
    part_walk w = {.x = x};
    d->lists = calloc(count_parts(x) + 1, sizeof *d->lists);
    if (d->lists == NULL)
        return no_memory();
    hem_status status = HEM_OK;
    for (hemi_part *part = next_part(&w); part != NULL && status == HEM_OK; part = next_part(&w)) {
        status = make_list(d, part, at);
        if (status == HEM_OK && part->there != NULL)
            status = make_list(d, part->there, at);
    }
    return status;
}

static void fill_lane(const hem_exchange *x, size_t l, hemd_halo_lane *lane) {
    hemi_halo_device *d = x->device;
    const hemi_halo_reach *reach = &d->reach[l];
    uint32_t peer = x->lanes[l].way.peer;
    *lane = (hemd_halo_lane){.peer = peer, .near = reach->near};
    for (size_t i = 0; i < x->lanes[l].sends.count && peer != d->rank; i++)
        lane->direct |= x->lanes[l].sends.parts[i].direct;
    for (size_t i = 0; i < x->lanes[l].recvs.count && peer != d->rank; i++)
        lane->direct |= x->lanes[l].recvs.parts[i].direct;
    d->some_direct = d->some_direct || lane->direct != 0;
    if (peer == d->rank)
        return;
    unsigned char *in = (unsigned char *)d->areas.address + reach->in_at;
    unsigned char *out = (unsigned char *)d->maps[peer].address + reach->out_at;
    lane->in = (const hemd_halo_area *)(void *)in;
    lane->out = (hemd_halo_area *)(void *)out;
    lane->landing_in = in + sizeof(hemd_halo_area);
    lane->landing_out = out + sizeof(hemd_halo_area);
    lane->in_bytes = reach->in_bytes;
    lane->out_bytes = reach->out_bytes;
}

/* Bring the tables to the device: lanes first. */
static hem_status upload(hem_exchange *x, uint64_t bytes) {
    hemi_halo_device *d = x->device;
    const hemi_device_memory_ops *ops = d->device->module->memory;
    hemd_halo_lane *lanes = calloc(x->lane_count + 1, sizeof *lanes);
    if (lanes == NULL)
        return no_memory();
    for (size_t l = 0; l < x->lane_count; l++)
        fill_lane(x, l, &lanes[l]);
    hem_status status = ops->alloc(d->device->context, bytes, &d->tables);
    unsigned char *base = d->tables.address;
    if (status == HEM_OK && x->lane_count > 0)
        status = ops->copy(d->device->context, base, lanes, x->lane_count * sizeof *lanes);
    free(lanes);
    for (size_t i = 0; i < d->list_count && status == HEM_OK; i++) {
        hemi_halo_list *list = &d->lists[i];
        if (list->same == 0)
            status = ops->copy(d->device->context, base + list->at, list->steps,
                               list->count * list->width);
    }
    return status;
}

hem_status hemi_halo_fill_tables(hem_exchange *x) {
    uint64_t at = (x->lane_count + 1) * sizeof(hemd_halo_lane);
    at = (at + HEM_DEV_LINE - 1) / HEM_DEV_LINE * HEM_DEV_LINE;
    hem_status status = make_lists(x, &at);
    return status == HEM_OK ? upload(x, at) : status;
}
