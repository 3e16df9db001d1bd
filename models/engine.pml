/*
 * Exchanges by copy engines (halo/exchange/engine.h): ranks in a line, each with a stream, a thread of
 * the host that looks after it, and the program that puts runs on the stream and gives up at the end.
 *
 * A stream does what was put there, in order, and each of its stores is visible before the next one; it
 * cannot look at anything but the flags that it waits for. After each run it reads its halos for a
 * while, and the program believes what was read if the exchange is not broken then.
 *
 * What is checked: nothing is written into a halo that is being read or was freed, unless, for reading,
 * its rank is known to be broken; what is read is the neighbour's value of that very run, or the rank
 * is known to be broken; a stream that waits for somebody who will not come is released, however many
 * runs are still on it; and nothing is broken if all goes well. With -DGIVES=n ranks break it at any
 * time (bits); with -DMORTAL=n a rank dies, its stream with it, or not with -DTHREADS; with -DGRAPH
 * runs are in graphs: they are put on streams without asking, and their ends are not counted; with
 * -DUNEVEN rank 0 runs once less than the others.
 */
#ifndef RANKS
#define RANKS 2
#endif
#ifndef RUNS
#define RUNS 2
#endif
#ifndef GIVES
#define GIVES 0
#endif
#ifndef MORTAL
#define MORTAL 255
#endif
#ifdef UNEVEN
#define RUNS_OF(r) ((r) == 0 -> RUNS - 1 : RUNS)
#else
#define RUNS_OF(r) RUNS
#endif

#define BAD 99

mtype = { idle, starts, started, finishes };

/* Of each rank, by the neighbour on side 0 (the rank below) and 1 (above): index 2 r + side. */
bit ready[2 * RANKS];
bit filled[2 * RANKS];
byte halo[2 * RANKS];

/* Of each rank. */
byte put[RANKS];        /* halves of runs that are on the stream */
byte counted[RANKS];    /* and have ended */
byte last_start[RANKS];
mtype at[RANKS] = idle;
bit reading[RANKS], freed[RANKS], dead[RANKS], tainted[RANKS];
bit failed[RANKS], raised[RANKS], leaving[RANKS], quiet[RANKS], refuses[RANKS], held[RANKS];
#ifdef MUT_RELEASE_ONCE
bit released[RANKS];
#define RELEASED(r) released[r] = 1
#else
#define RELEASED(r) skip
#endif

#define HAS(r, s)    ((s) == 0 -> (r) > 0 : (r) < RANKS - 1)
#define WITH(r, s)   ((s) == 0 -> (r) - 1 : (r) + 1)
#define HERE(r, s)   (2 * (r) + (s))
#define THERE(r, s)  (2 * WITH(r, s) + 1 - (s))
#define IS_OUT(n)    (raised[n] || leaving[n] || dead[n])
#define OUT(r, s)    (!HAS(r, s) || IS_OUT(WITH(r, s)))
#define ALL_OUT(r)   (OUT(r, 0) && OUT(r, 1))
#define WAITS(r)     (at[r] == starts || at[r] == finishes)
#define CHECK_HALO(r, s, e) assert(!HAS(r, s) || failed[r] || dead[r] || halo[HERE(r, s)] == (e))
#ifdef THREADS
#define STOPPED(r) false
#else
#define STOPPED(r) dead[r]
#endif

/* One step for each side that has a neighbour. A process that is dead does nothing any more. */
#define ON(s, what)   if :: HAS(r, s) && !STOPPED(r) -> what :: else fi
#if RANKS == 2 /* there is one */
#define BOTH(what)    atomic { ON(0, what(0)); ON(1, what(1)) }
#else
#define BOTH(what)    atomic { ON(0, what(0)) }; atomic { ON(1, what(1)) }
#endif
#define AWAIT(flag)   if :: (!HAS(r, 0) || flag[HERE(r, 0)]) && (!HAS(r, 1) || flag[HERE(r, 1)]) \
                         :: STOPPED(r) -> goto out fi
#define SET_READY(s)   ready[THERE(r, s)] = 1
#define TAKE_READY(s)  ready[HERE(r, s)] = 0
#define SET_FILLED(s)  filled[THERE(r, s)] = 1
#define TAKE_FILLED(s) filled[HERE(r, s)] = 0
#define COPY(s) \
    assert(freed[WITH(r, s)] == 0); \
    assert(!reading[WITH(r, s)] || failed[WITH(r, s)] || dead[WITH(r, s)]); \
    halo[THERE(r, s)] = (tainted[r] -> BAD : e)

proctype stream(byte r) {
    byte e = 1;
end:
    do
    :: STOPPED(r) -> break
    :: put[r] >= 2 * e - 1 ->
        at[r] = starts;
#ifndef MUT_READY_LATE
        BOTH(SET_READY);
#endif
#ifndef MUT_NO_READY
#if defined(GRAPH) && defined(UNEVEN)
end_held: /* one run too many in a graph: it is held for ever */
#endif
        AWAIT(ready);
#endif
#ifdef MUT_READY_LATE
        BOTH(SET_READY);
#endif
#ifndef MUT_AT_LATE
        at[r] = started;
#endif
#ifndef MUT_TAKEN_LATE
        BOTH(TAKE_READY);
#endif
#ifdef MUT_AT_LATE
        at[r] = started;
#endif
        BOTH(COPY);
        BOTH(SET_FILLED);
#ifdef MUT_TAKEN_LATE
        BOTH(TAKE_READY);
#endif
        counted[r] = 2 * e - 1;
        if
        :: STOPPED(r) -> break
        :: put[r] >= 2 * e
        fi;
        at[r] = finishes;
        AWAIT(filled);
#ifndef MUT_AT_LATE
        at[r] = idle;
#endif
#ifndef MUT_NOT_TAKEN
        BOTH(TAKE_FILLED);
#endif
#ifdef MUT_AT_LATE
        at[r] = idle;
#endif
        atomic { counted[r] = 2 * e; reading[r] = 1 };
        atomic {
            CHECK_HALO(r, 0, e);
            CHECK_HALO(r, 1, e);
            reading[r] = 0;
            e++
        }
    od;
out:
    skip
}

#ifdef MUT_RELEASE_EARLY
#define MAY_RELEASE(r) true
#else
#define MAY_RELEASE(r) ALL_OUT(r)
#endif
#ifdef MUT_RELEASE_ONCE
#define AGAIN(r) (!released[r])
#else
#define AGAIN(r) true
#endif
#ifdef MUT_DEAF
#define HEARS(n) dead[n]
#else
#define HEARS(n) (raised[n] || dead[n])
#endif
#ifdef MUT_QUIET_EARLY
#define STARTS_ENDED(r) true
#else
#define STARTS_ENDED(r) (counted[r] >= last_start[r])
#endif
#ifdef GRAPH
#ifdef MUT_GRAPH_QUIET
#define GRAPHS_ALLOW(r) true
#else
#define GRAPHS_ALLOW(r) (leaving[r] || !failed[r])
#endif
#else
#define GRAPHS_ALLOW(r) true
#endif

#define FLAG(r, s, a) ((a) == starts -> ready[HERE(r, s)] : filled[HERE(r, s)])

/* What the host does for the stream. A rank that is dead has it done as it is buried, if at all. */
#define FAIL   failed[r] = 1; raised[r] = 1
#define HAS_LEFT(s)  (HAS(r, s) && leaving[WITH(r, s)])
#define NOT_SET(s)   (HAS_LEFT(s) && FLAG(r, s, a) == 0)
#define RELEASE_READY(s)  ready[HERE(r, s)] = 1
#define RELEASE_FILLED(s) filled[HERE(r, s)] = 1

proctype host(byte r) {
    mtype a = idle;
end:
    do
#ifdef MUT_LEAVES_SILENT
    :: freed[r] || STOPPED(r) -> break
#else
    :: (freed[r] && quiet[r]) || STOPPED(r) -> break
#endif
    :: !failed[r] && ((HAS(r, 0) && HEARS(WITH(r, 0))) || (HAS(r, 1) && HEARS(WITH(r, 1)))) -> FAIL
    :: !failed[r] && dead[r] -> failed[r] = 1 /* all know that it is */
    :: !failed[r] && ((GIVES >> r) & 1) -> FAIL
    :: atomic { !failed[r] && WAITS(r) && (HAS_LEFT(0) || HAS_LEFT(1)) -> a = at[r] };
        /* A neighbour has left: is it the one that the stream waits for? The flag, then `at`. */
        if
        :: NOT_SET(0) || NOT_SET(1) ->
            if :: at[r] == a -> FAIL :: else fi
        :: else
        fi;
        a = idle
    :: atomic { !refuses[r] && (failed[r] || HAS_LEFT(0) || HAS_LEFT(1) || leaving[r]) -> refuses[r] = 1 }
    :: atomic { refuses[r] && !quiet[r] && STARTS_ENDED(r) && GRAPHS_ALLOW(r) ->
#ifndef MUT_NOT_HELD
        held[r] = !leaving[r];
#endif
        quiet[r] = 1 }
    :: atomic { failed[r] && MAY_RELEASE(r) && at[r] == starts && !held[r] && AGAIN(r) ->
        tainted[r] = 1; RELEASED(r) };
        BOTH(RELEASE_READY)
    :: atomic { failed[r] && MAY_RELEASE(r) && at[r] == finishes && AGAIN(r) ->
        tainted[r] = 1; RELEASED(r) };
        BOTH(RELEASE_FILLED)
    od
}

proctype program(byte r) {
    byte n = 0;
    do
    :: n == RUNS_OF(r) -> break
    :: n < RUNS_OF(r) && r == MORTAL -> dead[r] = 1; goto out
    :: n < RUNS_OF(r) ->
#ifdef GRAPH
        put[r] = put[r] + 2;
#else
        last_start[r] = put[r] + 1; /* and a fence */
#ifndef MUT_NOT_REFUSED
        if
        :: refuses[r] -> last_start[r] = put[r]; FAIL; break
        :: else
        fi;
#endif
        put[r] = put[r] + 2;
#endif
        n++
    od;
    if
    :: r == MORTAL -> dead[r] = 1; goto out
    :: r != MORTAL ->
        /* All that was put is done, and nothing reads halos any more: then it is given up. */
#if defined(GRAPH) && defined(UNEVEN)
end:
#endif
        counted[r] == put[r] && !reading[r];
#if GIVES == 0 && MORTAL == 255 && !defined(UNEVEN)
        assert(failed[r] == 0);
#endif
        leaving[r] = 1;
#ifndef MUT_NO_DRAIN
        !HAS(r, 0) || quiet[WITH(r, 0)] || STOPPED(WITH(r, 0));
        !HAS(r, 1) || quiet[WITH(r, 1)] || STOPPED(WITH(r, 1));
#endif
        freed[r] = 1
    fi;
out:
    skip
}

init {
    byte r;
    atomic {
        for (r : 0 .. RANKS - 1) {
            run stream(r);
            run host(r);
            run program(r)
        }
    }
}
