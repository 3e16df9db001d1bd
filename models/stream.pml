/*
 * How this works
 *
 * A host stream (src/core/stream_queue.h) under x86-TSO (tso.h): putting items on it, the thread that
 * takes them and sleeps, and those who sleep until a place is done.
 *
 *   putting, under the lock                 the thread
 *     item, tail = place                      asleep = 1, fence
 *     fence                                   tail moved? then go on
 *     asleep == 1 and changed to 0:           futex_wait(asleep, 1), look again
 *         futex_wake(asleep)                  asleep = 0
 *                                             do the item, done = place, fence
 *   waiting for a place                       wanted <= place:
 *     seen = bell                                 wanted = nobody
 *     lower wanted to the place                   bell += 1
 *     done there? then go                         futex_wake(bell)
 *     futex_wait(bell, seen), start over
 *
 * PRODUCERS (two) put ROUNDS items each and wait for each item before the next; -DBURST waits for the
 * last one only. -DWATCHERS=n adds threads that wait for places 1 to n from the start, as another
 * stream does that was told to wait for an event; with -DHELD, what is at place 2 does not end before
 * the watcher of place 1 does. In the end somebody orders the thread to end. A lost wake-up is an
 * invalid end state. An item that is taken before it is there, and an effect that is not seen although
 * its place is done, are failed assertions.
 *
 * -DPIECES is about the ring of pieces instead, with one item in each, a producer that does not wait,
 * and a thread that does not sleep: a piece is filled again only when something behind it is done.
 *
 * The lock is a compare-and-swap on an empty buffer and a buffered store, as in the code. What is read
 * under it by its holder alone is read with taking it. Reading and comparing `wanted` is one step with
 * the swap: the code starts over if it changed in between. There is no fence between that and the
 * second look: either the swap was one, or there was nothing to store.
 *
 * Mutants: MUT_NO_PUT_FENCE, MUT_NO_SLEEP_FENCE, MUT_NO_RECHECK (the thread parks without a second
 * look), MUT_NO_DONE_FENCE, MUT_NO_WAIT_RECHECK, MUT_NO_BUMP (wake without ringing), MUT_LATE_BELL (the
 * bell is read after the wish), MUT_LATE_NOBODY (rung before the wish is taken back), MUT_LAST_WISH (a
 * wish replaces a lower one, with -DHELD), MUT_SILENT_ORDER (the order does not wake), MUT_TAIL_FIRST,
 * MUT_DONE_FIRST, MUT_NO_LOCK, MUT_NO_SLEEP (the search for cycles must notice), with -DPIECES
 * MUT_EARLY_REUSE (a piece is filled again when its last item is done).
 */

#ifndef ROUNDS
#define ROUNDS 2
#endif
#ifndef WATCHERS
#define WATCHERS 0
#endif

#ifndef PIECES

#ifndef PRODUCERS
#define PRODUCERS 2
#endif
#define TOTAL (PRODUCERS * ROUNDS)
#define CLOSER (PRODUCERS + WATCHERS)
#define WORKER (CLOSER + 1)
#define PROCS (WORKER + 1)
#define SB 3
#define NOBODY 255

/* Words. */
#define TAIL 0
#define ASLEEP 1
#define DONE 2
#define WANTED 3
#define BELL 4
#define ORDER 5
#define LOCK 6
#define ITEM(n) (6 + (n))
#define EFFECT(n) (6 + TOTAL + (n))
#define WORDS (7 + 2 * TOTAL)

#include "tso.h"

byte through; /* producers that have ended */
#ifdef HELD
bool watched; /* the watcher of place 1 has ended */
#endif

inline lock(me, place)
{
#ifdef MUT_NO_LOCK
    place = mem[TAIL] + 1
#else
    d_step { buf[me].n == 0 && mem[LOCK] == 0 -> mem[LOCK] = 1; place = mem[TAIL] + 1 }
#endif
}

/* After tail or order was stored. */
inline wake_thread(me)
{
#ifndef MUT_NO_PUT_FENCE
    fence(me);
#endif
    if
    :: mem[ASLEEP] == 0
    :: mem[ASLEEP] != 0 ->
        compare_swap(me, ASLEEP, 1, 0, won);
        if
        :: won -> futex_wake(ASLEEP)
        :: else
        fi;
        won = false
    fi
}

inline put(me, place)
{
    lock(me, place);
#ifdef MUT_TAIL_FIRST
    store(me, TAIL, place);
    store(me, ITEM(place), 1);
#else
    store(me, ITEM(place), 1);
    store(me, TAIL, place);
#endif
    wake_thread(me);
    store(me, LOCK, 0)
}

/* Lower the wish, unless somebody has a lower one. */
inline want(me, place)
{
    if
#ifdef MUT_LAST_WISH
    :: d_step { buf[me].n == 0 -> mem[WANTED] = place }
#else
    :: mem[WANTED] <= place
    :: d_step { buf[me].n == 0 && mem[WANTED] > place -> mem[WANTED] = place }
#endif
    fi
}

/* `done` is never in the buffer of those who wait. */
inline await(me, place)
{
    do
    :: mem[DONE] >= place -> break
    :: atomic {
        mem[DONE] < place ->
#ifndef MUT_LATE_BELL
        seen = mem[BELL]
#endif
       };
       want(me, place);
#ifdef MUT_LATE_BELL
       seen = mem[BELL];
#endif
       if
#ifndef MUT_NO_WAIT_RECHECK
       :: mem[DONE] >= place -> seen = 0; break
       :: mem[DONE] < place ->
#else
       :: true ->
#endif
            futex_wait(me, BELL, seen);
            seen = 0
       fi
    od;
    assert(mem[EFFECT(place)] == 1)
}

active [PRODUCERS] proctype Producer()
{
    byte me = _pid - PROCS;
    byte seen;
    byte place;
    byte round;
    bool won;
    (mem[WANTED] != 0); /* nobody has the stream before it is made */
    do
    :: round < ROUNDS ->
        put(me, place);
#ifndef BURST
        await(me, place);
#endif
        round++
    :: else -> break
    od;
    await(me, place);
    through++
}

#if WATCHERS > 0
active [WATCHERS] proctype Watcher()
{
    byte me = _pid - PROCS;
    byte seen;
    (mem[WANTED] != 0);
    await(me, me - PRODUCERS + 1);
#ifdef HELD
    if
    :: me == PRODUCERS -> watched = true
    :: else
    fi
#endif
}
#endif

active proctype Closer()
{
    bool won;
    byte unused;
    (through == PRODUCERS);
    lock(CLOSER, unused);
    store(CLOSER, ORDER, 1);
#ifndef MUT_SILENT_ORDER
    wake_thread(CLOSER);
#endif
    store(CLOSER, LOCK, 0)
}

#define HAS_WORK (mem[TAIL] > finished || mem[ORDER] == 1)

/* `tail` and `order` are never in the thread's own buffer. */
inline sleep_for_work()
{
    do
    :: store(WORKER, ASLEEP, 1);
#ifndef MUT_NO_SLEEP_FENCE
       fence(WORKER);
#endif
       if
#ifndef MUT_NO_RECHECK
       :: HAS_WORK
       :: !HAS_WORK ->
#else
       :: true ->
#endif
#ifndef MUT_NO_SLEEP
            futex_wait(WORKER, ASLEEP, 1)
#else
            skip
#endif
       fi;
       if
       :: HAS_WORK -> break
       :: !HAS_WORK
       fi
    od;
    store(WORKER, ASLEEP, 0)
}

active proctype Worker()
{
    byte finished;
    mem[WANTED] = NOBODY;
    do
    :: if
       :: HAS_WORK
       :: !HAS_WORK -> sleep_for_work()
       fi;
       if
       :: mem[TAIL] == finished -> break /* ordered to end, after everything was put */
       :: mem[TAIL] > finished
       fi;
       finished++;
       assert(mem[ITEM(finished)] == 1);
#ifdef HELD
       if
       :: finished == 2 -> (watched)
       :: else
       fi;
#endif
#ifdef MUT_DONE_FIRST
       store(WORKER, DONE, finished);
       store(WORKER, EFFECT(finished), 1);
#else
       store(WORKER, EFFECT(finished), 1);
       store(WORKER, DONE, finished);
#endif
#ifndef MUT_NO_DONE_FENCE
       fence(WORKER);
#endif
       if
       :: mem[WANTED] > finished
       :: mem[WANTED] <= finished ->
#ifndef MUT_LATE_NOBODY
            store(WORKER, WANTED, NOBODY);
#endif
#ifdef MUT_NO_BUMP
            fence(WORKER);
#else
            fetch_add(WORKER, BELL, 1);
#endif
            futex_wake(BELL);
#ifdef MUT_LATE_NOBODY
            store(WORKER, WANTED, NOBODY)
#endif
       fi
    od;
    assert(finished == TOTAL)
}

#else /* PIECES */

#ifndef ITEMS
#define ITEMS 6
#endif
#define PROCS 2
#define SB 4
#define PRODUCER 0
#define WORKER 1

/* Words. A new ring is one piece that is followed by itself. */
#define TAIL 0
#define DONE 1
#define NEXT(p) (2 + (p))
#define ITEM(p) (2 + ITEMS + (p))
#define WORDS (2 + 2 * ITEMS)

#include "tso.h"

active proctype Producer()
{
    byte last[ITEMS];
    byte into;
    byte next;
    byte done;
    byte made = 1;
    byte place = 1;
    do
    :: place <= ITEMS ->
        if
        :: place == 1
        :: place > 1 ->
            load(PRODUCER, NEXT(into), next);
            done = mem[DONE];
            if
#ifdef MUT_EARLY_REUSE
            :: next != into && done >= last[next]
            :: else ->
#else
            :: next != into && done > last[next]
            :: else ->
#endif
                store(PRODUCER, NEXT(made), next);
                store(PRODUCER, NEXT(into), made);
                next = made;
                made++
            fi;
            last[into] = place - 1;
            into = next
        fi;
        store(PRODUCER, ITEM(into), place);
        store(PRODUCER, TAIL, place);
        place++
    :: else -> break
    od
}

active proctype Worker()
{
    byte from;
    byte finished;
    do
    :: finished == ITEMS -> break
    :: mem[TAIL] > finished ->
        if
        :: finished > 0 -> from = mem[NEXT(from)]
        :: else
        fi;
        finished++;
        assert(mem[ITEM(from)] == finished);
        store(WORKER, DONE, finished)
    od
}

#endif
