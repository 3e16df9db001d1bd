#include "harness.h"

#include <dirent.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

/* One per thread: which rank it works for, and where a failed check goes. */
struct context {
    jmp_buf escape;
    bool can_escape;
    bool seeded;
    hem_world *world;
    int rank;
    uint64_t seed;
    const char *step;
    uint64_t step_number;
};

static _Thread_local struct context here = {.rank = -1};
static bool ranks_are_threads;

/* Failing. */

void harness_fail(const char *file, int line, const char *format, ...) {
    char text[1024];
    char seed[64] = "";
    char step[96] = "";
    va_list list;

    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    if (here.seeded)
        snprintf(seed, sizeof seed, " (HEM_SEED=%llu)", (unsigned long long)here.seed);
    if (here.step)
        snprintf(step, sizeof step, "%s %llu: ", here.step, (unsigned long long)here.step_number);
    fprintf(stderr, "%s:%d: rank %d: %s%s%s\n", file, line, here.rank, step, text, seed);
    if (here.world)
        hem_world_revoke(here.world);
    if (here.can_escape)
        longjmp(here.escape, 1);
    exit(1);
}

void harness_check_equal(const char *file, int line, const char *what, uint64_t got,
                         uint64_t want) {
    if (got != want)
        harness_fail(file, line, "%s is %llu (%#llx), not %llu (%#llx)", what,
                     (unsigned long long)got, (unsigned long long)got, (unsigned long long)want,
                     (unsigned long long)want);
}

void harness_check_status(const char *file, int line, const char *what, hem_status got,
                          hem_status want) {
    if (got != want)
        harness_fail(file, line, "%s gave %s, not %s; last error: \"%s\"", what,
                     hem_status_name(got), hem_status_name(want), hem_last_error());
    if (want != HEM_OK && !hem_last_error()[0])
        harness_fail(file, line, "%s gave %s without a sentence", what, hem_status_name(got));
}

void harness_check_sentence(const char *file, int line, const char *part) {
    if (!strstr(hem_last_error(), part))
        harness_fail(file, line, "no \"%s\" in the sentence \"%s\"", part, hem_last_error());
}

void harness_check_names_rank(const char *file, int line, int rank) {
    char who[32];
    size_t length = (size_t)snprintf(who, sizeof who, "rank %d", rank);
    const char *at = strstr(hem_last_error(), who);

    while (at && at[length] >= '0' && at[length] <= '9')
        at = strstr(at + 1, who);
    if (!at)
        harness_fail(file, line, "no \"%s\" in the sentence \"%s\"", who, hem_last_error());
}

static uint8_t fill_byte(uint64_t tag, size_t i) {
    return (uint8_t)(tag * 151 + (tag >> 8) * 17 + i * 7 + (i >> 8) * 13 + (i >> 16) * 29);
}

void harness_fill(void *bytes, size_t n, uint64_t tag) {
    uint8_t *to = bytes;

    for (size_t i = 0; i < n; i++)
        to[i] = fill_byte(tag, i);
}

void harness_check_filled(const char *file, int line, const void *bytes, size_t n, uint64_t tag) {
    const uint8_t *from = bytes;

    for (size_t i = 0; i < n; i++)
        if (from[i] != fill_byte(tag, i))
            harness_fail(file, line, "byte %zu of %zu is %#x, not %#x", i, n, from[i],
                         fill_byte(tag, i));
}

void harness_check_all(const char *file, int line, const void *bytes, size_t n, uint8_t value) {
    const uint8_t *from = bytes;

    for (size_t i = 0; i < n; i++)
        if (from[i] != value)
            harness_fail(file, line, "byte %zu of %zu is %#x, not %#x", i, n, from[i], value);
}

/* Running. */

int harness_run(hem_world *world, harness_body body) {
    int failed = 1;

    here.world = world;
    here.rank = hem_world_rank(world);
    here.can_escape = true;
    if (setjmp(here.escape) == 0)
        failed = body(world);
    here.can_escape = false;
    here.world = NULL;
    return failed ? 1 : 0;
}

void harness_close(hem_world *world, hem_status want) {
    if (world == here.world)
        here.world = NULL;
    CHECK_STATUS(hem_world_close(world), want);
}

void harness_note_rank(int rank) {
    here.rank = rank;
}

void harness_step(const char *what, uint64_t number) {
    here.step = what;
    here.step_number = number;
}

void harness_forget(void) {
    here.world = NULL;
}

bool harness_threads(void) {
    return ranks_are_threads;
}

void harness_set_threads(void) {
    ranks_are_threads = true;
}

static void *thread_main(void *arg) {
    harness_thread *thread = arg;
    const struct context *parent = thread->parent;

    here.world = parent->world;
    here.rank = parent->rank;
    here.seed = parent->seed;
    here.seeded = parent->seeded;
    here.can_escape = true;
    if (setjmp(here.escape) == 0)
        thread->body(thread->arg);
    else
        thread->failed = true;
    return NULL;
}

void harness_start(harness_thread *thread, void (*body)(void *arg), void *arg) {
    *thread = (harness_thread){.body = body, .arg = arg, .parent = &here};
    CHECK_EQ(pthread_create(&thread->id, NULL, thread_main, thread), 0);
}

void harness_join(harness_thread *threads, int count) {
    bool failed = false;

    for (int i = 0; i < count; i++) {
        CHECK_EQ(pthread_join(threads[i].id, NULL), 0);
        failed |= threads[i].failed;
    }
    if (failed)
        harness_fail(__FILE__, __LINE__, "a thread of this rank failed");
}

/* Time and amount. */

int64_t harness_now(void) {
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

void harness_sleep_ms(int ms) {
    struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};

    nanosleep(&t, NULL);
}

void harness_dither(uint64_t dice) {
    if (dice % 32 == 0)
        sched_yield();
    else if (dice % 4 == 0)
        for (volatile uint64_t i = 0; i < dice % 512; i++)
            continue;
}

static long from_environment(const char *name, long otherwise) {
    const char *text = getenv(name);

    return text && *text ? strtol(text, NULL, 0) : otherwise;
}

int64_t harness_slack(void) {
    return HEM_MS(from_environment("HEM_TEST_SLACK_MS", harness_sanitized() ? 1000 : 200));
}

bool harness_sanitized(void) {
    return HARNESS_SANITIZED;
}

int harness_rounds(int n) {
    if (from_environment("HEM_SOAK", 0))
        n *= 20;
    if (harness_sanitized())
        n = n / 8 + 1;
    return n;
}

int harness_cores(void) {
    cpu_set_t set;

    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return 1;
    return CPU_COUNT(&set);
}

/* Random numbers. */

uint64_t harness_random(harness_rng *rng) {
    uint64_t z = rng->state += 0x9e3779b97f4a7c15;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

size_t harness_below(harness_rng *rng, size_t below) {
    return below ? (size_t)(harness_random(rng) % below) : 0;
}

harness_rng harness_rng_of(uint64_t seed, uint64_t a, uint64_t b) {
    harness_rng rng = {seed};

    rng.state = harness_random(&rng) + a;
    rng.state = harness_random(&rng) + b;
    return rng;
}

void harness_note_seed(uint64_t seed) {
    here.seed = seed;
    here.seeded = true;
}

uint64_t harness_seed(hem_world *world) {
    const char *given = getenv("HEM_SEED");
    uint64_t seed = (uint64_t)harness_now() % 1000000007;
    hem_window *window;

    if (given && *given)
        seed = strtoull(given, NULL, 0);
    window = harness_window(world, sizeof seed);
    if (hem_world_rank(world) == 0)
        for (int peer = 0; peer < hem_world_size(world); peer++)
            CHECK_OK(hem_put(window, peer, 0, &seed, sizeof seed));
    harness_barrier(window);
    memcpy(&seed, hem_window_memory(window), sizeof seed);
    harness_destroy(window);
    harness_note_seed(seed);
    return seed;
}

/* What a process holds. */

int harness_open_files(void) {
    DIR *folder = opendir("/proc/self/fd");
    int n = 0;

    CHECK(folder != NULL);
    while (readdir(folder))
        n++;
    closedir(folder);
    return n;
}

int harness_mappings(void) {
    FILE *file = fopen("/proc/self/maps", "r");
    int n = 0;

    CHECK(file != NULL);
    for (int c = getc(file); c != EOF; c = getc(file))
        n += c == '\n';
    fclose(file);
    return n;
}

long harness_resident_kib(void) {
    FILE *file = fopen("/proc/self/statm", "r");
    long total;
    long resident;

    CHECK(file != NULL);
    CHECK(fscanf(file, "%ld %ld", &total, &resident) == 2);
    fclose(file);
    return resident * (sysconf(_SC_PAGESIZE) / 1024);
}
