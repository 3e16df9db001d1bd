/*
 * A rank of the kill campaign, or all of them:
 *
 *   rank --score FILE --op NAME --victim RANK [--point K | --after MICROSECONDS]
 *        [--kill self|keeper|front] [--forked RANKS]
 *
 * Under `hem run` it is one rank. With --forked it starts the ranks itself, without a launcher. The
 * victim dies at the K-th schedule point of the operation; without --point and --after nobody
 * dies, and the score says how many points there are.
 */
#include "task.h"

#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static int usage(void) {
    fputs("usage: rank --score FILE --op NAME --victim RANK [--point K | --after US]\n"
          "            [--kill self|keeper|front] [--forked RANKS]\n",
          stderr);
    return 2;
}

static kill_score *map_score(const char *path) {
    int fd = open(path, O_RDWR | O_CLOEXEC);
    void *score = fd < 0
                      ? MAP_FAILED
                      : mmap(NULL, sizeof(kill_score), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd >= 0)
        close(fd);
    if (score == MAP_FAILED)
        perror(path);
    return score == MAP_FAILED ? NULL : score;
}

static bool read_manner(const char *text, kill_manner *manner_p) {
    static const char *const names[] = {
        [KILL_SELF] = "self", [KILL_KEEPER] = "keeper", [KILL_FRONT] = "front"};
    for (int i = 0; i < 3; i++) {
        if (strcmp(text, names[i]) == 0) {
            *manner_p = (kill_manner)i;
            return true;
        }
    }
    return false;
}

static bool apply(kill_task *t, int option, const char *text) {
    switch (option) {
    case 's':
        t->score = map_score(text);
        return t->score != NULL;
    case 'o':
        t->op = kill_op_find(text);
        return t->op != NULL;
    case 'v':
        t->victim = atoi(text);
        return true;
    case 'p':
        t->point = strtoull(text, NULL, 10);
        return true;
    case 'a':
        t->after_us = atol(text);
        return true;
    case 'k':
        return read_manner(text, &t->manner);
    case 'f':
        t->forked = true;
        t->size = atoi(text);
        return t->size > 0 && t->size <= KILL_RANKS_MAX;
    default:
        return false;
    }
}

int main(int argc, char **argv) {
    static const struct option known[] = {
        {"score", required_argument, NULL, 's'},  {"op", required_argument, NULL, 'o'},
        {"victim", required_argument, NULL, 'v'}, {"point", required_argument, NULL, 'p'},
        {"after", required_argument, NULL, 'a'},  {"kill", required_argument, NULL, 'k'},
        {"forked", required_argument, NULL, 'f'}, {NULL, 0, NULL, 0},
    };
    kill_task t = {.after_us = -1,
                   .options = {.struct_size = sizeof t.options, .timeout_ns = KILL_LIMIT}};
    for (int option; (option = getopt_long(argc, argv, "", known, NULL)) != -1;)
        if (!apply(&t, option, optarg))
            return usage();
    const char *rank = getenv("HEM_RANK");
    const char *size = getenv("HEM_SIZE");
    if (t.score == NULL || t.op == NULL || (!t.forked && (rank == NULL || size == NULL)))
        return usage();
    if (t.forked)
        return kill_fork_ranks(&t);
    t.me = atoi(rank);
    t.size = atoi(size);
    return t.size <= KILL_RANKS_MAX ? kill_rank(&t) : usage();
}
