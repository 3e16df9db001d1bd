#include "bench.h"

#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <unistd.h>

_Noreturn static void bad_usage(const char *program, const char *why) {
    fprintf(stderr, "%s: %s\n", program, why);
    fprintf(
        stderr,
        "usage: %s BENCHMARK [-n RANKS] [--memory private|library] [--name NAME] [--shape SHAPE]\n"
        "       [--threads RANKS] --sizes LIST\n",
        program);
    exit(2);
}

static const char *parse_option(const char *option, const char *value, struct bench_args *args) {
    if (strcmp(option, "--sizes") == 0)
        return hemt_sizes_parse(value, &args->sizes);
    if (strcmp(option, "-n") == 0) {
        args->ranks = atoi(value);
        return args->ranks < 1 || args->ranks > 4096
                   ? "the number of ranks must be between 1 and 4096"
                   : NULL;
    }
    if (strcmp(option, "--memory") == 0) {
        args->library = strcmp(value, "library") == 0;
        return args->library || strcmp(value, "private") == 0 ? NULL
                                                              : "memory is private or library";
    }
    if (strcmp(option, "--name") == 0) {
        args->name = value;
        return value[0] != '\0' ? NULL : "--name takes a name";
    }
    if (strcmp(option, "--shape") == 0)
        return hemt_shape_read(value, &args->shape);
    if (strcmp(option, "--threads") == 0) {
        args->threads = atoi(value);
        return args->threads < 1 || args->threads > 4096 ? "threads are 1 to 4096" : NULL;
    }
    return "unknown option";
}

void bench_args_parse(int argc, char **argv, struct bench_args *args_p) {
    *args_p = (struct bench_args){.ranks = 2};
    if (argc < 2)
        bad_usage(argv[0], "which benchmark?");
    if (!hemt_kind_find(argv[1], &args_p->kind))
        bad_usage(argv[0], "there is no such benchmark");

    for (int i = 2; i < argc; i += 2) {
        const char *error = parse_option(argv[i], i + 1 < argc ? argv[i + 1] : "", args_p);
        if (error != NULL)
            bad_usage(argv[0], error);
    }
    if (args_p->sizes.count == 0 && args_p->kind != BENCH_BARRIER)
        bad_usage(argv[0], "--sizes is missing");
    hemt_shape_fill(args_p->kind, &args_p->shape);
}

_Noreturn void bench_die(const char *format, ...) {
    char text[1024];
    va_list list;

    va_start(list, format);
    vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    /* One write, and a beginning by which the driver tells it from what launchers say after it. */
    fprintf(stderr, "hem-bench: %s\n", text);
    fflush(stderr);
    _exit(3);
}

void *bench_alloc(size_t bytes) {
    void *memory;

    if (posix_memalign(&memory, 4096, bytes) != 0)
        bench_die("no memory for a buffer of %zu bytes", bytes);
    memset(memory, 0, bytes);
    return memory;
}

size_t bench_window(size_t bytes) {
    size_t count = ((size_t)4 << 20) / bytes;

    return count < 1 ? 1 : count > 64 ? 64 : count;
}

size_t bench_region(const struct hemt_sizes *sizes) {
    const size_t page = 4096;
    size_t largest = page;

    for (size_t i = 0; i < sizes->count; i++) {
        size_t bytes = sizes->bytes[i] * bench_window(sizes->bytes[i]);
        if (bytes > largest)
            largest = bytes;
    }
    return (largest + page - 1) / page * page;
}

int bench_cpus(void) {
    cpu_set_t set;

    if (sched_getaffinity(0, sizeof(set), &set) != 0)
        return 1;
    return CPU_COUNT(&set);
}

int bench_online(void) {
    static int online;

    if (online == 0)
        online = get_nprocs();
    return online;
}

void bench_pin(int index) {
    cpu_set_t allowed;
    cpu_set_t one;
    int seen = 0;

    if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0)
        return;
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, &allowed) || seen++ != index)
            continue;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        sched_setaffinity(0, sizeof(one), &one);
        return;
    }
}

void bench_print(const struct bench_world *world, const char *impl, enum bench_kind kind,
                 size_t bytes, struct bench_result result, size_t parts) {
    double us = result.ns / (double)parts / 1000;
    double gbps = us > 0 ? (double)bytes / us / 1000 : 0;

    if (world->rank != 0)
        return;
    printf("{\"bench\":\"%s\",\"impl\":\"%s\",\"ranks\":%d,\"bytes\":%zu,\"us\":%.4f,"
           "\"gbps\":%.4f,\"line_ns\":%.1f}\n",
           hemt_kind(kind)->name, impl != NULL ? impl : world->impl, world->ranks, bytes, us, gbps,
           result.line_ns);
    fflush(stdout);
}

static void print_count(const char *name, size_t count) {
    if (count > 0)
        printf(",\"%s\":%zu", name, count);
}

void bench_print_more(const struct bench_world *world, const char *impl, enum bench_kind kind,
                      size_t size, struct bench_result result, const struct bench_more *more) {
    double us = result.ns / 1000;
    double gbps = us > 0 ? (double)more->moved / us / 1000 : 0;

    if (world->rank != 0)
        return;
    printf("{\"bench\":\"%s\",\"impl\":\"%s\",\"ranks\":%d,\"bytes\":%zu,\"us\":%.4f,"
           "\"gbps\":%.4f,\"line_ns\":%.1f",
           hemt_kind(kind)->name, impl != NULL ? impl : world->impl, world->ranks, size, us, gbps,
           result.line_ns);
    print_count("moved", more->moved);
    print_count("messages", more->messages);
    print_count("peak", more->peak);
    puts("}");
    fflush(stdout);
}
