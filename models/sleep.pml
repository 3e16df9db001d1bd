/*
 * How this works
 *
 * The sleep and wake hand-over of wait.h under x86-TSO (tso.h), alone. Rank 0 waits, the others
 * signal; every signaller has one word that only grows.
 *
 *   default      ranks 1 and 2 signal; the waiter wants sum >= 2, then sum >= 4.
 *   -DWAITERS=2  two threads of rank 0 wait, sharing its bell and its count.
 *   -DDEATH      rank 1 may be killed at any moment, even between ringing and waking. The monitor
 *                then stores dead = 1, and rings and wakes every rank (here the one that ever
 *                sleeps) without looking at its count. The waiter must end, with its words or with
 *                the knowledge that rank 1 is dead.
 *
 * A lost wake-up is a state in which the waiter sleeps and nobody can move: Spin reports it as an
 * invalid end state. `check` also searches for cycles and finds none. Together they say that every
 * run ends, and ends with the waiters through.
 *
 * Mutants: those of wait.h; with -DDEATH also MUT_MONITOR_NO_BUMP (the monitor wakes without
 * ringing) and MUT_MONITOR_LATE_DEAD (it wakes first). -DUNREGISTERED=2 is a rank 1 that has not
 * registered for membarrier. -DPLAIN_ANNOUNCE is a mutant together with -DFALLBACK, as it takes the
 * sleeper's fence away, and with -DWAITERS=2, where one thread's store undoes the other's.
 */

#ifndef WAITERS
#define WAITERS 1
#endif
#ifndef SIGNALLERS
#define SIGNALLERS 2
#endif
#ifndef ROUNDS
#define ROUNDS 2
#endif

#define MONITOR (WAITERS + SIGNALLERS)
#ifdef DEATH
#define PROCS (MONITOR + 1)
#else
#define PROCS MONITOR
#endif
#define SB 3

/* Words. */
#define BELL 0
#define COUNT 1
#define DEAD 2
#define SIGNAL(s) (3 + (s))
#define WORDS (3 + SIGNALLERS)

#include "tso.h"
#include "wait.h"

#if SIGNALLERS == 1
#define SUM mem[SIGNAL(0)]
#else
#define SUM (mem[SIGNAL(0)] + mem[SIGNAL(1)])
#endif

byte through; /* waiters that have ended */

#ifdef DEATH
bool killed;
#define DONE(round) (SUM >= SIGNALLERS * (round) || mem[DEAD] == 1)
#else
#define DONE(round) (SUM >= SIGNALLERS * (round))
#endif

active [WAITERS] proctype Waiter()
{
    byte me = _pid - PROCS;
    byte seen;
    byte round = 1;
    do
    :: round <= ROUNDS ->
        wait_until(me, BELL, COUNT, DONE(round));
#ifdef DEATH
        assert(SUM >= SIGNALLERS * round || killed);
#endif
        round++
    :: else -> break
    od;
    /* The count balances: once everybody is through and drained, nobody counts as asleep. */
    atomic { buf[me].n == 0 -> through++ };
    assert(through < WAITERS || mem[COUNT] == 0)
}

active [SIGNALLERS] proctype Signaller()
{
    byte me = _pid - PROCS;
    byte value;
    {
        do
        :: value < ROUNDS ->
            atomic { value++; store(me, SIGNAL(me - WAITERS), value) };
            wake_sleepers(me, BELL, COUNT)
        :: else -> break
        od
    }
#ifdef DEATH
    unless { (killed && me == WAITERS) } /* its buffer still drains: the processor lives on */
#endif
}

#ifdef DEATH
active proctype Killer()
{
    if
    :: killed = true
    :: true
    fi
}

active proctype Monitor()
{
end:
    (killed);
#ifndef MUT_MONITOR_LATE_DEAD
    store(MONITOR, DEAD, 1);
#endif
#ifdef MUT_MONITOR_NO_BUMP
    fence(MONITOR);
#else
    fetch_add(MONITOR, BELL, 1);
#endif
    futex_wake(BELL);
#ifdef MUT_MONITOR_LATE_DEAD
    store(MONITOR, DEAD, 1)
#endif
}
#endif
