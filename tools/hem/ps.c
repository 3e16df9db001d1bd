#include "commands.h"
#include "json.h"
#include "say.h"
#include "scan.h"
#include "view.h"

#include <getopt.h>
#include <hem/window.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char help_text[] =
    "Usage: hem ps [--json]\n"
    "\n"
    "Show your running jobs and, for each rank, what it waits for: the call, the window, the\n"
    "signal or barrier, the peer, the value that is there and the one that is wanted, and since\n"
    "when; also what its CUDA kernels wait for. It reads the jobs' memory and does not disturb "
    "them.\n"
    "\n"
    "  --json      a list of jobs for programs\n"
    "  -h, --help  this text\n";

static uint64_t now_ns(void) {
    const hemi_platform *platform = hemi_platform_real();
    return platform->now(platform->ctx);
}

static double seconds_between(uint64_t from_ns, uint64_t to_ns) {
    return to_ns > from_ns ? (double)(to_ns - from_ns) * 1e-9 : 0.0;
}

/* "12.3 s", "4 min 05 s", "3 h 12 min", "2 d 03 h" */
static void age_text(double seconds, char *text, size_t size) {
    uint64_t whole = (uint64_t)seconds;
    if (seconds < 60)
        snprintf(text, size, "%.1f s", seconds);
    else if (whole < 3600)
        snprintf(text, size, "%" PRIu64 " min %02" PRIu64 " s", whole / 60, whole % 60);
    else if (whole < 86400)
        snprintf(text, size, "%" PRIu64 " h %02" PRIu64 " min", whole / 3600, whole / 60 % 60);
    else
        snprintf(text, size, "%" PRIu64 " d %02" PRIu64 " h", whole / 86400, whole / 3600 % 24);
}

/* The command as a line for a terminal: no control characters. */
static void printable(const char *from, char *text, size_t size) {
    size_t i = 0;
    for (; from[i] != '\0' && i + 1 < size; i++)
        text[i] = (unsigned char)from[i] < ' ' || from[i] == 127 ? '?' : from[i];
    text[i] = '\0';
}

static void print_rank(const hemt_view *view, uint64_t now) {
    for (uint32_t line = 0; line < hemt_view_lines(view); line++) {
        char text[512];
        char pid[16] = "-";
        hemt_view_line(view, line, now, text, sizeof text);
        if (view->pid != 0)
            snprintf(pid, sizeof pid, "%ld", (long)view->pid);
        printf("  %5u  %-8s %-9s %s\n", view->rank, pid, view->state, text);
    }
}

static void print_job(const hemt_found *found, const hemt_beats *beats, uint64_t now) {
    char age[32];
    char command[sizeof found->command];
    age_text(seconds_between(found->start_ns, now), age, sizeof age);
    printable(found->command, command, sizeof command);
    printf("job %016" PRIx64 "  %s\n", found->job, command[0] != '\0' ? command : "-");
    printf("  %u %s, %s, for %s, made by process %u\n", found->arena.ranks,
           found->arena.ranks == 1 ? "rank" : "ranks", hemt_kind_name(found->arena.kind), age,
           found->maker_pid);
    printf("  %5s  %-8s %-9s %s\n", "RANK", "PID", "STATE", "WHAT");
    for (uint32_t r = 0; r < found->arena.ranks; r++) {
        hemt_view view;
        hemt_view_take(&found->arena, beats, now, r, 0, &view);
        print_rank(&view, now);
    }
}

static void json_wait(hemt_json *json, const hemt_view *view, uint32_t i, uint64_t now) {
    const hemi_flight *flight = &view->flights[i];
    char text[512];
    hemt_view_line(view, i, now, text, sizeof text);
    hemt_json_open(json, NULL, '{');
    hemt_json_bool(json, "kernel", flight->call > HEMI_CALL_KERNEL);
    hemt_json_text(json, "call", hemi_call_name(flight->call));
    hemt_json_number(json, "peer", flight->peer);
    hemt_json_number(json, "id", flight->id);
    hemt_json_big(json, "world", flight->world);
    hemt_json_big(json, "window", flight->window);
    if (flight->word != 0) {
        hemt_json_big(json, "seen", view->seen[i]);
        hemt_json_big(json, "wanted", flight->wanted);
    }
    hemt_json_seconds(json, "seconds", seconds_between(flight->since_ns, now));
    hemt_json_text(json, "text", text);
    hemt_json_close(json, '}');
}

static void json_rank(hemt_json *json, const hemt_view *view, uint64_t now) {
    hemt_json_open(json, NULL, '{');
    hemt_json_number(json, "rank", view->rank);
    if (view->pid != 0)
        hemt_json_number(json, "pid", view->pid);
    hemt_json_text(json, "state", view->state);
    if (view->exit_code >= 0)
        hemt_json_number(json, "exit_code", view->exit_code);
    hemt_json_open(json, "waits", '[');
    for (uint32_t i = 0; i < view->waits; i++)
        json_wait(json, view, i, now);
    hemt_json_close(json, ']');
    hemt_json_close(json, '}');
}

static void json_job(hemt_json *json, const hemt_found *found, const hemt_beats *beats,
                     uint64_t now) {
    char name[32];
    snprintf(name, sizeof name, "%016" PRIx64, found->job);
    hemt_json_open(json, NULL, '{');
    hemt_json_text(json, "job", name);
    hemt_json_text(json, "kind", hemt_kind_name(found->arena.kind));
    hemt_json_text(json, "command", found->command);
    hemt_json_number(json, "maker_pid", found->maker_pid);
    hemt_json_seconds(json, "age_seconds", seconds_between(found->start_ns, now));
    hemt_json_number(json, "size", found->arena.ranks);
    hemt_json_open(json, "ranks", '[');
    for (uint32_t r = 0; r < found->arena.ranks; r++) {
        hemt_view view;
        hemt_view_take(&found->arena, beats, now, r, 0, &view);
        json_rank(json, &view, now);
    }
    hemt_json_close(json, ']');
    hemt_json_close(json, '}');
}

/* One time for everything that is said of all jobs. */
static void show(const hemt_jobs *jobs, const hemt_beats *beats, bool as_json) {
    uint64_t now = now_ns();
    hemt_json json = {.out = stdout};
    if (as_json)
        hemt_json_open(&json, NULL, '[');
    for (size_t i = 0; i < jobs->count; i++) {
        if (as_json) {
            json_job(&json, &jobs->list[i], &beats[i], now);
            continue;
        }
        if (i > 0)
            putchar('\n');
        print_job(&jobs->list[i], &beats[i], now);
    }
    if (as_json)
        hemt_json_close(&json, ']');
    else if (jobs->count == 0)
        puts("no Hem job of yours is running");
}

static bool look_and_show(const hemt_jobs *jobs, bool as_json) {
    bool any = false;
    hemt_beats *beats = calloc(jobs->count + 1, sizeof *beats);
    if (beats == NULL)
        return false;
    for (size_t i = 0; i < jobs->count; i++)
        any = hemt_beats_take(&jobs->list[i].arena, &beats[i]) || any;
    if (any)
        hemt_beats_pass();
    show(jobs, beats, as_json);
    for (size_t i = 0; i < jobs->count; i++)
        hemt_beats_free(&beats[i]);
    free(beats);
    return true;
}

int hemt_ps(int argc, char **argv) {
    static const struct option options[] = {
        {"json", no_argument, NULL, 'j'}, {"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}};
    bool as_json = false;
    opterr = 0;
    optind = 1;
    for (int option; (option = getopt_long(argc, argv, "+h", options, NULL)) != -1;) {
        if (option == 'h') {
            fputs(help_text, stdout);
            return fflush(stdout) == 0 ? EXIT_SUCCESS : HEMT_EXIT_FAILED;
        }
        if (option == '?')
            return hemt_usage("ps", "%.64s is no option", argv[optind - 1]);
        as_json = true;
    }
    if (optind < argc)
        return hemt_usage("ps", "%.64s: takes no arguments", argv[optind]);
    hemt_jobs jobs;
    int error = hemt_scan(&jobs);
    if (error != 0) {
        hemt_say("ps", "cannot read /proc: %s", strerror(error));
        return HEMT_EXIT_FAILED;
    }
    bool shown = look_and_show(&jobs, as_json);
    hemt_jobs_free(&jobs);
    if (!shown) {
        hemt_say("ps", "no memory to look at them");
        return HEMT_EXIT_FAILED;
    }
    return fflush(stdout) == 0 ? EXIT_SUCCESS : HEMT_EXIT_FAILED;
}
