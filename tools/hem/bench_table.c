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

static bool is_gpu(const char *bench) {
    enum bench_kind kind;

    return hemt_kind_find(bench, &kind) && hemt_kind(kind)->gpu;
}

static const char *unit_of(const char *bench) {
    enum bench_kind kind;

    return hemt_kind_find(bench, &kind) ? hemt_kind(kind)->unit : NULL;
}

static size_t place_in(const char *const *names, size_t count, const char *name, size_t length) {
    size_t i = 0;

    while (i < count && (strlen(names[i]) != length || strncmp(names[i], name, length) != 0))
        i++;
    return i;
}

/* Hem first, then the hardware, then the peers, and each of them in the order of what it does. */
static size_t rank_of(const char *impl) {
    static const char *const who[] = {"hem", "raw", "openmpi", "mpich", "ucx", "nccl", "nvshmem"};
    static const char *const how[] = {"",       "lib",    "threads", "bounce",     "2line",
                                      "memcpy", "fields", "packed",  "persistent", "alltoallw",
                                      "probe",  "sizes",  "direct",  "hops"};
    size_t ways = sizeof(how) / sizeof(how[0]);
    size_t length = strcspn(impl, "-");
    const char *way = impl[length] == '-' ? impl + length + 1 : "";

    return place_in(who, sizeof(who) / sizeof(who[0]), impl, length) * (ways + 1) +
           place_in(how, ways, way, strlen(way));
}

static int compare_rows(const void *a, const void *b) {
    const struct hemt_group *x = ((const struct row *)a)->group;
    const struct hemt_group *y = ((const struct row *)b)->group;

    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? -1 : 1;
    if (x->ranks != y->ranks)
        return x->ranks - y->ranks;
    if (rank_of(x->impl) != rank_of(y->impl))
        return rank_of(x->impl) < rank_of(y->impl) ? -1 : 1;
    return strcmp(x->impl, y->impl);
}

static const char *way_of(const struct hemt_group *group) {
    return group->impl + strcspn(group->impl, "-");
}

/* On GPUs each way to do it, such as with 8 blocks, stands together. */
static int compare_ways(const void *a, const void *b) {
    const struct hemt_group *x = ((const struct row *)a)->group;
    const struct hemt_group *y = ((const struct row *)b)->group;

    if (x->bytes != y->bytes || x->ranks != y->ranks || strcmp(way_of(x), way_of(y)) == 0)
        return compare_rows(a, b);
    return strverscmp(way_of(x), way_of(y));
}

/* Whether row `i` begins another size or number of ranks. */
static bool is_first(const struct rows *rows, size_t i) {
    const struct hemt_group *group = rows->row[i].group;

    return i == 0 || group->bytes != rows->row[i - 1].group->bytes ||
           group->ranks != rows->row[i - 1].group->ranks;
}

/* `by_way`: Hem's time is that of the same way to do it. */
static void fill_hem(struct rows *rows, bool by_way) {
    double hem_us = 0;

    for (size_t i = 0; i < rows->count; i++) {
        struct row *row = &rows->row[i];
        if (is_first(rows, i) || (by_way && strcmp(way_of(row->group), way_of(row[-1].group)) != 0))
            hem_us = 0;
        if (strcmp(row->group->impl, "hem") == 0 ||
            (by_way && strncmp(row->group->impl, "hem-", 4) == 0))
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
    bool by_way = is_gpu(report->bench);
    qsort(rows.row, rows.count, sizeof(struct row), by_way ? compare_ways : compare_rows);
    fill_hem(&rows, by_way);
    return rows;
}

/* `bench` has sizes that may count something else; then only what moved has a rate. */
static double gbps_of(const char *bench, const struct row *row) {
    const struct hemt_group *group = row->group;
    size_t bytes = group->moved > 0 ? group->moved : unit_of(bench) == NULL ? group->bytes : 0;

    return row->us > 0 ? (double)bytes / row->us / 1000 : 0;
}

static void json_count(const char *name, size_t count) {
    if (count > 0)
        printf(",\"%s\":%zu", name, count);
}

void hemt_report_json(const struct hemt_report *report) {
    struct rows rows = make_rows(report);

    for (size_t i = 0; i < rows.count; i++) {
        const struct row *row = &rows.row[i];
        if (row->us <= 0)
            continue;
        printf("{\"bench\":\"%s\",\"impl\":\"%s\",\"ranks\":%d,\"bytes\":%zu,\"us\":%.4f,"
               "\"gbps\":%.4f,\"spread\":%.3f,\"line_ns\":%.1f",
               report->bench, row->group->impl,
               report->ranks > 0 ? report->ranks : row->group->ranks, row->group->bytes, row->us,
               gbps_of(report->bench, row), row->spread, rows.line_ns);
        json_count("moved", row->group->moved);
        json_count("messages", row->group->messages);
        json_count("peak", row->group->peak);
        json_count("blocks", row->group->blocks);
        json_count("l2", row->group->l2);
        puts("}");
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

/* Which columns a table has. */
struct columns {
    const char *bench;
    const char *unit; /* of sizes; NULL: bytes */
    bool no_size;
    bool ranks;
    bool moved;
    bool gbps;
    bool counts; /* messages and peak */
    bool gpu;    /* blocks and L2 */
    int impl;    /* width */
    int all;     /* width */
};

static struct columns choose_columns(const struct hemt_report *report, const struct rows *rows) {
    struct columns columns = {
        .bench = report->bench,
        .unit = unit_of(report->bench),
        .no_size = strcmp(report->bench, "barrier") == 0,
        .ranks = report->ranks == 0,
        .gpu = is_gpu(report->bench),
        .impl = 11,
    };

    for (size_t i = 0; i < rows->count; i++) {
        const struct hemt_group *group = rows->row[i].group;
        columns.moved |= group->moved > 0;
        columns.counts |= group->messages > 0 || group->peak > 0;
        if ((int)strlen(group->impl) > columns.impl)
            columns.impl = (int)strlen(group->impl);
    }
    columns.gbps = !columns.counts && (columns.unit == NULL || columns.moved);
    columns.all = 41 + columns.impl + (columns.ranks ? 7 : 0) + (columns.moved ? 11 : 0) +
                  (columns.counts ? 21 : 0) + (columns.gbps ? 10 : 0) + (columns.gpu ? 12 : 0);
    return columns;
}

static void print_head(const struct columns *columns) {
    if (columns->ranks)
        printf("%5s  ", "ranks");
    printf("%8s  %-*s %10s",
           columns->no_size ? ""
           : columns->unit  ? columns->unit
                            : "bytes",
           columns->impl, "impl", "us");
    if (columns->moved)
        printf(" %10s", columns->counts ? "bytes" : "moved");
    if (columns->counts)
        printf(" %9s %10s", "messages", "peak");
    if (columns->gbps)
        printf(" %9s", "GB/s");
    if (columns->gpu)
        printf(" %6s %4s", "blocks", "L2");
    printf(" %8s  %10s\n", "spread", "time/hem");
}

static void print_count(size_t count, int width) {
    if (count > 0)
        printf(" %*zu", width, count);
    else
        printf(" %*s", width, "-");
}

static void print_labels(const struct columns *columns, const struct hemt_group *group,
                         bool first) {
    char ranks[24] = "";
    char size[24] = "";

    if (first)
        snprintf(ranks, sizeof(ranks), "%d", group->ranks);
    if (first && columns->unit != NULL)
        snprintf(size, sizeof(size), "%zu", group->bytes);
    else if (first && !columns->no_size)
        hemt_format_bytes(group->bytes, size, sizeof(size));
    if (columns->ranks)
        printf("%5s  ", ranks);
    printf("%8s  ", size);
}

static void print_row(const struct columns *columns, const struct row *row, bool first,
                      bool terminal) {
    bool bold = terminal && strcmp(row->group->impl, "hem") == 0;
    char us[24];
    char gbps[24];
    char spread[24] = "-";
    char ratio[24];

    format_number(row->us, us, sizeof(us));
    format_number(gbps_of(columns->bench, row), gbps, sizeof(gbps));
    if (row->us > 0)
        snprintf(spread, sizeof(spread), "%.0f %%", row->spread * 100);
    hemt_format_ratio(row->us, row->hem_us, ratio, sizeof(ratio));
    fputs(bold ? "\033[1m" : "", stdout);
    print_labels(columns, row->group, first);
    printf("%-*s %10s", columns->impl, row->group->impl, us);
    if (columns->moved)
        print_count(row->group->moved, 10);
    if (columns->counts) {
        print_count(row->group->messages, 9);
        print_count(row->group->peak, 10);
    }
    if (columns->gbps)
        printf(" %9s", gbps);
    if (columns->gpu) {
        print_count(row->group->blocks, 6);
        printf(" %4s", row->group->l2 == 1 ? "in" : "out");
    }
    printf(" %8s  %10s%s\n", spread, ratio, bold ? "\033[0m" : "");
}

static void print_rule(const struct columns *columns, bool terminal) {
    bool utf8 = terminal && strcmp(nl_langinfo(CODESET), "UTF-8") == 0;

    for (int i = 0; i < columns->all; i++)
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

/* How near the copy out of library memory comes to memcpy of as many bytes. */
static void print_one_copy(const struct rows *rows) {
    const struct row *lib = NULL;
    bool any = false;

    for (size_t i = 0; i < rows->count; i++) {
        const struct row *row = &rows->row[i];
        char ratio[24];

        if (strcmp(row->group->impl, "hem-lib") == 0)
            lib = row;
        if (strcmp(row->group->impl, "raw-memcpy") != 0 || lib == NULL ||
            lib->group->bytes != row->group->bytes || lib->us <= 0 || row->us <= 0)
            continue;
        hemt_format_ratio(row->us, lib->us, ratio, sizeof(ratio));
        printf("%s %zu: %s", any ? ";" : "rate of hem-lib / memcpy:", row->group->bytes, ratio);
        any = true;
    }
    if (any)
        putchar('\n');
}

static void print_notes(const struct hemt_report *report, const struct columns *columns,
                        const struct rows *rows) {
    size_t left_out = report->sample_count - rows->used;

    printf("us: median; %sspread: (largest - smallest) / median;\n"
           "time/hem: above 1 is slower than Hem\n",
           columns->gbps ? "GB/s: 10^9 bytes per second; " : "");
    if (columns->counts)
        puts("bytes, messages: sent by the rank that sends most; with MPI, the bytes it gathers\n"
             "peak: the most bytes of memory in use at once; - is not known");
    else if (columns->moved)
        puts("moved: bytes that the rank which gets most receives from others");
    if (columns->gpu)
        puts("blocks: the largest grid that was launched per rank; L2: whether what is read and "
             "written\nfits into the cache; time/hem: against Hem doing it the same way");
    print_one_copy(rows);
    if (has_gap(rows))
        puts("- in us: the machine was too busy for an undisturbed measurement");
    if (left_out > 0)
        printf("%zu of %zu measurements were left out: they were taken while the machine had the\n"
               "cores at another distance\n",
               left_out, report->sample_count);
    if (report->notes != NULL)
        printf("\n%s", report->notes);
}

static void print_title(const struct hemt_report *report, const struct rows *rows) {
    printf("%s: %s\n", report->bench, headline(report->bench));
    if (report->about != NULL && report->about[0] != '\0')
        printf("%s\n", report->about);
    if (report->ranks > 0)
        printf("%d ranks, ", report->ranks);
    printf("%d round%s", report->rounds, report->rounds == 1 ? "" : "s");
    if (rows->line_ns > 0)
        printf(", a cache line takes %.0f ns from core to core", rows->line_ns);
    fputs("\n\n", stdout);
}

void hemt_report_table(const struct hemt_report *report, bool terminal) {
    struct rows rows = make_rows(report);
    struct columns columns = choose_columns(report, &rows);

    print_title(report, &rows);
    print_head(&columns);
    for (size_t i = 0; i < rows.count; i++) {
        if (is_first(&rows, i))
            print_rule(&columns, terminal);
        print_row(&columns, &rows.row[i], is_first(&rows, i), terminal);
    }
    print_rule(&columns, terminal);
    print_notes(report, &columns, &rows);
    free(rows.row);
}
