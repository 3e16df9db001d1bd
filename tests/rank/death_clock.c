#include "death_clock.h"

int64_t death_clock_limit(int ranks, bool busy) {
    const char *text = getenv("HEM_TEST_DEATH_MS");
    int64_t limit = HEM_MS(text != NULL && *text != '\0' ? atoi(text) : 50);

    if (harness_sanitized() || busy || ranks > 2 * harness_cores())
        limit += harness_slack();
    return limit;
}

void death_clock_stamp(hem_world *world, hem_window *clock) {
    uint64_t now = (uint64_t)harness_now();

    for (int peer = 0; peer < hem_world_size(world); peer++)
        CHECK_OK(hem_fetch_add(clock, peer, 0, now, NULL));
}

void death_clock_check(hem_world *world, hem_window *clock, const char *what, int victim,
                       int64_t called, bool busy) {
    uint64_t when = 0;
    int64_t took;

    CHECK_OK(hem_fetch_add(clock, hem_world_rank(world), 0, 0, &when));
    CHECK(when != 0);
    took = harness_now() - ((int64_t)when > called ? (int64_t)when : called);
    if (took <= death_clock_limit(hem_world_size(world), false))
        return;
    if (took > death_clock_limit(hem_world_size(world), busy))
        harness_fail(__FILE__, __LINE__, "%s: rank %d's death was learnt after %lld us", what,
                     victim, (long long)took / 1000);
    fprintf(stderr, "late: %s: rank %d's death was learnt after %lld us\n", what, victim,
            (long long)took / 1000);
}
