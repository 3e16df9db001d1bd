/*
 * How this works. Boxes are put in the order of tiles and, within a tile, of their start in the first
 * dimension. No box is longer than a tile of its level, so that for each question a short stretch of
 * this order has all boxes that can share a point with it.
 *
 * A box and a question that share points may meet in several tiles. The tile that has the lowest
 * point that they share answers.
 */
#include "halo/pattern/home.h"

#include "halo/pattern/box.h"

#include <stdlib.h>

/* A record that has come, at its first word. */
typedef struct entry {
    const int64_t *words;
    uint32_t from;
} entry;

typedef struct home {
    hemi_making *making;
    const hemi_search *search;
    const hemi_tiling *tiling;
    int dims;
    entry *boxes; /* ordered by level, space, tile, start[0] */
    size_t box_count;
    entry *questions;
    size_t question_count;
    hemi_bag answers;
} home;

static int level_of(const int64_t *words) {
    return (int)(words[0] & 0xff);
}

static bool good_record(const home *h, const hemi_record *record) {
    const int64_t *words = hemi_record_data(record);
    if (record->bytes != hemi_home_words(h->dims) * sizeof *words)
        return false;
    hem_box box = hemi_words_box(h->dims, words + hemi_home_start(h->dims));
    const int64_t *tail = words + hemi_home_domain(h->dims);
    return level_of(words) < HEMI_LEVELS && words[0] >> 8 >= 0 &&
           words[0] >> 8 < (int64_t)h->search->spaces && tail[0] >= 0 && tail[0] <= UINT32_MAX &&
           (tail[1] == HEMI_HOME_BOX || tail[1] == HEMI_HOME_QUESTION) &&
           hemi_box_inside(h->dims, &box, h->search->extent);
}

/* Order by the words up to start[0]. */
static int compare_words(const int64_t *a, const int64_t *b, int dims) {
    for (int i = 0; i < dims + 2; i++)
        if (a[i] != b[i])
            return a[i] < b[i] ? -1 : 1;
    return 0;
}

static int compare_entries(const void *a, const void *b, void *dims) {
    return compare_words(((const entry *)a)->words, ((const entry *)b)->words, *(const int *)dims);
}

/* Sort out what has come: boxes to the front of `entries`, questions to its end. */
static bool collect(home *h, const hemi_bag *bag, entry *entries) {
    const hemi_record *record = NULL;
    h->boxes = entries;
    h->questions = entries + bag->records;
    while ((record = hemi_bag_next(bag, record)) != NULL) {
        entry one = {hemi_record_data(record), record->from};
        if (!good_record(h, record)) {
            hemi_making_fail(h->making,
                             hemi_fail(HEM_ERR_MISMATCH, "rank %u sent what is no box of this grid",
                                       record->from));
            return false;
        }
        if (one.words[hemi_home_domain(h->dims) + 1] == HEMI_HOME_BOX) {
            h->boxes[h->box_count++] = one;
        } else {
            *--h->questions = one;
            h->question_count++;
        }
    }
    qsort_r(h->boxes, h->box_count, sizeof *entries, compare_entries, &h->dims);
    return true;
}

/* The first box that does not come before these words. */
static size_t find_box(const home *h, const int64_t *words) {
    size_t low = 0;
    size_t high = h->box_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare_words(h->boxes[middle].words, words, h->dims) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Whether this is the tile that has the lowest point of `meet`. */
static bool tile_has(const home *h, const int64_t *words, const hem_box *meet) {
    for (int d = 0; d < h->dims; d++)
        if (meet->start[d] / hemi_tile_length(h->tiling, level_of(words), d) != words[1 + d])
            return false;
    return true;
}

static hem_status answer(home *h, const entry *question, const entry *box) {
    const int64_t *tail = box->words + hemi_home_domain(h->dims);
    int64_t words[HEMI_HOME_WORDS_MAX] = {question->words[hemi_home_domain(h->dims)], box->from,
                                          tail[0], box->words[0] >> 8, tail[2]};
    memcpy(words + 5, box->words + hemi_home_start(h->dims), 2 * (size_t)h->dims * sizeof *words);
    return hemi_bag_add(&h->answers, h->making->router.world->rank, question->from, words,
                        hemi_answer_words(h->dims) * sizeof *words);
}

static hem_status answer_one(home *h, const entry *question) {
    size_t domain = hemi_home_domain(h->dims);
    hem_box asked = hemi_words_box(h->dims, question->words + hemi_home_start(h->dims));
    int64_t first[2 + HEM_DIMS];
    int64_t last[2 + HEM_DIMS];
    hem_status status = HEM_OK;
    memcpy(first, question->words, (size_t)(2 + h->dims) * sizeof *first);
    memcpy(last, first, (size_t)(2 + h->dims) * sizeof *first);
    first[1 + h->dims] -= hemi_tile_length(h->tiling, level_of(first), 0);
    last[1 + h->dims] += asked.count[0] - 1;
    for (size_t i = find_box(h, first); i < h->box_count && status == HEM_OK; i++) {
        const entry *other = &h->boxes[i];
        hem_box box = hemi_words_box(h->dims, other->words + hemi_home_start(h->dims));
        hem_box meet;
        if (compare_words(other->words, last, h->dims) > 0)
            break;
        if (other->from == question->from && other->words[domain] == question->words[domain])
            continue;
        if (hemi_box_meet(h->dims, &asked, &box, &meet) && tile_has(h, question->words, &meet))
            status = answer(h, question, other);
    }
    return status;
}

void hemi_home_answer(hemi_making *making, const hemi_search *search, const hemi_tiling *tiling,
                      hemi_bag *bag) {
    home h = {.making = making, .search = search, .tiling = tiling, .dims = search->dims};
    size_t bytes = bag->records * sizeof(entry);
    entry *entries = bytes == 0 ? NULL : malloc(bytes);
    hem_status status = HEM_OK;
    hemi_router_hold(&making->router, bytes);
    if (bytes != 0 && entries == NULL)
        status = hemi_fail(HEM_ERR_MEMORY, "no memory for the search of neighbours");
    else if (bytes != 0 && collect(&h, bag, entries))
        for (size_t i = 0; i < h.question_count && status == HEM_OK; i++)
            status = answer_one(&h, &h.questions[i]);
    if (status != HEM_OK)
        hemi_making_fail(making, status);
    hemi_router_drop(&making->router, bytes);
    free(entries);
    hemi_bag_free(bag);
    *bag = h.answers;
}
