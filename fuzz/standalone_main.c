/*
 * Runs a fuzz target without libFuzzer, once for every file named or found in a directory named,
 * so that the corpus is a regression test under every compiler.
 */
#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned long files_run;

static bool complain(const char *path) {
    perror(path);
    return false;
}

static bool run_file(const char *path, size_t size) {
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        return complain(path);
    }
    /* The buffer has exactly the size of the input, so that a sanitizer sees a read past it. */
    uint8_t *data = malloc(size > 0 ? size : 1);
    bool good = data != NULL && fread(data, 1, size, file) == size;
    if (good) {
        (void)LLVMFuzzerTestOneInput(data, size);
        files_run++;
    } else {
        (void)complain(path);
    }
    free(data);
    (void)fclose(file);
    return good;
}

static bool run_path(const char *path);

static bool run_directory(const char *path) {
    DIR *dir = opendir(path);
    if (dir == NULL) {
        return complain(path);
    }
    bool good = true;
    const struct dirent *entry;
    while ((entry = readdir(dir)) != NULL) {
        if (entry->d_name[0] == '.') {
            continue;
        }
        char *child = NULL;
        if (asprintf(&child, "%s/%s", path, entry->d_name) < 0) {
            good = complain(path);
            break;
        }
        good = run_path(child) && good;
        free(child);
    }
    (void)closedir(dir);
    return good;
}

static bool run_path(const char *path) {
    struct stat info;
    if (stat(path, &info) != 0) {
        return complain(path);
    }
    return S_ISDIR(info.st_mode) ? run_directory(path) : run_file(path, (size_t)info.st_size);
}

int main(int argc, char **argv) {
    bool good = true;
    for (int i = 1; i < argc; i++) {
        good = run_path(argv[i]) && good;
    }
    (void)printf("%lu inputs\n", files_run);
    if (files_run == 0) {
        (void)fprintf(stderr, "no input was run: name files or directories\n");
    }
    return good && files_run > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
