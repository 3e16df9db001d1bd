/* Making worlds out of worlds: split, and shrink after a death. */
#include "core/heap.h"
#include "core/root.h"
#include "core/team.h"
#include "core/world.h"

#include <stdlib.h>
#include <string.h>

/* First step: who wants to be with whom. */
typedef struct split_say {
    int32_t colour;
    int32_t key;
} split_say;

/* Second step: where the lowest rank of each colour has put the new team. */
typedef struct place_say {
    uint64_t offset;
} place_say;

typedef struct group {
    uint32_t *ranks; /* ranks of the old world, in the order of the new one */
    uint32_t count;
    uint32_t mine;   /* this rank's place */
    uint32_t leader; /* the lowest old rank */
} group;

typedef struct member {
    int32_t key;
    uint32_t rank;
} member;

static int by_key(const void *a, const void *b) {
    const member *x = a;
    const member *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return x->rank < y->rank ? -1 : x->rank > y->rank;
}

/* Read everybody's wish and list those with `colour`. */
static hem_status gather_group(const hem_world *world, int colour, group *g) {
    member *members = malloc(world->size * sizeof *members);
    g->ranks = malloc(world->size * sizeof *g->ranks);
    if (members == NULL || g->ranks == NULL) {
        free(members);
        return hemi_fail(HEM_ERR_MEMORY, "no memory to split %u ranks", world->size);
    }
    g->leader = UINT32_MAX;
    for (uint32_t r = 0; r < world->size; r++) {
        split_say say;
        hemi_team_heard(world, r, &say, sizeof say);
        if (say.colour != colour)
            continue;
        members[g->count++] = (member){say.key, r};
        if (g->leader == UINT32_MAX)
            g->leader = r;
    }
    qsort(members, g->count, sizeof *members, by_key);
    for (uint32_t i = 0; i < g->count; i++) {
        g->ranks[i] = members[i].rank;
        if (members[i].rank == world->rank)
            g->mine = i;
    }
    free(members);
    return HEM_OK;
}

/* Allocate and fill in a team of some of the world's ranks, in this rank's part. */
static hem_status make_team(hem_world *world, const uint32_t *ranks, uint32_t count,
                            uint64_t *offset_p) {
    hemi_root *root = world->root;
    uint32_t *members = malloc(count * sizeof *members);
    if (members == NULL)
        return hemi_fail(HEM_ERR_MEMORY, "no memory for a world of %u ranks", count);
    for (uint32_t i = 0; i < count; i++)
        members[i] = world->members[ranks[i]];
    uint64_t offset = 0;
    hem_status status = hemi_heap_alloc(&root->arena, root->platform, root->rank,
                                        hemi_team_bytes(count), HEMI_HEAP_RESERVED, &offset);
    if (status == HEM_OK) {
        uint32_t id = hemi_add32_acq_rel(&root->arena.head->worlds, 1) + 1;
        hemi_team_init(hemi_arena_at(&root->arena, offset), id, root->rank, members, count);
        *offset_p = offset;
    }
    free(members);
    return status;
}

static void free_team(hem_world *world, uint64_t offset) {
    if (offset != 0)
        hemi_heap_free(&world->root->arena, world->root->platform, world->root->rank, offset, 0);
}

/* Second step: leaders make their teams, all hear where, and take up their places. */
static hem_status place_group(hem_world *world, uint32_t call, const group *g, hem_status status,
                              hem_world **made_p) {
    place_say mine = {0};
    if (status == HEM_OK && g->count > 0 && g->leader == world->rank)
        status = make_team(world, g->ranks, g->count, &mine.offset);
    status = hemi_team_agree(world, call, status, 0, &mine, sizeof mine, world->timeout_ns);
    place_say place = {0};
    hem_world *made = NULL;
    if (status == HEM_OK && g->count > 0) {
        hemi_team_heard(world, g->leader, &place, sizeof place);
        hemi_team_done(world);
        status = hemi_world_make(world->root, place.offset, g->mine, world->timeout_ns, &made);
    } else if (status != HEM_OK) {
        free_team(world, mine.offset);
        return status;
    }
    /* Third step: nobody keeps a world that another rank could not make a handle for. */
    status = hemi_team_agree(world, call, status, 1, NULL, 0, world->timeout_ns);
    if (status != HEM_OK) {
        if (made != NULL)
            hemi_world_free(made);
        /* The leader's block is not given back: a slow rank may still look at it. */
        return status;
    }
    *made_p = made;
    return HEM_OK;
}

hem_status hemi_world_split(hem_world *world, uint32_t call, int colour, int key,
                            hem_world **world_p) {
    hem_status status = HEM_OK;
    if (colour < 0 && colour != HEM_NO_COLOUR)
        status = hemi_fail(HEM_ERR_ARG, "%s: colour %d is negative", hemi_call_name(call), colour);
    else if (world_p == NULL)
        status = hemi_fail(HEM_ERR_ARG, "%s: world_p is NULL", hemi_call_name(call));
    split_say mine = {colour, key};
    status = hemi_team_agree(world, call, status, 0, &mine, sizeof mine, world->timeout_ns);
    if (status != HEM_OK)
        return status;
    group g = {0};
    if (colour != HEM_NO_COLOUR)
        status = gather_group(world, colour, &g);
    hemi_team_done(world);
    hem_world *made = NULL;
    status = place_group(world, call, &g, status, &made);
    free(g.ranks);
    if (status == HEM_OK)
        *world_p = made;
    return status;
}

hem_status hem_world_split(hem_world *world, int colour, int key, hem_world **world_p) {
    if (world == NULL)
        return hemi_fail(HEM_ERR_ARG, "hem_world_split: world is NULL");
    return hemi_world_split(world, HEMI_CALL_SPLIT, colour, key, world_p);
}

/*
 * Shrink. Every survivor raises its cell's shrink number to k and waits until every member has done
 * so or is dead. Whoever sees that first makes a team of those who came and offers it by one
 * compare-and-swap on the old team's word; the others take the team that won. Whoever gives up offers
 * that, in the same word, so that all agree. A member that dies after it came is a dead member of the
 * new world, which can be shrunk again.
 */
typedef struct shrink_wait {
    hem_world *world;
    uint64_t number;
    uint32_t next;
    uint64_t offer; /* the word that another rank has settled, 0 if none */
} shrink_wait;

#define OFFER_SHIFT 48
#define OFFER_MASK  ((1ull << OFFER_SHIFT) - 1)
/* Instead of a page: nobody came in time, or there was no memory. No team lies there. */
#define OFFER_LATE      0
#define OFFER_NO_MEMORY 1

static hem_status poll_shrink(void *arg) {
    shrink_wait *s = arg;
    uint64_t offer = hemi_load64_acquire(&s->world->team->shrunk[s->number % 4]);
    if (offer >> OFFER_SHIFT == (s->number & 0xffff)) {
        s->offer = offer;
        return HEM_OK;
    }
    for (; s->next < s->world->size; s->next++) {
        if (hemi_load64_acquire(&s->world->cells[s->next].shrink) >= s->number)
            continue;
        if (hemi_world_may_come(s->world, s->next))
            return HEMI_AGAIN;
    }
    return HEM_OK;
}

static void where_shrink(void *arg, hemi_flight_note *note) {
    const shrink_wait *s = arg;
    if (s->next >= s->world->size)
        return;
    note->peer = (int32_t)s->world->members[s->next];
    note->word = &s->world->cells[s->next].shrink;
}

/* Offer a page, or a reason. False if another offer holds; s->offer is the one that does. */
static bool offer(shrink_wait *s, uint64_t page) {
    uint64_t *word = &s->world->team->shrunk[s->number % 4];
    uint64_t mine = (s->number & 0xffff) << OFFER_SHIFT | page;
    uint64_t seen = hemi_load64_acquire(word);
    do {
        if (seen >> OFFER_SHIFT == (s->number & 0xffff)) {
            s->offer = seen;
            return false;
        }
    } while (!hemi_cas64_acq_rel(word, &seen, mine));
    s->offer = mine;
    hemi_team_wake(s->world);
    return true;
}

/* Make a team of those who came and try to have it accepted. */
static hem_status offer_team(shrink_wait *s) {
    hem_world *world = s->world;
    uint32_t *ranks = malloc(world->size * sizeof *ranks);
    if (ranks == NULL)
        return hemi_fail(HEM_ERR_MEMORY, "hem_world_shrink: no memory");
    uint32_t count = 0;
    for (uint32_t r = 0; r < world->size; r++)
        if (hemi_load64_acquire(&world->cells[r].shrink) >= s->number &&
            hemi_world_may_come(world, r))
            ranks[count++] = r;
    uint64_t offset = 0;
    hem_status status = make_team(world, ranks, count, &offset);
    free(ranks);
    if (status != HEM_OK)
        return status;
    if (!offer(s, offset / HEMI_PAGE))
        free_team(world, offset);
    return HEM_OK;
}

/* This rank's place in the team at `offset`. */
static hem_status take_place(hem_world *world, uint64_t offset, hem_world **world_p) {
    const hemi_arena *arena = &world->root->arena;
    if (offset < arena->parts_offset || offset > arena->total_bytes - HEMI_PAGE)
        return hemi_fail(HEM_ERR_MISMATCH, "a peer named a world outside of shared memory");
    hemi_team *team = hemi_arena_at(arena, offset);
    uint32_t size = team->size;
    if (size > world->size || hemi_team_bytes(size) > arena->total_bytes - offset)
        return hemi_fail(HEM_ERR_MISMATCH, "a peer named a world that is none");
    const uint32_t *members = hemi_team_members(team, size);
    for (uint32_t i = 0; i < size; i++)
        if (members[i] == world->root->rank)
            return hemi_world_make(world->root, offset, i, world->timeout_ns, world_p);
    return hemi_fail(HEM_ERR_TIMEOUT, "hem_world_shrink: the others did not wait for this rank");
}

hem_status hem_world_shrink(hem_world *world, hem_world **world_p) {
    if (world == NULL || world_p == NULL)
        return hemi_fail(HEM_ERR_ARG, "hem_world_shrink: world or world_p is NULL");
    hemi_cell *mine = &world->cells[world->rank];
    shrink_wait s = {.world = world, .number = mine->shrink + 1};
    /* Pairs with the acquire in poll_shrink. */
    hemi_store64_release(&mine->shrink, s.number);
    hemi_team_wake(world);
    hemi_wait_for wait = {
        .poll = poll_shrink,
        .where = where_shrink,
        .arg = &s,
        .also_revoked = true,
        .note = {.call = HEMI_CALL_SHRINK, .peer = -1, .world = world->id, .wanted = s.number},
    };
    hem_status status = hemi_wait(world, &wait, world->timeout_ns);
    if (status == HEM_ERR_TIMEOUT)
        offer(&s, OFFER_LATE);
    else if (status == HEM_OK && s.offer == 0 && offer_team(&s) != HEM_OK)
        offer(&s, OFFER_NO_MEMORY);
    else if (status != HEM_OK)
        return status;
    switch (s.offer & OFFER_MASK) {
    case OFFER_LATE:
        return hemi_fail(HEM_ERR_TIMEOUT,
                         "hem_world_shrink: rank %u is alive but did not come in time", s.next);
    case OFFER_NO_MEMORY:
        return hemi_fail(HEM_ERR_MEMORY, "hem_world_shrink: no memory for the new world");
    default:
        return take_place(world, (s.offer & OFFER_MASK) * HEMI_PAGE, world_p);
    }
}
