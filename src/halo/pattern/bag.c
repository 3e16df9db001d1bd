#include "halo/pattern/bag.h"

#include "halo/pattern/order.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_ROOM 512

bool hemi_bag_reserve(hemi_bag *bag, size_t bytes, bool exact) {
    if (bytes <= bag->room - bag->used)
        return true;
    if (bytes > PTRDIFF_MAX - bag->used)
        return false;
    size_t need = bag->used + bytes;
    size_t room = bag->room < FIRST_ROOM ? FIRST_ROOM : bag->room;
    while (!exact && room < need)
        room = room > PTRDIFF_MAX / 2 ? need : 2 * room;
    unsigned char *grown = realloc(bag->bytes, exact ? need : room);
    if (grown == NULL)
        return false;
    bag->bytes = grown;
    bag->room = exact ? need : room;
    return true;
}

hem_status hemi_bag_make(hemi_bag *bag, uint32_t from, uint32_t to, size_t bytes, void **data_p) {
    if (bytes > PTRDIFF_MAX - 64 || !hemi_bag_reserve(bag, hemi_record_span(bytes), false))
        return hemi_fail(HEM_ERR_MEMORY, "no memory for %zu bytes to rank %u", bytes, to);
    size_t span = hemi_record_span(bytes);
    unsigned char *at = bag->bytes + bag->used;
    /* What fills it up to 8 bytes travels, too. */
    if (span > sizeof(hemi_record))
        memset(at + span - 8, 0, 8);
    hemi_record record = {to, from, bytes};
    memcpy(at, &record, sizeof record);
    bag->used += span;
    bag->records++;
    *data_p = at + sizeof record;
    return HEM_OK;
}

hem_status hemi_bag_add(hemi_bag *bag, uint32_t from, uint32_t to, const void *data, size_t bytes) {
    void *at = NULL;
    hem_status status = hemi_bag_make(bag, from, to, bytes, &at);
    if (status == HEM_OK && bytes > 0)
        memcpy(at, data, bytes);
    return status;
}

const hemi_record *hemi_bag_next(const hemi_bag *bag, const hemi_record *record) {
    size_t at = 0;
    if (record != NULL)
        at = (size_t)((const unsigned char *)record - bag->bytes) + hemi_record_span(record->bytes);
    return at < bag->used ? (const hemi_record *)(const void *)(bag->bytes + at) : NULL;
}

void hemi_bag_free(hemi_bag *bag) {
    free(bag->bytes);
    memset(bag, 0, sizeof *bag);
}

bool hemi_bag_check(const unsigned char *bytes, size_t used, uint64_t records, hemi_ranks to,
                    hemi_ranks from) {
    size_t at = 0;
    uint64_t seen = 0;
    for (; at < used; seen++) {
        hemi_record record;
        if (used - at < sizeof record)
            return false;
        memcpy(&record, bytes + at, sizeof record);
        if (record.bytes > used - at - sizeof record ||
            hemi_record_span(record.bytes) > used - at || !hemi_ranks_have(to, record.to) ||
            !hemi_ranks_have(from, record.from))
            return false;
        at += hemi_record_span(record.bytes);
    }
    return seen == records;
}

bool hemi_bag_split(hemi_bag *bag, hemi_ranks keep, hemi_bag *out) {
    size_t leaving = 0;
    for (const hemi_record *r = hemi_bag_next(bag, NULL); r != NULL; r = hemi_bag_next(bag, r))
        leaving += hemi_ranks_have(keep, r->to) ? 0 : hemi_record_span(r->bytes);
    if (leaving == 0)
        return true;
    if (!hemi_bag_reserve(out, leaving, true))
        return false;
    size_t kept = 0;
    for (size_t at = 0; at < bag->used;) {
        const hemi_record *r = (const hemi_record *)(const void *)(bag->bytes + at);
        size_t span = hemi_record_span(r->bytes);
        if (hemi_ranks_have(keep, r->to)) {
            memmove(bag->bytes + kept, bag->bytes + at, span);
            kept += span;
        } else {
            memcpy(out->bytes + out->used, bag->bytes + at, span);
            out->used += span;
            out->records++;
        }
        at += span;
    }
    bag->used = kept;
    bag->records -= out->records;
    return true;
}

static uint32_t key_of(const hemi_record *record, enum hemi_bag_key key) {
    return key == HEMI_BAG_TO ? record->to : record->from;
}

static bool is_sorted(const hemi_bag *bag, enum hemi_bag_key key) {
    const hemi_record *last = NULL;
    for (const hemi_record *r = hemi_bag_next(bag, NULL); r != NULL; r = hemi_bag_next(bag, r)) {
        if (last != NULL && key_of(r, key) < key_of(last, key))
            return false;
        last = r;
    }
    return true;
}

bool hemi_bag_sort(hemi_bag *bag, enum hemi_bag_key key, uint64_t *most_p) {
    if (is_sorted(bag, key))
        return true;
    hemi_keyed *items = malloc(2 * bag->records * sizeof *items);
    unsigned char *bytes = malloc(bag->used);
    if (items == NULL || bytes == NULL) {
        free(items);
        free(bytes);
        return false;
    }
    uint64_t took = 2 * bag->records * sizeof *items + bag->used;
    *most_p = took > *most_p ? took : *most_p;
    size_t count = 0;
    for (const hemi_record *r = hemi_bag_next(bag, NULL); r != NULL; r = hemi_bag_next(bag, r))
        items[count++] =
            (hemi_keyed){key_of(r, key), (uint64_t)((const unsigned char *)r - bag->bytes)};
    hemi_order(items, items + count, count);
    size_t at = 0;
    for (size_t i = 0; i < count; i++) {
        const unsigned char *from = bag->bytes + items[i].value;
        size_t span = hemi_record_span(((const hemi_record *)(const void *)from)->bytes);
        memcpy(bytes + at, from, span);
        at += span;
    }
    free(items);
    free(bag->bytes);
    bag->bytes = bytes;
    bag->room = bag->used;
    return true;
}
