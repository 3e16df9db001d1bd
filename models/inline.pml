/*
 * How this works
 *
 * A short payload travels in the cache line of its signal and is moved to its place in the window
 * by whoever claims it first; under x86-TSO (tso.h). A puts into B's window over two lines (ids)
 * and to two offsets. Of each line, A alone writes
 *     payload, off   what to deliver, and where
 *     pseq           how many payloads have ever been sent inline on this line
 *     value          the signal
 * and both sides use
 *     claim          compare-and-swap from s-1 to s gives right and duty to deliver payload s
 *     done           how many payloads have been delivered, stored by the holder of the claim
 *
 * To settle a line is to see to it that its payload is delivered: if done < pseq, claim it and copy
 * it, or, if somebody else has the claim, wait for `done`. That wait is short, as the claim is held
 * only while copying.
 *
 * put_signal: if the line is free (done == pseq), the payload goes inline, otherwise straight into
 *     the window. In both cases any line with an undelivered payload for the same place is settled
 *     first: delivered later it would overwrite the newer one. A may know `done` late, which only
 *     makes a line look busy.
 * wait: once `value` is high enough, B settles the line.
 * flush: A settles all lines, then fences. It may then tell C through another word.
 *
 *   default       A does PUTS puts to any offsets over any lines, flushing or not after each. The
 *                 payload is the number of the put. B waits on both lines in any order. Whoever has
 *                 seen a signal (B) or was told (C) finds that put's number, or a newer one, in its
 *                 place; what was once read never goes backwards; at the end the newest is there.
 *   -DSTRONG      signals are strong: B finds all earlier puts of A, not only the signal's own. For
 *                 that, put_signal settles all other lines.
 *   -DINCREMENT   B adds one to what it was sent and acknowledges; meanwhile A flushes or puts
 *                 elsewhere. No late delivery may wipe out B's own store.
 *   -DTWO_THREADS a second thread of A's rank settles all lines at any moment.
 *
 * Mutants: MUT_PLAIN_CLAIM (load and store instead of compare-and-swap), MUT_DIRECT_NO_SETTLE and
 * MUT_INLINE_NO_SETTLE (no settling before an overlapping put of that kind), MUT_STRONG_NO_SETTLE,
 * MUT_FLUSH_NO_SETTLE, MUT_SETTLE_NO_WAIT (do not wait for another's delivery), MUT_TRUST_CLAIM
 * (what is claimed counts as delivered), MUT_DONE_FIRST (done before the copy), MUT_VALUE_FIRST
 * (value before the payload).
 */

#define A 0
#define B 1
#define C 2
#define A2 3
#ifdef TWO_THREADS
#define PROCS 4
#else
#define PROCS 3
#endif
#define SB 4

#ifndef PUTS
#define PUTS 3
#endif

/* Words. */
#define WINDOW(o) (o)
#define PAYLOAD(l) (2 + (l))
#define OFF(l) (4 + (l))
#define PSEQ(l) (6 + (l))
#define VALUE(l) (8 + (l))
#define CLAIM(l) (10 + (l))
#define DONE(l) (12 + (l))
#define TOLD 14
#define ACK 15
#define WORDS 16

#include "tso.h"

/* For the checks only: the puts so far, their offsets, and which put raised a line to a value. */
#ifndef INCREMENT
byte sent;
byte off_of[PUTS + 1];
typedef Line {
    byte put_of[PUTS + 1];
};
Line line[2];
#endif
bool finished;

inline try_claim(p, l)
{
#ifdef MUT_PLAIN_CLAIM
    load(p, CLAIM(l), won);
    atomic {
        won = (won == s - 1);
        if
        :: won -> store(p, CLAIM(l), s)
        :: else
        fi
    }
#else
    compare_swap(p, CLAIM(l), s - 1, s, won)
#endif
}

/* Deliver payload s of line l, or wait until somebody else has. */
inline deliver(p, l)
{
    try_claim(p, l);
    if
    :: won ->
        load(p, OFF(l), o);
        atomic {
            load(p, PAYLOAD(l), x);
#ifdef MUT_DONE_FIRST
            store(p, DONE(l), s);
            store(p, WINDOW(o), x);
#else
            store(p, WINDOW(o), x);
            store(p, DONE(l), s);
#endif
            o = 0;
            x = 0;
            won = 0
        }
    :: !won ->
#ifndef MUT_SETTLE_NO_WAIT
        (mem[DONE(l)] >= s)
#endif
    fi
}

inline settle(p, l)
{
    load(p, PSEQ(l), s);
#ifdef MUT_TRUST_CLAIM
    load(p, CLAIM(l), d);
#else
    load(p, DONE(l), d);
#endif
    if
    :: d < s -> deliver(p, l)
    :: else
    fi;
    atomic { s = 0; d = 0 }
}

inline flush()
{
#ifndef MUT_FLUSH_NO_SETTLE
    settle(A, 0);
    settle(A, 1);
#endif
    fence(A)
}

/* Before a put to `at` over line l: must line k be settled? */
#define PENDING(k) (pseq[k] > known[k])
#define OVERLAP(k) (PENDING(k) && off[k] == at)
inline settle_before_put(k)
{
    if
#ifndef MUT_DIRECT_NO_SETTLE
    :: !free && OVERLAP(k) -> settle(A, k); known[k] = pseq[k]
#endif
#ifndef MUT_INLINE_NO_SETTLE
    :: free && OVERLAP(k) -> settle(A, k); known[k] = pseq[k]
#endif
#if defined(STRONG) && !defined(MUT_STRONG_NO_SETTLE)
    :: PENDING(k) && k != l -> settle(A, k); known[k] = pseq[k]
#endif
    :: else
    fi
}

inline send_value()
{
    value[l]++;
    store(A, VALUE(l), value[l])
}

/* Put `number` at `at` over line l. */
inline put_signal(number)
{
    if
    :: load(A, DONE(l), known[l])
    :: true /* the old knowledge will do */
    fi;
    free = (known[l] == pseq[l]);
    settle_before_put(0);
    settle_before_put(1);
    atomic {
#ifndef INCREMENT
        line[l].put_of[value[l] + 1] = sent;
#endif
#ifdef MUT_VALUE_FIRST
        send_value();
#endif
        if
        :: free ->
            pseq[l]++;
            off[l] = at;
            store(A, PAYLOAD(l), number);
            store(A, OFF(l), at);
            store(A, PSEQ(l), pseq[l])
        :: else -> store(A, WINDOW(at), number)
        fi;
#ifndef MUT_VALUE_FIRST
        send_value();
#endif
        free = false
    }
}

/* What settle() and put_signal() work with: A's own copies of what it wrote, and what it knows. */
#define DELIVERY byte s, d, o, x, won
#define SENDER                               \
    byte pseq[2], off[2], value[2];          \
    byte known[2]; /* of `done`, per line */ \
    byte at, l;                              \
    bool free

#ifdef TWO_THREADS
active proctype SecondThread()
{
    DELIVERY;
    if
    :: settle(A2, 0); settle(A2, 1)
    :: settle(A2, 1); settle(A2, 0)
    fi
}
#endif

#ifndef INCREMENT

active proctype Sender()
{
    SENDER;
    DELIVERY;
    do
    :: sent < PUTS ->
        atomic { /* The first put goes to 0 over 0: the rest would be a mirror image. */
            if
            :: at = 0
            :: sent > 0 -> at = 1
            fi;
            if
            :: l = 0
            :: sent > 0 -> l = 1
            fi;
            sent++;
            off_of[sent] = at
        };
        put_signal(sent);
        if
        :: flush(); store(A, TOLD, sent)
        :: true
        fi
    :: else -> break
    od;
    finished = true
}

/* The puts from `first` to `last` must be visible from now on. */
inline expect(first, last)
{
    i_ = first;
    do
    :: i_ <= last ->
        if
        :: least[off_of[i_]] < i_ -> least[off_of[i_]] = i_
        :: else
        fi;
        i_++
    :: else -> break
    od;
    i_ = 0
}

/* Both offsets at once: a look at a later moment is another run, which is tried too. */
inline look(p)
{
    atomic {
        load(p, WINDOW(0), x);
        assert(x >= least[0]);
        least[0] = x;
        load(p, WINDOW(1), x);
        assert(x >= least[1]);
        least[1] = x;
        x = 0
    }
}

active proctype Receiver()
{
    byte seen[2];
    byte least[2];
    byte l, v;
    DELIVERY;
end:
    do
    :: atomic {
        if
        :: mem[VALUE(0)] > seen[0] -> l = 0
        :: mem[VALUE(1)] > seen[1] -> l = 1
        fi;
        v = mem[VALUE(l)]
       };
       settle(B, l);
       d_step {
        do
        :: seen[l] < v ->
            seen[l]++;
#ifdef STRONG
            expect(1, line[l].put_of[seen[l]])
#else
            expect(line[l].put_of[seen[l]], line[l].put_of[seen[l]])
#endif
        :: else -> break
        od;
        l = 0;
        v = 0
       };
       look(B)
    od
}

active proctype Third()
{
    byte least[2];
    byte x;
    byte told;
end:
    do
    :: d_step {
        mem[TOLD] > told ->
        told = mem[TOLD];
        expect(1, told)
       };
       look(C)
    od
}

/* Once nobody can move any more. */
active proctype AtTheEnd()
{
    byte least[2];
    atomic {
        timeout;
        assert(finished);
        d_step { expect(1, PUTS) };
        assert(mem[WINDOW(0)] == least[0] && mem[WINDOW(1)] == least[1])
    }
}

#else

#define ROUNDS 2
byte wanted[ROUNDS + 1]; /* the value of line 0 that belongs to each round */

active proctype Sender()
{
    SENDER;
    DELIVERY;
    byte round = 1;
    do
    :: round <= ROUNDS ->
        wanted[round] = value[0] + 1;
        put_signal(10 * round);
        if
        :: flush()
        :: atomic {
            at = 1;
            if
            :: l = 0
            :: l = 1
            fi
           };
           put_signal(1);
           at = 0;
           l = 0
        :: true
        fi;
        (mem[ACK] == round);
        atomic {
            load(A, WINDOW(0), x);
            assert(x == 10 * round + 1);
            x = 0;
            round++
        }
    :: else -> break
    od;
    finished = true
}

active proctype Receiver()
{
    byte round = 1;
    DELIVERY;
    do
    :: round <= ROUNDS ->
        (wanted[round] > 0 && mem[VALUE(0)] >= wanted[round]);
        settle(B, 0);
        atomic {
            load(B, WINDOW(0), x);
            assert(x == 10 * round);
            store(B, WINDOW(0), x + 1);
            store(B, ACK, round);
            x = 0;
            round++
        }
    :: else -> break
    od
}

active proctype AtTheEnd()
{
    atomic {
        timeout;
        assert(finished);
        assert(mem[WINDOW(0)] == 10 * ROUNDS + 1)
    }
}
#endif
