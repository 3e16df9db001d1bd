#include "terminal.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <unistd.h>

static bool contains(const char *text, const char *part) {
    return text && strstr(text, part);
}

/* Terminals speak UTF-8 today, also where no locale is set; only a locale that names another
 * character set is believed. */
static bool has_half_blocks(void) {
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = getenv(names[i]);
        const char *charset = value ? strchr(value, '.') : NULL;
        if (value && *value)
            return !charset || strncasecmp(charset, ".utf", 4) == 0;
    }
    return true;
}

static enum terminal_style find_style(const char *type) {
    const char *colours = getenv("COLORTERM");
    const char *refused = getenv("NO_COLOR");

    if ((refused && *refused) || !has_half_blocks())
        return TERMINAL_LETTERS;
    if (contains(colours, "truecolor") || contains(colours, "24bit") || contains(type, "direct"))
        return TERMINAL_24_BIT;
    return contains(type, "256") ? TERMINAL_256 : TERMINAL_LETTERS;
}

bool terminal_find(struct terminal *terminal) {
    const char *type = getenv("TERM");

    if (!isatty(STDOUT_FILENO) || !type || !*type || strcmp(type, "dumb") == 0)
        return false;
    *terminal = (struct terminal){.style = find_style(type)};
    terminal_measure(terminal);
    return true;
}

bool terminal_measure(struct terminal *terminal) {
    struct winsize size = {0};
    struct terminal old = *terminal;

    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) {
        size.ws_col = 80;
        size.ws_row = 24;
    }
    terminal->columns = size.ws_col;
    terminal->lines = size.ws_row;
    return terminal->columns != old.columns || terminal->lines != old.lines;
}
