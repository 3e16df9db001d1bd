#include "halo/line/side.h"
#include "base/lock.h"
#include "core/heap.h"

#include <stdlib.h>

/* Messages go through it in chunks of a quarter of it, which then still are as long as they get. */
#define RING_MAX  (256u << 10)
#define SLOTS_MAX 4096u
#define BYTES_MAX (1ull << 40)

static uint64_t head_bytes(uint32_t slots) {
    return hemi_lane_head_bytes(slots + 1); /* the notice is one line more */
}

static uint64_t piece_bytes(uint32_t slots, uint64_t ring_bytes) {
    return head_bytes(slots) + ring_bytes;
}

static void free_shared(hemi_sides *sides) {
    const hemi_root *root = sides->world->root;
    if (sides->offset != 0)
        hemi_heap_free(&root->arena, root->platform, root->rank, sides->offset, root->cache_bytes);
    sides->offset = 0;
}

static void orphan(hemi_child *child, bool dead) {
    hemi_sides *sides = (hemi_sides *)(void *)child;
    if (!sides->world->keep_memory)
        free_shared(sides);
    sides->world = NULL;
    (void)dead; /* then whoever holds them has abandoned them, or will */
    if (sides->left)
        free(sides);
}

static hem_status reserve(const hemi_sides *sides) {
    const hemi_arena *arena = &sides->world->root->arena;
    hem_status status = HEM_OK;
    for (uint32_t i = 0; i < sides->count && status == HEM_OK; i++)
        status =
            hemi_arena_reserve(arena, hemi_sides_place(sides, i).offset, head_bytes(sides->slots));
    return status;
}

static hem_status allocate(hemi_sides *sides) {
    const hemi_root *root = sides->world->root;
    if (sides->count == 0)
        return HEM_OK;
    hem_status status = hemi_heap_alloc(&root->arena, root->platform, root->rank,
                                        sides->count * piece_bytes(sides->slots, sides->ring_bytes),
                                        HEMI_HEAP_SPARSE, &sides->offset);
    if (status != HEM_OK)
        return status;
    status = reserve(sides);
    if (status != HEM_OK)
        free_shared(sides);
    return status;
}

/* Whether all partners of sides that were left have done so, too. */
static bool may_go(const hemi_sides *sides) {
    for (uint32_t i = 0; i < sides->count; i++) {
        const hemi_side *side = &sides->side[i];
        if (side->told != NULL && !hemi_lane_is_dead(&side->lane) &&
            hemi_load64_acquire(&side->told->gone) != HEMI_SIDE_LEFT)
            return false;
    }
    return true;
}

/* Take one that may go off the world's list. */
static hemi_sides *find_left(hem_world *world) {
    hemi_sides *found = NULL;
    hemi_lock(world->root->platform, &world->children_lock);
    for (hemi_child *c = world->children; c != NULL && found == NULL; c = c->next)
        if (c->orphan == orphan && ((hemi_sides *)(void *)c)->left &&
            may_go((hemi_sides *)(void *)c)) {
            found = (hemi_sides *)(void *)c;
            *c->link = c->next;
            if (c->next != NULL)
                c->next->link = c->link;
        }
    hemi_unlock(&world->children_lock);
    return found;
}

static void sweep(hem_world *world) {
    for (hemi_sides *s = find_left(world); s != NULL; s = find_left(world)) {
        free_shared(s);
        free(s);
    }
}

hem_status hemi_sides_make(hem_world *world, uint32_t count, hemi_sides **sides_p) {
    sweep(world);
    hemi_sides *sides = calloc(1, sizeof *sides + count * sizeof(hemi_side));
    if (sides == NULL)
        return hemi_fail(HEM_ERR_MEMORY, "no memory for lanes with %u ranks", count);
    const hemi_settings *settings = &world->root->settings;
    uint64_t ring = settings->ring_bytes < RING_MAX ? settings->ring_bytes : RING_MAX;
    sides->world = world;
    sides->count = count;
    sides->slots = settings->slots;
    sides->ring_bytes = (ring + HEMI_PAGE - 1) / HEMI_PAGE * HEMI_PAGE;
    hem_status status = allocate(sides);
    if (status != HEM_OK) {
        free(sides);
        return status;
    }
    sides->child.orphan = orphan;
    hemi_world_adopt(world, &sides->child);
    *sides_p = sides;
    return HEM_OK;
}

hemi_place hemi_sides_place(const hemi_sides *sides, uint32_t i) {
    uint64_t offset = sides->offset + i * piece_bytes(sides->slots, sides->ring_bytes);
    return (hemi_place){offset, sides->ring_bytes, sides->slots, 0};
}

static hemi_lane_area area_at(const hem_world *world, const hemi_place *place) {
    return (hemi_lane_area){hemi_arena_at(&world->root->arena, place->offset),
                            head_bytes(place->slots), place->ring_bytes, place->slots};
}

static hemi_notice *notice_of(const hemi_lane_area *area) {
    return (hemi_notice *)(void *)(area->at + (area->slots + 1) * (size_t)HEMI_LINE);
}

hem_status hemi_sides_join(hemi_sides *sides, uint32_t i, uint32_t peer, const hemi_place *theirs) {
    hem_world *world = sides->world;
    if (theirs->offset % HEMI_PAGE != 0 || theirs->slots == 0 || theirs->slots > SLOTS_MAX ||
        theirs->ring_bytes == 0 || theirs->ring_bytes > BYTES_MAX ||
        theirs->ring_bytes % HEMI_PAGE != 0 ||
        !hemi_arena_in_part(&world->root->arena, world->members[peer], theirs->offset,
                            piece_bytes(theirs->slots, theirs->ring_bytes)))
        return hemi_fail(HEM_ERR_MISMATCH, "rank %u named lanes outside of its memory", peer);
    hemi_side *side = &sides->side[i];
    hemi_place place = hemi_sides_place(sides, i);
    hemi_lane_area mine = area_at(world, &place);
    hemi_lane_area other = area_at(world, theirs);
    hemi_lane_set_up(&side->lane, world, peer, &mine, &other);
    side->told = notice_of(&mine);
    side->tell = notice_of(&other);
    return HEM_OK;
}

static void tell_all(hemi_sides *sides, uint64_t gone) {
    for (uint32_t i = 0; i < sides->count; i++)
        if (sides->side[i].told != NULL)
            hemi_side_say(&sides->side[i], &sides->side[i].tell->gone, gone);
}

void hemi_sides_break(hemi_sides *sides) {
    tell_all(sides, HEMI_SIDE_BROKEN);
}

void hemi_sides_leave(hemi_sides *sides) {
    if (sides == NULL)
        return;
    hem_world *world = sides->world;
    if (world == NULL) {
        free(sides);
        return;
    }
    hemi_engine_lock(world);
    /* A lane may owe its partner the end of a message, which now hears of this instead. */
    for (uint32_t i = 0; i < sides->count; i++)
        hemi_engine_unlist(world, &sides->side[i].lane.task);
    tell_all(sides, HEMI_SIDE_LEFT);
    hemi_engine_unlock(world);
    hemi_lock(world->root->platform, &world->children_lock);
    sides->left = true;
    hemi_unlock(&world->children_lock);
    sweep(world);
}

void hemi_sides_abandon(hemi_sides *sides) {
    if (sides->world == NULL)
        free(sides);
    else
        sides->left = true;
}

void hemi_side_letter(hemi_side *side, hemi_letter *letter, uint32_t call, bool sends, void *data,
                      size_t bytes) {
    hemi_lane *lane = &side->lane;
    hemi_letter_fill(letter, lane->world, call, sends, lane->peer, lane->channel, data, bytes);
    letter->lane = lane;
}
