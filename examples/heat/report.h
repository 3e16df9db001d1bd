/* What rank 0 says and writes at the end. */
#ifndef HEAT_REPORT_H
#define HEAT_REPORT_H

#include "picture.h"

/* Seconds that a rank has spent on its steps, and what part of them on its neighbours. */
struct times {
    double steps;
    double moving;
    double waiting;
};

/* Writes the picture and says where it is. False, with a sentence on stderr, if that failed. */
bool report_png(const struct picture *picture, const char *path);

/* Computes everything again in one piece. False, with a sentence on stderr, if a bit differs. */
bool report_check(const struct picture *picture);

/* How long a step took on average, and how much of it was communication. */
void report_times(const struct times *times, int ranks, int steps);

#endif
