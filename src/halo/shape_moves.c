/* Laying out loops, and running them. */
#include "halo/shape_moves.h"

/* The first-level cache, as it is on most processors: bytes of a line, bytes that its sets cover
 * once, and half of its ways, as the other side and lists need room, too. */
#define LINE_BYTES 64
#define SETS_BYTES 4096
#define HALF_WAYS  4

/* A row of fewer steps is not worth its start if there is a longer loop. */
#define SHORT_ROW 8

/* Chunks of a cache line or more are moved in the order in which they are written. */
#define BLOCK_CHUNK 64

/* Which loops a kernel runs. */
typedef struct choice {
    uint32_t row;
    uint32_t around; /* the number of loops if there is none */
    uint64_t block;
} choice;

static uint64_t magnitude(int64_t a) {
    return a < 0 ? 0 - (uint64_t)a : (uint64_t)a;
}

static uint64_t least(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

/* The steps of a loop on the side where they are smaller. */
static uint64_t distance(const hemi_move_loop *loop) {
    return least(magnitude(loop->to), magnitude(loop->from));
}

/* Whether one of the sides is better off if loop `a` is inside of loop `b`. */
static bool is_nearer(const hemi_move_loop *a, const hemi_move_loop *b) {
    return magnitude(a->to) < magnitude(b->to) || magnitude(a->from) < magnitude(b->from);
}

/* The loop with the smallest steps, except for `but`. */
static uint32_t nearest(const hemi_move_nest *n, uint32_t but) {
    uint32_t best = but == 0 ? 1 : 0;

    for (uint32_t k = best + 1; k < n->loop_count; k++) {
        if (k != but && distance(&n->loops[k]) <= distance(&n->loops[best]))
            best = k;
    }
    return best;
}

/* What to take for a row instead of a short last loop: of those that are long enough the one with
 * the smallest steps, or else the longest. */
static uint32_t longer_row(const hemi_move_nest *n) {
    uint32_t best = n->loop_count - 1;

    for (uint32_t k = best; k-- > 0;) {
        uint64_t longest = n->loops[best].count;
        bool enough = least(longest, n->loops[k].count) >= SHORT_ROW;
        if (enough ? distance(&n->loops[k]) < distance(&n->loops[best])
                   : n->loops[k].count > longest)
            best = k;
    }
    return best;
}

/* How many steps of a row may be done before another loop takes its next step, so that the lines
 * which they touch are still in the first-level cache. Steps by powers of two meet in few sets of
 * it. */
static uint64_t block_of(const hemi_move_loop *row) {
    uint64_t to = magnitude(row->to);
    uint64_t from = magnitude(row->from);
    uint64_t stride = to > from ? to : from;
    uint64_t grain = stride & (0 - stride);
    uint64_t most = (uint64_t)SETS_BYTES / LINE_BYTES * HALF_WAYS;

    if (grain > LINE_BYTES)
        most = grain < SETS_BYTES ? SETS_BYTES / grain * HALF_WAYS : HALF_WAYS;
    return least(row->count, most > SHORT_ROW ? most : SHORT_ROW);
}

/* Without a list: the last loop is the row unless it is short, and is cut into blocks if another
 * loop has smaller steps on one of the sides. */
static choice choose_free(const hemi_move_nest *n) {
    uint32_t last = n->loop_count - 1;
    choice c = {.row = last, .around = last - 1, .block = n->loops[last].count};

    if (n->loop_count == 1 || !n->any_order || n->chunk >= BLOCK_CHUNK)
        return c;
    if (n->loops[last].count < SHORT_ROW)
        c.row = longer_row(n);
    c.around = c.row != last ? last : nearest(n, last);
    if (c.row != last || is_nearer(&n->loops[c.around], &n->loops[last]))
        c.block = block_of(&n->loops[c.row]);
    return c;
}

/* The list is the row. If it is not the last loop, that one is run for each block. */
static choice choose_listed(const hemi_move_nest *n) {
    uint32_t last = n->loop_count - 1;
    uint64_t block = n->any_order ? block_of(&n->loops[n->list_at]) : 1;

    if (n->list_at == last)
        return (choice){.row = last, .around = last - 1, .block = n->loops[last].count};
    return (choice){.row = n->list_at, .around = last, .block = block};
}

void hemi_moves_lay_out(const hemi_move_nest *n, hemi_moves *m) {
    choice c = n->list_at < n->loop_count ? choose_listed(n) : choose_free(n);
    bool runs = n->to_list.runs != NULL || n->from_list.runs != NULL;

    *m = (hemi_moves){.chunk = n->chunk,
                      .block = c.block,
                      .row = n->loops[c.row],
                      .around = {.count = 1},
                      .to_list = n->to_list,
                      .from_list = n->from_list};
    m->kernel = hemi_move_kernel_of(m);
    /* Kernels of runs run nothing else. */
    if (n->loop_count == 1 || runs)
        c.around = n->loop_count;
    else
        m->around = n->loops[c.around];
    for (uint32_t k = 0; k < n->loop_count; k++) {
        if (k == c.row)
            m->outside = m->loop_count;
        else if (k != c.around)
            m->loops[m->loop_count++] = n->loops[k];
    }
}

/* Where a nest of loops is. */
typedef struct place {
    uint64_t done[HEMI_MOVES_LOOPS];
    unsigned char *to;
    const unsigned char *from;
} place;

static void begin(place *p, uint32_t count, unsigned char *to, const unsigned char *from) {
    p->to = to;
    p->from = from;
    for (uint32_t k = 0; k < count; k++)
        p->done[k] = 0;
}

/* To the next step of the innermost loop that has one. False at the end. */
static bool next(place *p, const hemi_move_loop *loops, uint32_t count) {
    for (uint32_t k = count; k-- > 0;) {
        const hemi_move_loop *loop = &loops[k];
        if (++p->done[k] < loop->count) {
            p->to += loop->to;
            p->from += loop->from;
            return true;
        }
        p->done[k] = 0;
        p->to -= (int64_t)(loop->count - 1) * loop->to;
        p->from -= (int64_t)(loop->count - 1) * loop->from;
    }
    return false;
}

/* The row block by block, with the loops that are inside around each block. */
static void run_blocks(const hemi_moves *m, unsigned char *to, const unsigned char *from) {
    const hemi_move_loop *loops = m->loops + m->outside;
    uint32_t inside = m->loop_count - m->outside;

    for (uint64_t first = 0; first < m->row.count; first += m->block) {
        uint64_t left = m->row.count - first;
        place p;
        begin(&p, inside, to + (int64_t)first * m->row.to, from + (int64_t)first * m->row.from);
        do {
            m->kernel(m, p.to, p.from, first, left < m->block ? left : m->block);
        } while (next(&p, loops, inside));
    }
}

void hemi_moves_run(const hemi_moves *m, void *to, const void *from) {
    place p;

    if (m->loop_count == 0 && m->block >= m->row.count) {
        m->kernel(m, to, from, 0, m->row.count);
        return;
    }
    begin(&p, m->outside, to, from);
    do {
        run_blocks(m, p.to, p.from);
    } while (next(&p, m->loops, m->outside));
}
