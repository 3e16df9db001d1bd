/*
 * The stand-in at its most like a GPU: what unpins memory waits until no kernel of the process runs, and
 * nobody else gets at the device meanwhile. Tests that ask for it find out who would wait for ever.
 */
#include "base/atomic.h"
#include "device/standin/inside.h"

#include <unistd.h>

#define NAP_US    100
#define IDLE_NAPS 100000 /* 10 s */

/* Relaxed, all of them: streams that are ordered by nothing else must not be ordered by these. */
static uint32_t waits;
static uint32_t running;
static pthread_mutex_t door = PTHREAD_MUTEX_INITIALIZER;

/* Items that are on streams. */
static uint32_t items;

void hemi_standin_item_comes(void) {
    hemi_add32_relaxed(&items, 1);
}

void hemi_standin_item_goes(void) {
    hemi_add32_relaxed(&items, UINT32_MAX);
}

bool hemi_standin_await_idle(void) {
    for (int i = 0; i < IDLE_NAPS; i++) {
        if (hemi_load32_relaxed(&items) == 0)
            return true;
        usleep(NAP_US);
    }
    return false;
}

HEM_API void hemi_standin_unpin_waits(bool on) {
    hemi_store32_relaxed(&waits, on ? 1 : 0);
}

void hemi_standin_grid_begin(void) {
    hemi_add32_relaxed(&running, 1);
}

void hemi_standin_grid_end(void) {
    hemi_add32_relaxed(&running, UINT32_MAX);
}

void hemi_standin_pass(void) {
    if (hemi_load32_relaxed(&waits) == 0)
        return;
    pthread_mutex_lock(&door);
    pthread_mutex_unlock(&door);
}

void hemi_standin_await_grids(void) {
    if (hemi_load32_relaxed(&waits) == 0)
        return;
    pthread_mutex_lock(&door);
    while (hemi_load32_relaxed(&running) != 0)
        usleep(NAP_US);
    pthread_mutex_unlock(&door);
}
