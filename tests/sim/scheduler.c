#include "scheduler.h"

#include "actors.h"
#include "base/sim.h"
#include "core/bootstrap/bootstrap.h"

#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What one schedule point takes of virtual time. */
#define STEP_NS 25
/* A run that has more points than this does not end. */
#define POINTS_MAX  3000000u
#define ARENA_BYTES (16ull << 20)

static _Thread_local sim_actor *self;

uint64_t sim_draw(uint64_t *state) {
    /* SplitMix64. */
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static void record(sim *s, sim_event_kind kind, uint64_t detail) {
    const uint64_t parts[] = {self->number, kind, detail, s->clock_ns};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        s->outcome.hash = (s->outcome.hash ^ parts[i]) * 0x100000001b3u;
    s->events[s->event_count++ % SIM_EVENTS] = (sim_event){self->number, kind, detail, s->clock_ns};
}

/* Whoever holds the baton comes through here at every point. */
static void tick(sim *s, sim_event_kind kind, uint64_t detail) {
    s->clock_ns += STEP_NS;
    s->outcome.points++;
    record(s, kind, detail);
    if (s->outcome.points > POINTS_MAX)
        sim_stop(s, SIM_EXIT_FAILED, "the run does not end");
    if (self->points_left > 0 && --self->points_left == 0)
        longjmp(self->end, 1);
}

static void hand_over(sim *s, sim_actor *to) {
    sim_actor *me = self;
    if (to == me)
        return;
    s->outcome.switches++;
    sem_post(&to->turn);
    while (sem_wait(&me->turn) != 0)
        continue;
}

static void point(void *ctx) {
    sim *s = ctx;
    tick(s, SIM_POINT, 0);
    if (sim_draw(&s->dice) % s->switch_one_in == 0)
        hand_over(s, sim_choose(s, NULL));
}

/* Sleep until somebody changes the state or the deadline passes. */
static void block(sim *s, const uint32_t *word, int64_t limit_ns) {
    self->state = SIM_BLOCKED;
    self->word = word;
    self->deadline_ns = limit_ns < 0 ? SIM_NEVER : s->clock_ns + (uint64_t)limit_ns;
    s->outcome.sleeps++;
    hand_over(s, sim_choose(s, NULL));
    self->word = NULL;
}

/* The baton goes on from a thread that ends, through the destructor of thread-specific data. */
static void leave(void *arg) {
    sim_actor *me = arg;
    sim *s = me->sim;
    hemi_sim_set_hook(NULL, NULL);
    record(s, SIM_END, 0);
    me->state = SIM_ENDED;
    sim_actor *next = sim_choose(s, NULL);
    if (next != NULL)
        sem_post(&next->turn);
}

/* A rank's first call. Everybody waits until all are there. */
static void join(sim *s) {
    pthread_mutex_lock(&s->lock);
    sim_actor *me = &s->actors[s->joined++];
    me->sim = s;
    me->thread_id = gettid();
    self = me;
    pthread_setspecific(s->key, me);
    if (s->joined == s->ranks) {
        sim_number(s);
        sem_post(&sim_choose(s, NULL)->turn);
    }
    pthread_mutex_unlock(&s->lock);
    while (sem_wait(&me->turn) != 0)
        continue;
    hemi_sim_set_hook(point, s);
}

/* Every platform call starts here. False in the process's first thread, which is no rank. */
static bool enter(sim *s, sim_event_kind kind, uint64_t detail) {
    if (self == NULL && pthread_equal(pthread_self(), s->starter))
        return false;
    if (self == NULL)
        join(s);
    tick(s, kind, detail);
    return true;
}

static uint64_t platform_now(void *ctx) {
    sim *s = ctx;
    enter(s, SIM_NOW, 0);
    return s->clock_ns;
}

static void platform_park(void *ctx, uint32_t *word, uint32_t expected, int64_t limit_ns) {
    sim *s = ctx;
    enter(s, SIM_PARK, expected);
    /* Between the rank's last look and the kernel's own, anything may happen. */
    hand_over(s, sim_choose(s, NULL));
    bool same = __atomic_load_n(word, __ATOMIC_RELAXED) == expected;
    record(s, SIM_PARKED, same);
    if (same || s->setup->mutant == SIM_PARK_BLIND)
        block(s, word, limit_ns);
}

static void platform_wake(void *ctx, uint32_t *word) {
    sim *s = ctx;
    if (!enter(s, SIM_WAKE, 0))
        return;
    hand_over(s, sim_choose(s, NULL));
    if (s->setup->mutant == SIM_WAKE_LOST && sim_draw(&s->dice) % 16 == 0)
        return;
    sim_wake(s, word);
}

static void platform_yield(void *ctx) {
    sim *s = ctx;
    if (enter(s, SIM_YIELD, 0))
        hand_over(s, sim_choose(s, self));
}

static void platform_nap(void *ctx, int64_t ns) {
    sim *s = ctx;
    if (enter(s, SIM_NAP, (uint64_t)ns))
        block(s, NULL, ns < 0 ? 0 : ns);
}

static bool platform_membarrier(void *ctx) {
    sim *s = ctx;
    enter(s, SIM_MEMBARRIER, 0);
    return s->membarrier_fails == 0 || sim_draw(&s->dice) % s->membarrier_fails != 0;
}

static uint64_t platform_random(void *ctx) {
    sim *s = ctx;
    enter(s, SIM_RANDOM, 0);
    return sim_draw(&s->random);
}

/* The world's own function: dying is leaving it from wherever one is. */
static int rank_function(hem_world *world, void *arg) {
    sim *s = arg;
    s->arena = world->root->arena;
    self->root = world->root;
    if (setjmp(self->end) != 0) {
        sim_unlock_dead(self->root);
        return 0;
    }
    int result = s->fn(world, s->arg);
    self->points_left = 0;
    return result;
}

/* How the seed decides: how often the baton moves, who is slow, what the platform refuses. */
static void read_seed(sim *s) {
    static const uint32_t one_in[] = {2, 3, 5, 9, 17, 40};
    static const uint32_t membarrier_fails[8] = {1, 1, 12};
    uint64_t mix = s->setup->seed;
    s->dice = sim_draw(&mix);
    s->random = sim_draw(&mix);
    s->switch_one_in = one_in[sim_draw(&mix) % (sizeof one_in / sizeof one_in[0])];
    s->slow = (uint32_t)(sim_draw(&mix) % (2 * s->ranks));
    s->membarrier_fails = membarrier_fails[sim_draw(&mix) % 8];
    s->spurious = s->setup->mutant == SIM_HONEST && sim_draw(&mix) % 2 == 0;
    s->clock_ns = 1000000 + sim_draw(&mix) % 1000000;
    s->outcome.hash = 0xcbf29ce484222325u;
}

/* Threads that hand each other the baton do so fastest on one core. */
static void stay_on_one_core(void) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)sched_getcpu(), &set);
    sched_setaffinity(0, sizeof set, &set);
}

static hemi_platform platform_of(sim *s) {
    return (hemi_platform){
        .ctx = s,
        .now = platform_now,
        .park = platform_park,
        .wake = platform_wake,
        .yield = platform_yield,
        .nap = platform_nap,
        .membarrier = platform_membarrier,
        .membarrier_register = platform_membarrier,
        .random = platform_random,
    };
}

sim_outcome sim_run(const sim_setup *setup, hem_rank_fn fn, void *arg) {
    stay_on_one_core();
    sim s = {.setup = setup,
             .fn = fn,
             .arg = arg,
             .ranks = (uint32_t)setup->ranks,
             .starter = pthread_self()};
    read_seed(&s);
    pthread_mutex_init(&s.lock, NULL);
    pthread_key_create(&s.key, leave);
    for (uint32_t i = 0; i < s.ranks; i++)
        sem_init(&s.actors[i].turn, 0, 0);
    hemi_platform platform = platform_of(&s);
    hem_world_options options = {
        .struct_size = sizeof options,
        .timeout_ns = setup->timeout_ns != 0 ? setup->timeout_ns : HEM_FOREVER,
        .arena_bytes = ARENA_BYTES,
    };
    s.outcome.status = hemi_threads_run(&platform, setup->ranks, rank_function, &s, &options);
    s.outcome.end_ns = s.clock_ns;
    for (uint32_t i = 0; i < s.ranks; i++)
        sem_destroy(&s.actors[i].turn);
    pthread_key_delete(s.key);
    pthread_mutex_destroy(&s.lock);
    return s.outcome;
}

uint64_t sim_now(void) {
    return self->sim->clock_ns;
}

uint64_t sim_seed(void) {
    return self->sim->setup->seed;
}

uint64_t sim_below(uint64_t below) {
    return sim_draw(&self->sim->dice) % below;
}

void sim_note(uint64_t value) {
    record(self->sim, SIM_NOTE, value);
}

void sim_die_after(uint64_t points) {
    self->points_left = points;
}

void sim_stay_alive(void) {
    self->points_left = 0;
}

void sim_fail(const char *file, int line, const char *format, ...) {
    char text[512];
    int used = snprintf(text, sizeof text, "rank %u, %s:%d: ", self->number, file, line);
    va_list args;
    va_start(args, format);
    vsnprintf(text + used, sizeof text - (size_t)used, format, args);
    va_end(args);
    sim_stop(self->sim, SIM_EXIT_FAILED, text);
}
