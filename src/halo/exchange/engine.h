/*
 * An exchange by copy engines: HEM_EXCHANGE_ENGINES. Nothing is launched; a run is copies, and memory
 * operations of the stream that the caller gave.
 *
 * How this works. For each neighbour S of rank R there are two words in R's device memory, which are
 * flags and not counters, since a graph replays constants: S's stream sets them to 1, R's stream waits
 * for 1 and takes them back to 0.
 *
 *   start   `ready` = 1 at all neighbours: this rank's halos may be written
 *           wait for `ready` of all neighbours, take them back, copy into their halos
 *           `filled` = 1 at all neighbours
 *   finish  wait for `filled` of all neighbours, take them back
 *
 *   No flag is set again before it was taken back. S sets `ready` for run e + 1 after its finish of run
 *   e, which has seen R's `filled`; R had taken `ready` back before it set that. S sets `filled` for run
 *   e + 1 after it has seen R's `ready` for that run, which R sets after its finish of run e has taken
 *   `filled` back. Each store of a stream is visible after all that the stream did before. So nothing
 *   counts runs, and eager runs, graphs and runs of the host mix. There is no cycle of waits: whoever
 *   waits in a start has told all its neighbours before.
 *
 * Failure. A copy that is on a stream cannot be stopped, only held back by the wait before it. So first R
 * is broken, in the pinned word that hem_exchange_status reads, and says so at all neighbours, which
 * are broken then, too (`raised`; CPUs tell each other, in the arena). When all of them are out (raised,
 * leaving or dead), R's CPU releases R's stream: it sets the flags that the stream waits for. What that
 * copies then is wrong, but reaches only ranks that are known to be broken. The stream takes the flags
 * back and may wait once more, in a run that was put there before or in a graph: so this is done again
 * and again as long as the exchange is there.
 *
 *   Who gives up (`leaving`) frees its fields soon: it waits until no start of a neighbour will write
 *   there (`quiet`). A rank that is broken or has a neighbour that has left refuses starts, and is quiet
 *   once its last one has ended. Of starts in graphs nobody knows when that is. A rank that is not
 *   broken promises never to release one: it waits for the neighbour that has left, which has not run
 *   so often. One that is broken is quiet when it gives up itself: then no graph is under way.
 *   Where the world is closed instead, nobody has waited for the last run: so a rank goes on looking until
 *   its stream is released and it is quiet, before it stops to look for good. Then it says `parted`: it writes
 *   nothing to the arena any more. A thread that is dead says so when it is buried. Nobody gives back what a
 *   neighbour writes to that has neither left nor parted; whether a rank has closed the world says nothing.
 *
 *   That a neighbour is dead or the world is revoked breaks an exchange at once. That one has left in
 *   order does so only if the stream waits for it. `at`, which the stream stores in pinned memory, is
 *   changed after the last wait and before the flags are taken back: whoever sees a flag at 0, and `at`
 *   in the wait after that, has seen a stream that waits.
 *
 * models/engine.pml checks this. A thread of the rank looks (device/chores.c), and whoever waits for a run
 * that the host has started.
 */
#ifndef HEMI_HALO_EXCHANGE_ENGINE_H
#define HEMI_HALO_EXCHANGE_ENGINE_H

#include "halo/exchange/device.h"

/** Sets of rows that a run copies at most. Each is a call of the driver's when it is put on a stream,
 *  unless it is a single row. */
#define HEMI_HALO_ENGINE_ROWS 4096u

/** Where the stream is. */
enum hemi_halo_engine_at {
    HEMI_HALO_ENGINE_IDLE = 0,
    HEMI_HALO_ENGINE_STARTS,  /**< waits for `ready` */
    HEMI_HALO_ENGINE_STARTED, /**< copies, or is between start and finish */
    HEMI_HALO_ENGINE_FINISHES /**< waits for `filled` */
};

struct hemi_halo_engine {
    hemi_chore chore;
    hem_exchange *x;
    uint32_t *trouble; /**< what the watcher raises, HEMD_TROUBLE_ALL, and the note for onlookers */
    uint32_t open;     /**< 1: all ranks have made it */
    uint32_t looking;  /**< 1: somebody looks at it just now */
    uint32_t refuses;  /**< 1: no start is put on a stream any more */
    uint32_t leaves;   /**< 1: it is being given up here, so no graph with it is under way */
    uint32_t captured; /**< 1: a start is in a graph */
    uint32_t quiet;    /**< 1: the neighbours know that no start comes any more */
    bool held;         /**< a start that waits is never released: guarded by `looking` */
    bool parted;       /**< nobody is told anything any more: no other thread is there */
    uint64_t last_start; /**< what `counted` is when the last start has ended */
    uint64_t noted_ns;   /**< when onlookers were told last what the stream waits for: as `held` */
    uint64_t turn;       /**< where the stream was last seen, in which run: as `held` */
    uint64_t turn_ns;    /**< when it was first seen there: as `held` */
};

/** Whether copy engines can do it. Local. @return HEM_OK, HEM_ERR_UNSUPPORTED. */
hem_status hemi_halo_engine_allowed(const hem_exchange *x);

/** All is known and mapped. Set-up. */
hem_status hemi_halo_engine_make(hem_exchange *x);

/** All ranks have made it, if it is one for copy engines: from now on neighbours are told things. */
void hemi_halo_engine_open(const hemi_halo_device *d);

/** The rows that a run copies. device_rows.c. @return HEM_OK, HEM_ERR_MEMORY, HEM_ERR_UNSUPPORTED. */
hem_status hemi_halo_engine_rows(const hem_exchange *x, const hem_exchange_how *how,
                                 hemi_halo_plan *plan);

/** One half of a run: as hemi_halo_device_launch. HEM_ERR_REVOKED if starts are refused. */
hem_status hemi_halo_engine_put(hemi_halo_device *d, const hemi_halo_plan *plan, bool finishes,
                                void *stream, bool tells);

/** Break it. The first reason stays. Any thread. engine_look.c */
void hemi_halo_engine_raise(hemi_halo_device *d, hem_status status, uint32_t peer_plus_1);

/** Look what has become of the neighbours, and release the stream if it is time. Does not wait. Any
 *  thread. @return whether something was done. */
bool hemi_halo_engine_look(hemi_halo_engine *engine);

/** This rank gives it up. */
void hemi_halo_engine_leave(const hemi_halo_device *d);

/** Whether a neighbour may still write into halos of this rank. */
bool hemi_halo_engine_may_write(const hemi_halo_device *d, size_t lane);

/** Whether a neighbour may still write to its area in the arena here. That its world is closed is not enough:
 *  a rank that has closed it looks until it says `parted`, and one that breaks then may have seen just
 *  before that this rank listens. It has left (HEMI_GONE_DESTROYED), or parted, or its process is dead. */
bool hemi_halo_engine_may_tell(const hem_exchange *x, const hemi_halo_way *way);

/** The world is closed: say `parted`, unless it was given up before and the neighbours were told so, and wait
 *  until no neighbour writes to the area of this rank in the arena any more. @return false: one may still do
 *  so, after the time limit of set-up. */
bool hemi_halo_engine_part(const hem_exchange *x);

/** The neighbours know all: nobody looks at it any more. If it is one for copy engines. */
void hemi_halo_engine_end(const hemi_halo_device *d);
void hemi_halo_engine_free(hemi_halo_device *d);

/** Tell a neighbour something, if it still listens: a word of the credit there. */
static inline void hemi_halo_engine_tell(const hemi_halo_engine *engine, const hemi_halo_way *way,
                                         uint64_t *word) {
    if (!engine->parted && (hemi_way_gone(way) & HEMI_GONE_DESTROYED) == 0)
        hemi_store64_release(word, 1);
}

/** The area of a neighbour, here or there. Not of oneself. */
static inline hemd_halo_area *hemi_halo_engine_in(const hemi_halo_device *d, size_t lane) {
    unsigned char *at = (unsigned char *)d->areas.address + d->reach[lane].in_at;
    return (hemd_halo_area *)(void *)at;
}

static inline hemd_halo_area *hemi_halo_engine_out(const hemi_halo_device *d, size_t lane,
                                                   uint32_t peer) {
    unsigned char *at = (unsigned char *)d->maps[peer].address + d->reach[lane].out_at;
    return (hemd_halo_area *)(void *)at;
}

#endif
