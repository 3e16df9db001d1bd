#include "core/hub.h"
#include "core/heap.h"
#include "core/team.h"

#include <stdlib.h>
#include <sys/prctl.h>

#define SLOTS_MAX 4096u
#define BYTES_MAX (1ull << 40)

static uint64_t to_pages(uint64_t bytes) {
    return (bytes + HEMI_PAGE - 1) / HEMI_PAGE * HEMI_PAGE;
}

/* Head and board lie before the stages, in whole pages. */
static uint64_t front_bytes(void) {
    return to_pages(sizeof(hemi_hub_head)) + to_pages((uint64_t)HEMI_BOARD * HEMI_LINE);
}

static uint64_t lane_bytes(uint32_t slots, uint64_t ring) {
    return hemi_lane_head_bytes(slots) + ring;
}

static uint64_t hub_bytes(uint32_t ranks, uint32_t slots, uint64_t ring, uint64_t stage) {
    return front_bytes() + HEMI_BOARD * stage +
           (uint64_t)ranks * HEMI_LANE_IDS * lane_bytes(slots, ring);
}

/* Fill in a view of the hub at `offset`, whose geometry is good. */
static void look_at(const hemi_arena *arena, uint64_t offset, uint32_t slots, uint64_t ring,
                    uint64_t stage, hemi_hub_view *view) {
    unsigned char *start = hemi_arena_at(arena, offset);
    view->head = (hemi_hub_head *)(void *)start;
    view->board = start + to_pages(sizeof(hemi_hub_head));
    view->stages = start + front_bytes();
    view->offset = offset;
    view->stage_bytes = stage;
    view->lanes = offset + front_bytes() + HEMI_BOARD * stage;
    view->lane_bytes = lane_bytes(slots, ring);
    view->ring_bytes = ring;
    view->slots = slots;
}

static void orphan(hemi_child *child, bool dead) {
    hemi_hub *hub = (hemi_hub *)(void *)child;
    hemi_root *root = hub->world->root;
    (void)dead;
    if (!hub->world->keep_memory)
        hemi_heap_free(&root->arena, root->platform, root->rank, hub->mine.offset,
                       root->cache_bytes);
    hub->world->engine.hub = NULL;
    free(hub);
}

/* As large as asked for, but no more than a quarter of what the rank has. */
static void choose_geometry(const hem_world *world, hemi_settings *s) {
    uint64_t most = world->root->arena.part_bytes / 4;
    s->ring_bytes = to_pages(s->ring_bytes);
    s->stage_bytes = to_pages(s->stage_bytes);
    while (s->ring_bytes > HEMI_PAGE &&
           hub_bytes(world->size, s->slots, s->ring_bytes, s->stage_bytes) > most)
        s->ring_bytes = to_pages(s->ring_bytes / 2);
}

hem_status hemi_hub_open(hem_world *world) {
    if (__builtin_expect(world->engine.hub != NULL, 1))
        return HEM_OK;
    hemi_root *root = world->root;
    hemi_settings s = root->settings;
    choose_geometry(world, &s);
    hemi_hub *hub = calloc(1, sizeof *hub);
    if (hub == NULL)
        return hemi_fail(HEM_ERR_MEMORY, "no memory for channels and collectives");
    hub->bytes = hub_bytes(world->size, s.slots, s.ring_bytes, s.stage_bytes);
    uint64_t offset = 0;
    hem_status status = hemi_heap_alloc(&root->arena, root->platform, root->rank, hub->bytes,
                                        HEMI_HEAP_SPARSE, &offset);
    if (status == HEM_OK) {
        status = hemi_arena_reserve(&root->arena, offset, front_bytes());
        if (status != HEM_OK)
            hemi_heap_free(&root->arena, root->platform, root->rank, offset, 0);
    }
    if (status != HEM_OK) {
        free(hub);
        return status;
    }
    look_at(&root->arena, offset, s.slots, s.ring_bytes, s.stage_bytes, &hub->mine);
    hemi_hub_head *head = hub->mine.head;
    head->magic = HEMI_HUB_MAGIC;
    head->world = world->id;
    head->ranks = world->size;
    head->slots = s.slots;
    head->ring_bytes = s.ring_bytes;
    head->stage_bytes = s.stage_bytes;
    head->check = s.check;
    hub->probe = world->id;
    head->probe = (uintptr_t)&hub->probe;
    if (!root->threads && s.copy != HEMI_COPY_STAGED)
        prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0); /* see hem_memory_register */
    hub->world = world;
    hub->child.orphan = orphan;
    hemi_world_adopt(world, &hub->child);
    world->engine.hub = hub;
    /* Pairs with the acquire in hemi_hub_see. */
    hemi_store64_release(&world->cells[world->rank].hub, offset);
    hemi_team_wake(world);
    return HEM_OK;
}

static hem_status fail_hub(uint32_t rank) {
    return hemi_fail(HEM_ERR_MISMATCH, "rank %u named shared memory that is not of this world",
                     rank);
}

hem_status hemi_hub_see(hem_world *world, uint32_t rank, hemi_hub_view *view_p) {
    const hemi_arena *arena = &world->root->arena;
    uint32_t owner = world->members[rank];
    /* Pairs with the release in hemi_hub_open. */
    uint64_t offset = hemi_load64_acquire(&world->cells[rank].hub);
    if (offset == 0)
        return HEMI_AGAIN;
    if (offset % HEMI_PAGE != 0 || !hemi_arena_in_part(arena, owner, offset, front_bytes()))
        return fail_hub(rank);
    const hemi_hub_head *head = hemi_arena_at(arena, offset);
    /* Read once: what was checked is what is used. */
    uint32_t slots = hemi_load32_relaxed(&head->slots);
    uint64_t ring = hemi_load64_relaxed(&head->ring_bytes);
    uint64_t stage = hemi_load64_relaxed(&head->stage_bytes);
    if (head->magic != HEMI_HUB_MAGIC || head->world != world->id || head->ranks != world->size ||
        slots == 0 || slots > SLOTS_MAX || ring == 0 || ring > BYTES_MAX || ring % HEMI_PAGE != 0 ||
        stage == 0 || stage > BYTES_MAX || stage % HEMI_PAGE != 0 ||
        !hemi_arena_in_part(arena, owner, offset, hub_bytes(world->size, slots, ring, stage)))
        return fail_hub(rank);
    look_at(arena, offset, slots, ring, stage, view_p);
    return HEM_OK;
}

hem_status hemi_hub_reserve(hem_world *world, uint64_t offset, uint64_t bytes) {
    uint64_t start = offset / HEMI_PAGE * HEMI_PAGE;
    return hemi_arena_reserve(&world->root->arena, start, to_pages(offset + bytes) - start);
}

hem_status hemi_hub_stages(hem_world *world) {
    hemi_hub *hub = world->engine.hub;
    if (__builtin_expect(hub->staged, 1))
        return HEM_OK;
    hem_status status = hemi_hub_reserve(world, hub->mine.offset + front_bytes(),
                                         HEMI_BOARD * hub->mine.stage_bytes);
    hub->staged = status == HEM_OK;
    return status;
}
