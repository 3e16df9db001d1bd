/*
 * Shapes as bytes: a head, the axes, the list.
 *
 * What a peer says may be anything. The counts are checked against the length, everything that
 * follows from them is worked out anew, and what the shape would touch is compared with the field.
 */
#include "halo/shape_inside.h"

#include "base/status.h"

#include <stdlib.h>
#include <string.h>

typedef struct wire_head {
    uint32_t axis_count;
    uint32_t list_at;
    uint32_t list_kind;
    uint32_t reserved;
    int64_t base;
    uint64_t element;
    uint64_t chunk;
    uint64_t unit;
    uint64_t bytes;
} wire_head;

typedef struct wire_axis {
    uint64_t count;
    int64_t stride;
} wire_axis;

static uint64_t list_bytes(const hemi_shape *s) {
    return s->list_kind == HEMI_LIST_NONE
               ? 0
               : s->axes[s->list_at].count * hemi_shape_step(s->list_kind);
}

size_t hemi_shape_write(const hemi_shape *s, void *bytes, size_t room) {
    wire_head head = {.axis_count = s->axis_count,
                      .list_at = s->list_at,
                      .list_kind = s->list_kind,
                      .base = s->base,
                      .element = s->element,
                      .chunk = s->chunk,
                      .unit = s->unit,
                      .bytes = s->bytes};
    size_t needed = sizeof head + s->axis_count * sizeof(wire_axis) + list_bytes(s);
    unsigned char *at = bytes;

    if (room < needed)
        return needed;
    memcpy(at, &head, sizeof head);
    at += sizeof head;
    for (uint32_t k = 0; k < s->axis_count; k++) {
        wire_axis axis = {s->axes[k].count, s->axes[k].stride};
        memcpy(at, &axis, sizeof axis);
        at += sizeof axis;
    }
    if (s->list_kind != HEMI_LIST_NONE)
        memcpy(at, s->list, list_bytes(s));
    return needed;
}

static hem_status malformed(const char *what) {
    return hemi_fail(HEM_ERR_MISMATCH, "a peer described points of a field with a bad %s", what);
}

/* A shape of nothing is a head alone. */
static bool is_sound_empty(const wire_head *h) {
    return h->axis_count == 0 && h->list_at == 0 && h->list_kind == HEMI_LIST_NONE &&
           h->chunk == 0 && h->unit == 0 && h->bytes == 0;
}

static bool is_sound(const wire_head *h) {
    bool listed = h->list_kind != HEMI_LIST_NONE;

    if (h->reserved != 0 || h->axis_count > HEMI_SHAPE_AXES || h->list_kind > HEMI_LIST_RUNS ||
        h->element == 0)
        return false;
    if (h->chunk == 0)
        return is_sound_empty(h);
    if (listed ? h->list_at >= h->axis_count : h->list_at != h->axis_count)
        return false;
    if (h->list_kind == HEMI_LIST_RUNS && h->list_at + 1 != h->axis_count)
        return false;
    return h->chunk <= INT64_MAX && h->unit != 0 && h->unit % h->element == 0 &&
           h->chunk % h->unit == 0;
}

static bool take_axes(hemi_shape *s, const unsigned char *at) {
    for (uint32_t k = 0; k < s->axis_count; k++) {
        wire_axis axis;
        memcpy(&axis, at + k * sizeof axis, sizeof axis);
        if (axis.count == 0)
            return false;
        /* Of a single step the stride says nothing, and may be anything. */
        if (axis.count == 1)
            axis.stride = 0;
        s->axes[k] = (hemi_shape_loop){.count = axis.count, .stride = axis.stride};
    }
    return true;
}

static bool are_runs_sound(const hemi_shape *s) {
    for (uint64_t i = 0; s->list_kind == HEMI_LIST_RUNS && i < s->axes[s->list_at].count; i++) {
        uint64_t bytes = s->runs[i].bytes;
        if (bytes == 0 || bytes > INT64_MAX || bytes % s->chunk != 0)
            return false;
    }
    return true;
}

/* Fill in a shape that was allocated for a head that is sound, and for a list that is there. */
static hem_status take(hemi_shape *s, const wire_head *h, const unsigned char *rest,
                       uint64_t field_bytes) {
    hem_status status;

    s->base = h->base;
    s->element = h->element;
    s->chunk = h->chunk;
    s->unit = h->unit;
    s->axis_count = h->axis_count;
    s->list_at = h->list_at;
    if (h->chunk == 0) {
        hemi_shape_settle_empty(s);
        return HEM_OK;
    }
    if (!take_axes(s, rest))
        return malformed("axis");
    if (s->list_kind != HEMI_LIST_NONE)
        memcpy(s->room, rest + s->axis_count * sizeof(wire_axis), list_bytes(s));
    if (!are_runs_sound(s))
        return malformed("run");
    status = hemi_shape_settle(s);
    if (status != HEM_OK)
        return malformed("extent");
    if (s->bytes != h->bytes)
        return malformed("length");
    if (s->first < 0 || (uint64_t)s->end > field_bytes)
        return hemi_fail(HEM_ERR_MISMATCH,
                         "a peer described bytes %lld to %lld of a field that has %llu",
                         (long long)s->first, (long long)s->end, (unsigned long long)field_bytes);
    return HEM_OK;
}

/* The steps of the list, if the bytes behind the axes are a whole list. */
static bool count_list(const wire_head *h, const unsigned char *rest, size_t left,
                       uint64_t *count_p) {
    size_t axes = h->axis_count * sizeof(wire_axis);
    wire_axis axis;

    *count_p = 0;
    if (left < axes)
        return false;
    if (h->list_kind == HEMI_LIST_NONE)
        return left == axes;
    memcpy(&axis, rest + h->list_at * sizeof axis, sizeof axis);
    *count_p = axis.count;
    return (left - axes) % hemi_shape_step(h->list_kind) == 0 &&
           (left - axes) / hemi_shape_step(h->list_kind) == axis.count;
}

hem_status hemi_shape_read(const void *bytes, size_t count, uint64_t field_bytes,
                           hemi_shape **shape_p) {
    const unsigned char *rest = (const unsigned char *)bytes + sizeof(wire_head);
    wire_head head;
    uint64_t steps;
    hemi_shape *s;
    hem_status status;

    if (count < sizeof head)
        return malformed("head");
    memcpy(&head, bytes, sizeof head);
    if (!is_sound(&head))
        return malformed("head");
    if (!count_list(&head, rest, count - sizeof head, &steps))
        return malformed("list");
    s = hemi_shape_alloc(head.list_kind, steps);
    if (s == NULL)
        return hemi_fail(HEM_ERR_MEMORY, "no memory for the shape of a peer's field");
    status = take(s, &head, rest, field_bytes);
    if (status == HEM_OK)
        *shape_p = s;
    else
        hemi_shape_free(s);
    return status;
}
