#include "halo/pattern/fold.h"

static hemi_heading opposite(hemi_heading way) {
    return (hemi_heading){{(int8_t)-way.to[0], (int8_t)-way.to[1], (int8_t)-way.to[2]}};
}

/* 1: the same direction, -1: the opposite one, 0: across. */
static int along(hemi_heading a, hemi_heading b) {
    return a.to[0] * b.to[0] + a.to[1] * b.to[1] + a.to[2] * b.to[2];
}

/* A quarter turn around the cube's axis from south to north, eastwards. */
static hemi_heading turn_east(hemi_heading way) {
    return (hemi_heading){{(int8_t)-way.to[1], way.to[0], way.to[2]}};
}

/* Panel 0 looks along the first axis of space, its x along the second, its y along the third. */
hemi_panel hemi_panel_of(int panel) {
    hemi_panel p = {{{1, 0, 0}}, {{{0, 1, 0}}, {{0, 0, 1}}}};
    hemi_panel zero = p;
    if (panel == 4) {
        p.out = zero.axis[1];
        p.axis[1] = opposite(zero.out);
    } else if (panel == 5) {
        p.out = opposite(zero.axis[1]);
        p.axis[1] = zero.out;
    } else {
        for (; panel > 0; panel--) {
            p.out = turn_east(p.out);
            p.axis[0] = turn_east(p.axis[0]);
        }
    }
    return p;
}

hemi_fold hemi_fold_none(int panel) {
    return (hemi_fold){.panel = panel, .axis = {0, 1}, .step = {1, 1}};
}

/*
 * Over the edge one goes on in the direction that is into the cube for this panel; along the edge
 * nothing changes. The first point beyond the edge is at one end of the other panel, whichever its
 * axis says.
 */
hemi_fold hemi_fold_over(int panel, enum hemi_edge edge, int64_t cells) {
    const hemi_panel here = hemi_panel_of(panel);
    const uint8_t across = edge >= HEMI_EDGE_SOUTH;
    const bool high = edge == HEMI_EDGE_EAST || edge == HEMI_EDGE_NORTH;
    const hemi_heading leave = high ? here.axis[across] : opposite(here.axis[across]);
    const hemi_heading onward = opposite(here.out);
    hemi_fold fold = {.panel = 0};
    while (along(hemi_panel_of(fold.panel).out, leave) != 1)
        fold.panel++;
    const hemi_panel there = hemi_panel_of(fold.panel);
    for (int k = 0; k < 2; k++) {
        int forward = along(there.axis[k], onward);
        if (forward == 0) {
            int same = along(there.axis[k], here.axis[1 - across]);
            fold.axis[k] = (uint8_t)(1 - across);
            fold.step[k] = (int8_t)same;
            fold.offset[k] = same > 0 ? 0 : cells - 1;
            continue;
        }
        /* The depth beyond the edge is x - cells, or -1 - x. */
        fold.axis[k] = across;
        fold.step[k] = (int8_t)(high ? forward : -forward);
        fold.offset[k] = (forward > 0 ? 0 : cells - 1) - forward * (high ? cells : 1);
    }
    return fold;
}

hem_box hemi_fold_there(const hemi_fold *fold, const hem_box *box) {
    hem_box there = {{0}, {0}};
    for (int k = 0; k < 2; k++) {
        int64_t start = box->start[fold->axis[k]];
        int64_t count = box->count[fold->axis[k]];
        there.count[k] = count;
        there.start[k] =
            fold->step[k] > 0 ? start + fold->offset[k] : fold->offset[k] - (start + count - 1);
    }
    return there;
}

hem_box hemi_fold_back(const hemi_fold *fold, const hem_box *box) {
    hem_box here = {{0}, {0}};
    for (int k = 0; k < 2; k++) {
        int64_t start = box->start[k];
        int64_t count = box->count[k];
        here.count[fold->axis[k]] = count;
        here.start[fold->axis[k]] =
            fold->step[k] > 0 ? start - fold->offset[k] : fold->offset[k] - (start + count - 1);
    }
    return here;
}

hemi_turn hemi_fold_turn(const hemi_fold *fold) {
    hemi_turn turn = {{0, 0}, {1, 1}};
    for (uint8_t k = 0; k < 2; k++) {
        turn.from[fold->axis[k]] = k;
        turn.sign[fold->axis[k]] = fold->step[k];
    }
    return turn;
}
