/*
 * How this works
 *
 * The lanes of an exchange, under x86-TSO (tso.h) and with the sleeping wait of wait.h. Ranks stand
 * in a line, and each exchanges with the one to its left and the one to its right, RUNS times in a
 * row. A lane of a rank is an area that one neighbour writes: EPOCH and LAND twice, of which run e
 * uses those of e % 2; FREED, the last run whose message from here the neighbour has unpacked; GONE,
 * that it has broken the exchange or given it up; PULLING.
 *
 *   sender, run e                          receiver, run e
 *     FREED >= e - 2                         EPOCH of e % 2 is e
 *     LAND = the data; EPOCH = e; wake       unpacks LAND; copies from the sender's FIELD
 *     done; if there are direct links        FREED = e there; wake
 *       only when FREED >= e                 done
 *
 * Whoever is done with a run writes its field for the next one at once, and starts that. A rank
 * that fails, by a time limit, because a neighbour has failed, or because one that it still needs has
 * left or is dead, stores GONE at all its neighbours and sounds the alarm; so it spreads. GONE is
 * loaded before the words that it excuses: who finds all it needs does not care that the neighbour
 * has left since.
 *
 *   whoever copies from a field            whoever fails
 *     PULLING = e                            GONE = 1 at all neighbours
 *     full fence                             full fence (the alarm is one)
 *     GONE: do not copy, but fail            wait until PULLING <= FREED, or GONE of that
 *     copy; FREED = e                          neighbour, or its death; the field is its own again
 *
 *   default       both ways, through landings
 *   -DONEWAY      data goes to the right only, so that senders run ahead
 *   -DDIRECT      a part of each message is copied straight from the owner's field
 *   -DGIVES=m     the ranks in the mask m may give up at any moment, all others have no time limit
 *   -DMORTAL=r    rank r may die at any step
 *   -DUNEVEN      rank 0 gives the exchange up a run before the others do
 *   -DFALLBACK    without membarrier
 *
 * What is unpacked or copied must be of its run, nothing in a landing is overwritten that has not
 * been unpacked, nobody's field is read when its run has ended, whether well or badly, and a run
 * fails only if somebody gave up or died. A hang or a lost wake-up is an invalid end state.
 */

/*
 * Mutants: MUT_ONE_LANDING, MUT_ONE_LINE (run e uses those of e - 1), MUT_NO_CREDIT (the sender does
 * not look at FREED), MUT_CREDIT_SHORT (FREED >= e - 3 is enough), MUT_FREED_FIRST (before
 * unpacking), MUT_EPOCH_FIRST (before the data), MUT_LEAVES (-DDIRECT, done without FREED),
 * MUT_QUIET_EPOCH, MUT_QUIET_FREED (no wake), MUT_QUIET_GONE (no alarm), MUT_LATE_GONE (after the
 * alarm), MUT_KEEPS_SILENT (who fails because a neighbour has tells nobody), MUT_NO_LAST_LOOK (GONE
 * is loaded after the words that it excuses), MUT_ANY_GONE (also that of a neighbour that is not
 * needed any more), MUT_DEAF (nobody looks at GONE), MUT_TAKES_BACK (who fails does not wait for the
 * one that copies), MUT_PULL_UNFENCED, MUT_PULL_ANYWAY (without a look at GONE), and those of wait.h.
 */

#ifndef RANKS
#define RANKS 2
#endif
#define PROCS RANKS
#define SB 4
#define BELL_BIT
#ifndef RUNS
#define RUNS 4
#endif
#ifndef GIVES
#define GIVES 0
#endif
#ifdef UNEVEN
#define LAST_RUN (me == 0 -> RUNS - 1 : RUNS)
#else
#define LAST_RUN RUNS
#endif

/* Words. Lanes 2 n and 2 n + 1 are those between ranks n and n + 1, to the right and to the left. */
#define LANES (2 * (RANKS - 1))
#ifdef MUT_ONE_LINE
#define EPOCH(lane, e) (7 * (lane))
#else
#define EPOCH(lane, e) (7 * (lane) + (e) % 2)
#endif
#ifdef MUT_ONE_LANDING
#define HALF(e) 0
#else
#define HALF(e) ((e) % 2)
#endif
#define LAND(lane, e) (7 * (lane) + 2 + HALF(e))
#define FREED(lane) (7 * (lane) + 4)
#define GONE(lane) (7 * (lane) + 5)
#define BROKEN 1
#define LEFT 2
#define PULLING(lane) (7 * (lane) + 6)
#define FIELD(r) (7 * LANES + (r))
#define BELL(r) (7 * LANES + RANKS + (r))
#define COUNT(r) (7 * LANES + 2 * RANKS + (r))
#define DEAD (7 * LANES + 3 * RANKS)
#define WORDS (DEAD + 1)

#define SPOILT 99

#include "tso.h"
#include "wait.h"

/* For the checks only. */
typedef Unread {
    bool half[2];
};
Unread unread[LANES];
bool trouble; /* somebody gave up */
bool killed;

/*
 * Sides: 0 is left, 1 right. IN is the lane that the neighbour writes, OUT the one over there. The
 * masks `to_pack` and `to_unpack` have bit d while that is to be done on side d in this run. All of
 * this is as short as can be because Spin does not take long arguments.
 */
#define HAS(d) (me != (d) * (RANKS - 1))
#define NEAR(d) (me + 2 * (d) - 1)
#define IN(d) (2 * me + 3 * (d) - 2)
#define OUT(d) (2 * me + (d) - 1)
#define BIT(d) ((d) + 1)
#define BOTH ((me > 0 -> BIT(0) : 0) + (me < RANKS - 1 -> BIT(1) : 0))
#ifdef ONEWAY
#define SENDS (BOTH & BIT(1))
#define RECEIVES (BOTH & BIT(0))
#else
#define SENDS BOTH
#define RECEIVES BOTH
#endif

#if defined(MUT_NO_CREDIT)
#define CREDIT 9
#elif defined(MUT_CREDIT_SHORT)
#define CREDIT 3
#else
#define CREDIT 2
#endif
#if defined(DIRECT) && !defined(MUT_LEAVES)
#define TO_BE_FREED(d) (sends & BIT(d) && mem[FREED(IN(d))] < e)
#else
#define TO_BE_FREED(d) false
#endif
#define NEEDS(d) ((to_pack | to_unpack) & BIT(d) || TO_BE_FREED(d))

#define CAN_PACK(d) (to_pack & BIT(d) && mem[FREED(IN(d))] + CREDIT >= e)
#define CAN_UNPACK(d) (to_unpack & BIT(d) && mem[EPOCH(IN(d), e)] >= e)
#define CAN_END !(NEEDS(0) || NEEDS(1))
#define HAS_WORK (CAN_PACK(0) || CAN_PACK(1) || CAN_UNPACK(0) || CAN_UNPACK(1) || CAN_END)

#define IS_GONE(d) (mem[GONE(IN(d))] != 0 || mem[DEAD] == NEAR(d) + 1)
#if defined(MUT_DEAF)
#define LOST(d) false
#elif defined(MUT_ANY_GONE)
#define LOST(d) (HAS(d) && IS_GONE(d))
#else
#define LOST(d) (NEEDS(d) && IS_GONE(d) || HAS(d) && mem[GONE(IN(d))] == BROKEN)
#endif
#define DOOMED (LOST(0) || LOST(1))

inline wake(d)
{
    wake_sleepers(me, BELL(NEAR(d)), COUNT(NEAR(d)))
}

inline pack(d)
{
    atomic {
        CAN_PACK(d) ->
        assert(unread[OUT(d)].half[HALF(e)] == false);
        unread[OUT(d)].half[HALF(e)] = true;
        to_pack = to_pack & ~BIT(d);
#ifdef MUT_EPOCH_FIRST
        store(me, EPOCH(OUT(d), e), e);
        store(me, LAND(OUT(d), e), e)
#else
        store(me, LAND(OUT(d), e), e);
        store(me, EPOCH(OUT(d), e), e)
#endif
    };
#ifndef MUT_QUIET_EPOCH
    wake(d)
#endif
}

/*
 * The look at EPOCH and the reading of LAND are one step. If LAND changed in between, that would be
 * its overwriting, which the sender's step finds.
 */
inline take_landing(d)
{
    assert(mem[EPOCH(IN(d), e)] == e);
    assert(mem[LAND(IN(d), e)] == e);
    unread[IN(d)].half[HALF(e)] = false
}

/* A step of its own: nobody knows how long the copy takes. */
inline pull(d)
{
    skip;
#ifdef DIRECT
#ifdef MUT_PULL_UNFENCED
#define AFTER_FENCE true
#else
#define AFTER_FENCE (buf[me].n == 0)
#endif
#ifdef MUT_PULL_ANYWAY
#define MAY_PULL(d) true
#else
#define MAY_PULL(d) (mem[GONE(IN(d))] == 0)
#endif
    if
    :: AFTER_FENCE && MAY_PULL(d)
    :: AFTER_FENCE && !MAY_PULL(d) -> goto lost
    fi;
    assert(mem[FIELD(NEAR(d))] == e);
#endif
}

inline free_landing(d)
{
    store(me, FREED(OUT(d)), e);
#ifndef MUT_QUIET_FREED
    wake(d)
#endif
}

inline unpack(d)
{
    atomic {
        CAN_UNPACK(d) ->
#ifdef MUT_FREED_FIRST
        store(me, FREED(OUT(d)), e)
    };
    wake(d);
    atomic {
#endif
        take_landing(d);
        to_unpack = to_unpack & ~BIT(d);
#ifdef DIRECT
        store(me, PULLING(OUT(d)), e)
#endif
    };
    pull(d);
#ifndef MUT_FREED_FIRST
    free_landing(d)
#endif
}

inline tell(d, how)
{
    if
    :: HAS(d) -> store(me, GONE(OUT(d)), how)
    :: else
    fi
}

/* Unconditionally: this is rare. */
inline ring_near(d)
{
    if
    :: HAS(d) -> ring(me, BELL(NEAR(d))); futex_wake(BELL(NEAR(d)))
    :: else
    fi
}

inline sound_alarm()
{
    skip;
#ifndef MUT_QUIET_GONE
    fence(me);
    ring_near(0);
    ring_near(1)
#endif
}

inline leave(how)
{
#ifdef MUT_LATE_GONE
    sound_alarm();
    tell(0, how);
    tell(1, how)
#else
    tell(0, how);
    tell(1, how);
    sound_alarm()
#endif
}

/* The field may be its owner's again. */
#define UNTOUCHED(d) (!HAS(d) || mem[PULLING(IN(d))] <= mem[FREED(IN(d))] || IS_GONE(d))
inline take_back()
{
    skip;
#ifdef DIRECT
#ifndef MUT_TAKES_BACK
    fence(me);
    wait_until(me, BELL(me), COUNT(me), UNTOUCHED(0) && UNTOUCHED(1));
#endif
    store(me, FIELD(me), SPOILT)
#endif
}

/* Wait, then do one thing. Fails only if there was nothing to do after it had seen GONE. */
inline step()
{
    wait_until(me, BELL(me), COUNT(me), HAS_WORK || DOOMED);
    if
    :: pack(0)
    :: pack(1)
    :: unpack(0)
    :: unpack(1)
    :: CAN_END -> break
    :: DOOMED && !HAS_WORK -> goto lost
    fi
}

active [RANKS] proctype Rank()
{
    byte me = _pid - PROCS;
    byte seen;
    byte e = 1;
    byte to_pack, to_unpack;
    byte sends = SENDS;
    {
        do
        :: e <= LAST_RUN ->
            atomic { store(me, FIELD(me), e); to_pack = sends; to_unpack = RECEIVES };
            do
            :: step()
#ifdef MUT_NO_LAST_LOOK
            :: !HAS_WORK ->
                if
                :: DOOMED -> goto lost
                :: !DOOMED
                fi
#endif
            :: atomic { GIVES & (1 << me) -> trouble = true }; goto broken
            od;
            e++
        :: else -> break
        od;
        if
        :: leave(LEFT)
#ifndef UNEVEN
        :: true /* It keeps the exchange, and does not come back to it. */
#endif
        fi;
        goto left;
lost:
#ifdef UNEVEN
        assert(trouble || killed || e == RUNS);
#else
        assert(trouble || killed);
#endif
#ifdef MUT_KEEPS_SILENT
        goto left;
#endif
broken:
        leave(BROKEN);
        take_back();
left:
        skip
    }
#ifdef MORTAL
    unless { (killed && me == MORTAL) } /* its buffer still drains: the processor lives on */
#endif
}

#ifdef MORTAL
active proctype Killer()
{
    if
    :: killed = true
    :: true
    fi
}

/* Its stores are read-modify-writes and need no buffer. */
active proctype Monitor()
{
    byte r;
end:
    (killed);
    mem[DEAD] = MORTAL + 1;
    do
    :: r < RANKS -> atomic { mem[BELL(r)] = 1; futex_wake(BELL(r)); r++ }
    :: else -> break
    od
}
#endif
