#include "meet.h"

#include <linux/futex.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    SPINS = 20000,
    CROWDED_SPINS = 50,
    SPINS_PER_HELP = 1024,
    NAP_NS = 1000000
};

static const double limit_ns = 100e9;

/* A line for what each rank brings, after the words that all of them use. */
struct seat {
    _Alignas(128) double start[2];
    double end[2];
    uint64_t turn; /* of its owner */
};

struct bench_meet {
    _Alignas(128) _Atomic uint32_t come;
    _Alignas(128) _Atomic uint32_t epoch;
    _Atomic uint32_t sleepers;
    struct seat seats[];
};

struct bench_meet *bench_meet_open(const struct bench_world *world) {
    size_t bytes = sizeof(struct bench_meet) + (size_t)world->ranks * sizeof(struct seat);
    struct bench_meet *meet = bench_share(world, bytes);

    if (meet == NULL)
        bench_die("the ranks cannot share memory to start together");
    return meet;
}

/* A nap is short: a wake-up that is missed and a library that needs help cost a millisecond. */
static void nap(struct bench_meet *meet, uint32_t epoch) {
    struct timespec limit = {.tv_nsec = NAP_NS};

    atomic_fetch_add(&meet->sleepers, 1);
    syscall(SYS_futex, &meet->epoch, FUTEX_WAIT, epoch, &limit, NULL, 0);
    atomic_fetch_sub(&meet->sleepers, 1);
}

static void wait_for_change(struct bench_meet *meet, uint32_t epoch, int spins,
                            void (*help)(void *ctx), void *ctx) {
    double end = 0;

    for (int i = 1; atomic_load_explicit(&meet->epoch, memory_order_acquire) == epoch; i++) {
        if (i % SPINS_PER_HELP == 0)
            help(ctx);
        if (i < spins) {
            bench_pause();
            continue;
        }
        nap(meet, epoch);
        help(ctx);
        if (end <= 0)
            end = bench_now_ns() + limit_ns;
        else if (bench_now_ns() > end)
            bench_die("the ranks did not come together within 100 seconds");
    }
}

void bench_meet(struct bench_meet *meet, const struct bench_world *world, void (*help)(void *ctx)) {
    uint32_t epoch = atomic_load_explicit(&meet->epoch, memory_order_acquire);
    int spins = world->ranks > bench_online() ? CROWDED_SPINS : SPINS;

    if (atomic_fetch_add(&meet->come, 1) + 1 < (uint32_t)world->ranks) {
        wait_for_change(meet, epoch, spins, help, world->ctx);
        return;
    }
    atomic_store_explicit(&meet->come, 0, memory_order_relaxed);
    atomic_store(&meet->epoch, epoch + 1);
    if (atomic_load(&meet->sleepers) > 0)
        syscall(SYS_futex, &meet->epoch, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

/* Two pairs per seat in turns: who writes the next one may be ahead of who still reads this one. */
double bench_meet_span(struct bench_meet *meet, const struct bench_world *world,
                       void (*help)(void *ctx), double start, double end) {
    struct seat *mine = &meet->seats[world->rank];
    size_t turn = mine->turn++ % 2;

    mine->start[turn] = start;
    mine->end[turn] = end;
    bench_meet(meet, world, help);
    for (int rank = 0; rank < world->ranks; rank++) {
        const struct seat *seat = &meet->seats[rank];
        if (seat->start[turn] < start)
            start = seat->start[turn];
        if (seat->end[turn] > end)
            end = seat->end[turn];
    }
    return end - start;
}

size_t bench_meet_most(struct bench_meet *meet, const struct bench_world *world,
                       void (*help)(void *ctx), size_t value) {
    return (size_t)bench_meet_span(meet, world, help, 0, (double)value);
}
