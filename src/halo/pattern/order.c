#include "halo/pattern/order.h"

#include <stdbool.h>
#include <string.h>

#define DIGIT   8
#define BUCKETS (1u << DIGIT)
/* Fewer than this are inserted one by one. */
#define FEW 48

static void insert(hemi_keyed *items, size_t count) {
    for (size_t i = 1; i < count; i++) {
        hemi_keyed item = items[i];
        size_t at = i;
        for (; at > 0 && items[at - 1].key > item.key; at--)
            items[at] = items[at - 1];
        items[at] = item;
    }
}

static bool is_ordered(const hemi_keyed *items, size_t count) {
    for (size_t i = 1; i < count; i++)
        if (items[i - 1].key > items[i].key)
            return false;
    return true;
}

/* Which bits differ between keys. */
static uint64_t differing(const hemi_keyed *items, size_t count) {
    uint64_t bits = 0;
    for (size_t i = 1; i < count; i++)
        bits |= items[i].key ^ items[0].key;
    return bits;
}

static void deal(const hemi_keyed *from, hemi_keyed *to, size_t count, unsigned shift) {
    size_t starts[BUCKETS] = {0};
    for (size_t i = 0; i < count; i++)
        starts[(from[i].key >> shift) % BUCKETS]++;
    size_t start = 0;
    for (unsigned b = 0; b < BUCKETS; b++) {
        size_t many = starts[b];
        starts[b] = start;
        start += many;
    }
    for (size_t i = 0; i < count; i++)
        to[starts[(from[i].key >> shift) % BUCKETS]++] = from[i];
}

void hemi_order(hemi_keyed *items, hemi_keyed *spare, size_t count) {
    if (count < FEW) {
        insert(items, count);
        return;
    }
    if (is_ordered(items, count))
        return;
    uint64_t bits = differing(items, count);
    hemi_keyed *from = items;
    hemi_keyed *to = spare;
    for (unsigned shift = 0; shift < 64; shift += DIGIT) {
        if ((bits >> shift) % BUCKETS == 0)
            continue;
        deal(from, to, count, shift);
        hemi_keyed *other = from;
        from = to;
        to = other;
    }
    if (from != items)
        memcpy(items, from, count * sizeof *items);
}
