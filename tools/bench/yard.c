#include "bench.h"

#include <sched.h>
#include <stdatomic.h>
#include <sys/resource.h>

enum {
    TRIPS = 16,
    GROUPS = 3,
    SPINS_BEFORE_YIELD = 20000
};

/* One line per direction, as a library would have them. */
struct bench_yard {
    _Alignas(128) _Atomic uint64_t ping;
    _Alignas(128) _Atomic uint64_t pong;
    _Alignas(128) uint64_t switches; /* of rank 1 */
};

static uint64_t own_switches(void) {
    struct rusage usage;

    return getrusage(RUSAGE_THREAD, &usage) == 0 ? (uint64_t)usage.ru_nivcsw : 0;
}

static void wait_for(_Atomic uint64_t *word, uint64_t value) {
    for (int spins = 0; atomic_load_explicit(word, memory_order_acquire) != value; spins++) {
        bench_pause();
        if (spins > SPINS_BEFORE_YIELD)
            sched_yield();
    }
}

void bench_yard_open(struct bench_world *world) {
    if (world->ranks == 2)
        world->yard = bench_share(world, sizeof(*world->yard));
}

/* Half a round trip, the mean over a few of them. */
static double trips(int rank, _Atomic uint64_t *mine, _Atomic uint64_t *other) {
    uint64_t seq = atomic_load_explicit(mine, memory_order_relaxed);
    double start = bench_now_ns();

    for (int i = 0; i < TRIPS; i++) {
        seq++;
        if (rank == 0)
            atomic_store_explicit(mine, seq, memory_order_release);
        wait_for(other, seq);
        if (rank != 0)
            atomic_store_explicit(mine, seq, memory_order_release);
    }
    return (bench_now_ns() - start) / (2 * TRIPS);
}

/* The smallest of a few groups: an interrupt in one of them must not look like a longer way. */
struct bench_reading bench_yard_read(const struct bench_world *world) {
    struct bench_yard *yard = world->yard;
    struct bench_reading reading = {.switches = own_switches()};

    if (yard == NULL)
        return (struct bench_reading){0};
    if (world->rank != 0) {
        yard->switches = reading.switches;
        for (int group = 0; group < GROUPS; group++)
            trips(world->rank, &yard->pong, &yard->ping);
        return (struct bench_reading){0};
    }
    for (int group = 0; group < GROUPS; group++) {
        double ns = trips(0, &yard->ping, &yard->pong);
        if (group == 0 || ns < reading.line_ns)
            reading.line_ns = ns;
    }
    /* The last answer of rank 1 came after its count. */
    reading.switches += yard->switches;
    reading.ns = bench_now_ns();
    return reading;
}
