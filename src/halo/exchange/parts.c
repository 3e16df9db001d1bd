/* From links and fields to lanes and parts. */
#include "halo/exchange/exchange.h"

#include <stdlib.h>

/* All parts of one direction, before they are divided among the lanes. */
typedef struct pile {
    hemi_part *parts;
    size_t count;
    size_t room;
} pile;

static bool turns(const hemi_part *part) {
    const hemi_turn *turn = &part->link->turn;
    return (part->field->flags & HEM_FIELD_VECTOR) != 0 &&
           (turn->from[0] != 0 || turn->sign[0] != 1 || turn->sign[1] != 1);
}

static hem_status pile_add(pile *heap, const hemi_part *part) {
    if (heap->count == heap->room) {
        size_t room = heap->room == 0 ? 64 : 2 * heap->room;
        hemi_part *parts = realloc(heap->parts, room * sizeof *parts);
        if (parts == NULL)
            return hemi_fail(HEM_ERR_MEMORY, "hem_exchange_create: no memory for %zu parts", room);
        heap->parts = parts;
        heap->room = room;
    }
    heap->parts[heap->count++] = *part;
    return HEM_OK;
}

/* A vector whose axes turn goes as two parts, one per component of the receiver. */
static hem_status add_link(pile *heap, hemi_part *part, bool sends) {
    if (!turns(part))
        return pile_add(heap, part);
    hem_status status = HEM_OK;
    for (uint8_t c = 0; c < 2 && status == HEM_OK; c++) {
        part->key.half = (uint8_t)(c + 1);
        part->component = sends ? part->link->turn.from[c] : c;
        part->negated = part->link->turn.sign[c] < 0;
        status = pile_add(heap, part);
    }
    return status;
}

static hem_status add_binding(pile *heap, const hem_binding *binding, bool sends) {
    const hem_pattern *pattern = binding->pattern;
    const hem_field *f = &binding->field;
    const hemi_links *links = sends ? &pattern->sends : &pattern->recvs;
    hem_status status = HEM_OK;
    size_t first = 0; /* link with this peer */
    for (size_t i = 0; i < links->count && status == HEM_OK; i++) {
        const hemi_link *link = &links->links[i];
        if (link->peer != links->links[first].peer)
            first = i;
        if (link->here != f->domain)
            continue;
        hemi_part part = {
            .key = {.pattern = pattern->id,
                    .points = link->points.total,
                    .element = f->element,
                    .levels = f->levels,
                    .components = f->components,
                    .link = (uint32_t)(i - first),
                    .number = (uint16_t)binding->number,
                    .dtype = (uint8_t)f->dtype},
            .link = link,
            .field = f,
            .memory = f->memory,
            .dims = (uint8_t)(hemi_pattern_has_boxes(pattern) ? pattern->dims : 1),
            .frozen = (f->flags & HEM_FIELD_READ_ONLY) != 0,
        };
        status = add_link(heap, &part, sends);
    }
    return status;
}

/* By peer, then as both sides count. */
static int compare_parts(const void *left, const void *right) {
    const hemi_part *a = left;
    const hemi_part *b = right;
    if (a->link->peer != b->link->peer)
        return a->link->peer < b->link->peer ? -1 : 1;
    if (a->key.pattern != b->key.pattern)
        return a->key.pattern < b->key.pattern ? -1 : 1;
    if (a->key.number != b->key.number)
        return a->key.number < b->key.number ? -1 : 1;
    if (a->key.link != b->key.link)
        return a->key.link < b->key.link ? -1 : 1;
    return (int)a->key.half - (int)b->key.half;
}

static hem_status collect(const hem_exchange *x, bool sends, pile *heap) {
    hem_status status = HEM_OK;
    for (size_t b = 0; b < x->binding_count && status == HEM_OK; b++)
        status = add_binding(heap, &x->bindings[b], sends);
    if (status == HEM_OK && heap->count > 1)
        qsort(heap->parts, heap->count, sizeof *heap->parts, compare_parts);
    return status;
}

static uint32_t peer_at(const pile *heap, size_t i) {
    return i < heap->count ? heap->parts[i].link->peer : UINT32_MAX;
}

/* Take the parts of one peer from the pile. They are copied, so that each lane owns its own. */
static hem_status take_parts(const pile *heap, size_t *at, uint32_t peer, hemi_parts *into) {
    size_t first = *at;
    while (peer_at(heap, *at) == peer)
        ++*at;
    into->count = *at - first;
    if (into->count == 0)
        return HEM_OK;
    into->parts = malloc(into->count * sizeof *into->parts);
    if (into->parts == NULL) {
        into->count = 0;
        return hemi_fail(HEM_ERR_MEMORY, "hem_exchange_create: no memory for %zu parts",
                         *at - first);
    }
    for (size_t i = 0; i < into->count; i++)
        into->parts[i] = heap->parts[first + i];
    return HEM_OK;
}

static size_t count_peers(const pile *a, const pile *b) {
    size_t i = 0;
    size_t j = 0;
    size_t peers = 0;
    while (i < a->count || j < b->count) {
        uint32_t peer = peer_at(a, i) < peer_at(b, j) ? peer_at(a, i) : peer_at(b, j);
        while (peer_at(a, i) == peer)
            i++;
        while (peer_at(b, j) == peer)
            j++;
        peers++;
    }
    return peers;
}

static hem_status divide(hem_exchange *x, const pile *sends, const pile *recvs) {
    size_t peers = count_peers(sends, recvs);
    size_t i = 0;
    size_t j = 0;
    x->lanes = calloc(peers + 1, sizeof *x->lanes);
    if (x->lanes == NULL)
        return hemi_fail(HEM_ERR_MEMORY, "hem_exchange_create: no memory for %zu neighbours",
                         peers);
    hem_status status = HEM_OK;
    for (; x->lane_count < peers && status == HEM_OK; x->lane_count++) {
        uint32_t peer =
            peer_at(sends, i) < peer_at(recvs, j) ? peer_at(sends, i) : peer_at(recvs, j);
        hemi_halo_lane *lane = &x->lanes[x->lane_count];
        lane->way.peer = peer;
        status = take_parts(sends, &i, peer, &lane->sends);
        if (status == HEM_OK)
            status = take_parts(recvs, &j, peer, &lane->recvs);
    }
    return status;
}

hem_status hemi_parts_make(hem_exchange *x) {
    pile sends = {0};
    pile recvs = {0};
    hem_status status = collect(x, true, &sends);
    if (status == HEM_OK)
        status = collect(x, false, &recvs);
    if (status == HEM_OK)
        status = divide(x, &sends, &recvs);
    free(sends.parts);
    free(recvs.parts);
    return status;
}

static void free_parts(hemi_parts *parts) {
    for (size_t i = 0; i < parts->count; i++) {
        if (parts->parts[i].there != NULL)
            hemi_shape_free(parts->parts[i].there->shape);
        free(parts->parts[i].there);
        hemi_shape_free(parts->parts[i].shape);
        hemi_shape_free(parts->parts[i].from_shape);
        hemi_shape_free(parts->parts[i].packed);
        hemi_shape_pair_free(parts->parts[i].pair);
    }
    free(parts->parts);
}

void hemi_parts_free(hem_exchange *x) {
    for (size_t i = 0; i < x->lane_count; i++) {
        free_parts(&x->lanes[i].sends);
        free_parts(&x->lanes[i].recvs);
    }
    free(x->lanes);
    free(x->scratch);
    for (size_t b = 0; b < x->binding_count; b++)
        hemi_pattern_drop(x->bindings[b].pattern);
    free(x->bindings);
}
