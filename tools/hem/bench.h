#ifndef HEMT_BENCH_H
#define HEMT_BENCH_H

/**
 * The command `hem bench`: run Hem and its peers alternating and print how they compare.
 *
 * argv[0] is "bench". Returns the exit code: 0; 1 if Hem itself (or for `raw` the hardware) gave no
 * result; 2 for bad usage.
 */
int hemt_bench(int argc, char **argv);

#endif
