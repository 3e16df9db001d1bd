/*
 * The home of tiles: where boxes and questions meet.
 *
 * Records are int64_t words, so that their length follows the dimensions:
 *   box, question  level and space | tile | start | count | domain | kind | id
 *   answer         here | rank | there | space | id | start | count
 */
#ifndef HEMI_HALO_PATTERN_HOME_H
#define HEMI_HALO_PATTERN_HOME_H

#include "halo/pattern/cells.h"
#include "halo/pattern/tiling.h"

#include <string.h>

enum hemi_home_kind {
    HEMI_HOME_BOX = 1,
    HEMI_HOME_QUESTION = 2
};

#define HEMI_HOME_WORDS_MAX (5 + 3 * HEM_DIMS)

/** Where things stand in a box or question. */
static inline size_t hemi_home_start(int dims) {
    return 1 + (size_t)dims;
}
static inline size_t hemi_home_domain(int dims) {
    return 1 + 3 * (size_t)dims;
}
static inline size_t hemi_home_words(int dims) {
    return 4 + 3 * (size_t)dims;
}
static inline size_t hemi_answer_words(int dims) {
    return 5 + 2 * (size_t)dims;
}

/** A box of `dims` words of start and as many of count. */
static inline hem_box hemi_words_box(int dims, const int64_t *words) {
    hem_box box = {{0}, {0}};
    memcpy(box.start, words, (size_t)dims * sizeof *words);
    memcpy(box.count, words + dims, (size_t)dims * sizeof *words);
    return box;
}

/**
 * Replace the boxes and questions that have come here by the answers to who asked.
 *
 * What fails is remembered in `making`. Local.
 */
void hemi_home_answer(hemi_making *making, const hemi_search *search, const hemi_tiling *tiling,
                      hemi_bag *bag);

#endif
