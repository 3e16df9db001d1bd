#include "bench.h"

#include "bench_child.h"
#include "bench_impl.h"
#include "bench_report.h"
#include "bench_sizes.h"
#include "say.h"

#include <getopt.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const double child_limit_s = 120;

/* Rounds beyond those asked for are begun in this time only. */
static const time_t more_rounds_s = 120;

/* An implementation that fails this often is not asked again. */
enum {
    MOST_FAILURES = 2
};

static const struct {
    const char *name;
    const char *sizes;
} benches[] = {
    {"raw", "8,4k,64k,1M,16M"}, {"signal", "8,64,512,4k,64k"},
    {"put", "4k,64k,1M,16M"},   {"get", "4k,64k,1M,16M"},
    {"barrier", NULL},
};

struct options {
    const char *bench;
    int ranks;
    int repeat;
    bool json;
    bool use[HEMT_IMPLS];
    struct hemt_sizes sizes;
};

struct contender {
    enum hemt_impl impl;
    struct hemt_command command;
    int runs;
    int failures;
};

static void print_help(void) {
    fputs(
        "usage: hem bench raw|signal|put|get|barrier [-n RANKS] [--sizes LIST]\n"
        "                 [--peers LIST|all|none] [--json] [--repeat K]\n"
        "\n"
        "Measures Hem, the bare hardware and other libraries alternating, and prints medians.\n"
        "\n"
        "  raw      the hardware alone: a cache line between two cores, and memcpy\n"
        "  signal   half round trip of a put of n bytes and its signal\n"
        "  put      puts of n bytes back to back, then flush and a handshake\n"
        "  get      gets of n bytes back to back\n"
        "  barrier  one barrier of all ranks\n"
        "\n"
        "  -n RANKS       number of ranks (default 2; only barrier takes another number)\n"
        "  --sizes LIST   message sizes in bytes, such as 8,4k,1M\n"
        "  --peers LIST   which libraries to compare with: openmpi, mpich, ucx (default all)\n"
        "  --json         one object per line; gbps counts 10^9 bytes per second, 0 for barrier\n"
        "  --repeat K     rounds, each starting with another library (default 5)\n"
        "\n"
        "raw is a message in one cache line, raw-2line a flag line and data lines, raw-bounce one\n"
        "line that both sides write, raw-memcpy a memcpy into shared memory. Where the machine\n"
        "moves its cores during the run (virtual machines do), up to three times as many rounds\n"
        "are taken, and only measurements with the cores at the same distance are compared.\n",
        stdout);
}

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

/* Takes one option. Returns 0, or the exit code. */
static int take_option(int option, char **argv, struct options *options) {
    const char *error;

    switch (option) {
    case 'n':
        if (!parse_int(optarg, 2, 4096, &options->ranks))
            return hemt_usage("bench", "-n takes a number from 2 to 4096");
        return 0;
    case 's':
        error = hemt_sizes_parse(optarg, &options->sizes);
        return error == NULL ? 0 : hemt_usage("bench", "--sizes: %s", error);
    case 'p':
        if (!parse_peers(optarg, options->use))
            return hemt_usage("bench", "--peers takes all, none, or some of openmpi,mpich,ucx");
        return 0;
    case 'k':
        if (!parse_int(optarg, 1, 1000, &options->repeat))
            return hemt_usage("bench", "--repeat takes a number from 1 to 1000");
        return 0;
    case 'j':
        options->json = true;
        return 0;
    case ':':
        return hemt_usage("bench", "%s takes a value", argv[optind - 1]);
    default:
        return hemt_usage("bench", "there is no option %s", argv[optind - 1]);
    }
}

static int take_bench(int argc, char **argv, struct options *options) {
    const char *sizes = NULL;

    if (optind >= argc)
        return hemt_usage("bench", "which benchmark? raw, signal, put, get or barrier");
    if (optind + 1 < argc)
        return hemt_usage("bench", "one benchmark at a time: what is \"%s\"?", argv[optind + 1]);
    for (size_t i = 0; i < sizeof(benches) / sizeof(benches[0]); i++) {
        if (strcmp(argv[optind], benches[i].name) == 0) {
            options->bench = benches[i].name;
            sizes = benches[i].sizes;
        }
    }
    if (options->bench == NULL)
        return hemt_usage("bench", "there is no benchmark \"%s\"", argv[optind]);
    if (sizes == NULL && options->sizes.count > 0)
        return hemt_usage("bench", "a barrier has no sizes");
    if (sizes != NULL && options->ranks != 2)
        return hemt_usage("bench", "only barrier can be measured with other than 2 ranks");
    if (sizes != NULL && options->sizes.count == 0)
        hemt_sizes_parse(sizes, &options->sizes);
    return 0;
}

/* Returns -1 to go on, or the exit code. */
static int parse(int argc, char **argv, struct options *options_p) {
    static const struct option longs[] = {
        {"sizes", required_argument, NULL, 's'},  {"peers", required_argument, NULL, 'p'},
        {"repeat", required_argument, NULL, 'k'}, {"json", no_argument, NULL, 'j'},
        {"help", no_argument, NULL, 'h'},         {NULL, 0, NULL, 0},
    };
    int option;

    *options_p = (struct options){.ranks = 2, .repeat = 5};
    for (enum hemt_impl impl = 0; impl < HEMT_IMPLS; impl++)
        options_p->use[impl] = true;
    optind = 0;
    while ((option = getopt_long(argc, argv, ":n:h", longs, NULL)) != -1) {
        if (option == 'h') {
            print_help();
            return 0;
        }
        int code = take_option(option, argv, options_p);
        if (code != 0)
            return code;
    }
    int code = take_bench(argc, argv, options_p);
    if (code != 0)
        return code;
    for (enum hemt_impl impl = 0; impl < HEMT_IMPLS; impl++)
        options_p->use[impl] &= strcmp(options_p->bench, "raw") != 0 || impl == HEMT_RAW;
    return -1;
}

static void show_progress(const struct options *options, int round, int done, int total,
                          const char *name) {
    const int width = 24;
    int rounds = round < options->repeat ? options->repeat : round + 1;
    int filled = total > 0 ? done * width / total : 0;

    if (!isatty(STDERR_FILENO))
        return;
    fprintf(stderr, "\r\033[K%s [", options->bench);
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
    hemt_child_run(contender->command.argv, child_limit_s, &child);
    size_t taken = hemt_report_take(report, child.output);
    if (child.code != 0 || taken == 0) {
        char end[96];
        hemt_end_text(child.code, end, sizeof(end));
        contender->failures++;
        hemt_report_note(report, "%s: %s%s%s%s", hemt_impl_name(contender->impl),
                         child.timed_out ? "ran out of time and " : "", end,
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

    for (enum hemt_impl impl = 0; impl < HEMT_IMPLS; impl++) {
        struct contender *contender = &contenders[count];
        if (!options->use[impl])
            continue;
        const char *why = hemt_impl_command(impl, options->bench, options->ranks, &options->sizes,
                                            &contender->command);
        if (why != NULL) {
            hemt_report_note(report, "%s: not measured, %s", hemt_impl_name(impl), why);
            continue;
        }
        contender->impl = impl;
        count++;
    }
    return count;
}

int hemt_bench(int argc, char **argv) {
    static struct contender contenders[HEMT_IMPLS];
    struct options options;
    int code = parse(argc, argv, &options);

    if (code >= 0)
        return code;
    struct hemt_report report = {.bench = options.bench, .ranks = options.ranks};
    const char *subject = options.use[HEMT_HEM] ? "hem" : "raw";
    int count = line_up(&options, contenders, &report);
    time_t start = time(NULL);
    for (int round = 0; round < 3 * options.repeat; round++) {
        bool enough = hemt_report_fewest(&report) >= (size_t)options.repeat;
        if (round >= options.repeat && (enough || time(NULL) - start > more_rounds_s))
            break;
        run_round(&options, contenders, count, round, &report);
    }
    clear_progress();
    setlocale(LC_CTYPE, "");
    if (options.json)
        hemt_report_json(&report);
    else
        hemt_report_table(&report, isatty(STDOUT_FILENO));
    code = hemt_report_has(&report, subject) ? 0 : 1;
    hemt_report_free(&report);
    return code;
}
