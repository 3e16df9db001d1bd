/* One round: a job in which somebody is killed, and the judgement of what became of the others. */
#ifndef HEM_TESTS_KILL_ROUND_H
#define HEM_TESTS_KILL_ROUND_H

#include "../score.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct kill_round {
    const char *op;
    int ranks;
    int victim;
    uint64_t point;   /**< 0: none */
    int64_t after_us; /**< -1: none */
    const char *kill; /**< self, keeper, front */
    bool forked;      /**< without the launcher */
    bool agreed;      /**< all survivors must get the same answer */
    int deaths;
} kill_round;

/** What all rounds have in common. */
typedef struct kill_place {
    const char *hem;  /**< the command */
    const char *rank; /**< the program of a rank */
    const char *folder;
    uint64_t limit_ns; /**< within which survivors must know */
    char mark[48];     /**< in the environment of everything that a round starts */
    uint64_t rounds;   /**< so far */
    kill_score *score; /**< of the present round */
} kill_place;

typedef enum kill_verdict {
    KILL_GOOD,
    KILL_LATE, /**< all is well, but a survivor learnt of the death too late */
    KILL_BAD
} kill_verdict;

typedef struct kill_result {
    kill_verdict verdict;
    uint64_t slowest_ns; /**< from the death to the last survivor's knowing */
    uint64_t points;
    char why[400];
} kill_result;

/** Map the score, make the mark. @return false with a message on stderr. */
bool kill_place_open(kill_place *place);

void kill_round_run(kill_place *place, const kill_round *round, kill_result *result_p);

/** The command line of a round, to be repeated by hand. */
void kill_round_describe(const kill_place *place, const kill_round *round, char *text, size_t size);

/** Show what the round's processes said and how far each rank came. */
void kill_round_show(const kill_place *place, const kill_round *round);

#endif
