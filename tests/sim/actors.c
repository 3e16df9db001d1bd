#include "actors.h"

#include "core/flight.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

/*
 * Which thread is which rank. A thread does not know it when it joins, and threads join in any
 * order. But they were started in rank order, and the kernel counts thread numbers up until it
 * starts over, so the first is the one after the widest gap.
 */
void sim_number(sim *s) {
    for (uint32_t i = 0; i < s->ranks; i++) {
        uint32_t at = i;
        for (; at > 0 && s->numbered[at - 1]->thread_id > s->actors[i].thread_id; at--)
            s->numbered[at] = s->numbered[at - 1];
        s->numbered[at] = &s->actors[i];
    }
    uint32_t first = 0;
    pid_t widest = -1;
    for (uint32_t i = 1; i < s->ranks; i++) {
        pid_t gap = s->numbered[i]->thread_id - s->numbered[i - 1]->thread_id;
        if (gap > widest)
            first = i;
        if (gap > widest)
            widest = gap;
    }
    if (widest < 10000)
        first = 0; /* the numbers did not start over in between */
    sim_actor *sorted[SIM_RANKS_MAX];
    for (uint32_t i = 0; i < s->ranks; i++)
        sorted[i] = s->numbered[(first + i) % s->ranks];
    for (uint32_t i = 0; i < s->ranks; i++) {
        s->numbered[i] = sorted[i];
        sorted[i]->number = i;
    }
}

void sim_wake(sim *s, const uint32_t *word) {
    for (uint32_t i = 0; i < s->ranks; i++)
        if (s->actors[i].state == SIM_BLOCKED && s->actors[i].word == word)
            s->actors[i].state = SIM_READY;
}

/* Those whose deadline has passed run again; now and then, somebody wakes up for no reason. */
static void expire(sim *s) {
    for (uint32_t i = 0; i < s->ranks; i++) {
        sim_actor *a = s->numbered[i];
        if (a->state != SIM_BLOCKED)
            continue;
        if (a->deadline_ns <= s->clock_ns ||
            (s->spurious && a->word != NULL && sim_draw(&s->dice) % 64 == 0))
            a->state = SIM_READY;
    }
}

static uint32_t list_ready(sim *s, const sim_actor *but, sim_actor **ready) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < s->ranks; i++)
        if (s->numbered[i]->state == SIM_READY && s->numbered[i] != but)
            ready[count++] = s->numbered[i];
    return count;
}

/* Everybody sleeps: go on to the next deadline. False if there is nobody left to wake. */
static bool pass_time(sim *s) {
    uint64_t next = SIM_NEVER;
    bool sleeps = false;
    for (uint32_t i = 0; i < s->ranks; i++) {
        sleeps = sleeps || s->actors[i].state == SIM_BLOCKED;
        if (s->actors[i].state == SIM_BLOCKED && s->actors[i].deadline_ns < next)
            next = s->actors[i].deadline_ns;
    }
    if (!sleeps)
        return false;
    if (next == SIM_NEVER)
        sim_stop(s, SIM_EXIT_DEADLOCK, "deadlock: all ranks sleep, and none has a deadline");
    if (next > s->clock_ns)
        s->clock_ns = next;
    return true;
}

sim_actor *sim_choose(sim *s, const sim_actor *but) {
    sim_actor *ready[SIM_RANKS_MAX];
    for (;;) {
        expire(s);
        uint32_t count = list_ready(s, but, ready);
        if (count == 0 && but != NULL)
            count = list_ready(s, NULL, ready);
        if (count > 0) {
            sim_actor *chosen = ready[sim_draw(&s->dice) % count];
            if (chosen->number == s->slow && sim_draw(&s->dice) % 8 != 0)
                chosen = ready[sim_draw(&s->dice) % count];
            return chosen;
        }
        if (!pass_time(s))
            return NULL;
    }
}

void sim_unlock_dead(hemi_root *root) {
    /* What these guard is whole at every schedule point. */
    __atomic_store_n(&root->worlds_lock, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&root->me->heap_lock, 0, __ATOMIC_RELAXED);
    for (hem_world *world = root->worlds; world != NULL; world = world->next)
        __atomic_store_n(&world->children_lock, 0, __ATOMIC_RELAXED);
}

static const char *event_name(sim_event_kind kind) {
    static const char *const names[] = {
        [SIM_POINT] = "runs",         [SIM_NOW] = "reads the clock",
        [SIM_PARK] = "wants to park", [SIM_PARKED] = "may park",
        [SIM_WAKE] = "wakes",         [SIM_YIELD] = "yields",
        [SIM_NAP] = "naps",           [SIM_MEMBARRIER] = "makes all fence",
        [SIM_RANDOM] = "draws",       [SIM_NOTE] = "notes",
        [SIM_END] = "ends",
    };
    return names[kind];
}

/* The last events, those in a row that say nothing in one line. */
static void print_events(const sim *s) {
    uint64_t first = s->event_count > SIM_EVENTS ? s->event_count - SIM_EVENTS : 0;
    for (uint64_t i = first; i < s->event_count;) {
        const sim_event *e = &s->events[i % SIM_EVENTS];
        uint64_t same = 1;
        while (i + same < s->event_count && s->events[(i + same) % SIM_EVENTS].actor == e->actor &&
               s->events[(i + same) % SIM_EVENTS].kind == e->kind &&
               s->events[(i + same) % SIM_EVENTS].detail == e->detail)
            same++;
        fprintf(stderr, "  %12" PRIu64 " ns: rank %u %s (%" PRIu64 ")", e->clock_ns, e->actor,
                event_name(e->kind), e->detail);
        if (same > 1)
            fprintf(stderr, ", %" PRIu64 " times", same);
        fputc('\n', stderr);
        i += same;
    }
}

static void print_rank(const sim *s, const sim_actor *a) {
    static const char *const states[] = {"can run", "sleeps", "has ended"};
    fprintf(stderr, "  rank %u %s\n", a->number, states[a->state]);
    for (uint32_t slot = 0; s->arena.base != NULL && slot < HEMI_FLIGHTS; slot++) {
        hemi_flight flight;
        uint64_t seen = 0;
        char text[256];
        if (!hemi_flight_read(&s->arena, a->number, slot, &flight, &seen))
            continue;
        hemi_flight_describe(&flight, seen, s->clock_ns, text, sizeof text);
        fprintf(stderr, "    %s\n", text);
    }
}

void sim_stop(const sim *s, int exit_code, const char *why) {
    /* No more schedule points: reading the flight records must not move the baton. */
    hemi_sim_set_hook(NULL, NULL);
    print_events(s);
    for (uint32_t i = 0; i < s->ranks; i++)
        print_rank(s, s->numbered[i]);
    fprintf(stderr,
            "%s\n%s, %d ranks, seed %" PRIu64 " failed; repeat it with HEM_SEED=%" PRIu64 "\n", why,
            s->setup->program, s->setup->ranks, s->setup->seed, s->setup->seed);
    fflush(stderr);
    _exit(exit_code);
}
