/* Simulation builds only: the hook that every atomic operation of a rank calls. */
#ifndef HEMI_BASE_SIM_H
#define HEMI_BASE_SIM_H

/** Called at every schedule point of the calling thread, with `ctx`. */
typedef void (*hemi_sim_hook)(void *ctx);

/** Set the calling thread's hook; NULL for none. A rank's thread calls it for itself. */
void hemi_sim_set_hook(hemi_sim_hook hook, void *ctx);

/** One schedule point. */
void hemi_sim_point(void);

#endif
