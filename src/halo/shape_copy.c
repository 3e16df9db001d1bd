/*
 * From field to field.
 *
 * Where one of the two shapes is contiguous this is packing or unpacking. Otherwise, if the axes of
 * one can be cut where those of the other end, as is the case for two boxes with as many points
 * along each dimension, both are run as one nest of loops. Otherwise, such as between lists with
 * different runs, the pieces of the shape that has longer ones are filled one by one, from as much
 * of the other as fits into each.
 */
#include "halo/shape_inside.h"

#include "base/status.h"

#include <stdlib.h>
#include <string.h>

/* One shape, from the innermost axis outwards; the chunk counts as an axis of units. */
typedef struct cut {
    const hemi_shape *shape;
    uint32_t next; /* axes not yet begun */
    uint64_t left; /* steps of the current one */
    int64_t stride;
    bool listed; /* the current one is the list, of which nothing was taken */
} cut;

/* The axis that comes next. Beyond the outermost there is one of a single step. */
static void next_axis(cut *c) {
    const hemi_shape *s = c->shape;

    c->left = 1;
    if (c->next == 0)
        return;
    c->next--;
    c->left = s->axes[c->next].count;
    c->listed = c->next == s->list_at;
    c->stride = c->listed ? 0 : s->axes[c->next].stride;
}

static void begin_cut(cut *c, const hemi_shape *s, uint64_t unit) {
    *c = (cut){.shape = s, .next = s->axis_count, .left = s->chunk / unit, .stride = (int64_t)unit};
    while (c->left == 1 && c->next > 0)
        next_axis(c);
}

static void take_steps(cut *c, uint64_t steps) {
    c->left /= steps;
    c->stride *= (int64_t)steps;
    c->listed = false;
    while (c->left == 1 && c->next > 0)
        next_axis(c);
}

/* A nest that is found from the inside outwards: its loops in that order. */
typedef struct joint {
    hemi_move_nest nest;
    uint32_t listed; /* the loop with lists, plus 1, or 0 */
} joint;

/* Add a loop over as many steps as both have. False if they do not fit, or this is a second list.
 * */
static bool join_loop(joint *j, cut *to, cut *from) {
    uint64_t steps = to->left < from->left ? to->left : from->left;
    bool listed = to->listed || from->listed;

    if (steps == 0 || to->left % steps != 0 || from->left % steps != 0 ||
        j->nest.loop_count == HEMI_MOVES_LOOPS)
        return false;
    if (listed && (j->listed != 0 || (to->listed && to->left != steps) ||
                   (from->listed && from->left != steps)))
        return false;
    j->nest.loops[j->nest.loop_count++] = (hemi_move_loop){steps, to->stride, from->stride};
    if (listed) {
        j->listed = j->nest.loop_count;
        j->nest.to_list = to->listed ? hemi_shape_list_of(to->shape) : j->nest.to_list;
        j->nest.from_list = from->listed ? hemi_shape_list_of(from->shape) : j->nest.from_list;
    }
    take_steps(to, steps);
    take_steps(from, steps);
    return true;
}

static void reverse(hemi_move_nest *n) {
    for (uint32_t a = 0, b = n->loop_count; a + 1 < b--; a++) {
        hemi_move_loop loop = n->loops[a];
        n->loops[a] = n->loops[b];
        n->loops[b] = loop;
    }
}

/* Both shapes as one nest. False if they cannot be. */
static bool join(const hemi_shape *to, const hemi_shape *from, hemi_moves *moves) {
    uint64_t unit = to->chunk < from->chunk ? to->chunk : from->chunk;
    /* Chunks of joined neighbours may overlap: then their parts must stay in order. */
    bool whole = to->chunk == unit || to->chunk == to->unit;
    joint j = {.nest = {.chunk = unit, .any_order = to->apart && whole}};
    cut t;
    cut f;

    if (to->list_kind == HEMI_LIST_RUNS || from->list_kind == HEMI_LIST_RUNS ||
        to->chunk % unit != 0 || from->chunk % unit != 0)
        return false;
    begin_cut(&t, to, unit);
    begin_cut(&f, from, unit);
    while (t.left > 1 || f.left > 1) {
        if (t.left == 1 || f.left == 1 || !join_loop(&j, &t, &f))
            return false;
    }
    reverse(&j.nest);
    j.nest.list_at = j.nest.loop_count - j.listed;
    hemi_moves_lay_out(&j.nest, moves);
    return true;
}

/* Walking over a shape in the order in which it is packed. */
typedef struct walk {
    const hemi_shape *shape;
    int64_t at; /* of the axes beside the list */
    uint64_t done[HEMI_SHAPE_AXES];
    uint64_t inside; /* bytes of the piece that are done */
    uint64_t piece;  /* bytes of the piece */
    int64_t place;   /* where it begins */
} walk;

static void set_piece(walk *w) {
    const hemi_shape *s = w->shape;

    w->inside = 0;
    w->piece = s->chunk;
    w->place = w->at;
    if (s->list_at < s->axis_count) {
        uint64_t step = w->done[s->list_at];
        w->place += hemi_shape_offset(s, step);
        if (s->list_kind == HEMI_LIST_RUNS)
            w->piece = s->runs[step].bytes;
    }
}

static void begin_walk(walk *w, const hemi_shape *s) {
    *w = (walk){.shape = s, .at = s->base};
    set_piece(w);
}

/* By `steps` of the innermost axis, at most to its end; past the end of all, to the beginning. */
static void next_pieces(walk *w, uint64_t steps) {
    const hemi_shape *s = w->shape;

    for (uint32_t k = s->axis_count; k-- > 0; steps = 1) {
        int64_t stride = k == s->list_at ? 0 : s->axes[k].stride;
        if (w->done[k] + steps < s->axes[k].count) {
            w->done[k] += steps;
            w->at += (int64_t)steps * stride;
            break;
        }
        w->at -= (int64_t)w->done[k] * stride;
        w->done[k] = 0;
    }
    set_piece(w);
}

/* Part of a piece, at most `most` bytes, and on to the next one at its end. */
static uint64_t pass(walk *w, uint64_t most) {
    uint64_t bytes = w->piece - w->inside < most ? w->piece - w->inside : most;

    w->inside += bytes;
    if (w->inside == w->piece)
        next_pieces(w, 1);
    return bytes;
}

/* Steps of the innermost axis that fit into so many bytes, from the beginning of a piece. */
static uint64_t steps_within(const walk *w, uint64_t bytes) {
    const hemi_shape *s = w->shape;
    uint64_t left = s->axes[s->axis_count - 1].count - w->done[s->axis_count - 1];
    uint64_t fit = bytes / s->chunk;

    if (w->inside != 0 || s->list_kind == HEMI_LIST_RUNS)
        return 0;
    return fit < left ? fit : left;
}

/* The innermost axis of a shape as a row, to or from what is contiguous. */
static void set_row(const hemi_shape *s, bool unpack, hemi_moves *row) {
    const hemi_shape_loop *axis = &s->axes[s->axis_count - 1];
    bool listed = s->list_at + 1 == s->axis_count;
    int64_t stride = listed ? 0 : axis->stride;
    hemi_move_list list = listed ? hemi_shape_list_of(s) : (hemi_move_list){NULL, NULL, NULL};

    *row = (hemi_moves){.chunk = s->chunk, .around = {.count = 1}};
    row->row = unpack ? (hemi_move_loop){axis->count, stride, (int64_t)s->chunk}
                      : (hemi_move_loop){axis->count, (int64_t)s->chunk, stride};
    *(unpack ? &row->to_list : &row->from_list) = list;
    row->kernel = hemi_move_kernel_of(row);
}

/* One contiguous piece, and as much of a shape as fits into it. */
typedef struct filler {
    walk walk;
    hemi_moves row;
    bool unpack;
    unsigned char *field; /* of the shape; only read if not `unpack` */
} filler;

static void fill(filler *f, unsigned char *piece, uint64_t bytes) {
    walk *w = &f->walk;

    while (bytes > 0) {
        uint64_t steps = steps_within(w, bytes);
        bool listed = w->shape->list_at + 1 == w->shape->axis_count;
        uint64_t first = w->done[w->shape->axis_count - 1];
        unsigned char *place =
            f->field + (steps > 0 && listed ? w->at : w->place + (int64_t)w->inside);
        uint64_t moved = steps * w->shape->chunk;
        if (steps > 0) {
            f->row.kernel(&f->row, f->unpack ? place : piece, f->unpack ? piece : place, first,
                          steps);
            next_pieces(w, steps);
        } else {
            moved = pass(w, bytes);
            memcpy(f->unpack ? place : piece, f->unpack ? piece : place, moved);
        }
        piece += moved;
        bytes -= moved;
    }
}

/* Piece by piece of the shape that has the longer ones. */
static void copy_pieces(const hemi_shape *to, unsigned char *to_field, const hemi_shape *from,
                        unsigned char *from_field) {
    bool by_from = from->list_kind == HEMI_LIST_RUNS || from->chunk > to->chunk;
    const hemi_shape *pieces = by_from ? from : to;
    const hemi_shape *other = by_from ? to : from;
    unsigned char *field = by_from ? from_field : to_field;
    filler f = {.unpack = by_from, .field = by_from ? to_field : from_field};
    walk w;

    begin_walk(&w, pieces);
    begin_walk(&f.walk, other);
    set_row(other, by_from, &f.row);
    for (uint64_t left = pieces->bytes; left > 0;) {
        unsigned char *piece = field + w.place;
        uint64_t bytes = pass(&w, w.piece);
        fill(&f, piece, bytes);
        left -= bytes;
    }
}

/* How to copy, found once. */
struct hemi_shape_pair {
    const hemi_shape *to;
    const hemi_shape *from;
    bool joint;
    hemi_moves moves;
};

static void set_pair(hemi_shape_pair *p, const hemi_shape *to, const hemi_shape *from) {
    p->to = to;
    p->from = from;
    p->joint = to->axis_count > 0 && from->axis_count > 0 && join(to, from, &p->moves);
}

hem_status hemi_shape_pair_make(const hemi_shape *to, const hemi_shape *from,
                                hemi_shape_pair **pair_p) {
    hemi_shape_pair *pair = malloc(sizeof *pair);

    if (pair == NULL)
        return hemi_fail(HEM_ERR_MEMORY, "no memory for copying between two fields");
    set_pair(pair, to, from);
    *pair_p = pair;
    return HEM_OK;
}

void hemi_shape_pair_free(hemi_shape_pair *pair) {
    free(pair);
}

void hemi_shape_pair_copy(const hemi_shape_pair *p, void *to_field, const void *from_field) {
    unsigned char *to = to_field;
    /* Only one of two fields is written, but the pieces of either may be walked. */
    unsigned char *from = (unsigned char *)(uintptr_t)from_field;

    if (p->to->bytes == 0)
        return;
    if (p->joint)
        hemi_moves_run(&p->moves, to + p->to->base, from + p->from->base);
    else if (p->to->axis_count == 0)
        hemi_shape_pack(p->from, from, to + p->to->base);
    else if (p->from->axis_count == 0)
        hemi_shape_unpack(p->to, to, from + p->from->base);
    else
        copy_pieces(p->to, to, p->from, from);
}

void hemi_shape_copy(const hemi_shape *to, void *to_field, const hemi_shape *from,
                     const void *from_field) {
    hemi_shape_pair pair;

    set_pair(&pair, to, from);
    hemi_shape_pair_copy(&pair, to_field, from_field);
}
