/*
 * How this works
 *
 * The flat epoch barrier over three ranks with the sleeping wait of wait.h, under x86-TSO (tso.h).
 *
 * Each rank keeps one epoch per barrier id. SLOT(t, s, id) lies in rank t's memory and is written
 * by rank s alone. To arrive at id, a rank raises its own epoch of this id and stores it into its
 * slot at every other rank, waking it if it sleeps. To wait, it waits until all its own slots of
 * this id are at least its epoch. Slots are never reset, so a rank that is ahead cannot be missed
 * by one that is behind.
 *
 *   default  in each of three rounds a barrier on one id: bit r of IDS names the id of round r. The
 *            default 2 gives the ids 0, 1, 0.
 *   -DSPLIT  arrive and wait apart: in each of two rounds every rank arrives at both ids, rank 1 in
 *            the opposite order, and then waits for id 0 and for id 1.
 *
 * Every rank stores the round number with a plain store before it arrives, and checks after each
 * wait that all ranks' numbers are there. That is both promises in one: what was stored before the
 * barrier is visible after it, and nobody leaves before everybody has entered, since a rank's
 * number cannot be in memory before the rank has entered. A lost wake-up, or an arrival that is
 * overlooked, is an invalid end state.
 *
 * Mutants: MUT_RESET (the waiter clears its slots after use), MUT_EPOCH_PER_HANDLE (arrivals are
 * counted per id but expected per handle), MUT_LATE_DATA (data stored after the arrival), and
 * those of wait.h. MUT_RESET needs the same id twice in a row to fail, as with -DIDS=0: with ids
 * that alternate, the barrier between keeps a fast rank from overtaking the clearing.
 */

#define RANKS 3
#ifndef IDS
#define IDS 2
#endif
#ifndef SB
#define SB 4
#endif
#ifndef ROUNDS
#ifdef SPLIT
#define ROUNDS 2
#else
#define ROUNDS 3
#endif
#endif

#define ID(r) ((IDS >> (r)) & 1)
#define PROCS RANKS
#define BELL_BIT

/* Words. */
#define BELL(r) (r)
#define COUNT(r) (RANKS + (r))
#define DATA(r) (2 * RANKS + (r))
#define SLOT(t, s, id) (3 * RANKS + ((t) * RANKS + (s)) * 2 + (id))
#define WORDS (3 * RANKS + 2 * RANKS * RANKS)

#include "tso.h"
#include "wait.h"

#define NEXT ((me + 1) % RANKS)
#define LAST ((me + 2) % RANKS)

#if defined(MUT_RESET)
#define VALUE(id) 1
#define WANTED(id) 1
#elif defined(MUT_EPOCH_PER_HANDLE)
#define VALUE(id) epoch[id]
#define WANTED(id) (epoch[0] + epoch[1])
#else
#define VALUE(id) epoch[id]
#define WANTED(id) epoch[id]
#endif

inline arrive(id)
{
    atomic {
        epoch[id]++;
        store(me, SLOT(NEXT, me, id), VALUE(id))
    };
    wake_sleepers(me, BELL(NEXT), COUNT(NEXT));
    store(me, SLOT(LAST, me, id), VALUE(id));
    wake_sleepers(me, BELL(LAST), COUNT(LAST))
}

inline wait(id)
{
    wait_until(me, BELL(me), COUNT(me),
               (mem[SLOT(me, NEXT, id)] >= WANTED(id) && mem[SLOT(me, LAST, id)] >= WANTED(id)));
#ifdef MUT_RESET
    /* With a fence, so that this mutant fails for its idea and not for a stale load of its own. */
    atomic {
        fence(me);
        mem[SLOT(me, NEXT, id)] = 0;
        mem[SLOT(me, LAST, id)] = 0
    };
#endif
    assert(mem[DATA(NEXT)] > round && mem[DATA(LAST)] > round)
}

active [RANKS] proctype Rank()
{
    byte me = _pid - PROCS;
    byte seen, round;
    byte epoch[2];
    do
    :: round < ROUNDS ->
#ifndef MUT_LATE_DATA
        store(me, DATA(me), round + 1);
#endif
#ifdef SPLIT
        arrive(me & 1);
        arrive(1 - (me & 1));
#else
        arrive(ID(round));
#endif
#ifdef MUT_LATE_DATA
        store(me, DATA(me), round + 1);
#endif
#ifdef SPLIT
        wait(0);
        wait(1);
#else
        wait(ID(round));
#endif
        round++
    :: else -> break
    od
}
