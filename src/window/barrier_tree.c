/*
 * How this works. In the control block of rank 0 lie, per barrier id and each in a line of its own, the
 * released epoch, a count of groups, and a count of ranks per group of HEMI_BARRIER_FLAT. A rank that
 * enters epoch e adds one to its group. Whoever makes it e times the group's size adds one to the count
 * of groups; whoever makes that e times their number stores e as released. No rank can enter e + 1
 * before e was released, so that each of these equalities is met exactly once.
 *
 * These are the only words of a barrier with several writers: read-modify-writes that acquire and
 * release, so that the released epoch comes after everything that any rank did before it entered.
 *
 * A rank notes in its own block that it has entered only when it has passed on what it had to. One that
 * dies earlier is missed, and the others find that in its block.
 */
#include "window/barrier_tree.h"

#include "core/team.h"

enum {
    RELEASED,
    GROUPS,
    FIRST_GROUP
};

static uint32_t group_count(uint32_t ranks) {
    return (ranks + HEMI_BARRIER_FLAT - 1) / HEMI_BARRIER_FLAT;
}

uint64_t hemi_tree_lines(uint32_t ranks) {
    return FIRST_GROUP + group_count(ranks);
}

static uint64_t *word_at(const hem_window *window, uint32_t id, uint64_t line) {
    unsigned char *control = hemi_arena_at(&window->root->arena, hemi_window_control(window, 0));
    uint64_t place = (id * hemi_tree_lines(window->size) + line) * HEMI_LINE;
    return (uint64_t *)(void *)(control + window->layout.tree + place);
}

hem_status hemi_tree_prepare(const hem_window *window, uint32_t id) {
    const hemi_arena *arena = &window->root->arena;
    uint64_t offset = (uint64_t)((unsigned char *)word_at(window, id, 0) - arena->base);
    uint64_t end = offset + hemi_tree_lines(window->size) * HEMI_LINE;
    uint64_t start = offset / HEMI_PAGE * HEMI_PAGE;
    return hemi_arena_reserve(arena, start, (end - start + HEMI_PAGE - 1) / HEMI_PAGE * HEMI_PAGE);
}

void hemi_tree_arrive(hem_window *window, uint32_t id, hemi_barrier_state *state) {
    uint32_t group = window->rank / HEMI_BARRIER_FLAT;
    uint32_t rest = window->size - group * HEMI_BARRIER_FLAT;
    uint64_t members = rest < HEMI_BARRIER_FLAT ? rest : HEMI_BARRIER_FLAT;
    uint64_t epoch = state->arrived;
    uint64_t come = hemi_add64_acq_rel(word_at(window, id, FIRST_GROUP + group), 1) + 1;
    bool released = false;
    if (come == epoch * members)
        released = hemi_add64_acq_rel(word_at(window, id, GROUPS), 1) + 1 ==
                   epoch * group_count(window->size);
    if (released) {
        /* Pairs with the acquire in hemi_tree_released. */
        hemi_store64_release(word_at(window, id, RELEASED), epoch);
        hemi_team_wake(window->world);
    }
    /* Pairs with the acquire in hemi_tree_entered. */
    hemi_store64_release(&state->told, epoch);
}

uint64_t hemi_tree_released(const hem_window *window, uint32_t id) {
    return hemi_load64_acquire(word_at(window, id, RELEASED));
}

const uint64_t *hemi_tree_word(const hem_window *window, uint32_t id) {
    return word_at(window, id, RELEASED);
}

uint64_t hemi_tree_entered(const hem_window *window, uint32_t id, uint32_t rank) {
    const unsigned char *control =
        hemi_arena_at(&window->root->arena, hemi_window_control(window, rank));
    const hemi_barrier_state *theirs =
        (const hemi_barrier_state *)(const void *)(control + window->layout.states);
    return hemi_load64_acquire(&theirs[id].told);
}
