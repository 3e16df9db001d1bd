#include "base/sim.h"

#if defined(HEMI_SIM) && HEMI_SIM

#include <stddef.h>

/* A simulation build's scheduler must know whose turn it is without being handed anything. */
static _Thread_local hemi_sim_hook thread_hook;
static _Thread_local void *thread_ctx;

void hemi_sim_set_hook(hemi_sim_hook hook, void *ctx) {
    thread_hook = hook;
    thread_ctx = ctx;
}

void hemi_sim_point(void) {
    if (thread_hook != NULL)
        thread_hook(thread_ctx);
}

#else

/* ISO C wants a translation unit to hold something. */
typedef int hemi_sim_unused;

#endif
