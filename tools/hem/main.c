#include "bench.h"
#include "commands.h"
#include "say.h"

#include <hem/hem.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *purpose;
} command;

static const command commands[] = {
    {"run", hemt_run, "start a program on several ranks and watch over them"},
    {"ps", hemt_ps, "show your running jobs and what each rank waits for"},
    {"info", hemt_info, "show version, machine, transports and settings"},
    {"draw", hemt_draw, "draw who owns which points and who sends where"},
    {"bench", hemt_bench, "measure Hem beside the hardware and other libraries"},
};

#define COMMANDS (sizeof commands / sizeof commands[0])
/* Longer words are no typing mistakes. */
#define WORD_MAX 16

static const command *find(const char *name) {
    for (size_t i = 0; i < COMMANDS; i++)
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    return NULL;
}

static int help(FILE *out) {
    fprintf(out, "hem %s moves boundary data between neighbouring ranks.\n\n", hem_version());
    fputs("Usage: hem COMMAND [OPTIONS]\n\n", out);
    for (size_t i = 0; i < COMMANDS; i++)
        fprintf(out, "  %-8s %s\n", commands[i].name, commands[i].purpose);
    fputs("\nhem help COMMAND explains a command, hem --version says the version.\n"
          "Begin with: hem run -n 4 ./program\n",
          out);
    return fflush(out) == 0 ? EXIT_SUCCESS : HEMT_EXIT_FAILED;
}

static size_t least(size_t a, size_t b, size_t c) {
    size_t d = a < b ? a : b;
    return d < c ? d : c;
}

/* How many letters to add, drop or change to get from one word to the other. */
static size_t distance(const char *from, const char *to) {
    size_t row[WORD_MAX + 1];
    size_t width = strlen(to);
    for (size_t j = 0; j <= width; j++)
        row[j] = j;
    for (size_t i = 1; i <= strlen(from); i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= width; j++) {
            size_t above = row[j];
            row[j] = least(above + 1, row[j - 1] + 1, diagonal + (from[i - 1] != to[j - 1]));
            diagonal = above;
        }
    }
    return row[width];
}

static const char *nearest(const char *word) {
    const char *best = NULL;
    size_t best_distance = 3;
    for (size_t i = 0; i < COMMANDS && strlen(word) <= WORD_MAX; i++) {
        size_t d = distance(word, commands[i].name);
        if (d < best_distance && d < strlen(commands[i].name)) {
            best_distance = d;
            best = commands[i].name;
        }
    }
    return best;
}

static int unknown(const char *word) {
    const char *meant = nearest(word);
    if (meant != NULL)
        fprintf(stderr, "hem: there is no command \"%.64s\". Did you mean \"hem %s\"?\n", word,
                meant);
    else
        fprintf(stderr, "hem: there is no command \"%.64s\". hem help lists them.\n", word);
    return HEMT_EXIT_USAGE;
}

static int help_for(int argc, char **argv) {
    if (argc < 2)
        return help(stdout);
    const command *found = find(argv[1]);
    if (found == NULL)
        return unknown(argv[1]);
    char name[WORD_MAX + 1];
    char option[] = "--help";
    snprintf(name, sizeof name, "%s", found->name);
    char *args[] = {name, option, NULL};
    return found->run(2, args);
}

static bool is_any(const char *word, const char *a, const char *b, const char *c) {
    return strcmp(word, a) == 0 || strcmp(word, b) == 0 || strcmp(word, c) == 0;
}

int main(int argc, char **argv) {
    if (argc < 2) {
        help(stderr);
        return HEMT_EXIT_USAGE;
    }
    const char *word = argv[1];
    if (is_any(word, "help", "--help", "-h"))
        return help_for(argc - 1, argv + 1);
    if (is_any(word, "version", "--version", "-V")) {
        printf("hem %s\n", hem_version());
        return fflush(stdout) == 0 ? EXIT_SUCCESS : HEMT_EXIT_FAILED;
    }
    const command *found = find(word);
    if (found != NULL)
        return found->run(argc - 1, argv + 1);
    return unknown(word);
}
