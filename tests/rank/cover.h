/*
 * Covering arrays: few rows in which every possible pair of levels of every two factors occurs.
 *
 * Rows are built greedily and the same on every rank. Later levels of a factor are taken to be the
 * more expensive ones: where it makes no difference, the earlier one is chosen.
 */
#ifndef HEM_TESTS_RANK_COVER_H
#define HEM_TESTS_RANK_COVER_H

#include "harness.h"

enum {
    COVER_FACTORS = 10,
    COVER_LEVELS = 28
};

/** A row: the level of each factor, or -1 while it is being built. */
typedef struct cover_row {
    int level[COVER_FACTORS];
} cover_row;

/** Whether levels `a` of factor `i` and `b` of factor `j` > `i` may occur in one row. */
typedef bool (*cover_allows)(int i, int a, int j, int b);

typedef struct cover {
    int factors;
    int levels[COVER_FACTORS];
    cover_allows allows;
    harness_rng rng;
    size_t left; /**< pairs that have not occurred yet */
    bool open[COVER_FACTORS][COVER_FACTORS][COVER_LEVELS][COVER_LEVELS];
} cover;

/** Begin with all pairs open. */
void cover_begin(cover *c, int factors, const int *levels, cover_allows allows, uint64_t seed);

/** Build the next row. @return false when every pair has occurred. */
bool cover_next(cover *c, cover_row *row_p);

#endif
