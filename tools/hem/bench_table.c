#include "bench_kind.h"
#include "bench_report.h"

#include <langinfo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A row: the median over the samples that were taken at the distance that is shown. */
struct row {
    const struct hemt_group *group;
    double us; /* 0 if there is none */
    double spread;
    double hem_us; /* Hem's median at this size, or 0 */
};

struct rows {
    struct row *row;
    size_t count;
    size_t used;    /* samples in the medians */
    double line_ns; /* the distance of the cores, or 0 if it was not measured */
};

static const char *headline(const char *bench) {
    enum bench_kind kind;

    return hemt_kind_find(bench, &kind) ? hemt_kind(kind)->headline : "";
}

/* Hem first, then the hardware, then the peers. */
static int rank_of(const char *impl) {
    static const char *const order[] = {"hem",        "hem-lib", "raw",   "raw-bounce", "raw-2line",
                                        "raw-memcpy", "openmpi", "mpich", "ucx"};
    int n = (int)(sizeof(order) / sizeof(order[0]));

    for (int i = 0; i < n; i++) {
        if (strcmp(order[i], impl) == 0)
            return i;
    }
    return n;
}

static int compare_rows(const void *a, const void *b) {
    const struct hemt_group *x = ((const struct row *)a)->group;
    const struct hemt_group *y = ((const struct row *)b)->group;

    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? -1 : 1;
    return rank_of(x->impl) - rank_of(y->impl);
}

static void fill_hem(struct rows *rows) {
    double hem_us = 0;

    for (size_t i = 0; i < rows->count; i++) {
        struct row *row = &rows->row[i];
        if (i == 0 || row->group->bytes != rows->row[i - 1].group->bytes)
            hem_us = 0;
        if (strcmp(row->group->impl, "hem") == 0)
            hem_us = row->us;
        row->hem_us = hem_us;
    }
}

static struct rows make_rows(const struct hemt_report *report) {
    struct rows rows = {.row = calloc(report->group_count + 1, sizeof(struct row))};
    double *values = calloc(report->sample_count + 1, sizeof(*values));
    size_t fewest;

    if (rows.row == NULL || values == NULL) {
        fputs("hem bench: no memory for the table\n", stderr);
        exit(1);
    }
    rows.line_ns =
        hemt_best_distance(report->samples, report->sample_count, report->group_count, &fewest);
    for (size_t g = 0; g < report->group_count; g++) {
        size_t count = hemt_report_values(report, g, rows.line_ns, values);
        rows.used += count;
        rows.row[rows.count++] = (struct row){
            .group = &report->groups[g],
            .us = hemt_median(values, count),
            .spread = hemt_spread(values, count),
        };
    }
    free(values);
    qsort(rows.row, rows.count, sizeof(struct row), compare_rows);
    fill_hem(&rows);
    return rows;
}

static double gbps_of(const struct row *row) {
    return row->us > 0 ? (double)row->group->bytes / row->us / 1000 : 0;
}

void hemt_report_json(const struct hemt_report *report) {
    struct rows rows = make_rows(report);

    for (size_t i = 0; i < rows.count; i++) {
        const struct row *row = &rows.row[i];
        if (row->us <= 0)
            continue;
        printf("{\"bench\":\"%s\",\"impl\":\"%s\",\"ranks\":%d,\"bytes\":%zu,\"us\":%.4f,"
               "\"gbps\":%.4f,\"spread\":%.3f,\"line_ns\":%.1f}\n",
               report->bench, row->group->impl, report->ranks, row->group->bytes, row->us,
               gbps_of(row), row->spread, rows.line_ns);
    }
    free(rows.row);
    if (report->notes != NULL)
        fputs(report->notes, stderr);
}

/* Four digits say all that there is to say. */
static void format_number(double value, char *text, size_t size) {
    if (value <= 0) {
        snprintf(text, size, "-");
        return;
    }
    snprintf(text, size, "%.*f", value < 10 ? 3 : value < 100 ? 2 : value < 1000 ? 1 : 0, value);
}

static void print_row(const struct row *row, bool first_of_size, bool barrier, bool terminal) {
    bool hem = strcmp(row->group->impl, "hem") == 0;
    char bytes[24] = "";
    char us[24];
    char gbps[24];
    char spread[24] = "-";
    char ratio[24];

    if (first_of_size && !barrier)
        hemt_format_bytes(row->group->bytes, bytes, sizeof(bytes));
    format_number(row->us, us, sizeof(us));
    format_number(gbps_of(row), gbps, sizeof(gbps));
    if (row->us > 0)
        snprintf(spread, sizeof(spread), "%.0f %%", row->spread * 100);
    hemt_format_ratio(row->us, row->hem_us, ratio, sizeof(ratio));
    printf("%s%8s  %-11s %10s %9s %8s  %10s%s\n", terminal && hem ? "\033[1m" : "", bytes,
           row->group->impl, us, gbps, spread, ratio, terminal && hem ? "\033[0m" : "");
}

static void print_rule(bool terminal) {
    bool utf8 = terminal && strcmp(nl_langinfo(CODESET), "UTF-8") == 0;

    for (int i = 0; i < 62; i++)
        fputs(utf8 ? "─" : "-", stdout);
    putchar('\n');
}

static bool has_gap(const struct rows *rows) {
    for (size_t i = 0; i < rows->count; i++) {
        if (rows->row[i].us <= 0)
            return true;
    }
    return false;
}

static void print_notes(const struct hemt_report *report, const struct rows *rows) {
    size_t left_out = report->sample_count - rows->used;

    puts("us: median; GB/s: 10^9 bytes per second; spread: (largest - smallest) / median;\n"
         "time/hem: above 1 is slower than Hem");
    if (has_gap(rows))
        puts("- in us: the machine was too busy for an undisturbed measurement");
    if (left_out > 0)
        printf("%zu of %zu measurements were left out: they were taken while the machine had the\n"
               "cores at another distance\n",
               left_out, report->sample_count);
    if (report->notes != NULL)
        printf("\n%s", report->notes);
}

void hemt_report_table(const struct hemt_report *report, bool terminal) {
    struct rows rows = make_rows(report);
    bool barrier = strcmp(report->bench, "barrier") == 0;

    printf("%s: %s\n%d ranks, %d round%s", report->bench, headline(report->bench), report->ranks,
           report->rounds, report->rounds == 1 ? "" : "s");
    if (rows.line_ns > 0)
        printf(", a cache line takes %.0f ns from core to core", rows.line_ns);
    printf("\n\n%8s  %-11s %10s %9s %8s  %10s\n", barrier ? "" : "bytes", "impl", "us", "GB/s",
           "spread", "time/hem");
    for (size_t i = 0; i < rows.count; i++) {
        bool first = i == 0 || rows.row[i].group->bytes != rows.row[i - 1].group->bytes;
        if (first)
            print_rule(terminal);
        print_row(&rows.row[i], first, barrier, terminal);
    }
    print_rule(terminal);
    print_notes(report, &rows);
    free(rows.row);
}
