#include "json.h"

#include <inttypes.h>

/* The length of the UTF-8 character at `text`, 0 if it is none. */
static int character(const unsigned char *text) {
    int length = 1;
    uint32_t code = text[0];
    if (code >= 0xf0 && code < 0xf8) {
        length = 4;
        code &= 0x07;
    } else if (code >= 0xe0 && code < 0xf0) {
        length = 3;
        code &= 0x0f;
    } else if (code >= 0xc0 && code < 0xe0) {
        length = 2;
        code &= 0x1f;
    } else if (code >= 0x80) {
        return 0;
    }
    for (int i = 1; i < length; i++) {
        if ((text[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (text[i] & 0x3f);
    }
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    bool surrogate = code >= 0xd800 && code < 0xe000;
    return code < least[length] || code > 0x10ffff || surrogate ? 0 : length;
}

static void quote(FILE *out, const char *text) {
    const unsigned char *at = (const unsigned char *)text;
    fputc('"', out);
    while (*at != '\0') {
        int length = character(at);
        if (length == 0)
            fputs("\\ufffd", out);
        else if (*at == '"' || *at == '\\')
            fprintf(out, "\\%c", *at);
        else if (*at < ' ' || *at == 127)
            fprintf(out, "\\u%04x", *at);
        else
            fwrite(at, 1, (size_t)length, out);
        at += length == 0 ? 1 : length;
    }
    fputc('"', out);
}

static void begin(hemt_json *json, const char *key) {
    if (json->any[json->depth])
        fputc(',', json->out);
    if (json->depth > 0)
        fprintf(json->out, "\n%*s", 2 * json->depth, "");
    json->any[json->depth] = true;
    if (key != NULL) {
        quote(json->out, key);
        fputs(": ", json->out);
    }
}

void hemt_json_open(hemt_json *json, const char *key, char bracket) {
    begin(json, key);
    fputc(bracket, json->out);
    if (json->depth + 1 < HEMT_JSON_DEPTH)
        json->depth++;
    json->any[json->depth] = false;
}

void hemt_json_close(hemt_json *json, char bracket) {
    bool any = json->any[json->depth];
    if (json->depth > 0)
        json->depth--;
    if (any)
        fprintf(json->out, "\n%*s", 2 * json->depth, "");
    fputc(bracket, json->out);
    if (json->depth == 0)
        fputc('\n', json->out);
}

void hemt_json_text(hemt_json *json, const char *key, const char *text) {
    begin(json, key);
    if (text == NULL)
        fputs("null", json->out);
    else
        quote(json->out, text);
}

void hemt_json_number(hemt_json *json, const char *key, int64_t number) {
    begin(json, key);
    fprintf(json->out, "%" PRId64, number);
}

void hemt_json_big(hemt_json *json, const char *key, uint64_t number) {
    begin(json, key);
    fprintf(json->out, "\"%" PRIu64 "\"", number);
}

void hemt_json_seconds(hemt_json *json, const char *key, double seconds) {
    begin(json, key);
    fprintf(json->out, "%.6f", seconds);
}

void hemt_json_bool(hemt_json *json, const char *key, bool yes) {
    begin(json, key);
    fputs(yes ? "true" : "false", json->out);
}
