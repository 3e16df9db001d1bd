/*
 * Worlds can be opened and closed over and over, with and without windows left open in them, and
 * nothing stays behind: no file, no mapping, no memory, no thread.
 *
 * hem-test: ranks=1,2,4 modes=processes,threads timeout=60
 */
#include "harness.h"

#include <dirent.h>

struct holdings {
    int files;
    int mappings;
    int threads;
    long resident;
};

static int count_threads(void) {
    DIR *folder = opendir("/proc/self/task");
    int n = 0;

    CHECK(folder != NULL);
    while (readdir(folder))
        n++;
    closedir(folder);
    return n;
}

/* Of threads in one process one looks for all: looking itself takes a file. */
static struct holdings holdings_now(hem_world *world) {
    if (harness_threads() && hem_world_rank(world) != 0)
        return (struct holdings){0};
    return (struct holdings){harness_open_files(), harness_mappings(), count_threads(),
                             harness_resident_kib()};
}

static void use(hem_world *world, int round) {
    hem_window *window = harness_window(world, 5000);

    CHECK_OK(hem_put_signal(window, harness_right(world), 8, "1234567", 8, 0, 1));
    CHECK_OK(hem_wait_signal_from(window, harness_left(world), 0, HEM_EQ, 1, LIMIT));
    if (round % 2)
        harness_destroy(window);
    CHECK_OK(hem_world_close(world));
    if (round % 2 == 0)
        harness_destroy(window);
}

static int inner_rank(hem_world *world, void *arg) {
    use(world, *(int *)arg);
    return 0;
}

/* A world by each of the ways there are. Checks in inner ranks end the process, which is fine. */
static void one(hem_world *world, int round) {
    hem_world *made = NULL;

    CHECK_OK(hem_world_split(world, 0, 0, &made));
    use(made, round);
    CHECK_OK(hem_world_open(NULL, &made));
    use(made, round + 1);
    if (round % 16 == 0)
        CHECK_OK(hem_world_threads(2, inner_rank, &round, NULL));
}

int rank_main(hem_world *world) {
    hem_window *gate = harness_window(world, 0);
    int rounds = harness_rounds(200 / hem_world_size(world));
    struct holdings before;
    struct holdings after;

    for (int round = 0; round < 20; round++)
        one(world, round);
    harness_barrier(gate);
    before = holdings_now(world);
    harness_barrier(gate);
    for (int round = 0; round < rounds; round++)
        one(world, round);
    harness_barrier(gate);
    after = holdings_now(world);
    harness_barrier(gate);
    CHECK(after.files <= before.files + 2);
    CHECK(after.threads <= before.threads + 1);
    /* A sanitizer maps and keeps memory of its own. */
    if (!harness_sanitized()) {
        CHECK(after.mappings <= before.mappings + 24);
        CHECK(after.resident <= before.resident + 4096);
    }
    harness_destroy(gate);
    harness_close(world, HEM_OK);
    return 0;
}
