/*
 * A machine that gives too little is a status and a sentence, not a fault, a signal or a hang: too
 * little address space, too few files, too small files, more threads than can be started. What does
 * fit works.
 *
 * hem-test: modes=alone timeout=60
 */
#include "harness.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    MIB = 1 << 20
};

static const struct limit {
    const char *name;
    int which;
    rlim_t value;
} limits[] = {
    {"8 MiB of address space", RLIMIT_AS, 8 * MIB},
    {"30 MiB of address space", RLIMIT_AS, 30 * MIB},
    {"200 MiB of address space", RLIMIT_AS, 200 * MIB},
    {"3 files", RLIMIT_NOFILE, 3},
    {"4 files", RLIMIT_NOFILE, 4},
    {"6 files", RLIMIT_NOFILE, 6},
    {"files of 0 bytes", RLIMIT_FSIZE, 0},
    {"files of 1 MiB", RLIMIT_FSIZE, MIB},
};

static void check_error(hem_status status) {
    CHECK(status == HEM_ERR_LIMIT || status == HEM_ERR_MEMORY || status == HEM_ERR_SYSTEM);
    CHECK(hem_last_error()[0]);
}

/* Goes as far as it can. */
static void use(hem_world *world) {
    hem_window_options options = {.struct_size = sizeof options, .bytes = 4 * MIB};
    hem_window *window = NULL;
    hem_status status = hem_window_create(world, &options, &window);

    if (status != HEM_OK) {
        check_error(status);
    } else {
        memset(hem_window_memory(window), 1, options.bytes);
        CHECK_OK(hem_put_signal(window, 0, 0, "1234567", 8, 0, 1));
        CHECK_OK(hem_wait_signal(window, 0, HEM_EQ, 1, LIMIT));
        CHECK_OK(hem_window_destroy(window));
    }
    CHECK_OK(hem_world_close(world));
}

static int live_with(const struct limit *limit) {
    struct rlimit value = {limit->value, limit->value};
    hem_world *world = NULL;
    hem_status status;

    CHECK_EQ(setrlimit((__rlimit_resource_t)limit->which, &value), 0);
    status = hem_world_open(NULL, &world);
    if (status == HEM_OK)
        use(world);
    else
        check_error(status);
    return 0;
}

static int thread_rank(hem_world *world, void *unused) {
    (void)unused;
    return hem_world_close(world) == HEM_OK ? 0 : 1;
}

/* The stacks of so many threads do not fit. Those that did start must not wait for the others. */
static int too_many_threads(const struct limit *unused) {
    struct rlimit value = {(rlim_t)2048 * MIB, (rlim_t)2048 * MIB};
    hem_status status;

    (void)unused;
    CHECK_EQ(setrlimit(RLIMIT_AS, &value), 0);
    status = hem_world_threads(600, thread_rank, NULL, NULL);
    CHECK(status != HEM_OK);
    check_error(status);
    CHECK_STATUS(hem_world_threads(INT32_MAX, thread_rank, NULL, NULL), HEM_ERR_LIMIT);
    return 0;
}

static int in_child(const char *what, int (*body)(const struct limit *limit),
                    const struct limit *limit) {
    pid_t child = fork();
    int status = 0;

    CHECK(child >= 0);
    if (child == 0) {
        alarm(25);
        exit(body(limit));
    }
    CHECK(waitpid(child, &status, 0) == child);
    if (status != 0)
        fprintf(stderr, "with %s, the process ended with %#x\n", what, (unsigned)status);
    return status != 0;
}

int main(void) {
    int failed = 0;

    /* A sanitizer needs address space and files of its own. */
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        if (!harness_sanitized() || limits[i].which == RLIMIT_FSIZE)
            failed |= in_child(limits[i].name, live_with, &limits[i]);
    if (!harness_sanitized())
        failed |= in_child("600 threads", too_many_threads, NULL);
    return failed;
}
