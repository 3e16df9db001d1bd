/*
 * Tagged output: a thread that reads what the ranks write and prints it line by line, each line with
 * its rank in front.
 *
 * A thread, because writing may block for as long as nobody reads our output, and the keeper must
 * notice deaths meanwhile. The ranks then block as well, as they would without us.
 */
#ifndef HEMT_TAG_H
#define HEMT_TAG_H

#include <stdint.h>

typedef struct hemt_tagger hemt_tagger;

/** Prepare for `ranks` ranks. NULL with errno if that cannot be. */
hemt_tagger *hemt_tagger_make(uint32_t ranks);

/** How many descriptors it takes in all. */
uint64_t hemt_tagger_descriptors(uint32_t ranks);

/** Make the pipes of a rank. `ends_p` gets what is to be its stdout and stderr, close-on-exec; the
 *  caller closes them. @return 0 or an errno. */
int hemt_tagger_connect(hemt_tagger *tagger, uint32_t rank, int ends_p[2]);

/** Start the thread, after all ranks are connected. @return 0 or an errno. */
int hemt_tagger_start(hemt_tagger *tagger);

/** All writers are dead: print what is left, then end. Does not wait. */
void hemt_tagger_finish(hemt_tagger *tagger);

/** Becomes readable when the thread has ended. */
int hemt_tagger_done_fd(const hemt_tagger *tagger);

/** Free it; the thread must be done or never started. NULL is allowed. */
void hemt_tagger_free(hemt_tagger *tagger);

#endif
