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
 *
 * With -DCLOSES=n two ranks close their world at the end: those in n (bits) at any time, whatever is on
 * their streams, the others after they have given the exchange up. Who closes so waits until all have, is
 * quiet, stops to look and says `parted`, and waits for the other's `parted`; then it breaks its exchange
 * without saying so, and looks until its stream is idle. No wait has a time limit here. What is checked in
 * addition: all streams and all ranks come to their end; the words in the arena of a rank, and its flags,
 * are not touched once they are given back; nothing is released before the status is raised. What is read
 * after the world was closed is not promised. With -DCALM=n ranks (bits) close only when
 * their streams are idle.
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

#ifdef CLOSES
#if RANKS != 2
#error "CLOSES is for two ranks"
#endif
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
#ifdef CLOSES
bit closed[RANKS];
bit stays[RANKS];     /* nobody looks just now: it is between its last look and the free */
bit busy[RANKS];      /* somebody looks at it */
bit parted[RANKS];
bit gone[RANKS];      /* HEMI_GONE_DESTROYED */
bit returned[RANKS];  /* its words in the arena, and its flags, are given back */
#endif
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
#ifdef CLOSES
#ifdef MUT_CLOSED_UNHEARD
#define LEFT(n)      leaving[n]
#else
#define LEFT(n)      (leaving[n] || closed[n])
#endif
#define DIED(n)      (dead[n] && !closed[n])
#define CLOSED(n)    closed[n]
#define RETURNED(n)  returned[n]
#define LOOKS(r)     (!stays[r])
#define BEGIN        busy[r] = 1
#define END          busy[r] = 0
#define RELEASE(f)   atomic { BOTH(f); END }
#else
#define LEFT(n)      leaving[n]
#define DIED(n)      dead[n]
#define CLOSED(n)    false
#define RETURNED(n)  false
#define LOOKS(r)     true
#define BEGIN        skip
#define END          skip
#define RELEASE(f)   BOTH(f)
#endif
#define IS_OUT(n)    (raised[n] || LEFT(n) || DIED(n))
#define OUT(r, s)    (!HAS(r, s) || IS_OUT(WITH(r, s)))
#define ALL_OUT(r)   (OUT(r, 0) && OUT(r, 1))
#define WAITS(r)     (at[r] == starts || at[r] == finishes)
#define CHECK_HALO(r, s, e) assert(!HAS(r, s) || failed[r] || dead[r] || CLOSED(r) || halo[HERE(r, s)] == (e))
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
#define SET_READY(s)   assert(RETURNED(WITH(r, s)) == 0); ready[THERE(r, s)] = 1
#define TAKE_READY(s)  assert(RETURNED(r) == 0); ready[HERE(r, s)] = 0
#define SET_FILLED(s)  assert(RETURNED(WITH(r, s)) == 0); filled[THERE(r, s)] = 1
#define TAKE_FILLED(s) assert(RETURNED(r) == 0); filled[HERE(r, s)] = 0
#define COPY(s) \
    assert(freed[WITH(r, s)] == 0); \
    assert(!reading[WITH(r, s)] || failed[WITH(r, s)] || dead[WITH(r, s)] || CLOSED(WITH(r, s))); \
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
#elif defined(MUT_CLOSED_RELEASES)
#define MAY_RELEASE(r) (ALL_OUT(r) || closed[r])
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
#define HEARS(n) (raised[n] || DIED(n))
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

/* Say something to the neighbour, in its memory, if it listens. That this rank is broken it may say at any
 * time, so that the neighbour may have stopped to listen in between. */
#ifdef CLOSES
#define LISTENS     (!parted[r] && !gone[1 - r])
#define STORE(word, listens) if :: STOPPED(r) :: else -> assert(!(listens) || !returned[1 - r]); word[r] = 1 fi
#define TELL(word)  atomic { STORE(word, LISTENS) }
/* Also to who has given it up: that keeps its words until it has heard it. */
#define TELL_PARTED atomic { STORE(parted, true) }
#define FAIL_AND(what) \
    atomic { failed[r] = 1; listens = LISTENS }; \
    atomic { STORE(raised, listens); listens = 0; what }
#else
#define TELL(word)  word[r] = 1
#ifdef MUT_RAISED_FIRST
#define FAIL_AND(what) raised[r] = 1; failed[r] = 1
#else
#define FAIL_AND(what) failed[r] = 1; raised[r] = 1
#endif
#endif
#define FAIL        FAIL_AND(skip)

/* What the host does for the stream. A rank that is dead has it done as it is buried, if at all. */
#define HAS_LEFT(s)  (HAS(r, s) && LEFT(WITH(r, s)))
#define NOT_SET(s)   (HAS_LEFT(s) && FLAG(r, s, a) == 0)
#define RELEASE_READY(s)  ready[HERE(r, s)] = 1
#define RELEASE_FILLED(s) filled[HERE(r, s)] = 1

proctype host(byte r) {
    mtype a = idle;
#ifdef CLOSES
    bit listens = 0;
#endif
end:
    do
#ifdef CLOSES
    :: returned[r] || STOPPED(r) -> break
#elif defined(MUT_LEAVES_SILENT)
    :: freed[r] || STOPPED(r) -> break
#else
    :: (freed[r] && quiet[r]) || STOPPED(r) -> break
#endif
    :: atomic { LOOKS(r) && !failed[r] &&
        ((HAS(r, 0) && HEARS(WITH(r, 0))) || (HAS(r, 1) && HEARS(WITH(r, 1)))) -> BEGIN };
        FAIL_AND(END)
    :: !failed[r] && dead[r] -> failed[r] = 1 /* all know that it is */
    :: atomic { LOOKS(r) && !failed[r] && ((GIVES >> r) & 1) -> BEGIN };
        FAIL_AND(END)
    :: atomic { LOOKS(r) && !failed[r] && WAITS(r) && (HAS_LEFT(0) || HAS_LEFT(1)) -> a = at[r]; BEGIN };
        /* A neighbour has left: is it the one that the stream waits for? The flag, then `at`. */
        if
        :: NOT_SET(0) || NOT_SET(1) ->
            if
            :: atomic { at[r] == a -> a = idle };
                FAIL_AND(END)
            :: atomic { at[r] != a -> a = idle; END }
            fi
        :: atomic { !NOT_SET(0) && !NOT_SET(1) -> a = idle; END }
        fi
    :: atomic { LOOKS(r) && !refuses[r] && (failed[r] || HAS_LEFT(0) || HAS_LEFT(1) || leaving[r]) ->
        refuses[r] = 1 }
    :: atomic { LOOKS(r) && refuses[r] && !quiet[r] && STARTS_ENDED(r) && GRAPHS_ALLOW(r) ->
#ifndef MUT_NOT_HELD
        held[r] = !leaving[r];
#endif
        TELL(quiet) }
    :: atomic { LOOKS(r) && failed[r] && MAY_RELEASE(r) && at[r] == starts && !held[r] && AGAIN(r) ->
        tainted[r] = 1; RELEASED(r); BEGIN };
        RELEASE(RELEASE_READY)
    :: atomic { LOOKS(r) && failed[r] && MAY_RELEASE(r) && at[r] == finishes && AGAIN(r) ->
        tainted[r] = 1; RELEASED(r); BEGIN };
        RELEASE(RELEASE_FILLED)
    od
}

#ifdef CLOSES
#define OTHER 1 - r
#ifdef GRAPH
#define CALM 3 /* no graph is under way, as when an exchange is given up */
#elif !defined(CALM)
#define CALM 0
#endif
/* A process may die in any of these places; a thread that has closed the world does not. */
#if defined(THREADS) || MORTAL == 255
#define MAY_DIE
#else
#define MAY_DIE if :: r == MORTAL -> dead[r] = 1; goto out :: true fi;
#endif
/* hemi_halo_engine_end: nobody else looks any more, and it looks itself once. */
#define STOP \
    atomic { !busy[r] -> stays[r] = 1 }; \
    if \
    :: atomic { !quiet[r] && STARTS_ENDED(r) && GRAPHS_ALLOW(r) -> \
        refuses[r] = 1; held[r] = !leaving[r]; TELL(quiet) } \
    :: else \
    fi
/* Whether the neighbour may still say something: may_tell. */
#define MAY_TELL (!gone[OTHER] && !parted[OTHER] && !STOPPED(OTHER))
#ifdef MUT_ALONE_CLOSED
#define ALONE (gone[OTHER] || closed[OTHER] || dead[OTHER])
#else
#define ALONE !MAY_TELL
#endif

/* hem_world_close, of who has given the exchange up, or has not. */
inline close_world() {
#ifdef MUT_CLOSED_RELEASES
    failed[r] = 1;
#endif
    closed[r] = 1;
    MAY_DIE
    if
    :: (closed[OTHER] || dead[OTHER]) && gone[r] ->
#ifndef MUT_GONE_NO_WAIT
        !MAY_TELL;
#endif
        returned[r] = 1
    :: (closed[OTHER] || dead[OTHER]) && !gone[r] ->
        MAY_DIE
        TELL(leaving);
        quiet[OTHER] || STOPPED(OTHER);
        MAY_DIE
#ifndef MUT_NOT_QUIET
        quiet[r];
#endif
#ifndef MUT_PARTS_FIRST
        STOP;
#endif
        TELL_PARTED;
#ifdef MUT_PARTS_FIRST
        STOP;
#endif
        MAY_DIE
#ifndef MUT_PARTS_NO_WAIT
        !MAY_TELL;
#endif
        MAY_DIE
#ifndef MUT_BLIND_END
        atomic { failed[r] = 1; stays[r] = 0 };
#endif
#ifndef MUT_FREES_BUSY
        counted[r] == put[r] && !reading[r];
#endif
        atomic { !busy[r] -> stays[r] = 1; freed[r] = 1; returned[r] = 1 }
    fi
}

/* A thread that has ended without closing: what it had is freed, when its stream has come to its end. */
inline bury() {
#ifdef THREADS
    counted[r] == put[r];
    TELL(leaving);
    STOP;
#ifndef MUT_BURIED_SILENT
    TELL_PARTED;
#endif
#endif
    skip
}
#endif

proctype program(byte r) {
    byte n = 0;
#ifdef CLOSES
    bit listens = 0;
#endif
    do
    :: n == RUNS_OF(r) -> break
    :: n < RUNS_OF(r) && r == MORTAL -> dead[r] = 1; goto dies
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
    :: r == MORTAL -> dead[r] = 1; goto dies
#ifdef CLOSES
    :: ((CLOSES >> r) & 1) && (!((CALM >> r) & 1) || (counted[r] == put[r] && !reading[r]))
    :: r != MORTAL && !((CLOSES >> r) & 1) ->
#else
    :: r != MORTAL ->
#endif
        /* All that was put is done, and nothing reads halos any more: then it is given up. */
#if defined(GRAPH) && defined(UNEVEN)
end:
#endif
        counted[r] == put[r] && !reading[r];
#if GIVES == 0 && MORTAL == 255 && !defined(UNEVEN) && !defined(CLOSES)
        assert(failed[r] == 0);
#endif
        TELL(leaving);
#ifndef MUT_NO_DRAIN
        !HAS(r, 0) || quiet[WITH(r, 0)] || STOPPED(WITH(r, 0));
        !HAS(r, 1) || quiet[WITH(r, 1)] || STOPPED(WITH(r, 1));
#endif
        freed[r] = 1;
#ifdef CLOSES
        STOP;
        assert(returned[OTHER] == 0);
        gone[r] = 1;
        if :: ALONE -> returned[r] = 1 :: else fi
#endif
    fi;
#ifdef CLOSES
    close_world();
#endif
    goto out;
dies:
#ifdef CLOSES
    bury();
#endif
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
