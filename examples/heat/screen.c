/*
 * How this works: a frame is one string of characters and escape sequences, written at once. It
 * begins by moving the cursor up over the last frame and ends with the terminal as it was found, so
 * between two frames there is nothing to restore. Only a signal that ends the program in the middle
 * of a frame needs care; see on_signal. A character shows two pixels: the upper half block has the
 * colour of the upper one, its background that of the lower one.
 */
#include "screen.h"

#include "terminal.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define WIDEST      160
#define LINES_BELOW 3 /* a gap, the bar, and the line on which the cursor rests */
#define BAR_LEAST   60

/* A border is a whole pixel, as large as a character is wide: it must be faint. */
#define BORDER_WHITE 0.08

/* 2026 asks the terminal to show the frame only when it is complete; 25 is the cursor. */
#define BEGIN_FRAME "\033[?2026h\033[?25l"
#define END_FRAME   "\033[0m\033[?25h\033[?2026l"
#define END_LINE    "\033[0m\033[K\n"

struct screen {
    struct terminal terminal;
    int lines_drawn;
    double start;
    double last;
    struct rgb palette[256];
};

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void write_all(const char *text, size_t bytes) {
    while (bytes > 0) {
        ssize_t written = write(STDOUT_FILENO, text, bytes);
        if (written < 0)
            return;
        text += written;
        bytes -= (size_t)written;
    }
}

/* Ends as the signal would have ended the program, but with the terminal in order. The interrupt
 * key drops what the terminal has not shown yet, so the cursor may be anywhere: to the bottom. */
static void on_signal(int number) {
    static const char restore[] = END_FRAME "\033[999B\n";

    write_all(restore, sizeof restore - 1);
    signal(number, SIG_DFL);
    raise(number);
}

struct screen *screen_open(void) {
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    struct terminal terminal;

    if (!terminal_find(&terminal))
        return NULL;
    struct screen *screen = calloc(1, sizeof *screen);
    if (!screen)
        return NULL;
    screen->terminal = terminal;
    screen->start = seconds();
    picture_palette(BORDER_WHITE, screen->palette);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        signal(signals[i], on_signal);
    return screen;
}

void screen_close(struct screen *screen) {
    free(screen);
}

/* The largest size in characters that fits and keeps the shape; a character is twice as high as
 * wide. A terminal of a few lines gets the bar only. */
static void fit(const struct terminal *terminal, const struct plate *plate, int *columns_p,
                int *lines_p) {
    long most_lines = terminal->lines > LINES_BELOW ? terminal->lines - LINES_BELOW : 0;
    long columns = terminal->columns > 3 ? terminal->columns - 2 : 1;

    if (columns > WIDEST)
        columns = WIDEST;
    if (columns * plate->height > 2 * most_lines * plate->width)
        columns = 2 * most_lines * plate->width / plate->height;
    if (columns < 1)
        columns = 1;
    long lines = (columns * plate->height + plate->width) / (2L * plate->width);
    *columns_p = (int)columns;
    *lines_p = (int)(lines < most_lines ? lines : most_lines);
}

/* The palette in the 256 colours that most terminals have: there are nine near enough. A pixel
 * between two of them takes one or the other by its place, and the eye mixes them. Borders show in
 * the dark only, for there is no lighter twin of each colour. */
static uint8_t colour_of_256(uint8_t pixel, int x, int y) {
    static const uint8_t ramp[] = {16, 17, 53, 89, 125, 166, 208, 220, 229};
    static const uint8_t dark_grey = 234;
    static const double thresholds[2][2] = {{0.125, 0.625}, {0.875, 0.375}};
    double brightness = pixel / (PICTURE_SHADES - 1.0);

    if (pixel >= PICTURE_SHADES) {
        brightness = (pixel - PICTURE_SHADES) / (255.0 - PICTURE_SHADES);
        if (brightness < 0.25)
            return dark_grey;
    }
    return ramp[(int)(brightness * (sizeof ramp - 1.0) + thresholds[y % 2][x % 2])];
}

static void reduce_to_256(uint8_t *pixels, int columns, int rows) {
    for (int y = 0; y < rows; y++)
        for (int x = 0; x < columns; x++, pixels++)
            *pixels = colour_of_256(*pixels, x, y);
}

/* `layer` is 38 for the foreground, 48 for the background. */
static void put_colour(const struct screen *screen, FILE *out, int layer, uint8_t pixel) {
    const struct rgb *colour = &screen->palette[pixel];

    if (screen->terminal.style == TERMINAL_24_BIT)
        fprintf(out, "\033[%d;2;%d;%d;%dm", layer, colour->red, colour->green, colour->blue);
    else
        fprintf(out, "\033[%d;5;%dm", layer, pixel);
}

static void put_blocks(const struct screen *screen, FILE *out, const uint8_t *upper,
                       const uint8_t *lower, int columns) {
    for (int x = 0; x < columns; x++) {
        if (x == 0 || upper[x] != upper[x - 1])
            put_colour(screen, out, 38, upper[x]);
        if (x == 0 || lower[x] != lower[x - 1])
            put_colour(screen, out, 48, lower[x]);
        fputs("\u2580", out);
    }
}

static void put_letters(const struct screen *screen, FILE *out, const uint8_t *pixels,
                        int columns) {
    static const char ramp[] = " .:-=+*#%@";

    for (int x = 0; x < columns; x++) {
        const struct rgb *colour = &screen->palette[pixels[x]];
        int brightness = (3 * colour->red + 6 * colour->green + colour->blue) / 10;
        putc(ramp[brightness * (int)(sizeof ramp - 1) / 256], out);
    }
}

static void put_picture(const struct screen *screen, FILE *out, const struct picture *picture,
                        int columns, int lines) {
    bool letters = screen->terminal.style == TERMINAL_LETTERS;
    int rows = letters ? lines : 2 * lines;
    uint8_t *pixels = rows > 0 ? malloc((size_t)columns * (size_t)rows) : NULL;

    if (pixels && picture_render(picture, columns, rows, pixels)) {
        if (screen->terminal.style == TERMINAL_256)
            reduce_to_256(pixels, columns, rows);
        for (int line = 0; line < lines; line++) {
            const uint8_t *row = pixels + (size_t)line * (size_t)columns * (letters ? 1 : 2);
            putc(' ', out);
            if (letters)
                put_letters(screen, out, row, columns);
            else
                put_blocks(screen, out, row, row + columns, columns);
            fputs(END_LINE, out);
        }
    }
    free(pixels);
}

/* The bar is as wide as the picture, the numbers included, but not so narrow as to be useless. */
static int bar_length(const struct terminal *terminal, int columns, int text) {
    int width = columns < BAR_LEAST ? BAR_LEAST : columns;

    if (width > terminal->columns - 2)
        width = terminal->columns - 2;
    return width - text;
}

static void put_bar(const struct screen *screen, FILE *out, int step, int steps, int columns) {
    bool letters = screen->terminal.style == TERMINAL_LETTERS;
    char text[80];
    int percent = (int)(100L * step / steps);
    int written = snprintf(text, sizeof text, "%5d %%   step %d of %d   %4.1f s", percent, step,
                           steps, seconds() - screen->start);
    int length = bar_length(&screen->terminal, columns, written);
    int done = length > 0 ? (int)((long)length * step / steps) : 0;

    fputs(letters ? " " : " \033[38;5;208m", out);
    for (int i = 0; i < length; i++) {
        if (i == done && !letters)
            fputs("\033[38;5;238m", out);
        fputs(letters ? (i < done ? "#" : ".") : "\u2501", out);
    }
    if (!letters)
        fputs("\033[0m", out);
    if (length >= 0)
        fputs(text, out);
    else
        fprintf(out, "%d %%", percent);
    fputs(END_LINE, out);
}

/* A changed size has moved everything; there only a clean page helps. */
static void put_frame(struct screen *screen, FILE *out, const struct picture *picture, int step) {
    int columns, lines;

    fputs(BEGIN_FRAME, out);
    if (terminal_measure(&screen->terminal) && screen->lines_drawn > 0)
        fputs("\033[2J\033[H", out);
    else if (screen->lines_drawn > 0)
        fprintf(out, "\r\033[%dA", screen->lines_drawn);
    fit(&screen->terminal, &picture->plate, &columns, &lines);
    put_picture(screen, out, picture, columns, lines);
    fputs(END_LINE, out);
    put_bar(screen, out, step, picture->plate.steps, columns);
    fputs(END_FRAME, out);
    screen->lines_drawn = lines + 2;
}

static void sleep_until(double moment) {
    double left = moment - seconds();

    if (left > 0)
        nanosleep(&(struct timespec){.tv_sec = (time_t)left,
                                     .tv_nsec = (long)(1e9 * (left - (double)(time_t)left))},
                  NULL);
}

void screen_show(struct screen *screen, const struct picture *picture, int step, double interval) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);

    if (!out)
        return;
    put_frame(screen, out, picture, step);
    if (fclose(out) == 0) {
        sleep_until(screen->last + interval);
        screen->last = seconds();
        write_all(text, bytes);
    }
    free(text);
}
