#include "run.h"
#include "commands.h"
#include "core/layout.h"
#include "say.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GRACE_DEFAULT_MS 2000
#define GRACE_MAX_MS     3600000
#define TIMEOUT_MAX_S    1e8
#define NS_PER_MS        1000000
#define NS_PER_SECOND    1e9

static const char help_text[] =
    "Usage: hem run -n N [OPTIONS] PROGRAM [ARGS...]\n"
    "\n"
    "Start PROGRAM on N ranks of this machine and watch over them.\n"
    "\n"
    "  -n, --ranks N       how many ranks, 1 to 65536\n"
    "  --bind core|none    bind each rank to a core of its own; the default while there are\n"
    "                      enough cores\n"
    "  --timeout SECONDS   end a job that takes longer, and say what each rank waits for\n"
    "  --grace MS          time that the others get after a rank has failed (default 2000)\n"
    "  --tag-output        put \"[rank] \" before every line\n"
    "  -h, --help          this text\n"
    "\n"
    "The exit code is 0, or that of the rank that failed first (128 + signal), 124 after\n"
    "--timeout, 128 + signal after SIGINT or SIGTERM, 127 or 126 if PROGRAM cannot be run,\n"
    "1 if the job cannot be started, 2 for a wrong command line.\n"
    "\n"
    "  hem run -n 4 ./heat 512\n"
    "  hem run -n 2 --timeout 10 --tag-output sh -c './prepare && exec ./solve'\n";

static int help(void) {
    fputs(help_text, stdout);
    return fflush(stdout) == 0 ? EXIT_SUCCESS : HEMT_EXIT_FAILED;
}

static bool read_whole(const char *text, uint64_t max, uint64_t *value_p) {
    if (!isdigit((unsigned char)text[0]))
        return false;
    char *end = NULL;
    errno = 0;
    uint64_t value = strtoull(text, &end, 10);
    if (errno != 0 || *end != '\0' || value > max)
        return false;
    *value_p = value;
    return true;
}

static bool read_seconds(const char *text, int64_t *ns_p) {
    /* Neither strtod's hexadecimal numbers nor its "inf" and "nan". */
    if (text[0] == '\0' || strspn(text, "0123456789.") != strlen(text))
        return false;
    char *end = NULL;
    double seconds = strtod(text, &end);
    if (*end != '\0' || !(seconds > 0) || seconds > TIMEOUT_MAX_S)
        return false;
    *ns_p = (int64_t)(seconds * NS_PER_SECOND) + 1;
    return true;
}

static bool read_bind(const char *text, hemt_bind *bind_p) {
    if (strcmp(text, "core") == 0)
        *bind_p = HEMT_BIND_CORE;
    else if (strcmp(text, "none") == 0)
        *bind_p = HEMT_BIND_NONE;
    else
        return false;
    return true;
}

/* One option. Returns -1, or the exit code. */
static int apply(int option, const char *text, hemt_run_options *options) {
    uint64_t number = 0;
    switch (option) {
    case 'n':
        if (!read_whole(text, HEMI_MAX_RANKS, &number) || number < 1)
            return hemt_usage("run", "-n %.64s: the number of ranks is 1 to %d", text,
                              HEMI_MAX_RANKS);
        options->ranks = (uint32_t)number;
        return -1;
    case 'b':
        if (!read_bind(text, &options->bind))
            return hemt_usage("run", "--bind %.64s: either core or none", text);
        return -1;
    case 't':
        if (!read_seconds(text, &options->timeout_ns))
            return hemt_usage("run", "--timeout %.64s: a number of seconds above 0, up to %.0f",
                              text, TIMEOUT_MAX_S);
        return -1;
    case 'g':
        if (!read_whole(text, GRACE_MAX_MS, &number))
            return hemt_usage("run", "--grace %.64s: a number of milliseconds from 0 to %d", text,
                              GRACE_MAX_MS);
        options->grace_ns = (int64_t)number * NS_PER_MS;
        return -1;
    default:
        options->tag_output = true;
        return -1;
    }
}

static int refuse(int code, char **argv) {
    const char *word = argv[optind - 1];
    if (code == ':')
        return hemt_usage("run", "%.64s needs a value", word);
    if (optopt > ' ' && optopt < 127 && strncmp(word, "--", 2) != 0)
        return hemt_usage("run", "there is no option -%c", optopt);
    return hemt_usage("run", "%.64s is no option, or not one that takes a value", word);
}

int hemt_run_parse(int argc, char **argv, hemt_run_options *options_p) {
    static const struct option known[] = {
        {"ranks", required_argument, NULL, 'n'},
        {"bind", required_argument, NULL, 'b'},
        {"timeout", required_argument, NULL, 't'},
        {"grace", required_argument, NULL, 'g'},
        {"tag-output", no_argument, NULL, 'o'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    *options_p = (hemt_run_options){.grace_ns = (int64_t)GRACE_DEFAULT_MS * NS_PER_MS};
    opterr = 0;
    optind = 1;
    /* "+": the first word that is no option is the program, and what follows is its own. */
    for (int option; (option = getopt_long(argc, argv, "+:n:h", known, NULL)) != -1;) {
        if (option == 'h')
            return help();
        if (option == '?' || option == ':')
            return refuse(option, argv);
        int code = apply(option, optarg, options_p);
        if (code >= 0)
            return code;
    }
    if (options_p->ranks == 0)
        return hemt_usage("run", "say how many ranks to start, with -n N");
    if (optind >= argc || argv[optind][0] == '\0')
        return hemt_usage("run", "say which program to run");
    options_p->program = argv + optind;
    return -1;
}

int hemt_run(int argc, char **argv) {
    hemt_run_options options;
    int code = hemt_run_parse(argc, argv, &options);
    return code >= 0 ? code : hemt_front(&options);
}
