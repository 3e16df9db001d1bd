#include "bench_report.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Finds `"key":` in a runner's line and returns what follows, or NULL. */
static const char *value_of(const char *line, const char *key) {
    char wanted[32];

    snprintf(wanted, sizeof(wanted), "\"%s\":", key);
    const char *at = strstr(line, wanted);
    return at == NULL ? NULL : at + strlen(wanted);
}

static bool read_number(const char *line, const char *key, double *number_p) {
    const char *at = value_of(line, key);
    char *end;

    if (at == NULL)
        return false;
    *number_p = strtod(at, &end);
    return end != at;
}

/* 0 if it is not there. */
static size_t count_of(const char *line, const char *key) {
    double number;

    return read_number(line, key, &number) && number > 0 ? (size_t)number : 0;
}

static bool read_line(const char *line, struct hemt_group *group_p, struct hemt_sample *sample_p) {
    const char *impl = value_of(line, "impl");
    double bytes;

    if (impl == NULL || sscanf(impl, "\"%23[a-z0-9-]\"", group_p->impl) != 1)
        return false;
    if (!read_number(line, "bytes", &bytes) || !read_number(line, "us", &sample_p->us) ||
        !read_number(line, "line_ns", &sample_p->line_ns))
        return false;
    group_p->bytes = (size_t)bytes;
    group_p->ranks = (int)count_of(line, "ranks");
    group_p->moved = count_of(line, "moved");
    group_p->messages = count_of(line, "messages");
    group_p->peak = count_of(line, "peak");
    group_p->blocks = count_of(line, "blocks");
    group_p->l2 = count_of(line, "l2");
    return sample_p->us >= 0;
}

static void *grown(void *array, size_t count, size_t size) {
    void *longer = realloc(array, (count + 1) * size);

    if (longer == NULL) {
        fputs("hem bench: no memory for the results\n", stderr);
        exit(1);
    }
    return longer;
}

static size_t group_index(struct hemt_report *report, const struct hemt_group *group) {
    for (size_t i = 0; i < report->group_count; i++) {
        if (report->groups[i].bytes != group->bytes || report->groups[i].ranks != group->ranks ||
            strcmp(report->groups[i].impl, group->impl) != 0)
            continue;
        report->groups[i] = *group;
        return i;
    }
    report->groups = grown(report->groups, report->group_count, sizeof(*group));
    report->groups[report->group_count] = *group;
    return report->group_count++;
}

/* A sentence of the runner's. Returns whether the line is one. */
static bool take_note(struct hemt_report *report, const char *line) {
    const char *note = value_of(line, "note");

    if (note == NULL || note[0] != '"')
        return false;
    hemt_report_note(report, "%.*s", (int)strcspn(note + 1, "\""), note + 1);
    return true;
}

size_t hemt_report_take(struct hemt_report *report, const char *output) {
    size_t taken = 0;

    for (const char *line = output; *line != '\0';) {
        size_t length = strcspn(line, "\n");
        char copy[512];
        struct hemt_group group;
        struct hemt_sample sample;

        snprintf(copy, sizeof(copy), "%.*s", (int)length, line);
        line += length + (line[length] == '\n');
        if (take_note(report, copy) || !read_line(copy, &group, &sample))
            continue;
        taken++;
        sample.group = group_index(report, &group);
        /* The runner had no undisturbed moment. */
        if (sample.us <= 0)
            continue;
        report->samples = grown(report->samples, report->sample_count, sizeof(sample));
        report->samples[report->sample_count++] = sample;
    }
    return taken;
}

void hemt_report_note(struct hemt_report *report, const char *format, ...) {
    size_t used = report->notes == NULL ? 0 : strlen(report->notes);
    char text[512];
    char line[sizeof(text) + 1];
    va_list list;

    va_start(list, format);
    vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    snprintf(line, sizeof(line), "%s\n", text);
    if (used > 0 && strstr(report->notes, line) != NULL)
        return;
    report->notes = grown(report->notes, used + strlen(line), 1);
    memcpy(report->notes + used, line, strlen(line) + 1);
}

size_t hemt_report_fewest(const struct hemt_report *report) {
    size_t fewest;

    hemt_best_distance(report->samples, report->sample_count, report->group_count, &fewest);
    return fewest;
}

bool hemt_report_has(const struct hemt_report *report, const char *impl) {
    for (size_t i = 0; i < report->sample_count; i++) {
        if (strcmp(report->groups[report->samples[i].group].impl, impl) == 0)
            return true;
    }
    return false;
}

bool hemt_report_has_some(const struct hemt_report *report, const char *impl) {
    size_t length = strlen(impl);

    for (size_t i = 0; i < report->sample_count; i++) {
        const char *name = report->groups[report->samples[i].group].impl;
        if (strcspn(name, "-") == length && strncmp(name, impl, length) == 0)
            return true;
    }
    return false;
}

size_t hemt_report_values(const struct hemt_report *report, size_t group, double line_ns,
                          double *values_p) {
    size_t count = 0;

    for (size_t i = 0; i < report->sample_count; i++) {
        const struct hemt_sample *sample = &report->samples[i];
        if (sample->group == group && hemt_same_distance(sample->line_ns, line_ns))
            values_p[count++] = sample->us;
    }
    return count;
}

double hemt_report_median(const struct hemt_report *report, const char *impl, size_t bytes) {
    double *values = grown(NULL, report->sample_count, sizeof(*values));
    size_t count = 0;
    size_t fewest;
    double line_ns =
        hemt_best_distance(report->samples, report->sample_count, report->group_count, &fewest);

    for (size_t g = 0; g < report->group_count; g++) {
        if (report->groups[g].bytes == bytes && strcmp(report->groups[g].impl, impl) == 0)
            count = hemt_report_values(report, g, line_ns, values);
    }
    double median = hemt_median(values, count);
    free(values);
    return median;
}

void hemt_report_free(struct hemt_report *report) {
    free(report->groups);
    free(report->samples);
    free(report->notes);
    *report = (struct hemt_report){0};
}
