/*
 * The edges of the cube against its shape in space: what lies beyond an edge is what one gets to by
 * walking over it, there and back is where one was, and panels are turned as the header says.
 */
#include "halo/pattern/fold.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

typedef struct place {
    int64_t at[3];
} place;

/* The middle of a cell in space: the cube has edges of 2 x cells, its middle is 0. */
static place middle(int panel, int64_t cells, int64_t x, int64_t y) {
    hemi_panel p = hemi_panel_of(panel);
    place m;
    for (int i = 0; i < 3; i++)
        m.at[i] = p.out.to[i] * cells + p.axis[0].to[i] * (2 * x + 1 - cells) +
                  p.axis[1].to[i] * (2 * y + 1 - cells);
    return m;
}

static int64_t distance2(place a, place b) {
    int64_t sum = 0;
    for (int i = 0; i < 3; i++)
        sum += (a.at[i] - b.at[i]) * (a.at[i] - b.at[i]);
    return sum;
}

static hem_box cell(int64_t x, int64_t y) {
    return (hem_box){{x, y}, {1, 1}};
}

/* The cell of a panel that is `depth` beyond an edge (not negative) or before it, at `along`. */
static hem_box at_edge(enum hemi_edge edge, int64_t cells, int64_t along, int64_t depth) {
    int64_t across = edge == HEMI_EDGE_EAST || edge == HEMI_EDGE_NORTH ? cells + depth : -1 - depth;
    return edge >= HEMI_EDGE_SOUTH ? cell(along, across) : cell(across, along);
}

static void panels_face_outwards(void **state) {
    (void)state;
    for (int p = 0; p < HEMI_PANELS; p++) {
        hemi_panel panel = hemi_panel_of(p);
        const int8_t *x = panel.axis[0].to;
        const int8_t *y = panel.axis[1].to;
        for (int i = 0; i < 3; i++)
            assert_int_equal(panel.out.to[i],
                             x[(i + 1) % 3] * y[(i + 2) % 3] - x[(i + 2) % 3] * y[(i + 1) % 3]);
        for (int q = 0; q < p; q++) {
            hemi_panel other = hemi_panel_of(q);
            assert_memory_not_equal(&panel.out, &other.out, sizeof panel.out);
        }
    }
}

static void panels_are_where_the_header_says(void **state) {
    const int64_t n = 5;
    (void)state;
    for (int p = 0; p < 4; p++) {
        hemi_fold east = hemi_fold_over(p, HEMI_EDGE_EAST, n);
        assert_int_equal(east.panel, (p + 1) % 4);
        assert_int_equal(hemi_fold_over(p, HEMI_EDGE_WEST, n).panel, (p + 3) % 4);
        assert_int_equal(hemi_fold_over(p, HEMI_EDGE_NORTH, n).panel, 4);
        assert_int_equal(hemi_fold_over(p, HEMI_EDGE_SOUTH, n).panel, 5);
        hem_box beyond = cell(n, 2);
        hem_box there = hemi_fold_there(&east, &beyond);
        assert_int_equal(there.start[0], 0);
        assert_int_equal(there.start[1], 2);
    }
    hemi_fold north = hemi_fold_over(0, HEMI_EDGE_NORTH, n);
    hemi_fold south = hemi_fold_over(0, HEMI_EDGE_SOUTH, n);
    for (int64_t x = 0; x < n; x++) {
        hem_box up = cell(x, n);
        hem_box down = cell(x, -1);
        hem_box there = hemi_fold_there(&north, &up);
        assert_true(there.start[0] == x && there.start[1] == 0);
        there = hemi_fold_there(&south, &down);
        assert_true(there.start[0] == x && there.start[1] == n - 1);
    }
}

/* Walk on from the middle of an edge: over it, then into the cube. */
static place walk(int panel, enum hemi_edge edge, int64_t cells, int64_t along, int64_t depth) {
    hemi_panel p = hemi_panel_of(panel);
    hem_box last = at_edge(edge, cells, along, -1);
    place m = middle(panel, cells, last.start[0], last.start[1]);
    int sign = edge == HEMI_EDGE_EAST || edge == HEMI_EDGE_NORTH ? 1 : -1;
    for (int i = 0; i < 3; i++) {
        m.at[i] += (int64_t)sign * p.axis[edge >= HEMI_EDGE_SOUTH].to[i];
        m.at[i] -= p.out.to[i] * (2 * depth + 1);
    }
    return m;
}

static void beyond_an_edge_is_where_one_walks_to(void **state) {
    (void)state;
    for (int64_t n = 1; n <= 5; n++)
        for (int p = 0; p < HEMI_PANELS; p++)
            for (enum hemi_edge e = HEMI_EDGE_WEST; e < HEMI_EDGES; e++)
                for (int64_t along = 0; along < n; along++)
                    for (int64_t depth = 0; depth < n; depth++) {
                        hemi_fold fold = hemi_fold_over(p, e, n);
                        hem_box beyond = at_edge(e, n, along, depth);
                        hem_box there = hemi_fold_there(&fold, &beyond);
                        place got = middle(fold.panel, n, there.start[0], there.start[1]);
                        place want = walk(p, e, n, along, depth);
                        assert_int_equal(distance2(got, want), 0);
                        hem_box back = hemi_fold_back(&fold, &there);
                        assert_memory_equal(&back, &beyond, sizeof back);
                    }
}

static void neighbours_touch(void **state) {
    const int64_t n = 4;
    (void)state;
    for (int p = 0; p < HEMI_PANELS; p++)
        for (enum hemi_edge e = HEMI_EDGE_WEST; e < HEMI_EDGES; e++)
            for (int64_t along = 0; along < n; along++) {
                hemi_fold fold = hemi_fold_over(p, e, n);
                hem_box inside = at_edge(e, n, along, -1);
                hem_box beyond = at_edge(e, n, along, 0);
                hem_box there = hemi_fold_there(&fold, &beyond);
                place a = middle(p, n, inside.start[0], inside.start[1]);
                place b = middle(fold.panel, n, there.start[0], there.start[1]);
                assert_int_equal(distance2(a, b), 2);
            }
}

/* The edge of the other panel that leads back. */
static hemi_fold way_back(int panel, const hemi_fold *fold, int64_t cells) {
    enum hemi_edge e = HEMI_EDGE_WEST;
    while (hemi_fold_over(fold->panel, e, cells).panel != panel)
        e++;
    assert_true(e < HEMI_EDGES);
    return hemi_fold_over(fold->panel, e, cells);
}

static void there_and_back_is_here(void **state) {
    const int64_t n = 4;
    (void)state;
    for (int p = 0; p < HEMI_PANELS; p++)
        for (enum hemi_edge e = HEMI_EDGE_WEST; e < HEMI_EDGES; e++) {
            hemi_fold fold = hemi_fold_over(p, e, n);
            hemi_fold other = way_back(p, &fold, n);
            for (int64_t x = -n; x < 2 * n; x++)
                for (int64_t y = -n; y < 2 * n; y++) {
                    hem_box from = {{x, y}, {2, 3}};
                    hem_box there = hemi_fold_there(&fold, &from);
                    hem_box back = hemi_fold_there(&other, &there);
                    assert_memory_equal(&back, &from, sizeof back);
                }
        }
}

/* Turn a direction of the other panel into the plane of this one, by hand. */
static int64_t component(int panel, enum hemi_edge edge, hemi_heading way, int axis) {
    hemi_panel p = hemi_panel_of(panel);
    int across = edge >= HEMI_EDGE_SOUTH;
    int sign = edge == HEMI_EDGE_EAST || edge == HEMI_EDGE_NORTH ? 1 : -1;
    int64_t along = 0;
    int64_t inward = 0;
    for (int i = 0; i < 3; i++) {
        along += (int64_t)way.to[i] * p.axis[axis].to[i];
        inward -= (int64_t)way.to[i] * p.out.to[i];
    }
    return axis == across ? sign * inward : along;
}

static void vectors_turn_with_the_axes(void **state) {
    (void)state;
    for (int p = 0; p < HEMI_PANELS; p++)
        for (enum hemi_edge e = HEMI_EDGE_WEST; e < HEMI_EDGES; e++) {
            hemi_fold fold = hemi_fold_over(p, e, 3);
            hemi_turn turn = hemi_fold_turn(&fold);
            hemi_panel other = hemi_panel_of(fold.panel);
            for (int from = 0; from < 2; from++)
                for (int to = 0; to < 2; to++)
                    assert_int_equal(turn.from[to] == from ? turn.sign[to] : 0,
                                     component(p, e, other.axis[from], to));
        }
}

static void without_an_edge_nothing_changes(void **state) {
    hem_box box = {{1, 2}, {3, 4}};
    hemi_fold none = hemi_fold_none(3);
    hem_box there = hemi_fold_there(&none, &box);
    hem_box back = hemi_fold_back(&none, &box);
    hemi_turn turn = hemi_fold_turn(&none);
    (void)state;
    assert_memory_equal(&there, &box, sizeof box);
    assert_memory_equal(&back, &box, sizeof box);
    assert_true(turn.from[0] == 0 && turn.from[1] == 1 && turn.sign[0] == 1 && turn.sign[1] == 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(panels_face_outwards),
        cmocka_unit_test(panels_are_where_the_header_says),
        cmocka_unit_test(beyond_an_edge_is_where_one_walks_to),
        cmocka_unit_test(neighbours_touch),
        cmocka_unit_test(there_and_back_is_here),
        cmocka_unit_test(vectors_turn_with_the_axes),
        cmocka_unit_test(without_an_edge_nothing_changes),
    };
    return cmocka_run_group_tests_name("fold", tests, NULL, NULL);
}
