#include "bench.h"

#include "bench_child.h"
#include "bench_help.h"
#include "bench_impl.h"
#include "bench_kind.h"
#include "bench_report.h"
#include "bench_shape.h"
#include "bench_sizes.h"
#include "bench_tune.h"
#include "say.h"

#include <getopt.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const double child_limit_s = 120;
static const double gpu_limit_s = 240;

/* Rounds beyond those asked for are begun in this time only; the many sizes of messages and
 * collectives take long enough without. */
static const time_t more_rounds_s = 120;
static const time_t more_rounds_together_s = 60;

/* An implementation that fails this often is not asked again. */
enum {
    MOST_FAILURES = 2,
    SKIPPED = 77 /* the exit code of a runner that lacks something */
};

/* Options of the shape have these numbers. */
enum {
    SHAPE = 256
};

struct options {
    enum bench_kind kind;
    struct hemt_ranks ranks; /* none: by default */
    int repeat;              /* 0: by default */
    bool json;
    bool use[HEMT_IMPLS];
    struct hemt_sizes sizes;
    struct hemt_shape shape;
    const char *blocks; /* on GPUs; NULL: by default */
    bool processes;
};

struct contender {
    enum hemt_impl impl;
    int ranks;
    double limit_s;
    struct hemt_command command;
    int runs;
    int failures;
};

static bool parse_int(const char *text, int least, int most, int *number_p) {
    char *end;
    long number = strtol(text, &end, 10);

    if (end == text || *end != '\0' || number < least || number > most)
        return false;
    *number_p = (int)number;
    return true;
}

static bool parse_peers(const char *text, bool use[HEMT_IMPLS]) {
    bool all = strcmp(text, "all") == 0;

    for (enum hemt_impl impl = HEMT_OPENMPI; impl < HEMT_IMPLS; impl++)
        use[impl] = all;
    if (all || strcmp(text, "none") == 0)
        return true;
    for (;;) {
        size_t length = strcspn(text, ",");
        enum hemt_impl impl = HEMT_OPENMPI;
        while (impl < HEMT_IMPLS && (strlen(hemt_impl_name(impl)) != length ||
                                     strncmp(hemt_impl_name(impl), text, length) != 0))
            impl++;
        if (impl == HEMT_IMPLS)
            return false;
        use[impl] = true;
        if (text[length] == '\0')
            return true;
        text += length + 1;
    }
}

static int take_shape(enum hemt_trait trait, const char *value, struct options *options) {
    const char *error = hemt_shape_set(hemt_trait_name(trait), value, &options->shape);

    return error == NULL ? 0 : hemt_usage("bench", "%s", error);
}

static const char *pattern_value(const char *name) {
    return strcmp(name, "mesh") == 0 ? "1" : strcmp(name, "grid") == 0 ? "0" : "";
}

static int take_blocks(const char *list, struct options *options) {
    struct hemt_sizes blocks = {.count = 0};
    bool good = strlen(list) < HEMT_BLOCKS_TEXT && hemt_sizes_parse(list, &blocks) == NULL;

    for (size_t i = 0; i < blocks.count; i++)
        good &= blocks.bytes[i] <= 64;
    options->blocks = list;
    return good ? 0 : hemt_usage("bench", "--blocks takes numbers from 1 to 64, as in 4,8,16");
}

/* Takes one option. Returns 0, or the exit code. */
static int take_option(int option, char **argv, struct options *options) {
    const char *error;

    switch (option) {
    case 'n':
        if (!hemt_ranks_parse(optarg, &options->ranks))
            return hemt_usage("bench", "-n takes a number from 2 to 4096");
        return 0;
    case 's':
        error = hemt_sizes_parse(optarg, &options->sizes);
        return error == NULL ? 0 : hemt_usage("bench", "--sizes: %s", error);
    case 'p':
        if (!parse_peers(optarg, options->use))
            return hemt_usage("bench",
                              "--peers takes all, none, or some of openmpi,mpich,ucx,nccl,nvshmem");
        return 0;
    case 'k':
        if (!parse_int(optarg, 1, 1000, &options->repeat))
            return hemt_usage("bench", "--repeat takes a number from 1 to 1000");
        return 0;
    case 'b':
        return take_blocks(optarg, options);
    case 'P':
        options->processes = true;
        return 0;
    case 'j':
        options->json = true;
        return 0;
    case ':':
        return hemt_usage("bench", "%s takes a value", argv[optind - 1]);
    case SHAPE + HEMT_PERIODIC:
        return take_shape(HEMT_PERIODIC, "1", options);
    case SHAPE + HEMT_MESH:
        return take_shape(HEMT_MESH, pattern_value(optarg), options);
    default:
        if (option >= SHAPE)
            return take_shape((enum hemt_trait)(option - SHAPE), optarg, options);
        return hemt_usage("bench", "there is no option %s", argv[optind - 1]);
    }
}

static int rounds_by_default(const struct options *options) {
    const struct hemt_kind *kind = hemt_kind(options->kind);

    if (kind->lists)
        return 2;
    if (options->kind >= BENCH_GRID)
        return 3;
    return kind->together && options->ranks.ranks[0] > hemt_impl_cpus() ? 3 : 5;
}

/* What was not said, for the benchmark that was chosen. */
static void fill_defaults(struct options *options) {
    if (options->sizes.count == 0)
        hemt_shape_sizes(options->kind, &options->shape, options->ranks.ranks[0], &options->sizes);
    if (options->repeat == 0)
        options->repeat = rounds_by_default(options);
    for (enum hemt_impl impl = 0; impl < HEMT_IMPLS; impl++)
        options->use[impl] &= hemt_impl_takes_part(impl, options->kind);
}

static int take_bench(int argc, char **argv, struct options *options) {
    if (optind >= argc)
        return hemt_usage("bench", "which benchmark?");
    if (optind + 1 < argc)
        return hemt_usage("bench", "one benchmark at a time: what is \"%s\"?", argv[optind + 1]);
    if (!hemt_kind_find(argv[optind], &options->kind))
        return hemt_usage("bench", "there is no benchmark \"%s\"", argv[optind]);
    const struct hemt_kind *kind = hemt_kind(options->kind);
    if (options->ranks.count == 0 &&
        !hemt_ranks_parse(kind->ranks != NULL ? kind->ranks : "2", &options->ranks))
        return hemt_usage("bench", "there is no number of ranks");
    if (options->ranks.count > 1 && !kind->lists)
        return hemt_usage("bench", "%s takes one number of ranks", kind->name);
    hemt_shape_fill(options->kind, &options->shape);
    const char *why = hemt_kind_refuses(options->kind, options->ranks.ranks[0], &options->sizes);
    if (why == NULL && !kind->gpu && (options->blocks != NULL || options->processes))
        why = "--blocks and --processes are for benchmarks on GPUs";
    if (why == NULL)
        why = hemt_shape_refuses(options->kind, &options->shape, &options->sizes);
    if (why != NULL)
        return hemt_usage("bench", "%s", why);
    fill_defaults(options);
    return 0;
}

/* Returns -1 to go on, or the exit code. */
static int parse(int argc, char **argv, struct options *options_p) {
    static const struct option longs[] = {
        {"sizes", required_argument, NULL, 's'},
        {"peers", required_argument, NULL, 'p'},
        {"repeat", required_argument, NULL, 'k'},
        {"json", no_argument, NULL, 'j'},
        {"blocks", required_argument, NULL, 'b'},
        {"processes", no_argument, NULL, 'P'},
        {"help", no_argument, NULL, 'h'},
        {"dims", required_argument, NULL, SHAPE + HEMT_DIMS},
        {"halo", required_argument, NULL, SHAPE + HEMT_HALO},
        {"fields", required_argument, NULL, SHAPE + HEMT_FIELDS},
        {"levels", required_argument, NULL, SHAPE + HEMT_LEVELS},
        {"axis", required_argument, NULL, SHAPE + HEMT_AXIS},
        {"periodic", no_argument, NULL, SHAPE + HEMT_PERIODIC},
        {"hops", required_argument, NULL, SHAPE + HEMT_HOPS},
        {"pattern", required_argument, NULL, SHAPE + HEMT_MESH},
        {NULL, 0, NULL, 0},
    };
    int option;

    *options_p = (struct options){.repeat = 0};
    for (enum hemt_impl impl = 0; impl < HEMT_IMPLS; impl++)
        options_p->use[impl] = true;
    optind = 0;
    while ((option = getopt_long(argc, argv, ":n:h", longs, NULL)) != -1) {
        if (option == 'h') {
            hemt_bench_help();
            return 0;
        }
        int code = take_option(option, argv, options_p);
        if (code != 0)
            return code;
    }
    int code = take_bench(argc, argv, options_p);
    return code != 0 ? code : -1;
}

static void show_progress(const struct options *options, int round, int done, int total,
                          const char *name) {
    const int width = 24;
    int rounds = round < options->repeat ? options->repeat : round + 1;
    int filled = total > 0 ? done * width / total : 0;

    if (!isatty(STDERR_FILENO))
        return;
    fprintf(stderr, "\r\033[K%s [", hemt_kind(options->kind)->name);
    for (int i = 0; i < width; i++)
        fputc(i < filled ? '#' : '.', stderr);
    fprintf(stderr, "] round %d of %d: %s", round + 1, rounds, name);
    if (round >= options->repeat)
        fputs(" (once more: the cores moved)", stderr);
    fflush(stderr);
}

static void clear_progress(void) {
    if (isatty(STDERR_FILENO))
        fputs("\r\033[K", stderr);
}

static void run_once(struct contender *contender, struct hemt_report *report) {
    struct hemt_child child;

    contender->runs++;
    hemt_child_run(contender->command.argv, contender->limit_s, &child);
    size_t taken = hemt_report_take(report, child.output);
    if (child.code == SKIPPED) {
        contender->failures = MOST_FAILURES;
        hemt_report_note(report, "%s: not measured, %s", hemt_impl_name(contender->impl),
                         child.last_line);
    } else if (child.code != 0 || taken == 0) {
        char end[96];
        hemt_end_text(child.code, end, sizeof(end));
        contender->failures++;
        hemt_report_note(report, "%s with %d ranks: %s%s%s%s", hemt_impl_name(contender->impl),
                         contender->ranks, child.timed_out ? "ran out of time and " : "", end,
                         child.last_line[0] != '\0' ? ": " : "", child.last_line);
    }
    free(child.output);
}

/* Each round begins with another contender, so that nobody is always first after a pause. */
static void run_round(const struct options *options, struct contender *contenders, int count,
                      int round, struct hemt_report *report) {
    for (int i = 0; i < count; i++) {
        struct contender *contender = &contenders[(i + round) % count];
        if (contender->failures >= MOST_FAILURES)
            continue;
        int total = options->repeat > round ? options->repeat * count : (round + 1) * count;
        show_progress(options, round, round * count + i, total, hemt_impl_name(contender->impl));
        run_once(contender, report);
    }
    report->rounds = round + 1;
}

static int line_up(const struct options *options, struct contender *contenders,
                   struct hemt_report *report) {
    int count = 0;

    for (size_t r = 0; r < options->ranks.count; r++) {
        for (enum hemt_impl impl = 0; impl < HEMT_IMPLS; impl++) {
            struct contender *contender = &contenders[count];
            int ranks = options->ranks.ranks[r];
            if (!options->use[impl])
                continue;
            contender->limit_s = hemt_kind(options->kind)->gpu ? gpu_limit_s : child_limit_s;
            contender->command.processes = options->processes;
            if (options->blocks != NULL)
                snprintf(contender->command.blocks, sizeof(contender->command.blocks), "%s",
                         options->blocks);
            const char *why = hemt_impl_command(
                impl, options->kind, ranks, &options->sizes,
                options->kind >= BENCH_GRID ? &options->shape : NULL, &contender->command);
            if (why != NULL) {
                hemt_report_note(report, "%s: not measured, %s", hemt_impl_name(impl), why);
                continue;
            }
            contender->impl = impl;
            contender->ranks = ranks;
            count++;
        }
    }
    return count;
}

/* Takes rounds until there are enough, or it has taken too long. */
static void run_rounds(const struct options *options, struct contender *contenders, int count,
                       struct hemt_report *report) {
    const struct hemt_kind *kind = hemt_kind(options->kind);
    time_t limit =
        kind->together || options->kind >= BENCH_GRID ? more_rounds_together_s : more_rounds_s;
    time_t start = time(NULL);

    for (int round = 0; round < 3 * options->repeat; round++) {
        bool enough = hemt_report_fewest(report) >= (size_t)options->repeat;
        if (round >= options->repeat && (enough || kind->gpu || time(NULL) - start > limit))
            break;
        run_round(options, contenders, count, round, report);
    }
    clear_progress();
}

int hemt_bench(int argc, char **argv) {
    static struct contender contenders[HEMT_IMPLS * HEMT_RANKS_MAX];
    struct options options;
    char about[160];

    if (argc > 1 && strcmp(argv[1], "tune") == 0)
        return hemt_tune(argc - 1, argv + 1);
    int code = parse(argc, argv, &options);
    if (code >= 0)
        return code;
    hemt_shape_describe(options.kind, &options.shape, about, sizeof(about));
    struct hemt_report report = {
        .bench = hemt_kind(options.kind)->name,
        .about = about,
        .ranks = hemt_kind(options.kind)->lists ? 0 : options.ranks.ranks[0],
    };
    const char *subject = options.use[HEMT_HEM] ? "hem" : "raw";
    int count = line_up(&options, contenders, &report);
    run_rounds(&options, contenders, count, &report);
    setlocale(LC_CTYPE, "");
    if (options.json)
        hemt_report_json(&report);
    else
        hemt_report_table(&report, isatty(STDOUT_FILENO));
    bool some = hemt_kind(options.kind)->gpu ? hemt_report_has_some(&report, subject)
                                             : hemt_report_has(&report, subject);
    code = some ? 0 : 1;
    hemt_report_free(&report);
    return code;
}
