#include "report.h"

#include "say.h"
#include "view.h"

#include <stdlib.h>
#include <string.h>

static void print_rank(FILE *out, const hemt_job *job, const hemt_beats *beats, uint32_t rank,
                       uint64_t now) {
    hemt_view view;
    hemt_view_take(&job->arena, beats, now, rank, rank < job->started ? job->ranks[rank].child : 0,
                   &view);
    for (uint32_t line = 0; line < hemt_view_lines(&view); line++) {
        char text[512];
        hemt_view_line(&view, line, now, text, sizeof text);
        if (view.pid != 0)
            fprintf(out, "rank %u (pid %ld): %s\n", rank, (long)view.pid, text);
        else
            fprintf(out, "rank %u: %s\n", rank, text);
    }
}

char *hemt_report_job(const hemt_job *job) {
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (out == NULL)
        return NULL;
    hemt_beats beats;
    if (hemt_beats_take(&job->arena, &beats))
        hemt_beats_pass();
    uint64_t now = hemt_job_now(job);
    for (uint32_t r = 0; r < job->options->ranks; r++)
        print_rank(out, job, &beats, r, now);
    hemt_beats_free(&beats);
    if (fclose(out) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

static void report_rank(const hemt_job *job) {
    char how[96];
    hemt_end_text(job->exit_code, how, sizeof how);
    if (job->ended_by_us > 0)
        hemt_say("run", "%u of the other ranks had to be ended", job->ended_by_us);
    hemt_say("run", "rank %u %s after %.3f s; the job ends with %d", job->failed_rank, how,
             hemt_job_seconds(job, job->cause_ns), job->exit_code);
}

static void report_signal(const hemt_job *job) {
    char name[64];
    hemt_signal_text(job->signal, name, sizeof name);
    hemt_say("run", "ended by %s after %.3f s; the job ends with %d", name,
             hemt_job_seconds(job, job->cause_ns), job->exit_code);
}

static void report_timeout(const hemt_job *job) {
    if (job->waits != NULL && job->waits[0] != '\0')
        fputs(job->waits, stderr);
    fflush(stderr);
    hemt_say("run", "the time limit of %.3f s is over; the job ends with %d",
             (double)job->options->timeout_ns * 1e-9, job->exit_code);
}

void hemt_report_end(const hemt_job *job) {
    switch (job->cause) {
    case HEMT_CAUSE_NONE:
        break;
    case HEMT_CAUSE_RANK:
        report_rank(job);
        break;
    case HEMT_CAUSE_SIGNAL:
        report_signal(job);
        break;
    case HEMT_CAUSE_TIMEOUT:
        report_timeout(job);
        break;
    case HEMT_CAUSE_START:
        hemt_say("run", "%s", job->trouble);
        break;
    }
}
