/* What the terminal on standard output can do. */
#ifndef HEAT_TERMINAL_H
#define HEAT_TERMINAL_H

#include <stdbool.h>

enum terminal_style {
    TERMINAL_LETTERS, /* from ' ' for dark to '@' for bright */
    TERMINAL_256,     /* half blocks in the 256 colours that most terminals have */
    TERMINAL_24_BIT   /* half blocks in any colour */
};

struct terminal {
    enum terminal_style style;
    int columns;
    int lines;
};

/* False if standard output is no terminal, or one that only prints. */
bool terminal_find(struct terminal *terminal);

/* Asks for the size again. True if it has changed. */
bool terminal_measure(struct terminal *terminal);

#endif
