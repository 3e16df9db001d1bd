#include "campaign.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SOAK_TIMES 50

#if defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

void sim_check_equal(const char *file, int line, const char *what, uint64_t got, uint64_t want) {
    if (got != want)
        sim_fail(file, line, "%s is %" PRIu64 ", not %" PRIu64, what, got, want);
}

void sim_check_status(const char *file, int line, const char *what, hem_status got,
                      hem_status want) {
    sim_note((uint64_t)(int64_t)got);
    if (got != want)
        sim_fail(file, line, "%s gave %s, not %s: %.200s", what, hem_status_name(got),
                 hem_status_name(want), hem_last_error());
    if (want != HEM_OK && hem_last_error()[0] == '\0')
        sim_fail(file, line, "%s gave %s without a sentence", what, hem_status_name(got));
}

uint64_t sim_seeds(uint64_t seeds) {
    const char *soak = getenv("HEM_SOAK");
    if (soak != NULL && soak[0] != '\0' && soak[0] != '0')
        return seeds * SOAK_TIMES;
    return SANITIZED ? (seeds + 9) / 10 : seeds;
}

/* Every wait sleeps at once in most runs; in some it spins and yields a little before. */
static void choose_waiting(uint64_t seed) {
    setenv("HEM_SPIN", seed % 8 == 7 ? "3" : "0", 1);
    setenv("HEM_YIELD_US", seed % 8 >= 6 ? "1" : "0", 1);
}

sim_outcome sim_once(const sim_program *program, int ranks, uint64_t seed, sim_mutant mutant) {
    choose_waiting(seed);
    const sim_setup setup = {
        .program = program->name,
        .ranks = ranks,
        .seed = seed,
        .mutant = mutant,
        .timeout_ns = program->timeout_ns,
    };
    return sim_run(&setup, program->fn, program->arg);
}

static void must_end_well(const sim_program *program, int ranks, uint64_t seed) {
    sim_outcome outcome = sim_once(program, ranks, seed, SIM_HONEST);
    if (outcome.status == HEM_OK)
        return;
    fprintf(stderr,
            "%s\n%s, %d ranks, seed %" PRIu64 " failed; repeat it with HEM_SEED=%" PRIu64 "\n",
            hem_last_error(), program->name, ranks, seed, seed);
    _exit(SIM_EXIT_FAILED);
}

void sim_many(const sim_program *program, int ranks, uint64_t seeds) {
    const char *one = getenv("HEM_SEED");
    if (one != NULL && one[0] != '\0') {
        must_end_well(program, ranks, strtoull(one, NULL, 10));
        return;
    }
    seeds = sim_seeds(seeds);
    for (uint64_t seed = 1; seed <= seeds; seed++)
        must_end_well(program, ranks, seed);
}

/* In the child of sim_apart. */
static _Noreturn void run_apart(const sim_program *program, int ranks, uint64_t seed,
                                sim_mutant mutant, int out) {
    int null = open("/dev/null", O_WRONLY);
    dup2(null, STDERR_FILENO);
    sim_outcome outcome = sim_once(program, ranks, seed, mutant);
    bool told = write(out, &outcome, sizeof outcome) == (ssize_t)sizeof outcome;
    _exit(told && outcome.status == HEM_OK ? 0 : SIM_EXIT_FAILED);
}

int sim_apart(const sim_program *program, int ranks, uint64_t seed, sim_mutant mutant,
              sim_outcome *outcome_p) {
    int ends[2];
    if (pipe(ends) != 0)
        return -1;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        run_apart(program, ranks, seed, mutant, ends[1]);
    close(ends[1]);
    int status = -1;
    bool told = read(ends[0], outcome_p, sizeof *outcome_p) == (ssize_t)sizeof *outcome_p;
    close(ends[0]);
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status))
        return -1;
    return WEXITSTATUS(status) == 0 && !told ? -1 : WEXITSTATUS(status);
}

hem_window *sim_window(hem_world *world, size_t bytes) {
    const hem_window_options options = {.struct_size = sizeof options, .bytes = bytes};
    hem_window *window = NULL;
    SIM_OK(hem_window_create(world, &options, &window));
    return window;
}

int sim_right(const hem_world *world) {
    return (hem_world_rank(world) + 1) % hem_world_size(world);
}

int sim_left(const hem_world *world) {
    return (hem_world_rank(world) + hem_world_size(world) - 1) % hem_world_size(world);
}

static unsigned char pattern(uint64_t tag, size_t i) {
    uint64_t mixed = (tag + 1) * 0x9e3779b97f4a7c15u + i * 0xbf58476d1ce4e5b9u;
    return (unsigned char)(mixed >> 56);
}

void sim_fill(void *bytes, size_t n, uint64_t tag) {
    unsigned char *b = bytes;
    for (size_t i = 0; i < n; i++)
        b[i] = pattern(tag, i);
}

bool sim_filled(const void *bytes, size_t n, uint64_t tag) {
    const unsigned char *b = bytes;
    for (size_t i = 0; i < n; i++)
        if (b[i] != pattern(tag, i))
            return false;
    return true;
}
