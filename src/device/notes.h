/*
 * What a rank's kernels wait for, for onlookers: the part of the flight record that kernels write.
 *
 * A note is true while it is written again and again (hem/device/note.h says why nobody takes it back). So an
 * onlooker remembers the sequences of all notes, lets HEMI_NOTE_BEAT_NS pass, and believes those that have
 * changed.
 */
#ifndef HEMI_DEVICE_NOTES_H
#define HEMI_DEVICE_NOTES_H

#include "core/flight.h"

/** A wait that goes on writes its note within that time: kernels look at the host every 20 ms or so, and
 *  those of processes that take turns on a GPU stand still in between. */
#define HEMI_NOTE_BEAT_NS 250000000

/** How often note `slot` of a rank has been written, twice; 0: never, or there is none. */
uint32_t hemi_note_seq(const hemi_arena *arena, uint32_t root_rank, uint32_t slot);

/**
 * Read note `slot`, which had the sequence `before` some time ago, as if it were a record of the host.
 *
 * `seen_p`: what is there instead of what is wanted. @return false if nobody has written it since.
 */
bool hemi_note_read(const hemi_arena *arena, uint32_t root_rank, uint32_t slot, uint32_t before,
                    uint64_t now_ns, hemi_flight *copy_p, uint64_t *seen_p);

#endif
