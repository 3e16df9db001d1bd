/*
 * How this works. Three small all-reduces make the tiling: the average box; which levels there are;
 * which ones are crowded. Then boxes and questions are routed to the homes of the tiles they touch,
 * one record per tile, and answers are routed back.
 */
#include "halo/pattern/cells.h"

#include "halo/pattern/box.h"
#include "halo/pattern/home.h"
#include "halo/pattern/tiling.h"

#include <hem/coll.h>
#include <stdlib.h>

/* A level is crowded if a rank would send more questions than this, and so many per domain. */
#define QUESTIONS_MAX        4096
#define QUESTIONS_PER_DOMAIN 1024

typedef struct meeting {
    hemi_making *making;
    hemi_search *search;
    hemi_tiling tiling;
    hemi_bag bag;
} meeting;

static bool reduce(meeting *m, void *data, size_t count, hem_dtype dtype, hem_reduction op) {
    hemi_router *router = &m->making->router;
    hem_status status =
        hem_allreduce(router->world, data, data, count, dtype, op, hemi_router_left(router));
    if (status != HEM_OK)
        hemi_making_fail(m->making, status);
    return status == HEM_OK;
}

/* A tiling that does no harm where making a better one fails. */
static void begin_tiling(meeting *m) {
    m->tiling.dims = m->search->dims;
    for (int d = 0; d < m->search->dims; d++) {
        m->tiling.extent[d] = m->search->extent[d];
        m->tiling.unit[d] = 1;
    }
}

/* The average box. Its length need not be exact, so that doubles will do, and do not overflow. */
static bool measure(meeting *m) {
    const hemi_search *s = m->search;
    double sums[HEM_DIMS + 1] = {0};
    for (size_t i = 0; i < s->place_count; i++)
        for (int d = 0; d < s->dims; d++)
            sums[d] += (double)s->places[i].box.count[d];
    sums[s->dims] = (double)s->place_count;
    if (!reduce(m, sums, (size_t)s->dims + 1, HEM_F64, HEM_SUM))
        return false;
    for (int d = 0; d < s->dims; d++) {
        double mean = sums[s->dims] > 0 ? sums[d] / sums[s->dims] : 1;
        int64_t unit = (int64_t)mean;
        unit += (double)unit < mean;
        m->tiling.unit[d] = unit > s->extent[d] ? s->extent[d] : unit;
    }
    return true;
}

static int level_of_place(const meeting *m, size_t place) {
    return hemi_tiling_level(&m->tiling, &m->search->places[place].box);
}

/* Whether a question of a domain of level `own` is one for `level`. */
static bool asked_at(const hemi_question *question, int own, int level) {
    return (level >= own) == (question->when == HEMI_ASK_COARSE);
}

/* How many tiles this rank's questions touch at a level. */
static uint64_t count_questions(const meeting *m, int level) {
    int64_t first[HEM_DIMS];
    int64_t last[HEM_DIMS];
    uint64_t all = 0;
    for (size_t i = 0; i < m->search->question_count; i++) {
        const hemi_question *q = &m->search->questions[i];
        uint64_t tiles = hemi_tiling_touch(&m->tiling, level, &q->box, first, last);
        if (asked_at(q, level_of_place(m, q->here), level) &&
            __builtin_add_overflow(all, tiles, &all))
            return UINT64_MAX;
    }
    return all;
}

/* Those of the levels from `level` on that are crowded by this rank. From its largest box on it asks
 * the same questions at all of them, and never more than at the one below. */
static uint64_t find_crowded(const meeting *m, int level) {
    uint64_t most = QUESTIONS_MAX + QUESTIONS_PER_DOMAIN * (uint64_t)m->search->place_count;
    uint64_t crowded = 0;
    int largest = 0;
    for (size_t i = 0; i < m->search->place_count; i++) {
        int own = level_of_place(m, i);
        largest = own > largest ? own : largest;
    }
    for (; level < HEMI_LEVELS - 1; level++) {
        if (count_questions(m, level) > most)
            crowded |= UINT64_C(1) << level;
        else if (level >= largest)
            break;
    }
    return crowded;
}

/* Which levels there are. */
static bool choose_levels(meeting *m) {
    uint64_t levels = 0;
    uint64_t crowded = 0;
    for (size_t i = 0; i < m->search->place_count; i++)
        levels |= UINT64_C(1) << level_of_place(m, i);
    if (!reduce(m, &levels, 1, HEM_U64, HEM_BOR))
        return false;
    if (levels != 0)
        crowded = find_crowded(m, __builtin_ctzll(levels));
    if (!reduce(m, &crowded, 1, HEM_U64, HEM_BOR))
        return false;
    m->tiling.crowded = crowded;
    for (; levels != 0; levels &= levels - 1)
        m->tiling.used |= UINT64_C(1) << hemi_tiling_lift(&m->tiling, __builtin_ctzll(levels));
    return true;
}

/* Send a box or a question to the homes of all tiles of a level that it touches. */
static hem_status spread(meeting *m, const hemi_question *what, int level, int64_t kind,
                         int64_t id) {
    hem_world *world = m->making->router.world;
    int dims = m->search->dims;
    size_t part = (size_t)dims * sizeof(int64_t);
    int64_t words[HEMI_HOME_WORDS_MAX] = {level | (int64_t)what->space << 8};
    int64_t *tail = words + hemi_home_domain(dims);
    int64_t first[HEM_DIMS] = {0};
    int64_t last[HEM_DIMS];
    hem_status status;
    (void)hemi_tiling_touch(&m->tiling, level, &what->box, first, last);
    memcpy(words + 1, first, part);
    memcpy(words + hemi_home_start(dims), what->box.start, part);
    memcpy(words + hemi_home_start(dims) + dims, what->box.count, part);
    tail[0] = what->here;
    tail[1] = kind;
    tail[2] = id;
    do {
        uint32_t home = hemi_tile_home(&m->tiling, what->space, level, words + 1, world->size);
        status =
            hemi_bag_add(&m->bag, world->rank, home, words, hemi_home_words(dims) * sizeof *words);
    } while (status == HEM_OK && hemi_tiling_next(&m->tiling, first, last, words + 1));
    return status;
}

static hem_status spread_all(meeting *m) {
    const hemi_search *s = m->search;
    hem_status status = HEM_OK;
    for (size_t i = 0; i < s->place_count && status == HEM_OK; i++) {
        const hemi_owned *place = &s->places[i];
        hemi_question box = {(uint32_t)i, place->space, HEMI_ASK_COARSE, place->box};
        status = spread(m, &box, hemi_tiling_lift(&m->tiling, level_of_place(m, i)), HEMI_HOME_BOX,
                        place->id);
    }
    for (size_t i = 0; i < s->question_count && status == HEM_OK; i++) {
        const hemi_question *q = &s->questions[i];
        int own = hemi_tiling_lift(&m->tiling, level_of_place(m, q->here));
        for (uint64_t left = m->tiling.used; left != 0 && status == HEM_OK; left &= left - 1)
            if (asked_at(q, own, __builtin_ctzll(left)))
                status = spread(m, q, __builtin_ctzll(left), HEMI_HOME_QUESTION, 0);
    }
    return status;
}

static int compare_owners(const void *a, const void *b) {
    const hemi_owner *x = a;
    const hemi_owner *y = b;
    if (x->here != y->here)
        return x->here < y->here ? -1 : 1;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return (x->there > y->there) - (x->there < y->there);
}

static bool read_owner(const meeting *m, const hemi_record *record, hemi_owner *owner_p) {
    const int64_t *words = hemi_record_data(record);
    int dims = m->search->dims;
    if (record->bytes != hemi_answer_words(dims) * sizeof *words)
        return false;
    *owner_p = (hemi_owner){.here = (uint32_t)words[0],
                            .rank = (uint32_t)words[1],
                            .there = (uint32_t)words[2],
                            .space = (uint32_t)words[3],
                            .id = words[4],
                            .box = hemi_words_box(dims, words + 5)};
    return words[0] >= 0 && (uint64_t)words[0] < m->search->place_count && words[1] >= 0 &&
           words[1] < (int64_t)m->making->router.world->size && words[2] >= 0 &&
           words[2] <= UINT32_MAX && words[3] >= 0 && words[3] < (int64_t)m->search->spaces &&
           hemi_box_inside(dims, &owner_p->box, m->search->extent);
}

/* The answers to this rank, each owner once. */
static hem_status hear(meeting *m) {
    hemi_search *s = m->search;
    const hemi_record *record = NULL;
    size_t count = 0;
    if (m->bag.records == 0)
        return HEM_OK;
    s->owners = malloc(m->bag.records * sizeof *s->owners);
    if (s->owners == NULL)
        return hemi_fail(HEM_ERR_MEMORY, "no memory for the search of neighbours");
    s->owner_bytes = m->bag.records * sizeof *s->owners;
    hemi_router_hold(&m->making->router, s->owner_bytes);
    while ((record = hemi_bag_next(&m->bag, record)) != NULL)
        if (!read_owner(m, record, &s->owners[count++]))
            return hemi_fail(HEM_ERR_MISMATCH, "rank %u sent an answer to no question",
                             record->from);
    qsort(s->owners, count, sizeof *s->owners, compare_owners);
    for (size_t i = 0; i < count; i++)
        if (i == 0 || compare_owners(&s->owners[s->owner_count - 1], &s->owners[i]) != 0)
            s->owners[s->owner_count++] = s->owners[i];
    return HEM_OK;
}

/* Remember a failure, after which there is nothing to send or hear. */
static void note(meeting *m, hem_status status) {
    if (status == HEM_OK)
        return;
    hemi_making_fail(m->making, status);
    hemi_bag_free(&m->bag);
}

void hemi_cells_search(hemi_making *making, hemi_search *search) {
    meeting m = {.making = making, .search = search};
    begin_tiling(&m);
    if (measure(&m) && choose_levels(&m))
        note(&m, spread_all(&m));
    note(&m, hemi_route(&making->router, &m.bag));
    hemi_home_answer(making, search, &m.tiling, &m.bag);
    note(&m, hemi_route(&making->router, &m.bag));
    note(&m, hear(&m));
    hemi_bag_free(&m.bag);
}

void hemi_cells_free(hemi_making *making, hemi_search *search) {
    hemi_router_drop(&making->router, search->owner_bytes);
    free(search->owners);
    *search = (hemi_search){0};
}
