/* The live picture: half blocks in 24-bit or 256 colours, or letters, and a progress bar. */
#ifndef HEAT_SCREEN_H
#define HEAT_SCREEN_H

#include "picture.h"

struct screen;

/* NULL if standard output is no terminal that can show a picture. */
struct screen *screen_open(void);
void screen_close(struct screen *screen);

/* Draws over the last picture, not before `interval` seconds after it. */
void screen_show(struct screen *screen, const struct picture *picture, int step, double interval);

#endif
