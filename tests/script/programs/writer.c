/*
 * Writes lines: writer LINES BYTES [last]. Each line is BYTES letters, which depend on rank and
 * line; every second one goes to stderr. With "last", one more word without an end of line.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
    if (argc < 3)
        return 2;
    const char *rank_text = getenv("HEM_RANK");
    int rank = rank_text != NULL ? atoi(rank_text) : 0;
    int lines = atoi(argv[1]);
    size_t bytes = (size_t)atol(argv[2]);
    char *line = malloc(bytes + 1);
    if (line == NULL)
        return 3;
    line[bytes] = '\n';
    for (int i = 0; i < lines; i++) {
        memset(line, 'a' + (rank + i) % 26, bytes);
        if (fwrite(line, 1, bytes + 1, i % 2 == 0 ? stdout : stderr) != bytes + 1)
            return 4;
    }
    free(line);
    if (argc > 3 && fputs("last", stdout) < 0)
        return 4;
    return fflush(stdout) == 0 ? 0 : 4;
}
