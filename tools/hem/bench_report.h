#ifndef HEMT_BENCH_REPORT_H
#define HEMT_BENCH_REPORT_H

/* Collects what the runners print and shows it as a table or as JSON. */

#include "bench_stats.h"

#include <stdbool.h>
#include <stddef.h>

/* What is measured: one implementation at one size. */
struct hemt_group {
    char impl[24];
    int ranks;
    size_t bytes; /* or whatever a size counts */
    /* What the runner said last; 0: nothing. */
    size_t moved; /* bytes */
    size_t messages;
    size_t peak;   /* bytes */
    size_t blocks; /* of a kernel */
    size_t l2;     /* 1: what is touched fits into a GPU's L2 cache; 2: it does not */
};

struct hemt_report {
    const char *bench;
    const char *about; /* what exactly was measured; NULL or empty: nothing to say */
    int ranks;         /* 0: those of each group */
    int rounds;
    struct hemt_group *groups;
    size_t group_count;
    struct hemt_sample *samples;
    size_t sample_count;
    char *notes; /* lines below the table */
};

/* Takes the JSON lines of one run and returns their number. 0 us means: not measurable just then. */
size_t hemt_report_take(struct hemt_report *report, const char *output);

/* Adds a line that stands below the table; a line that is there already is not repeated. */
void hemt_report_note(struct hemt_report *report, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The samples that the poorest group has at the distance at which most can be compared. */
size_t hemt_report_fewest(const struct hemt_report *report);

/* Whether there is any measurement of it. */
bool hemt_report_has(const struct hemt_report *report, const char *impl);

/* Whether there is any measurement of it, whichever way it was done: "hem-both-8" is one of hem. */
bool hemt_report_has_some(const struct hemt_report *report, const char *impl);

/* The median at the distance at which most can be compared; 0 if there is none. */
double hemt_report_median(const struct hemt_report *report, const char *impl, size_t bytes);

/* Copies a group's samples at one distance to `values_p` and returns their number. */
size_t hemt_report_values(const struct hemt_report *report, size_t group, double line_ns,
                          double *values_p);

void hemt_report_table(const struct hemt_report *report, bool terminal);
void hemt_report_json(const struct hemt_report *report);

void hemt_report_free(struct hemt_report *report);

#endif
