/* Barriers of more ranks than can all tell each other. */
#ifndef HEMI_WINDOW_BARRIER_TREE_H
#define HEMI_WINDOW_BARRIER_TREE_H

#include "window/window.h"

/** Lines that one barrier id needs in the control block of rank 0. */
uint64_t hemi_tree_lines(uint32_t ranks);

/** Have memory behind them. Every rank may do it. */
hem_status hemi_tree_prepare(const hem_window *window, uint32_t id);

/** Count this rank in; the last one releases the epoch and wakes everybody. Does not wait. */
void hemi_tree_arrive(hem_window *window, uint32_t id, hemi_barrier_state *state);

/** The epoch up to which everybody has entered. */
uint64_t hemi_tree_released(const hem_window *window, uint32_t id);

/** The word that says so. */
const uint64_t *hemi_tree_word(const hem_window *window, uint32_t id);

/** The epoch up to which `rank` has entered and passed on what it had to. */
uint64_t hemi_tree_entered(const hem_window *window, uint32_t id, uint32_t rank);

#endif
