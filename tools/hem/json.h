/* Writing JSON: the commas and the quotes. */
#ifndef HEMT_JSON_H
#define HEMT_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define HEMT_JSON_DEPTH 16

typedef struct hemt_json {
    FILE *out;
    int depth;
    bool any[HEMT_JSON_DEPTH]; /**< something stands at this level already */
} hemt_json;

/* `key` is NULL inside of a list and at the top. */
void hemt_json_open(hemt_json *json, const char *key, char bracket);
void hemt_json_close(hemt_json *json, char bracket);
/** A NULL text becomes null. Bytes that are no UTF-8 become U+FFFD. */
void hemt_json_text(hemt_json *json, const char *key, const char *text);
void hemt_json_number(hemt_json *json, const char *key, int64_t number);
/** For numbers that a reader may take for a double: a decimal string. */
void hemt_json_big(hemt_json *json, const char *key, uint64_t number);
void hemt_json_seconds(hemt_json *json, const char *key, double seconds);
void hemt_json_bool(hemt_json *json, const char *key, bool yes);

#endif
