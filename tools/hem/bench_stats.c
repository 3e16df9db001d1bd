#include "bench_stats.h"

#include <stdio.h>
#include <stdlib.h>

static int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a;
    double y = *(const double *)b;

    return (x > y) - (x < y);
}

double hemt_median(double *values, size_t count) {
    if (count == 0)
        return 0;
    qsort(values, count, sizeof(*values), compare_doubles);
    if (count % 2 == 1)
        return values[count / 2];
    return (values[count / 2 - 1] + values[count / 2]) / 2;
}

double hemt_spread(double *values, size_t count) {
    double median = hemt_median(values, count);

    if (count < 2 || median <= 0)
        return 0;
    return (values[count - 1] - values[0]) / median;
}

bool hemt_same_distance(double line_a, double line_b) {
    const double slack = 1.25;

    if (line_a <= 0 || line_b <= 0)
        return true;
    return line_a <= line_b * slack && line_b <= line_a * slack;
}

/* How many samples the poorest group keeps at this distance; groups without any do not count. */
static size_t fewest_at(const struct hemt_sample *samples, size_t count, size_t groups,
                        double line) {
    size_t fewest = count;

    for (size_t g = 0; g < groups; g++) {
        size_t all = 0;
        size_t near = 0;

        for (size_t i = 0; i < count; i++) {
            if (samples[i].group != g)
                continue;
            all++;
            near += hemt_same_distance(samples[i].line_ns, line);
        }
        if (all > 0 && near < fewest)
            fewest = near;
    }
    return fewest;
}

static size_t total_at(const struct hemt_sample *samples, size_t count, double line) {
    size_t total = 0;

    for (size_t i = 0; i < count; i++)
        total += hemt_same_distance(samples[i].line_ns, line);
    return total;
}

double hemt_best_distance(const struct hemt_sample *samples, size_t count, size_t groups,
                          size_t *fewest_p) {
    double best = 0;
    size_t best_fewest = 0;
    size_t best_total = 0;

    for (size_t i = 0; i < count; i++) {
        double line = samples[i].line_ns;
        if (line <= 0)
            continue;
        size_t fewest = fewest_at(samples, count, groups, line);
        size_t total = total_at(samples, count, line);
        if (fewest > best_fewest || (fewest == best_fewest && total > best_total)) {
            best = line;
            best_fewest = fewest;
            best_total = total;
        }
    }
    *fewest_p = best > 0 ? best_fewest : fewest_at(samples, count, groups, 0);
    return best;
}

void hemt_format_ratio(double value, double base, char *text_p, size_t size) {
    double ratio = base > 0 ? value / base : 0;

    if (ratio <= 0)
        snprintf(text_p, size, "-");
    else if (ratio < 9.995)
        snprintf(text_p, size, "%.2f", ratio);
    else if (ratio < 99.95)
        snprintf(text_p, size, "%.1f", ratio);
    else if (ratio < 999.5)
        snprintf(text_p, size, "%.0f", ratio);
    else
        snprintf(text_p, size, "%.1fk", ratio / 1000);
}

void hemt_format_bytes(size_t bytes, char *text_p, size_t size) {
    const size_t kilo = (size_t)1 << 10;
    const size_t mega = (size_t)1 << 20;

    if (bytes >= mega && bytes % mega == 0)
        snprintf(text_p, size, "%zuM", bytes / mega);
    else if (bytes >= kilo && bytes % kilo == 0)
        snprintf(text_p, size, "%zuk", bytes / kilo);
    else
        snprintf(text_p, size, "%zu", bytes);
}
