#include "bench_tune.h"

#include "bench_child.h"
#include "bench_impl.h"
#include "bench_kind.h"
#include "bench_report.h"
#include "bench_rows.h"
#include "bench_sizes.h"
#include "coll/select.h"
#include "say.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const double child_limit_s = 120;

static const struct {
    enum bench_kind kind;
    hem_coll_kind coll;
    const char *symbol;
} collectives[] = {
    {BENCH_BCAST, HEM_BROADCAST, "HEM_BROADCAST"},
    {BENCH_ALLREDUCE, HEM_ALLREDUCE, "HEM_ALLREDUCE"},
    {BENCH_ALLGATHER, HEM_ALLGATHER, "HEM_ALLGATHER"},
    {BENCH_REDUCE_SCATTER, HEM_REDUCE_SCATTER, "HEM_REDUCE_SCATTER"},
    {BENCH_ALLTOALL, HEM_ALLTOALL, "HEM_ALLTOALL"},
};

enum {
    COLLECTIVES = sizeof(collectives) / sizeof(collectives[0])
};

/* The algorithms that the library has for a collective, by name. */
struct algorithms {
    const char *name[HEMT_ALGORITHMS_MAX];
    size_t count;
};

struct tuning {
    struct hemt_ranks ranks;
    int repeat;
    struct hemt_sizes sizes; /* none: those of each benchmark */
};

/* The rows of one collective at one number of ranks. */
struct result {
    struct hemt_row rows[HEMT_SIZES_MAX];
    size_t count;
};

static bool grows(const struct hemt_sizes *sizes) {
    for (size_t i = 1; i < sizes->count; i++) {
        if (sizes->bytes[i] <= sizes->bytes[i - 1])
            return false;
    }
    return true;
}

static int take_option(int option, char **argv, struct tuning *tuning) {
    const char *error;

    switch (option) {
    case 'n':
        if (!hemt_ranks_parse(optarg, &tuning->ranks))
            return hemt_usage("bench", "-n takes growing numbers from 2 to 4096, such as 2,4,8");
        return 0;
    case 's':
        error = hemt_sizes_parse(optarg, &tuning->sizes);
        if (error == NULL && !grows(&tuning->sizes))
            error = "sizes must grow";
        return error == NULL ? 0 : hemt_usage("bench", "--sizes: %s", error);
    case 'k':
        tuning->repeat = atoi(optarg);
        if (tuning->repeat < 1 || tuning->repeat > 1000)
            return hemt_usage("bench", "--repeat takes a number from 1 to 1000");
        return 0;
    case ':':
        return hemt_usage("bench", "%s takes a value", argv[optind - 1]);
    default:
        return hemt_usage("bench", "tune has no option %s", argv[optind - 1]);
    }
}

static int parse(int argc, char **argv, struct tuning *tuning_p) {
    static const struct option longs[] = {
        {"sizes", required_argument, NULL, 's'},
        {"repeat", required_argument, NULL, 'k'},
        {NULL, 0, NULL, 0},
    };
    int option;

    *tuning_p = (struct tuning){.ranks = {{2, 4, 8}, 3}, .repeat = 3};
    optind = 0;
    while ((option = getopt_long(argc, argv, ":n:", longs, NULL)) != -1) {
        int code = take_option(option, argv, tuning_p);
        if (code != 0)
            return code;
    }
    if (optind < argc)
        return hemt_usage("bench", "tune does not know \"%s\"", argv[optind]);
    return 0;
}

static struct algorithms algorithms_of(size_t collective) {
    struct algorithms found = {.name = {HEMI_DIRECT}, .count = 1};
    size_t count;
    const hemi_algorithm *all = hemi_algorithms(&count);

    for (size_t i = 0; i < count && found.count < HEMT_ALGORITHMS_MAX; i++) {
        if (all[i].kind == collectives[collective].coll)
            found.name[found.count++] = all[i].name;
    }
    return found;
}

static void run_once(size_t collective, const char *algorithm, struct hemt_command *command,
                     struct hemt_report *report) {
    struct hemt_child child;
    char choice[64];

    snprintf(choice, sizeof(choice), "%s=%s", hemi_kind_name(collectives[collective].coll),
             algorithm);
    setenv("HEM_ALGORITHM", choice, 1);
    hemt_child_run(command->argv, child_limit_s, &child);
    if (child.code != 0 || hemt_report_take(report, child.output) == 0) {
        char end[96];
        hemt_end_text(child.code, end, sizeof(end));
        hemt_report_note(report, "%s with %d ranks: %s: %s", choice, report->ranks, end,
                         child.last_line);
    }
    free(child.output);
}

/*
 * Measures all algorithms in turns, each round starting with another. Where the machine moves its
 * cores, more rounds are taken until each algorithm has enough at the same distance.
 */
static const char *measure(const struct tuning *tuning, size_t collective,
                           const struct hemt_sizes *sizes, struct hemt_report *report) {
    static struct hemt_command commands[HEMT_ALGORITHMS_MAX];
    struct algorithms algorithms = algorithms_of(collective);
    enum bench_kind kind = collectives[collective].kind;

    for (size_t a = 0; a < algorithms.count; a++) {
        const char *why =
            hemt_impl_command(HEMT_HEM, kind, report->ranks, sizes, NULL, &commands[a]);
        if (why != NULL)
            return why;
        hemt_command_name(&commands[a], algorithms.name[a]);
    }
    size_t wanted = (size_t)tuning->repeat;
    for (size_t round = 0; round < 3 * wanted; round++) {
        if (round >= wanted && hemt_report_fewest(report) >= wanted)
            break;
        for (size_t i = 0; i < algorithms.count; i++) {
            size_t a = (i + round) % algorithms.count;
            run_once(collective, algorithms.name[a], &commands[a], report);
        }
    }
    return NULL;
}

/*
 * Takes the medians out of the report and shows them. One that is missing is said: a choice in which
 * an algorithm took no part must not look like one that it lost.
 */
static void collect(struct hemt_report *report, const struct algorithms *algorithms,
                    const struct hemt_sizes *sizes, struct hemt_point *points_p) {
    for (size_t i = 0; i < sizes->count; i++) {
        size_t bytes = sizes->bytes[i];
        points_p[i] = (struct hemt_point){.bytes = bytes};
        fprintf(stderr, "%s, %d ranks, %zu bytes, us:", report->bench, report->ranks, bytes);
        for (size_t a = 0; a < algorithms->count; a++) {
            const char *name = algorithms->name[a];
            double us = hemt_report_median(report, name, bytes);
            points_p[i].us[a] = us;
            if (us > 0)
                fprintf(stderr, " %s %.3f", name, us);
            else
                fprintf(stderr, " %s -", name);
            if (us <= 0)
                hemt_report_note(report,
                                 "%s with %d ranks and %zu bytes: no comparable measurement "
                                 "of %s; it took no part in the choice",
                                 report->bench, report->ranks, bytes, name);
        }
        fputc('\n', stderr);
    }
    if (report->notes != NULL)
        fputs(report->notes, stderr);
}

/* Returns false if something failed or could not be compared. */
static bool tune_one(const struct tuning *tuning, size_t collective, int ranks,
                     struct result *result_p) {
    enum bench_kind kind = collectives[collective].kind;
    struct hemt_report report = {.bench = hemt_kind(kind)->name, .ranks = ranks};
    struct algorithms algorithms = algorithms_of(collective);
    struct hemt_point points[HEMT_SIZES_MAX];
    struct hemt_sizes sizes = tuning->sizes;

    if (sizes.count == 0)
        hemt_kind_sizes(kind, ranks, &sizes);
    const char *why = measure(tuning, collective, &sizes, &report);
    if (why != NULL)
        hemt_report_note(&report, "%s: %s", report.bench, why);
    collect(&report, &algorithms, &sizes, points);
    result_p->count = hemt_rows_choose(points, sizes.count, result_p->rows);
    bool whole = result_p->count > 0 && report.notes == NULL;
    hemt_report_free(&report);
    return whole;
}

static bool same(const struct result *a, const struct result *b) {
    for (size_t i = 0; a->count == b->count && i < a->count; i++) {
        if (a->rows[i].bytes != b->rows[i].bytes || a->rows[i].algorithm != b->rows[i].algorithm)
            return false;
    }
    return a->count == b->count;
}

static void print_rows(size_t collective, const char *ranks, const struct result *result) {
    struct algorithms algorithms = algorithms_of(collective);

    for (size_t i = 0; i < result->count; i++) {
        const struct hemt_row *row = &result->rows[i];
        char bytes[32] = "UINT64_MAX";

        if (row->bytes != SIZE_MAX)
            snprintf(bytes, sizeof(bytes), "%zu", row->bytes);
        printf("{%s, %s, %s, \"%s\"},\n", collectives[collective].symbol, ranks, bytes,
               algorithms.name[row->algorithm]);
    }
}

/* Numbers of ranks that want the same are one; the largest stands for all above it, too. */
static void print_collective(const struct tuning *tuning, size_t collective,
                             const struct result *results) {
    for (size_t r = 0; r < tuning->ranks.count; r++) {
        char ranks[16] = "UINT32_MAX";

        if (r + 1 < tuning->ranks.count && same(&results[r], &results[r + 1]))
            continue;
        if (r + 1 < tuning->ranks.count)
            snprintf(ranks, sizeof(ranks), "%d", tuning->ranks.ranks[r]);
        print_rows(collective, ranks, &results[r]);
    }
}

int hemt_tune(int argc, char **argv) {
    static struct result results[HEMT_RANKS_MAX];
    struct tuning tuning;
    bool complete = true;
    int code = parse(argc, argv, &tuning);

    if (code != 0)
        return code;
    puts("/* {kind, ranks up to, bytes up to, algorithm}: the first row that fits counts. Made by\n"
         " * `hem bench tune`. */");
    for (size_t c = 0; c < COLLECTIVES; c++) {
        for (size_t r = 0; r < tuning.ranks.count; r++)
            complete &= tune_one(&tuning, c, tuning.ranks.ranks[r], &results[r]);
        print_collective(&tuning, c, results);
        fflush(stdout);
    }
    return complete ? 0 : 1;
}
