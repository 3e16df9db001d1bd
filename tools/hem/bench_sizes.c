#include "bench_sizes.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

static const size_t largest = (size_t)1 << 30;

static size_t unit_of(char c) {
    switch (c) {
    case 'k':
    case 'K':
        return (size_t)1 << 10;
    case 'm':
    case 'M':
        return (size_t)1 << 20;
    case 'g':
    case 'G':
        return (size_t)1 << 30;
    default:
        return 0;
    }
}

/* Reads one size and returns where it ends, or NULL when there is none in range. */
static const char *parse_one(const char *text, size_t *bytes_p) {
    char *end;
    size_t unit = 1;

    if (!isdigit((unsigned char)text[0]))
        return NULL;
    errno = 0;
    unsigned long long number = strtoull(text, &end, 10);
    if (errno != 0)
        return NULL;
    if (unit_of(*end) != 0)
        unit = unit_of(*end++);
    if (number == 0 || number > largest / unit)
        return NULL;
    *bytes_p = (size_t)number * unit;
    return end;
}

static bool contains(const struct hemt_sizes *sizes, size_t bytes) {
    for (size_t i = 0; i < sizes->count; i++) {
        if (sizes->bytes[i] == bytes)
            return true;
    }
    return false;
}

const char *hemt_sizes_parse(const char *text, struct hemt_sizes *sizes_p) {
    struct hemt_sizes sizes = {.count = 0};

    for (;;) {
        size_t bytes;
        const char *end = parse_one(text, &bytes);

        if (end == NULL)
            return "sizes are numbers from 1 to 1G with an optional k, M or G, as in 8,4k,1M";
        if (sizes.count == HEMT_SIZES_MAX)
            return "at most 64 sizes can be measured in one run";
        if (contains(&sizes, bytes))
            return "a size is in the list twice";
        sizes.bytes[sizes.count++] = bytes;
        if (*end == '\0')
            break;
        if (*end != ',')
            return "sizes are separated by commas, as in 8,4k,1M";
        text = end + 1;
    }
    *sizes_p = sizes;
    return NULL;
}

bool hemt_ranks_parse(const char *text, struct hemt_ranks *ranks_p) {
    struct hemt_ranks list = {.count = 0};

    for (;;) {
        char *end;
        long ranks = strtol(text, &end, 10);
        int last = list.count == 0 ? 1 : list.ranks[list.count - 1];

        if (end == text || ranks <= last || ranks > 4096 || list.count == HEMT_RANKS_MAX)
            return false;
        list.ranks[list.count++] = (int)ranks;
        if (*end == '\0')
            break;
        if (*end != ',')
            return false;
        text = end + 1;
    }
    *ranks_p = list;
    return true;
}
