#ifndef HEMT_BENCH_STATS_H
#define HEMT_BENCH_STATS_H

#include <stdbool.h>
#include <stddef.h>

/* The median; sorts `values`. The mean of the middle two when `count` is even; 0 for none. */
double hemt_median(double *values, size_t count);

/* (largest - smallest) / median, as a fraction; 0 for fewer than two values. Sorts `values`. */
double hemt_spread(double *values, size_t count);

/*
 * Whether two yardsticks (half round trips of one cache line, in ns) tell of the same pair of
 * cores. 0 stands for "not measured" and fits everything.
 */
bool hemt_same_distance(double line_a, double line_b);

/* One measurement: `group` is what is measured, `line_ns` is how far apart the cores were. */
struct hemt_sample {
    size_t group;
    double line_ns;
    double us;
};

/**
 * Choose the distance at which the groups can be compared best.
 *
 * A virtual machine's cores move while a benchmark runs, and a cache line then takes five times
 * as long or as short. Returns the yardstick around which the group with the fewest samples has
 * the most of them, counting groups 0 to `groups` - 1 that have any sample at all; `fewest_p`
 * gets that number. Returns 0 when no yardstick was taken.
 */
double hemt_best_distance(const struct hemt_sample *samples, size_t count, size_t groups,
                          size_t *fewest_p);

/* "1.00", "12.3", "340", "5.2k": three digits are enough for a ratio. "-" if there is none. */
void hemt_format_ratio(double value, double base, char *text_p, size_t size);

/* "8", "4k", "1M", or plain digits when the size is no whole number of k or M. */
void hemt_format_bytes(size_t bytes, char *text_p, size_t size);

#endif
