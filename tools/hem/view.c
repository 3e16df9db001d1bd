#include "view.h"

#include "core/liveness.h"
#include "device/notes.h"
#include "process.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_stopped(pid_t pid) {
    char state = 0;
    pid_t parent = 0;
    /* 'T' by a signal, 't' by a debugger. */
    return pid > 0 && hemt_process_look(pid, &state, &parent) && (state == 'T' || state == 't');
}

static bool any_note(const hemi_arena *arena) {
    for (uint32_t rank = 0; rank < arena->ranks; rank++)
        for (uint32_t slot = 0; slot < HEMI_NOTES; slot++)
            if (hemi_note_seq(arena, rank, slot) != 0)
                return true;
    return false;
}

bool hemt_beats_take(const hemi_arena *arena, hemt_beats *beats_p) {
    beats_p->seqs = any_note(arena) ? calloc(arena->ranks, HEMI_NOTES * sizeof(uint32_t)) : NULL;
    if (beats_p->seqs == NULL)
        return false;
    for (uint32_t rank = 0; rank < arena->ranks; rank++)
        for (uint32_t slot = 0; slot < HEMI_NOTES; slot++)
            beats_p->seqs[rank * (size_t)HEMI_NOTES + slot] = hemi_note_seq(arena, rank, slot);
    return true;
}

void hemt_beats_pass(void) {
    hemi_platform_real()->nap(NULL, HEMI_NOTE_BEAT_NS);
}

void hemt_beats_free(hemt_beats *beats) {
    free(beats->seqs);
    beats->seqs = NULL;
}

static void read_kernels(const hemi_arena *arena, const hemt_beats *beats, uint64_t now,
                         hemt_view *view) {
    const uint32_t *seqs = beats->seqs + view->rank * (size_t)HEMI_NOTES;
    const uint32_t most = view->waits + HEMT_KERNELS;
    for (uint32_t slot = 0; slot < HEMI_NOTES && view->waits < most; slot++)
        if (hemi_note_read(arena, view->rank, slot, seqs[slot], now, &view->flights[view->waits],
                           &view->seen[view->waits]))
            view->waits++;
}

static void read_waits(const hemi_arena *arena, hemt_view *view) {
    for (uint32_t slot = 0; slot < HEMI_FLIGHTS; slot++)
        if (hemi_flight_read(arena, view->rank, slot, &view->flights[view->waits],
                             &view->seen[view->waits]))
            view->waits++;
}

static void describe_end(const hemi_arena *arena, hemt_view *view) {
    const hemi_rank_block *block = hemi_arena_rank(arena, view->rank);
    uint64_t start = arena->head->start_ns;
    char how[96];
    hemi_liveness_describe(arena, view->rank, how, sizeof how);
    view->exit_code = block->exit_code;
    view->end_ns = block->death_ns;
    view->state = view->exit_code == 0 ? "exited" : "failed";
    snprintf(view->about, sizeof view->about, "%s after %.3f s", how,
             view->end_ns > start ? (double)(view->end_ns - start) * 1e-9 : 0.0);
}

void hemt_view_take(const hemi_arena *arena, const hemt_beats *beats, uint64_t now_ns,
                    uint32_t rank, pid_t child, hemt_view *view_p) {
    hemi_rank_block *block = hemi_arena_rank(arena, rank);
    uint32_t state = hemi_load32_acquire(&block->state);
    *view_p = (hemt_view){.rank = rank, .exit_code = -1};
    uint32_t pid = hemi_load32_relaxed(&block->pid);
    view_p->pid = pid != 0 ? (pid_t)pid : child;
    read_waits(arena, view_p);
    if (beats->seqs != NULL && state <= HEMI_STATE_ALIVE)
        read_kernels(arena, beats, now_ns, view_p);
    if (state > HEMI_STATE_ALIVE) {
        describe_end(arena, view_p);
    } else if (is_stopped(view_p->pid)) {
        view_p->state = "stopped";
        snprintf(view_p->about, sizeof view_p->about, "stopped");
    } else if (view_p->waits > 0) {
        view_p->state = "waiting";
    } else if (state == HEMI_STATE_NEW) {
        view_p->state = "starting";
        snprintf(view_p->about, sizeof view_p->about, "has not opened its world yet");
    } else {
        view_p->state = "running";
        snprintf(view_p->about, sizeof view_p->about, "running, in no Hem call that waits");
    }
}

uint32_t hemt_view_lines(const hemt_view *view) {
    return view->waits > 0 ? view->waits : 1;
}

void hemt_view_line(const hemt_view *view, uint32_t line, uint64_t now_ns, char *text,
                    size_t size) {
    if (line >= view->waits) {
        snprintf(text, size, "%s", view->about);
        return;
    }
    char wait[256];
    /* The wait of a dead rank has lasted until its death. */
    uint64_t until_ns = view->end_ns != 0 ? view->end_ns : now_ns;
    hemi_flight_describe(&view->flights[line], view->seen[line], until_ns, wait, sizeof wait);
    if (view->about[0] != '\0')
        snprintf(text, size, "%s, in %s", view->about, wait);
    else
        snprintf(text, size, "%s", wait);
}
