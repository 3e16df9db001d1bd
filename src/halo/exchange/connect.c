/*
 * Connecting an exchange: where the areas are, and what both sides mean by each part.
 *
 * Two rounds. First every receiver tells each neighbour where its messages land and which parts it
 * expects; the owner compares them with what it would send. Then every owner tells in which order of
 * axes it packs, and which parts it leaves in its field, to be copied from there. Failures are agreed
 * at the end: a rank that has found one goes on with empty hands until then.
 */
#include "core/heap.h"
#include "core/team.h"
#include "halo/exchange/exchange.h"
#include "halo/pattern/route.h"

#include <stdlib.h>
#include <string.h>

/* What a receiver tells a neighbour, followed by keys and one byte for each: whether it is wanted. */
typedef struct hello {
    uint64_t where; /* of the area, in the arena */
    uint64_t landing_bytes;
    uint64_t count;
} hello;

typedef struct hello_part {
    hemi_part_key key;
    uint64_t unwanted;
} hello_part;

/* What an owner tells of one part; if it is direct, its shape follows. */
typedef struct answer {
    uint64_t where;       /* of the field: in the arena, or its address for threads */
    uint64_t field_bytes; /* from there to the end of what the part touches */
    uint64_t shape_bytes;
    uint8_t order[8];
} answer;

/* Answers follow each other at multiples of 8 bytes. */
static uint64_t padded(uint64_t bytes) {
    return (bytes + 7) / 8 * 8;
}

static uint64_t room_of(const hemi_parts *parts) {
    uint64_t sum = 0;
    for (size_t i = 0; i < parts->count; i++)
        sum += hemi_part_room(&parts->parts[i]);
    return sum;
}

static uint64_t count_direct(const hemi_parts *parts) {
    uint64_t sum = 0;
    for (size_t i = 0; i < parts->count; i++)
        if (parts->parts[i].direct)
            sum += parts->parts[i].bytes;
    return sum;
}

static void add_up(hemi_parts *parts) {
    const hem_exchange_how everything = {0};
    parts->all = room_of(parts);
    parts->direct = count_direct(parts);
    parts->bytes = 0;
    for (size_t i = 0; i < parts->count; i++)
        if (hemi_part_is_in(&parts->parts[i], &everything) && !parts->parts[i].direct)
            parts->bytes += hemi_part_room(&parts->parts[i]);
}

/* Shapes of what this rank sends, and how long everything is. */
static hem_status shape_sends(hem_exchange *x) {
    hem_status status = HEM_OK;
    for (size_t l = 0; l < x->lane_count; l++) {
        hemi_parts *sends = &x->lanes[l].sends;
        for (size_t i = 0; i < sends->count && status == HEM_OK; i++) {
            hemi_part_order(&sends->parts[i], sends->parts[i].order);
            status = hemi_part_shape(&sends->parts[i]);
        }
        hemi_parts *recvs = &x->lanes[l].recvs;
        for (size_t i = 0; i < recvs->count && status == HEM_OK; i++) {
            hemi_part *part = &recvs->parts[i];
            const hemi_part_key *key = &part->key;
            uint64_t n = key->points;
            if (__builtin_mul_overflow(n, key->levels, &n) ||
                __builtin_mul_overflow(n, key->half != 0 ? 1 : key->components, &n) ||
                __builtin_mul_overflow(n, key->element, &n) || n > INT64_MAX / 4)
                return hemi_fail(HEM_ERR_LIMIT, "hem_exchange_create: field %u is too large",
                                 key->number);
            part->bytes = n;
            part->unwanted = part->frozen;
        }
    }
    return status;
}

static uint64_t area_at(hem_exchange *x, size_t lane) {
    uint64_t sum = 0;
    for (size_t l = 0; l < lane; l++)
        if (x->lanes[l].way.in_bytes != UINT64_MAX)
            sum += hemi_area_bytes(x->lanes[l].way.in_bytes);
    return sum;
}

static void orphan(hemi_child *child, bool dead) {
    hem_exchange *x =
        (hem_exchange *)(void *)((unsigned char *)child - offsetof(struct hem_exchange, child));
    (void)dead;
    hemi_exchange_release(x);
    x->world = NULL;
}

/* One block holds the areas of all neighbours. A lane to oneself has none. */
static hem_status allocate(hem_exchange *x, hem_world *world) {
    hemi_root *root = world->root;
    for (size_t l = 0; l < x->lane_count; l++) {
        hemi_halo_lane *lane = &x->lanes[l];
        uint64_t forward = room_of(&lane->recvs);
        uint64_t reverse = room_of(&lane->sends);
        lane->way.in_bytes = hemi_landing_bytes(forward > reverse ? forward : reverse);
        if (lane->way.peer == world->rank)
            lane->way.in_bytes = UINT64_MAX;
    }
    x->world = world;
    x->memory_bytes = area_at(x, x->lane_count);
    if (x->memory_bytes == 0)
        return HEM_OK;
    hem_status status = hemi_heap_alloc(&root->arena, root->platform, root->rank, x->memory_bytes,
                                        HEMI_HEAP_RESERVED, &x->memory);
    if (status != HEM_OK) {
        x->memory = 0;
        return status;
    }
    x->child.orphan = orphan;
    hemi_world_adopt(world, &x->child);
    for (size_t l = 0; l < x->lane_count; l++)
        if (x->lanes[l].way.peer != world->rank)
            x->lanes[l].way.in = hemi_arena_at(&root->arena, x->memory + area_at(x, l));
    return HEM_OK;
}

void hemi_exchange_release(hem_exchange *x) {
    if (x->memory == 0 || x->world == NULL)
        return;
    hemi_root *root = x->world->root;
    if (!x->world->keep_memory)
        hemi_heap_free(&root->arena, root->platform, root->rank, x->memory, root->cache_bytes);
    x->memory = 0;
}

static hem_status no_memory(void) {
    return hemi_fail(HEM_ERR_MEMORY, "hem_exchange_create: no memory to tell the neighbours");
}

static hem_status say_hello(const hem_exchange *x, uint32_t rank, hemi_bag *bag) {
    hem_status status = HEM_OK;
    for (size_t l = 0; l < x->lane_count && status == HEM_OK; l++) {
        const hemi_halo_lane *lane = &x->lanes[l];
        if (lane->way.peer == rank)
            continue;
        size_t bytes = sizeof(hello) + lane->recvs.count * sizeof(hello_part);
        unsigned char *text = calloc(1, bytes);
        if (text == NULL)
            return no_memory();
        hello *head = (hello *)(void *)text;
        hello_part *parts = (hello_part *)(void *)(head + 1);
        *head = (hello){(uint64_t)((const unsigned char *)lane->way.in -
                                   (const unsigned char *)x->world->root->arena.base),
                        lane->way.in_bytes, lane->recvs.count};
        for (size_t i = 0; i < lane->recvs.count; i++) {
            parts[i].key = lane->recvs.parts[i].key;
            parts[i].unwanted = lane->recvs.parts[i].unwanted;
        }
        status = hemi_bag_add(bag, rank, lane->way.peer, text, bytes);
        free(text);
    }
    return status;
}

static hemi_halo_lane *find_lane(const hem_exchange *x, uint32_t peer) {
    for (size_t l = 0; l < x->lane_count; l++)
        if (x->lanes[l].way.peer == peer)
            return &x->lanes[l];
    return NULL;
}

static hem_status differ(const hem_exchange *x, uint32_t peer, const hemi_part_key *ours,
                         const hemi_part_key *theirs) {
    uint32_t me = x->world->rank;
    const hemi_part_key *key = ours != NULL ? ours : theirs;
    if (ours == NULL || theirs == NULL || ours->pattern != theirs->pattern ||
        ours->number != theirs->number)
        return hemi_fail(HEM_ERR_MISMATCH,
                         "hem_exchange_create: ranks %u and %u do not bind the same fields: field "
                         "%u of pattern %llu is missing on one of them",
                         me, peer, key->number, (unsigned long long)key->pattern);
    return hemi_fail(HEM_ERR_MISMATCH,
                     "hem_exchange_create: field %u has elements of type %u with %llu bytes, %llu "
                     "levels and %llu components on rank %u, and of type %u with %llu bytes, %llu "
                     "levels and %llu components on rank %u",
                     key->number, ours->dtype, (unsigned long long)ours->element,
                     (unsigned long long)ours->levels, (unsigned long long)ours->components, me,
                     theirs->dtype, (unsigned long long)theirs->element,
                     (unsigned long long)theirs->levels, (unsigned long long)theirs->components,
                     peer);
}

static hem_status compare(const hem_exchange *x, hemi_halo_lane *lane, const hello_part *parts,
                          size_t count) {
    hemi_parts *sends = &lane->sends;
    for (size_t i = 0; i < count || i < sends->count; i++) {
        const hemi_part_key *ours = i < sends->count ? &sends->parts[i].key : NULL;
        const hemi_part_key *theirs = i < count ? &parts[i].key : NULL;
        if (ours == NULL || theirs == NULL || memcmp(ours, theirs, sizeof *ours) != 0)
            return differ(x, lane->way.peer, ours, theirs);
        sends->parts[i].unwanted = parts[i].unwanted != 0;
    }
    return HEM_OK;
}

static hem_status nonsense(uint32_t peer) {
    return hemi_fail(HEM_ERR_MISMATCH, "hem_exchange_create: what rank %u says is not possible",
                     peer);
}

static hem_status hear_hello(hem_exchange *x, hemi_halo_lane *lane, const hemi_record *record) {
    const hemi_root *root = x->world->root;
    const hello *head = hemi_record_data(record);
    if (record->bytes < sizeof *head || (record->bytes - sizeof *head) % sizeof(hello_part) != 0 ||
        (record->bytes - sizeof *head) / sizeof(hello_part) != head->count)
        return nonsense(record->from);
    uint32_t owner = x->world->members[record->from];
    if (head->landing_bytes > INT64_MAX / 4 || head->landing_bytes % HEMI_LINE != 0 ||
        head->where % HEMI_LINE != 0 ||
        !hemi_arena_in_part(&root->arena, owner, head->where, hemi_area_bytes(head->landing_bytes)))
        return nonsense(record->from);
    hem_status status = compare(x, lane, (const hello_part *)(const void *)(head + 1), head->count);
    if (status != HEM_OK)
        return status;
    /* Both add up the same parts; it is where this rank will write. */
    uint64_t forward = room_of(&lane->sends);
    uint64_t reverse = room_of(&lane->recvs);
    if (head->landing_bytes != hemi_landing_bytes(forward > reverse ? forward : reverse))
        return nonsense(record->from);
    lane->way.out = hemi_arena_at(&root->arena, head->where);
    lane->way.out_bytes = head->landing_bytes;
    lane->way.block = hemi_arena_rank(&root->arena, owner);
    lane->way.closed = &x->world->cells[record->from].closed;
    return HEM_OK;
}

static hem_status hear_hellos(hem_exchange *x, const hemi_bag *bag) {
    const hemi_record *record = NULL;
    hem_status status = HEM_OK;
    while (status == HEM_OK && (record = hemi_bag_next(bag, record)) != NULL) {
        hemi_halo_lane *lane = find_lane(x, record->from);
        if (lane == NULL)
            status =
                hemi_fail(HEM_ERR_MISMATCH,
                          "hem_exchange_create: rank %u exchanges with rank %u, which binds no "
                          "field of that pattern",
                          record->from, x->world->rank);
        else
            status = hear_hello(x, lane, record);
    }
    for (size_t l = 0; l < x->lane_count && status == HEM_OK; l++)
        if (x->lanes[l].way.peer != x->world->rank && x->lanes[l].way.out == NULL)
            status =
                hemi_fail(HEM_ERR_MISMATCH,
                          "hem_exchange_create: rank %u exchanges with rank %u, which binds no "
                          "field of that pattern",
                          x->world->rank, x->lanes[l].way.peer);
    return status;
}

/* From pieces this long on it is faster to read them where they are than to have them packed: of
 * shorter ones, whole lines come from another core's cache for a few bytes each. */
#define PIECE_MIN 512

/* Whether peers can read this part where it is, and had better. */
static bool is_reachable(const hemi_root *root, const hemi_part *part) {
    if (part->unwanted || part->bytes == 0)
        return false;
    if (root->settings.direct_bytes > 0 && hemi_shape_piece(part->shape) < PIECE_MIN)
        return false;
    if (root->threads)
        return true;
    int64_t first = 0;
    int64_t end = 0;
    hemi_shape_bounds(part->shape, &first, &end);
    uint64_t offset = (uint64_t)((uintptr_t)part->memory - (uintptr_t)root->arena.base);
    return first >= 0 && offset < root->arena.total_bytes &&
           hemi_arena_in_part(&root->arena, root->rank, offset, (uint64_t)end);
}

/*
 * What lies in library memory is left there if the message is long enough: one copy saves more then
 * than waiting for the receiver costs.
 */
static void choose_direct(const hemi_root *root, hemi_halo_lane *lane) {
    uint64_t sum = 0;
    for (size_t i = 0; i < lane->sends.count; i++)
        if (is_reachable(root, &lane->sends.parts[i]))
            sum += lane->sends.parts[i].bytes;
    for (size_t i = 0; i < lane->sends.count; i++)
        lane->sends.parts[i].direct =
            sum >= root->settings.direct_bytes && is_reachable(root, &lane->sends.parts[i]);
}

static void fill_answer(const hemi_root *root, const hemi_part *part, answer *a) {
    memset(a, 0, sizeof *a);
    memcpy(a->order, part->order, sizeof part->order);
    if (!part->direct)
        return;
    int64_t first = 0;
    int64_t end = 0;
    hemi_shape_bounds(part->shape, &first, &end);
    a->where = (uintptr_t)part->memory - (root->threads ? 0 : (uintptr_t)root->arena.base);
    a->field_bytes = (uint64_t)end;
    a->shape_bytes = hemi_shape_write(part->shape, NULL, 0);
}

/* All answers to one neighbour, one after the other. */
static hem_status answer_lane(const hemi_root *root, const hemi_halo_lane *lane, uint32_t rank,
                              hemi_bag *bag) {
    size_t bytes = 0;
    answer a;
    for (size_t i = 0; i < lane->sends.count; i++) {
        fill_answer(root, &lane->sends.parts[i], &a);
        bytes += sizeof a + padded(a.shape_bytes);
    }
    unsigned char *text = calloc(1, bytes + 1);
    if (text == NULL)
        return no_memory();
    size_t at = 0;
    for (size_t i = 0; i < lane->sends.count; i++) {
        fill_answer(root, &lane->sends.parts[i], &a);
        memcpy(text + at, &a, sizeof a);
        at += sizeof a;
        if (a.shape_bytes > 0)
            (void)hemi_shape_write(lane->sends.parts[i].shape, text + at, a.shape_bytes);
        at += padded(a.shape_bytes);
    }
    hem_status status = hemi_bag_add(bag, rank, lane->way.peer, text, bytes);
    free(text);
    return status;
}

static hem_status say_answers(hem_exchange *x, hemi_bag *bag) {
    hem_status status = HEM_OK;
    uint32_t rank = x->world->rank;
    for (size_t l = 0; l < x->lane_count && status == HEM_OK; l++) {
        if (x->lanes[l].way.peer == rank)
            continue;
        choose_direct(x->world->root, &x->lanes[l]);
        status = answer_lane(x->world->root, &x->lanes[l], rank, bag);
    }
    return status;
}

/* Where the owner's field is, as seen from here. */
static hem_status reach_field(const hem_exchange *x, uint32_t peer, hemi_part *part,
                              const answer *a, const unsigned char *shape) {
    const hemi_root *root = x->world->root;
    if (!root->threads &&
        !hemi_arena_in_part(&root->arena, x->world->members[peer], a->where, a->field_bytes))
        return nonsense(peer);
    hem_status status = hemi_shape_read(shape, a->shape_bytes, a->field_bytes, &part->from_shape);
    if (status != HEM_OK)
        return status;
    part->direct = true;
    if (hemi_shape_bytes(part->from_shape) != part->bytes)
        return nonsense(peer);
    status = hemi_shape_pair_make(part->shape, part->from_shape, &part->pair);
    part->from = root->threads ? (const unsigned char *)(uintptr_t)a->where
                               : hemi_arena_at(&root->arena, a->where);
    return status;
}

static hem_status hear_answer(const hem_exchange *x, hemi_halo_lane *lane,
                              const hemi_record *record) {
    const unsigned char *text = hemi_record_data(record);
    uint64_t left = record->bytes;
    for (size_t i = 0; i < lane->recvs.count; i++) {
        hemi_part *part = &lane->recvs.parts[i];
        answer a;
        if (left < sizeof a)
            return nonsense(record->from);
        memcpy(&a, text, sizeof a);
        text += sizeof a;
        left -= sizeof a;
        if (a.shape_bytes > left || padded(a.shape_bytes) > left)
            return nonsense(record->from);
        memcpy(part->order, a.order, sizeof part->order);
        uint64_t expected = part->bytes;
        hem_status status = hemi_part_shape(part);
        if (status == HEM_OK && part->bytes != expected)
            status = nonsense(record->from);
        if (status == HEM_OK && a.shape_bytes > 0)
            status = reach_field(x, record->from, part, &a, text);
        if (status != HEM_OK)
            return status;
        text += padded(a.shape_bytes);
        left -= padded(a.shape_bytes);
    }
    return left == 0 ? HEM_OK : nonsense(record->from);
}

static hem_status hear_answers(hem_exchange *x, const hemi_bag *bag) {
    const hemi_record *record = NULL;
    hem_status status = HEM_OK;
    size_t heard = 0;
    while (status == HEM_OK && (record = hemi_bag_next(bag, record)) != NULL) {
        hemi_halo_lane *lane = find_lane(x, record->from);
        status = lane != NULL ? hear_answer(x, lane, record) : nonsense(record->from);
        heard++;
    }
    size_t others = x->lane_count - (find_lane(x, x->world->rank) != NULL);
    if (status == HEM_OK && heard != others)
        status = hemi_fail(HEM_ERR_MISMATCH, "hem_exchange_create: not all neighbours answered");
    return status;
}

/* Domains of this rank among each other: both sides are here. */
static hem_status shape_own(hem_exchange *x) {
    hemi_halo_lane *lane = find_lane(x, x->world->rank);
    if (lane == NULL)
        return HEM_OK;
    if (lane->sends.count != lane->recvs.count)
        return hemi_fail(HEM_ERR_MISMATCH, "hem_exchange_create: the domains of this rank do not "
                                           "have the same fields");
    hem_status status = HEM_OK;
    uint64_t most = 0;
    for (size_t i = 0; i < lane->recvs.count && status == HEM_OK; i++) {
        hemi_part *part = &lane->recvs.parts[i];
        hemi_part *from = &lane->sends.parts[i];
        most = part->bytes > most ? part->bytes : most;
        if (memcmp(&part->key, &from->key, sizeof part->key) != 0)
            return differ(x, x->world->rank, &from->key, &part->key);
        memcpy(part->order, from->order, sizeof part->order);
        status = hemi_part_shape(part);
        if (status == HEM_OK)
            status = hemi_shape_pair_make(part->shape, from->shape, &part->pair);
        from->unwanted = part->unwanted;
    }
    x->scratch = most > 0 ? malloc(most) : NULL;
    if (status == HEM_OK && most > 0 && x->scratch == NULL)
        status = no_memory();
    return status;
}

/* What came back from a halo is negated before it is combined: contiguous, as it landed. */
static hem_status shape_packed(hem_exchange *x) {
    hem_status status = HEM_OK;
    for (size_t l = 0; l < x->lane_count; l++)
        for (size_t i = 0; i < x->lanes[l].sends.count && status == HEM_OK; i++) {
            hemi_part *part = &x->lanes[l].sends.parts[i];
            if (!part->negated)
                continue;
            uint64_t element = part->field->element;
            hemi_shape_spec spec = {.element = element,
                                    .axis_count = 1,
                                    .axes = {{part->bytes / element, (int64_t)element}}};
            status = hemi_shape_make(&spec, &part->packed);
        }
    return status;
}

static void first_failure(hem_status *status, hem_status next, char *sentence) {
    if (*status != HEM_OK || next == HEM_OK)
        return;
    *status = next;
    hemi_error_save(sentence);
}

/* The two rounds. Whoever fails takes part in the second one with nothing to say. */
static hem_status talk(hem_exchange *x, hemi_router *router, char *sentence) {
    hemi_bag bag = {0};
    hem_status status = HEM_OK;
    uint32_t rank = x->world->rank;
    first_failure(&status, say_hello(x, rank, &bag), sentence);
    first_failure(&status, hemi_route(router, &bag), sentence);
    if (status == HEM_OK)
        first_failure(&status, hear_hellos(x, &bag), sentence);
    hemi_bag_free(&bag);
    bag = (hemi_bag){0};
    if (status == HEM_OK)
        first_failure(&status, say_answers(x, &bag), sentence);
    first_failure(&status, hemi_route(router, &bag), sentence);
    if (status == HEM_OK)
        first_failure(&status, hear_answers(x, &bag), sentence);
    hemi_bag_free(&bag);
    if (status == HEM_OK)
        first_failure(&status, shape_own(x), sentence);
    if (status == HEM_OK)
        first_failure(&status, shape_packed(x), sentence);
    return status;
}

hem_status hemi_exchange_connect(hem_exchange *x, hem_world *world, hem_status status) {
    hemi_router router = {0};
    if (status == HEM_OK)
        status = hemi_parts_make(x);
    if (status == HEM_OK)
        status = shape_sends(x);
    if (status == HEM_OK)
        status = allocate(x, world);
    status = hemi_router_begin(&router, world, HEMI_CALL_EXCHANGE_CREATE, status, 0,
                               x->setup_timeout_ns, NULL);
    if (status != HEM_OK)
        return status;
    char sentence[HEMI_ERROR_MAX] = "";
    status = talk(x, &router, sentence);
    if (status != HEM_OK)
        hemi_error_restore(sentence);
    status = hemi_team_agree(world, HEMI_CALL_EXCHANGE_CREATE, status, 0, NULL, 0,
                             hemi_router_left(&router));
    for (size_t l = 0; l < x->lane_count; l++) {
        add_up(&x->lanes[l].sends);
        add_up(&x->lanes[l].recvs);
    }
    return status;
}
