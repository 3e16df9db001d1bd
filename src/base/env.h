/* The environment variables that Hem reads, all in one table, read only while a world opens. */
#ifndef HEMI_BASE_ENV_H
#define HEMI_BASE_ENV_H

#include <hem/status.h>
#include <stddef.h>
#include <stdint.h>

typedef struct hemi_env_entry {
    const char *name;
    const char *fallback; /**< what holds when it is not set, in words */
    const char *meaning;
} hemi_env_entry;

/** The table, for `hem info` and the manual. `count_p` gets its length. */
const hemi_env_entry *hemi_env_table(size_t *count_p);

/** The value of `name`, or NULL when it is not set or empty. */
const char *hemi_env_text(const char *name);

/**
 * Read a whole number, with K, M, G or T (binary) behind it where `name` is a size.
 *
 * `*value_p` is left alone when the variable is not set.
 * @return HEM_OK, or HEM_ERR_ARG naming the variable and what it allows.
 */
hem_status hemi_env_number(const char *name, uint64_t min, uint64_t max, uint64_t *value_p);

/** The parser behind it: the whole of `text` must be a number. False if it is not. */
int hemi_parse_number(const char *text, uint64_t *value_p);

#endif
