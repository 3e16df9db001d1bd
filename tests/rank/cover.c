#include "cover.h"

void cover_begin(cover *c, int factors, const int *levels, cover_allows allows, uint64_t seed) {
    memset(c, 0, sizeof *c);
    c->factors = factors;
    c->allows = allows;
    c->rng = harness_rng_of(seed, 5, 6);
    memcpy(c->levels, levels, (size_t)factors * sizeof *levels);
    for (int i = 0; i < factors; i++)
        for (int j = i + 1; j < factors; j++)
            for (int a = 0; a < levels[i]; a++)
                for (int b = 0; b < levels[j]; b++) {
                    c->open[i][j][a][b] = allows(i, a, j, b);
                    c->left += c->open[i][j][a][b];
                }
}

static bool is_allowed(const cover *c, int i, int a, int j, int b) {
    return i < j ? c->allows(i, a, j, b) : c->allows(j, b, i, a);
}

static bool is_open(const cover *c, int i, int a, int j, int b) {
    return i < j ? c->open[i][j][a][b] : c->open[j][i][b][a];
}

/* How many open pairs level `a` of factor `i` closes in a row; -1 if it does not go with it. */
static int gain(const cover *c, const cover_row *row, int i, int a) {
    int sum = 0;

    for (int j = 0; j < c->factors; j++) {
        if (j == i || row->level[j] < 0)
            continue;
        if (!is_allowed(c, i, a, j, row->level[j]))
            return -1;
        sum += is_open(c, i, a, j, row->level[j]);
    }
    return sum;
}

/* Whether every factor without a level still has one that goes with the row. */
static bool can_be_filled(const cover *c, const cover_row *row) {
    for (int i = 0; i < c->factors; i++) {
        bool any = row->level[i] >= 0;

        for (int a = 0; a < c->levels[i] && !any; a++)
            any = gain(c, row, i, a) >= 0;
        if (!any)
            return false;
    }
    return true;
}

static bool fill(const cover *c, cover_row *row, int i) {
    int best = -1;
    int most = -1;

    for (int a = 0; a < c->levels[i]; a++) {
        int sum = gain(c, row, i, a);

        row->level[i] = a;
        if (sum > most && can_be_filled(c, row)) {
            best = a;
            most = sum;
        }
        row->level[i] = -1;
    }
    row->level[i] = best;
    return best >= 0;
}

/* The first open pair at or after a random place. */
static void seed_row(cover *c, cover_row *row) {
    size_t skip = harness_below(&c->rng, c->left);

    for (int i = 0; i < c->factors; i++)
        for (int j = i + 1; j < c->factors; j++)
            for (int a = 0; a < c->levels[i]; a++)
                for (int b = 0; b < c->levels[j]; b++)
                    if (c->open[i][j][a][b] && skip-- == 0) {
                        row->level[i] = a;
                        row->level[j] = b;
                        return;
                    }
}

static void close_pairs(cover *c, const cover_row *row) {
    for (int i = 0; i < c->factors; i++)
        for (int j = i + 1; j < c->factors; j++) {
            bool *open = &c->open[i][j][row->level[i]][row->level[j]];

            c->left -= *open;
            *open = false;
        }
}

/* A pair that goes with no third level can never occur; without it no end would come. */
static void give_up_pair(cover *c, const cover_row *row) {
    for (int i = 0; i < c->factors; i++)
        for (int j = i + 1; j < c->factors; j++)
            if (row->level[i] >= 0 && row->level[j] >= 0) {
                c->open[i][j][row->level[i]][row->level[j]] = false;
                c->left--;
            }
}

bool cover_next(cover *c, cover_row *row) {
    while (c->left > 0) {
        bool full = true;

        for (int i = 0; i < c->factors; i++)
            row->level[i] = -1;
        seed_row(c, row);
        if (!can_be_filled(c, row)) {
            give_up_pair(c, row);
            continue;
        }
        for (int i = 0; i < c->factors && full; i++)
            if (row->level[i] < 0)
                full = fill(c, row, i);
        CHECK(full);
        close_pairs(c, row);
        return true;
    }
    return false;
}
