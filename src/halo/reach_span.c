/* Who needs which rows of whom. */
#include "halo/reach.h"

static uint64_t add_most(uint64_t a, uint64_t b) {
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static int64_t key_minus(int64_t key, uint64_t distance) {
    uint64_t room = (uint64_t)key - (uint64_t)INT64_MIN;
    return distance > room ? INT64_MIN : (int64_t)((uint64_t)key - distance);
}

static int64_t key_plus(int64_t key, uint64_t distance) {
    uint64_t room = (uint64_t)INT64_MAX - (uint64_t)key;
    return distance > room ? INT64_MAX : (int64_t)((uint64_t)key + distance);
}

/* How many of the keys are below `limit`. */
static uint64_t count_below(const int64_t *keys, uint64_t count, int64_t limit) {
    uint64_t low = 0;
    uint64_t high = count;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (keys[middle] < limit)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static hemi_span by_rows(const hemi_extent *asker, const hemi_extent *owner, bool earlier) {
    hemi_span span = {0};
    uint64_t end = owner->start + owner->rows;
    if (earlier) {
        uint64_t low = asker->start > asker->back ? asker->start - asker->back : 0;
        if (low < end) {
            span.from = low > owner->start ? low - owner->start : 0;
            span.rows = owner->rows - span.from;
        }
    } else {
        uint64_t high = add_most(asker->start + asker->rows, asker->ahead);
        if (high > owner->start)
            span.rows = (high < end ? high : end) - owner->start;
    }
    return span;
}

static hemi_span by_keys_before(const hemi_extent *asker, const hemi_extent *owner,
                                const int64_t *keys) {
    int64_t limit = key_minus(asker->first, asker->back);
    if (owner->last < limit)
        return (hemi_span){0};
    if (owner->first >= limit)
        return (hemi_span){.rows = owner->rows};
    if (keys == NULL)
        return (hemi_span){.rows = 1, .vague = true};
    uint64_t from = count_below(keys, owner->rows, limit);
    return (hemi_span){.from = from, .rows = owner->rows - from};
}

static hemi_span by_keys_after(const hemi_extent *asker, const hemi_extent *owner,
                               const int64_t *keys) {
    int64_t limit = key_plus(asker->last, asker->ahead);
    if (owner->first > limit)
        return (hemi_span){0};
    if (owner->last <= limit)
        return (hemi_span){.rows = owner->rows};
    if (keys == NULL)
        return (hemi_span){.rows = 1, .vague = true};
    /* The last key is above the limit, so the limit is not the largest number. */
    return (hemi_span){.rows = count_below(keys, owner->rows, limit + 1)};
}

hemi_span hemi_reach_span(const hemi_extent *asker, const hemi_extent *owner, bool earlier,
                          const int64_t *keys) {
    if (asker->rows == 0 || owner->rows == 0)
        return (hemi_span){0};
    if (!owner->keyed)
        return by_rows(asker, owner, earlier);
    return earlier ? by_keys_before(asker, owner, keys) : by_keys_after(asker, owner, keys);
}
