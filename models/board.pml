/*
 * How this works
 *
 * The board of collectives with the sleeping wait of wait.h, under x86-TSO (tso.h). Steps 1 ..
 * STEPS are the same on all ranks; step s uses line s % BOARD of each rank. Who posts stores stamp
 * s and wakes the others. Whoever has all posts of a step that it needs reads them in place, and so
 * finishes the step. DONE of a rank is the last step up to which it has finished all, stored after
 * reading; a line is written again, for step s, when everybody's DONE is at least s - BOARD.
 *
 * A rank has up to FLIGHT steps under way, posts and finishes them in any order, and sleeps when it
 * can do neither. A post always wakes. A new DONE wakes only when it reaches or passes a multiple
 * of HALF. That is enough: let m be the first such multiple at or above s - BOARD. As m < s as long
 * as HALF <= BOARD, all that a rank needs to get to m has been posted or can be without s, and on
 * its way to m it wakes the one that waits for its line.
 *
 *   default     every step needs everybody's post
 *   -DROOTED    a step needs the post of one rank alone: rank 0, or with -DTURNS each in its turn
 *   -DROUNDED   the one that waits for a line waits for m instead of s - BOARD
 *
 * Nobody may write a line that somebody has not read, and what is read must be of its step. That
 * everybody finishes is checked at the end: a lost wake-up is an invalid end state.
 *
 * Mutants: MUT_EARLY_DONE (before reading), MUT_GAPS (DONE is the last step finished, whatever is
 * missing before it), MUT_OFF_BY_ONE (a line is taken one step too early), MUT_SILENT_DONE (it
 * wakes nobody), MUT_RARE_WAKE (only at multiples of two boards), MUT_ROUNDED_FAR (whoever waits
 * for a line waits for such a multiple), and those of wait.h.
 */

#ifndef RANKS
#define RANKS 2
#endif
#define PROCS RANKS
#define SB 4
#define BELL_BIT
#ifndef STEPS
#define STEPS 7
#endif
#ifndef BOARD
#define BOARD 4
#endif
#ifndef HALF
#define HALF (BOARD / 2)
#endif
#ifndef FLIGHT
#define FLIGHT 1
#endif

/* Words. */
#define BELL(r) (r)
#define COUNT(r) (RANKS + (r))
#define DONE(r) (2 * RANKS + (r))
#define STAMP(r, s) (3 * RANKS + (r) * BOARD + (s) % BOARD)
#define WORDS (3 * RANKS + RANKS * BOARD)

#include "tso.h"
#include "wait.h"

#define NEXT ((me + 1) % RANKS)
#define LAST ((me + RANKS - 1) % RANKS)

/* Bit s: this rank has posted step s, or has nothing to post in it; has read all posts of it. */
byte posted[RANKS], finished[RANKS];
byte done[RANKS];
#define BIT(mask, s) (((mask) >> (s)) & 1)

#if defined(TURNS)
#define ROOT(s) ((s) % RANKS)
#else
#define ROOT(s) 0
#endif
#ifdef ROOTED
#define POSTS(s) (ROOT(s) == me)
#define HAS_POSTS(s) (ROOT(s) == me || mem[STAMP(ROOT(s), s)] == (s))
#else
#define POSTS(s) true
#define HAS_POSTS(s) (mem[STAMP(NEXT, s)] == (s) && mem[STAMP(LAST, s)] == (s))
#endif

#define UP_TO(s, unit) (((s) - BOARD + (unit) - 1) / (unit) * (unit))
#if defined(MUT_OFF_BY_ONE)
#define ENOUGH(s) ((s) - BOARD - 1)
#elif defined(MUT_ROUNDED_FAR)
#define ENOUGH(s) UP_TO(s, 2 * BOARD)
#elif defined(ROUNDED)
#define ENOUGH(s) UP_TO(s, HALF)
#else
#define ENOUGH(s) ((s) - BOARD)
#endif
#define IS_FREE(s)                                                                   \
    ((s) <= BOARD || (mem[DONE(NEXT)] >= ENOUGH(s) && mem[DONE(LAST)] >= ENOUGH(s) && \
                      done[me] >= ENOUGH(s)))

#define UNDER_WAY(s) ((s) <= STEPS && (s) <= done[me] + FLIGHT && !BIT(finished[me], s))
#define CAN_POST(s) (UNDER_WAY(s) && !BIT(posted[me], s) && IS_FREE(s))
#define CAN_FINISH(s) (UNDER_WAY(s) && BIT(posted[me], s) && HAS_POSTS(s))
#define CAN_WORK(s) (CAN_POST(s) || CAN_FINISH(s))

#if FLIGHT == 1
#define HAS_WORK CAN_WORK(done[me] + 1)
#elif FLIGHT == 2
#define HAS_WORK (CAN_WORK(done[me] + 1) || CAN_WORK(done[me] + 2))
#else
#define HAS_WORK (CAN_WORK(done[me] + 1) || CAN_WORK(done[me] + 2) || CAN_WORK(done[me] + 3))
#endif

#ifdef MUT_RARE_WAKE
#define WAKE_UNIT (2 * BOARD)
#else
#define WAKE_UNIT HALF
#endif

inline wake_others()
{
    wake_sleepers(me, BELL(NEXT), COUNT(NEXT));
#if RANKS > 2
    wake_sleepers(me, BELL(LAST), COUNT(LAST))
#endif
}

#define READ_BY(r, s) (BIT(finished[r], s) == 1)
inline put_stamp(s)
{
    if
    :: POSTS(s) ->
        assert((s) <= BOARD || (READ_BY(0, (s) - BOARD) && READ_BY(1, (s) - BOARD) &&
                                READ_BY(RANKS - 1, (s) - BOARD)));
        store(me, STAMP(me, s), s)
    :: else
    fi;
    posted[me] = posted[me] | (1 << (s))
}

inline read(s)
{
    d_step {
        assert(HAS_POSTS(s));
        finished[me] = finished[me] | (1 << (s))
    }
}

/* Store how far this rank is, if that has changed, and wake the others if it is time. */
inline publish(s)
{
    atomic {
        was = done[me];
        d_step {
#ifdef MUT_GAPS
            done[me] = (done[me] < (s) -> (s) : done[me]);
#elif defined(MUT_EARLY_DONE)
            done[me] = (s);
#else
            do
            :: done[me] < STEPS && BIT(finished[me], done[me] + 1) -> done[me]++
            :: else -> break
            od;
#endif
        }
        crossed = (done[me] / WAKE_UNIT != was / WAKE_UNIT);
        if
        :: done[me] != was -> store(me, DONE(me), done[me])
        :: else
        fi;
        was = 0
    };
#ifndef MUT_SILENT_DONE
    if
    :: crossed -> crossed = false; wake_others()
    :: else
    fi
#else
    crossed = false
#endif
}

inline finish(s)
{
#ifdef MUT_EARLY_DONE
    publish(s);
    read(s)
#else
    read(s);
    publish(s)
#endif
}

#define CHOICE(s) CAN_WORK(s) -> at = s
active [RANKS] proctype Rank()
{
    byte me = _pid - PROCS;
    byte seen, was, at;
    bool crossed, puts;
    do
    :: done[me] < STEPS ->
        wait_until(me, BELL(me), COUNT(me), HAS_WORK);
        atomic {
            if
            :: CHOICE(done[me] + 1)
            :: CHOICE(done[me] + 2)
            :: CHOICE(done[me] + 3)
            fi;
            puts = !BIT(posted[me], at);
            if
            :: puts -> put_stamp(at)
            :: else
            fi
        };
        if
        :: puts && POSTS(at) -> wake_others()
        :: puts && !POSTS(at)
        :: !puts -> finish(at)
        fi;
        atomic { at = 0; puts = false }
    :: else -> break
    od
}
