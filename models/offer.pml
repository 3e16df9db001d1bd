/*
 * How this works
 *
 * A large message is offered, and may be withdrawn or let go of while the other side copies; under
 * x86-TSO (tso.h). The sender names its buffer in a slot. The receiver either pulls the message
 * straight out of it, or says PUSH: then the sender copies straight into the receiver's buffer and
 * sends a slot FIN. Both copy in PIECES pieces. n is the number of the offer's slot.
 *
 *   whoever copies a piece                      whoever wants its buffer back
 *     pulling = n   (or pushing = n)              withdrawn = n   (or verdict = GONE)
 *     full fence                                  full fence
 *     withdrawn >= n (verdict not PUSH): stop     wait until pulling (pushing) is not n
 *     copy; pulling = 0                           look how it ended
 *
 * At least one of them sees the other. The receiver says DONE before it clears `pulling` after the
 * last piece, so that a sender that has waited for that knows whether the message is over there. A
 * receiver that waits for FIN finds out that the offer was withdrawn in this order: load
 * `withdrawn`, then look for a slot. A slot that is there and not FIN or ABORT belongs to a later
 * message; if none is there, `withdrawn` is about this one.
 *
 * The sender offers MESSAGES messages in a row and may give up each at any moment; so may the
 * receiver. Slots are not reused here: that is cursor.pml. A buffer holds the number of its message
 * until its owner has it back, and is spoilt then. Checked: nobody has a buffer back while the
 * other side may touch it; what is copied is the message; no message is received that was not sent,
 * and every one that was sent is received, unless the receiver let go of it; nobody hangs.
 */

/*
 * Mutants: MUT_WITHDRAW_UNFENCED, MUT_PULL_UNFENCED, MUT_PULL_ANYWAY (the receiver does not look at
 * withdrawn), MUT_WITHDRAW_NO_WAIT, MUT_LATE_DONE (after pulling is cleared), MUT_WITHDRAW_BLIND
 * (the sender does not look at the verdict in the end), MUT_PUSH_UNFENCED, MUT_GONE_UNFENCED,
 * MUT_PUSH_ANYWAY, MUT_GONE_NO_WAIT, MUT_TRUST_WITHDRAWN (whoever waits for FIN takes any later
 * number for its own), MUT_EXACT_WITHDRAWN (it takes only its own number for that),
 * MUT_NO_WITHDRAWN (it does not look).
 */

#define S 0
#define R 1
#define PROCS 2
#define SB 4
#ifndef MESSAGES
#define MESSAGES 2
#endif
#ifndef PIECES
#define PIECES 2
#endif

/* Words. */
#define SOURCE 0
#define TARGET 1
#define WITHDRAWN 2
#define PULLING 3
#define PUSHING 4
#define VERDICT 5
#define SLOT(n) (5 + (n))
#define WORDS (7 + 2 * MESSAGES)

/* What a slot says of message m, and a verdict of offer n. */
#define OFFER(m) (4 * (m) + 1)
#define FIN(m) (4 * (m) + 2)
#define ABORT(m) (4 * (m) + 3)
#define IS_OFFER(slot) ((slot) % 4 == 1)
#define DONE(n) (4 * (n) + 1)
#define PUSH(n) (4 * (n) + 2)
#define GONE(n) (4 * (n) + 3)

#include "tso.h"

/* For the checks only. */
bool reading, writing; /* the receiver the source, the sender the target */
mtype = { none, yes, no, dropped };
mtype sent[MESSAGES + 1] = none;
mtype received[MESSAGES + 1] = none;

#ifdef MUT_WITHDRAW_UNFENCED
#define WITHDRAW_FENCE(p) skip
#else
#define WITHDRAW_FENCE(p) fence(p)
#endif
#ifdef MUT_PULL_UNFENCED
#define PULL_FENCE(p) skip
#else
#define PULL_FENCE(p) fence(p)
#endif
#ifdef MUT_PUSH_UNFENCED
#define PUSH_FENCE(p) skip
#else
#define PUSH_FENCE(p) fence(p)
#endif
#ifdef MUT_GONE_UNFENCED
#define GONE_FENCE(p) skip
#else
#define GONE_FENCE(p) fence(p)
#endif

/* The sender has its buffer back. */
inline end_send(how)
{
    d_step {
        buf[S].n < SB ->
        assert(reading == false);
        assert(how != no || received[m] != yes);
        sent[m] = how;
        store(S, SOURCE, 0)
    }
}

/* So has the receiver. */
inline end_receive(how)
{
    d_step {
        buf[R].n < SB ->
        assert(writing == false);
        assert(how != yes || sent[m] != no);
        assert(how != no || sent[m] != yes);
        received[m] = how;
        store(R, TARGET, 0)
    }
}

inline withdraw()
{
    store(S, WITHDRAWN, n);
    WITHDRAW_FENCE(S);
#ifndef MUT_WITHDRAW_NO_WAIT
    (mem[PULLING] != n);
#endif
#ifdef MUT_WITHDRAW_BLIND
    end_send(no)
#else
    if
    :: mem[VERDICT] == DONE(n) -> end_send(yes)
    :: mem[VERDICT] != DONE(n) -> end_send(no)
    fi
#endif
}

inline close_push(kind, how)
{
    atomic { tail++; store(S, SLOT(tail), kind) };
    end_send(how)
}

/* A receiver that has gone does not make the send fail: nor would it if the message were staged. */
inline push()
{
    do
    :: close_push(ABORT(m), no); break
    :: i == PIECES -> close_push(FIN(m), yes); break
    :: i < PIECES ->
        i++;
        store(S, PUSHING, n);
        PUSH_FENCE(S);
        if
        :: d_step {
#ifdef MUT_PUSH_ANYWAY
            true ->
#else
            mem[VERDICT] == PUSH(n) ->
#endif
            writing = true
           };
           store(S, TARGET, m);
           d_step { buf[S].n < SB -> store(S, PUSHING, 0); writing = false }
#ifndef MUT_PUSH_ANYWAY
        :: mem[VERDICT] != PUSH(n) ->
            store(S, PUSHING, 0);
            close_push(ABORT(m), yes);
            break
#endif
        fi
    od;
    i = 0
}

active proctype Sender()
{
    byte m = 1, n, tail, i;
    do
    :: m <= MESSAGES ->
        atomic { tail++; n = tail; store(S, SOURCE, m) };
        store(S, SLOT(n), OFFER(m));
        if
        :: mem[VERDICT] == DONE(n) -> end_send(yes)
        :: mem[VERDICT] == PUSH(n) -> push()
        :: withdraw()
        fi;
        m++
    :: else -> break
    od
}

inline pull()
{
    do
    :: i < PIECES ->
        i++;
        store(R, PULLING, n);
        PULL_FENCE(R);
        if
        :: d_step {
#ifdef MUT_PULL_ANYWAY
            true ->
#else
            mem[WITHDRAWN] < n ->
#endif
            reading = true
           };
           d_step { assert(mem[SOURCE] == m); reading = false };
           if
           :: i < PIECES -> store(R, PULLING, 0)
           :: else ->
#ifdef MUT_LATE_DONE
                store(R, PULLING, 0);
                store(R, VERDICT, DONE(n));
#else
                store(R, VERDICT, DONE(n));
                store(R, PULLING, 0);
#endif
                end_receive(yes);
                break
           fi
#ifndef MUT_PULL_ANYWAY
        :: mem[WITHDRAWN] >= n -> store(R, PULLING, 0); end_receive(no); break
#endif
        fi
    :: 0 < i && i < PIECES -> /* Between two pieces: the sender need not know. */
        store(R, VERDICT, DONE(n));
        end_receive(dropped);
        break
    od;
    i = 0
}

inline take_back()
{
    store(R, VERDICT, GONE(n));
    GONE_FENCE(R);
#ifndef MUT_GONE_NO_WAIT
    (mem[PUSHING] != n);
#endif
    end_receive(dropped)
}

/* The push of n is over without FIN or ABORT. */
inline end_unpushed()
{
    if
    :: received[m] == none -> end_receive(no)
    :: else
    fi
}

inline take_end_of_push()
{
    head++;
    if
    :: received[m] != none
    :: received[m] == none && mem[SLOT(head)] == FIN(m) ->
        assert(mem[TARGET] == m);
        end_receive(yes)
    :: received[m] == none && mem[SLOT(head)] != FIN(m) -> end_receive(no)
    fi
}

#if defined(MUT_TRUST_WITHDRAWN)
#define WAS_WITHDRAWN (mem[WITHDRAWN] >= n)
#elif defined(MUT_EXACT_WITHDRAWN)
#define WAS_WITHDRAWN (w == n && mem[SLOT(head + 1)] == 0)
#elif defined(MUT_NO_WITHDRAWN)
#define WAS_WITHDRAWN false
#else
#define WAS_WITHDRAWN (w >= n && (mem[SLOT(head + 1)] == 0 || IS_OFFER(mem[SLOT(head + 1)])))
#endif
#ifdef MUT_TRUST_WITHDRAWN
#define HAS_END (mem[SLOT(head + 1)] != 0 && !WAS_WITHDRAWN)
#else
#define HAS_END (mem[SLOT(head + 1)] != 0 && !IS_OFFER(mem[SLOT(head + 1)]))
#endif

inline be_pushed()
{
    store(R, VERDICT, PUSH(n));
    do
    :: mem[WITHDRAWN] > w -> w = mem[WITHDRAWN]
    :: WAS_WITHDRAWN -> end_unpushed(); break
    :: HAS_END -> take_end_of_push(); break
    :: received[m] == none -> take_back()
    od;
    w = 0
}

active proctype Receiver()
{
    byte m, n, head, i, w;
end:
    do
    :: atomic {
        mem[SLOT(head + 1)] != 0 ->
        head++;
        n = head;
        assert(IS_OFFER(mem[SLOT(n)]));
        m = mem[SLOT(n)] / 4
       };
       if
       :: mem[WITHDRAWN] >= n -> end_receive(no)
       :: mem[WITHDRAWN] < n -> pull()
       :: mem[WITHDRAWN] < n -> be_pushed()
       fi
    od
}

/* Once nobody can move any more. */
active proctype AtTheEnd()
{
    byte m = 1;
    atomic {
        timeout;
        do
        :: m <= MESSAGES ->
            assert(sent[m] != yes || received[m] == yes || received[m] == dropped);
            assert(sent[m] != no || received[m] != yes);
            m++
        :: else -> break
        od
    }
}
