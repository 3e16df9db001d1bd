#include "bench_rows.h"

#include <stdbool.h>

static const double clearly_faster = 0.97;

/* Returns HEMT_ALGORITHMS_MAX if nothing was measured. */
static size_t fastest(const struct hemt_point *point) {
    size_t best = HEMT_ALGORITHMS_MAX;

    for (size_t a = 0; a < HEMT_ALGORITHMS_MAX; a++) {
        if (point->us[a] > 0 && (best == HEMT_ALGORITHMS_MAX || point->us[a] < point->us[best]))
            best = a;
    }
    return best;
}

static bool takes_over(const struct hemt_point *point, size_t old, size_t next) {
    return point->us[old] <= 0 || point->us[next] < point->us[old] * clearly_faster;
}

/* The largest power of two whose square is not above the product. Sizes end at 1 GiB. */
static size_t border(size_t low, size_t high) {
    size_t middle = 1;

    while (middle * 2 * middle * 2 <= low * high)
        middle *= 2;
    return middle < low ? low : middle;
}

size_t hemt_rows_choose(const struct hemt_point *points, size_t count, struct hemt_row *rows_p) {
    size_t rows = 0;
    size_t last = 0; /* the size that was looked at before this one */

    for (size_t i = 0; i < count; i++) {
        size_t best = fastest(&points[i]);

        if (best == HEMT_ALGORITHMS_MAX)
            continue;
        if (rows == 0) {
            rows_p[rows++] = (struct hemt_row){SIZE_MAX, best};
        } else if (best != rows_p[rows - 1].algorithm &&
                   takes_over(&points[i], rows_p[rows - 1].algorithm, best)) {
            rows_p[rows - 1].bytes = border(last, points[i].bytes);
            rows_p[rows++] = (struct hemt_row){SIZE_MAX, best};
        }
        last = points[i].bytes;
    }
    return rows;
}
