/* What can be said on the command line. */
#ifndef HEAT_OPTIONS_H
#define HEAT_OPTIONS_H

#include "plate.h"

struct options {
    struct plate plate;
    const char *png;
    bool live;
    bool check;
};

enum options_answer {
    OPTIONS_RUN,
    OPTIONS_HELP,
    OPTIONS_WRONG
};

/* Fills `options`. For OPTIONS_HELP and OPTIONS_WRONG, `loud` prints what there is to say. */
enum options_answer options_parse(int argc, char **argv, bool loud, struct options *options);

#endif
