#ifndef HEMT_BENCH_TUNE_H
#define HEMT_BENCH_TUNE_H

/**
 * The command `hem bench tune`: measure each collective with each algorithm forced, and print which
 * is best where, as the rows of src/coll/table.h. What was measured goes to stderr.
 *
 * argv[0] is "tune". Returns the exit code: 0; 1 if something could not be measured; 2 for bad usage.
 */
int hemt_tune(int argc, char **argv);

#endif
