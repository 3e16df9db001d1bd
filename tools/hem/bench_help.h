#ifndef HEMT_BENCH_HELP_H
#define HEMT_BENCH_HELP_H

/* Prints what `hem bench` takes. */
void hemt_bench_help(void);

#endif
