/*
 * How this works. First each rank looks at its own links: whether all points exist, and whether each
 * halo point is written once, for which it has a bit per stored point of a domain. Then every rank
 * writes down what it expects of each neighbour, link by link, and routes that there; the owner
 * compares it with what it sends. On grids both sides name points of the whole grid, so that this is
 * about the points themselves; elsewhere it is about their number.
 */
#include "halo/pattern/box.h"
#include "halo/pattern/join.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* What both sides of a link must say alike. */
typedef struct note {
    uint32_t owner; /* its domain */
    uint32_t halo;  /* the receiver's domain */
    uint32_t sides;
    hemi_turn turn;
    uint64_t total;
    int64_t start[HEM_DIMS]; /* in the grid */
    int64_t count[HEM_DIMS];
} note;

#define WHO "hem_pattern_validate"

static hem_status odd(const hemi_link *link, const char *what) {
    return hemi_fail(HEM_ERR_MISMATCH, WHO ": domain %u and domain %u of rank %u: %s", link->here,
                     link->there, link->peer, what);
}

/* The lowest position of dimension k of a traversal. */
static int64_t lowest(const hemi_points *points, int k) {
    return points->step[k] > 0 ? points->start[k] : points->start[k] - (points->count[k] - 1);
}

/* Whether a box lies in its domain: in what that owns, or in its halo. */
static bool box_fits(const hem_pattern *pattern, const hemi_link *link, bool halo) {
    const hemi_points *p = &link->points;
    const hem_box *own = &pattern->domains[link->here].box;
    uint32_t seen = 0;
    uint64_t total = 1;
    bool apart = false;
    for (int k = 0; k < pattern->dims; k++) {
        int a = p->axis[k];
        if (a >= pattern->dims || (p->step[k] != 1 && p->step[k] != -1) || p->count[k] < 1)
            return false;
        int64_t low = halo ? -pattern->halo_low[a] : 0;
        int64_t high = own->count[a] + (halo ? pattern->halo_high[a] : 0);
        if (p->start[k] < low || p->start[k] >= high || p->count[k] > high - low ||
            lowest(p, k) < low || lowest(p, k) + p->count[k] > high)
            return false;
        apart |= lowest(p, k) + p->count[k] <= 0 || lowest(p, k) >= own->count[a];
        seen |= 1u << a;
        total *= (uint64_t)p->count[k];
    }
    return seen == (1u << pattern->dims) - 1 && total == p->total && apart == halo;
}

static bool list_fits(const hem_pattern *pattern, const hemi_link *link) {
    const hemi_points *p = &link->points;
    for (uint64_t i = 0; i < p->total; i++)
        if (p->list[i] < 0 || (uint64_t)p->list[i] >= pattern->domains[link->here].points)
            return false;
    return true;
}

static hem_status check_points(const hem_pattern *pattern, const hemi_links *links, bool halo) {
    for (size_t i = 0; i < links->count; i++) {
        const hemi_link *link = &links->links[i];
        if (link->here >= pattern->domain_count)
            return odd(link, "there is no such domain here");
        if (i > 0 && link->peer < links->links[i - 1].peer)
            return odd(link, "links are not in the order of ranks");
        bool fits = hemi_pattern_has_boxes(pattern) ? box_fits(pattern, link, halo)
                                                    : list_fits(pattern, link);
        if (!fits)
            return odd(link, halo ? "points that are written are not in the halo"
                                  : "points that are sent are not owned here");
    }
    return HEM_OK;
}

/* A bit for each point that a domain stores. */
typedef struct marks {
    const hem_pattern *pattern;
    unsigned char *bits;
} marks;

/* Mark a point. @return whether it was marked before. */
static bool mark(marks *m, uint64_t at) {
    unsigned char bit = (unsigned char)(1u << (at % 8));
    bool before = (m->bits[at / 8] & bit) != 0;
    m->bits[at / 8] |= bit;
    return before;
}

/* Where a step of dimension k goes in storage, and where the traversal begins. */
static uint64_t begin_walk(const marks *m, const hemi_link *link, int64_t *strides) {
    const hem_pattern *pattern = m->pattern;
    const hemi_points *p = &link->points;
    const hem_box *own = &pattern->domains[link->here].box;
    int64_t axis_strides[HEM_DIMS];
    int64_t stride = 1;
    int64_t at = 0;
    for (int a = pattern->dims - 1; a >= 0; a--) {
        axis_strides[a] = stride;
        stride *= own->count[a] + pattern->halo_low[a] + pattern->halo_high[a];
    }
    for (int k = 0; k < pattern->dims; k++) {
        int a = p->axis[k];
        strides[k] = p->step[k] * axis_strides[a];
        at += (p->start[k] + pattern->halo_low[a]) * axis_strides[a];
    }
    return (uint64_t)at;
}

/* The next point of a nest of loops. @return false after the last one. */
static bool step(int dims, const hemi_points *p, const int64_t *strides, int64_t *index,
                 uint64_t *at) {
    for (int k = dims - 1; k >= 0; k--) {
        *at += (uint64_t)strides[k];
        if (++index[k] < p->count[k])
            return true;
        *at -= (uint64_t)(strides[k] * p->count[k]);
        index[k] = 0;
    }
    return false;
}

/* Mark what a link writes. @return false if some of it was written before. */
static bool mark_link(marks *m, const hemi_link *link) {
    const hemi_points *p = &link->points;
    for (uint64_t i = 0; !hemi_pattern_has_boxes(m->pattern) && i < p->total; i++)
        if (mark(m, (uint64_t)p->list[i]))
            return false;
    if (!hemi_pattern_has_boxes(m->pattern))
        return true;
    int64_t strides[HEM_DIMS] = {0};
    int64_t index[HEM_DIMS] = {0};
    uint64_t at = begin_walk(m, link, strides);
    do {
        if (mark(m, at))
            return false;
    } while (step(m->pattern->dims, p, strides, index, &at));
    return true;
}

/* Whether a link of a mesh sends a point that another link writes. */
static bool sends_halo(const marks *m, const hemi_link *link) {
    const hemi_points *p = &link->points;
    for (uint64_t i = 0; i < p->total; i++)
        if ((m->bits[p->list[i] / 8] >> (p->list[i] % 8) & 1) != 0)
            return true;
    return false;
}

static hem_status check_domain(marks *m, uint32_t domain) {
    const hem_pattern *pattern = m->pattern;
    for (size_t i = 0; i < pattern->recvs.count; i++) {
        const hemi_link *link = &pattern->recvs.links[i];
        if (link->here == domain && !mark_link(m, link))
            return odd(link, "a halo point is written twice");
    }
    for (size_t i = 0; pattern->kind == HEMI_PATTERN_MESH && i < pattern->sends.count; i++) {
        const hemi_link *link = &pattern->sends.links[i];
        if (link->here == domain && sends_halo(m, link))
            return odd(link, "a halo point is sent as if it were owned");
    }
    return HEM_OK;
}

static hem_status check_once(const hem_pattern *pattern) {
    hem_status status = HEM_OK;
    for (uint32_t d = 0; d < pattern->domain_count && status == HEM_OK; d++) {
        marks m = {pattern, calloc(pattern->domains[d].points / 8 + 1, 1)};
        if (m.bits == NULL)
            return hemi_fail(HEM_ERR_MEMORY, WHO ": no memory for %" PRIu64 " points",
                             pattern->domains[d].points);
        status = check_domain(&m, d);
        free(m.bits);
    }
    return status;
}

/* Nothing of the halo is forgotten. Explicit lists do not say what is halo. */
static hem_status check_all_written(const hem_pattern *pattern) {
    uint64_t written = pattern->holes;
    uint64_t halo = 0;
    for (size_t i = 0; i < pattern->recvs.count; i++)
        written += pattern->recvs.links[i].points.total;
    for (size_t d = 0; d < pattern->domain_count; d++)
        halo += pattern->domains[d].halo_points;
    if (pattern->kind == HEMI_PATTERN_EXPLICIT || written == halo)
        return HEM_OK;
    return hemi_fail(HEM_ERR_MISMATCH,
                     WHO ": of %" PRIu64 " halo points %" PRIu64 " are written or holes", halo,
                     written);
}

static hem_status check_here(const hem_pattern *pattern) {
    hem_status status = check_points(pattern, &pattern->sends, false);
    if (status == HEM_OK)
        status = check_points(pattern, &pattern->recvs, true);
    if (status == HEM_OK)
        status = check_once(pattern);
    if (status == HEM_OK)
        status = check_all_written(pattern);
    return status;
}

static note note_of(const hem_pattern *pattern, const hemi_link *link, bool halo) {
    note n = {.owner = halo ? link->there : link->here,
              .halo = halo ? link->here : link->there,
              .sides = link->sides,
              .turn = link->turn,
              .total = link->points.total};
    for (int k = 0; pattern->kind == HEMI_PATTERN_GRID && k < pattern->dims; k++) {
        int a = link->points.axis[k];
        int64_t start = pattern->domains[link->here].box.start[a] + lowest(&link->points, k);
        n.start[k] = start - hemi_floor_div(start, pattern->extent[a]) * pattern->extent[a];
        n.count[k] = link->points.count[k];
    }
    return n;
}

/* The links of one peer: from `*first` on, which becomes the first of the next peer. */
static size_t links_of(const hemi_links *links, uint32_t peer, size_t *first) {
    while (*first < links->count && links->links[*first].peer < peer)
        ++*first;
    size_t end = *first;
    while (end < links->count && links->links[end].peer == peer)
        end++;
    return end - *first;
}

/* Tell a neighbour, or this rank itself, what is expected of it. */
static hem_status tell(const hem_pattern *pattern, uint32_t peer, hemi_bag *bag) {
    size_t first = 0;
    size_t count = links_of(&pattern->recvs, peer, &first);
    void *data = NULL;
    hem_status status = hemi_bag_make(bag, pattern->rank, peer, count * sizeof(note), &data);
    for (size_t i = 0; i < count && status == HEM_OK; i++) {
        note n = note_of(pattern, &pattern->recvs.links[first + i], true);
        memcpy((unsigned char *)data + i * sizeof n, &n, sizeof n);
    }
    return status;
}

static hem_status tell_all(const hem_pattern *pattern, hemi_bag *bag) {
    hem_status status = tell(pattern, pattern->rank, bag);
    for (size_t i = 0; i < pattern->neighbour_count && status == HEM_OK; i++)
        status = tell(pattern, (uint32_t)pattern->neighbours[i].rank, bag);
    return status;
}

static hem_status compare(const hem_pattern *pattern, const hemi_record *record) {
    size_t first = 0;
    size_t count = links_of(&pattern->sends, record->from, &first);
    if (record->bytes != count * sizeof(note))
        return hemi_fail(HEM_ERR_MISMATCH,
                         WHO ": rank %u expects %" PRIu64 " links of rank %u, which has %zu",
                         record->from, record->bytes / sizeof(note), pattern->rank, count);
    const unsigned char *data = hemi_record_data(record);
    for (size_t i = 0; i < count; i++) {
        const hemi_link *link = &pattern->sends.links[first + i];
        note mine = note_of(pattern, link, false);
        note theirs;
        memcpy(&theirs, data + i * sizeof theirs, sizeof theirs);
        if (mine.total != theirs.total)
            return hemi_fail(HEM_ERR_MISMATCH,
                             WHO ": link %zu of rank %u to rank %u has %" PRIu64
                                 " points, and there %" PRIu64,
                             i, pattern->rank, record->from, mine.total, theirs.total);
        if (memcmp(&mine, &theirs, sizeof mine) != 0)
            return odd(link, "both sides mean different points");
    }
    return HEM_OK;
}

/* Compare what has come. Every neighbour must have said something, and nobody else. */
static hem_status compare_all(const hem_pattern *pattern, const hemi_bag *bag) {
    hem_status status = HEM_OK;
    for (const hemi_record *record = hemi_bag_next(bag, NULL); record != NULL && status == HEM_OK;
         record = hemi_bag_next(bag, record))
        status = compare(pattern, record);
    if (status == HEM_OK && bag->records != pattern->neighbour_count + 1)
        status = hemi_fail(HEM_ERR_MISMATCH, WHO ": rank %u has %zu neighbours, and is one of %zu",
                           pattern->rank, pattern->neighbour_count, bag->records - 1);
    return status;
}

hem_status hem_pattern_validate(const hem_pattern *pattern, int64_t timeout_ns) {
    hemi_router router;
    hemi_bag bag = {0};
    if (pattern == NULL)
        return hemi_fail(HEM_ERR_ARG, WHO ": pattern is NULL");
    hem_status status = hemi_join_begin(&router, pattern, HEMI_CALL_PATTERN_VALIDATE,
                                        check_here(pattern), timeout_ns);
    if (status != HEM_OK)
        return status;
    status = tell_all(pattern, &bag);
    if (status != HEM_OK)
        hemi_bag_free(&bag);
    hem_status routed = hemi_route(&router, &bag);
    if (status == HEM_OK)
        status = routed;
    if (status == HEM_OK)
        status = compare_all(pattern, &bag);
    hemi_bag_free(&bag);
    return hemi_join_end(&router, pattern, status);
}
