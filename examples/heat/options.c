#include "options.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#define LARGEST_SIDE 16384
#define MOST_STEPS   10000000

static const char usage[] =
    "usage: hem run -n RANKS heat [options]\n"
    "\n"
    "Hot pens draw on a plate that is split over the ranks; the heat spreads and fades.\n"
    "\n"
    "  --size WxH   points of the plate, default 960x540\n"
    "  --steps N    steps in time, default 2400\n"
    "  --png FILE   where the last picture goes, default heat.png\n"
    "  --no-live    no picture in the terminal\n"
    "  --check      compute everything again on one rank and compare bit for bit\n"
    "  --help       this text\n";

static bool parse_number(const char *text, int most, char end, const char **rest_p, int *number_p) {
    char *rest;
    long number = strtol(text, &rest, 10);

    if (rest == text || *rest != end || number < 1 || number > most)
        return false;
    *rest_p = rest + 1;
    *number_p = (int)number;
    return true;
}

static bool parse_size(const char *text, struct plate *plate) {
    return parse_number(text, LARGEST_SIDE, 'x', &text, &plate->width) &&
           parse_number(text, LARGEST_SIDE, '\0', &text, &plate->height);
}

/* False if `option` or its argument is wrong. */
static bool take_option(int option, struct options *options) {
    const char *rest;

    switch (option) {
    case 's':
        return parse_size(optarg, &options->plate);
    case 'n':
        return parse_number(optarg, MOST_STEPS, '\0', &rest, &options->plate.steps);
    case 'p':
        options->png = optarg;
        return true;
    case 'l':
        options->live = false;
        return true;
    case 'c':
        options->check = true;
        return true;
    default:
        return false;
    }
}

enum options_answer options_parse(int argc, char **argv, bool loud, struct options *options) {
    static const struct option known[] = {
        {"size", required_argument, NULL, 's'},
        {"steps", required_argument, NULL, 'n'},
        {"png", required_argument, NULL, 'p'},
        {"no-live", no_argument, NULL, 'l'},
        {"check", no_argument, NULL, 'c'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    int option, which = 0;

    *options = (struct options){
        .plate = {.width = 960, .height = 540, .steps = 2400}, .png = "heat.png", .live = true};
    opterr = loud;
    while ((option = getopt_long(argc, argv, "", known, &which)) != -1) {
        if (option == 'h') {
            if (loud)
                fputs(usage, stdout);
            return OPTIONS_HELP;
        }
        if (!take_option(option, options)) {
            if (loud && option != '?')
                fprintf(stderr, "heat: --%s does not take \"%s\"\n", known[which].name, optarg);
            return OPTIONS_WRONG;
        }
    }
    if (optind == argc)
        return OPTIONS_RUN;
    if (loud)
        fprintf(stderr, "heat: \"%s\" is no option; see --help\n", argv[optind]);
    return OPTIONS_WRONG;
}
