/* How the owner's half of a link is written into a record, and read and checked by the owner. */
#include "halo/pattern/half.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* The owner's half of a link. */
typedef struct half {
    uint32_t there; /* the owner's domain */
    uint32_t here;  /* the receiver's */
    uint32_t sides;
    hemi_turn turn;
    uint64_t total;
    uint64_t boxed; /* 1: a half_box follows; 0: `total` positions */
} half;

typedef struct half_box {
    int64_t start[HEM_DIMS];
    int64_t count[HEM_DIMS];
    uint8_t axis[HEM_DIMS];
    int8_t step[HEM_DIMS];
} half_box;

hem_status hemi_half_pack(hemi_bag *bag, uint32_t me, const hemi_want *want) {
    const hemi_points *points = &want->theirs;
    bool boxed = points->list == NULL;
    half h = {want->there, want->here, want->sides, want->turn, points->total, boxed};
    if (!boxed && points->total > (PTRDIFF_MAX - sizeof h) / sizeof *points->list)
        return hemi_fail(HEM_ERR_MEMORY, "a link of %" PRIu64 " points is too long", points->total);
    size_t rest = boxed ? sizeof(half_box) : points->total * sizeof *points->list;
    void *data = NULL;
    hem_status status = hemi_bag_make(bag, me, want->owner, sizeof h + rest, &data);
    if (status != HEM_OK)
        return status;
    memcpy(data, &h, sizeof h);
    unsigned char *at = (unsigned char *)data + sizeof h;
    if (!boxed) {
        memcpy(at, points->list, rest);
        return HEM_OK;
    }
    half_box box = {.start = {0}};
    memcpy(box.start, points->start, sizeof box.start);
    memcpy(box.count, points->count, sizeof box.count);
    memcpy(box.axis, points->axis, sizeof box.axis);
    memcpy(box.step, points->step, sizeof box.step);
    memcpy(at, &box, sizeof box);
    return HEM_OK;
}

static hem_status odd_half(uint32_t from) {
    return hemi_fail(HEM_ERR_MISMATCH, "rank %u asks for points that do not exist here", from);
}

/* Whether a box lies in what the domain owns, and its traversal is one. */
static bool is_inside(const hem_pattern *pattern, const hemi_domain *domain, hemi_points *points) {
    uint32_t seen = 0;
    uint64_t total = 1;
    for (int k = 0; k < pattern->dims; k++) {
        if (points->axis[k] >= pattern->dims || (points->step[k] != 1 && points->step[k] != -1))
            return false;
        int64_t extent = domain->box.count[points->axis[k]];
        int64_t start = points->start[k];
        int64_t count = points->count[k];
        seen |= 1u << points->axis[k];
        if (start < 0 || start >= extent || count < 1 || count > extent)
            return false;
        if (points->step[k] > 0 ? count > extent - start : count > start + 1)
            return false;
        if (__builtin_mul_overflow(total, (uint64_t)count, &total))
            return false;
    }
    return seen == (1u << pattern->dims) - 1 && total == points->total;
}

static bool all_stored(const int64_t *list, uint64_t total, uint64_t points) {
    for (uint64_t i = 0; i < total; i++)
        if (list[i] < 0 || (uint64_t)list[i] >= points)
            return false;
    return true;
}

static hem_status unpack_list(hemi_making *making, const hemi_domain *domain, const int64_t *list,
                              hemi_points *points) {
    if (!all_stored(list, points->total, domain->points))
        return HEM_ERR_MISMATCH;
    points->list = malloc(points->total * sizeof *list);
    if (points->list == NULL)
        return HEM_ERR_MEMORY;
    hemi_router_hold(&making->router, points->total * sizeof *list);
    memcpy(points->list, list, points->total * sizeof *list);
    return HEM_OK;
}

/* A link out of what a peer asks for. Nothing of it is believed. */
hem_status hemi_half_unpack(hemi_making *making, const hemi_record *record, hemi_link *link) {
    const hem_pattern *pattern = making->pattern;
    const unsigned char *at = hemi_record_data(record);
    half h;
    if (record->bytes < sizeof h)
        return odd_half(record->from);
    memcpy(&h, at, sizeof h);
    uint64_t rest = record->bytes - sizeof h;
    uint64_t want = h.boxed == 1 ? sizeof(half_box) : rest / sizeof(int64_t) * sizeof(int64_t);
    if (h.boxed > 1 || h.there >= pattern->domain_count || h.total == 0 || rest != want ||
        (h.boxed == 0 && h.total != rest / sizeof(int64_t)))
        return odd_half(record->from);
    const hemi_domain *domain = &pattern->domains[h.there];
    *link = (hemi_link){record->from, h.there, h.here, h.sides, h.turn, {.total = h.total}};
    if (h.boxed == 0) {
        hem_status status = unpack_list(
            making, domain, (const int64_t *)(const void *)(at + sizeof h), &link->points);
        if (status == HEM_ERR_MEMORY)
            return hemi_fail(status, "no memory for a link of %" PRIu64 " points", h.total);
        return status == HEM_OK ? HEM_OK : odd_half(record->from);
    }
    half_box box;
    memcpy(&box, at + sizeof h, sizeof box);
    memcpy(link->points.start, box.start, sizeof box.start);
    memcpy(link->points.count, box.count, sizeof box.count);
    memcpy(link->points.axis, box.axis, sizeof box.axis);
    memcpy(link->points.step, box.step, sizeof box.step);
    return is_inside(pattern, domain, &link->points) ? HEM_OK : odd_half(record->from);
}
