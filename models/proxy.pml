/*
 * A ring of orders (hem/device/proxy.h, src/window/proxy_serve.c): groups of a rank's kernels claim slots, fill
 * them and release the turn of the first; the peer's host thread sends what they want, by number, and frees
 * the slots when all that it has sent is done; kernels and the CPU of the peer wait for the signals that come
 * with them. Memory of a GPU as in pipe.pml: stores float until they are flushed, in any order, or a release
 * has waited for them.
 *
 * An order may have a time limit: its slots are claimed by compare and swap, and only when all of them are
 * free. Who gives up tries again later, and nothing of it was ordered.
 *
 * With LOOKING: how one group looks for all, without limits; else each looks for itself.
 *
 * What is checked: each group's orders are carried out once and in order, with the bytes that belong to
 * them; who sees a signal sees the bytes; a flush means that all is done; nobody waits for ever.
 *
 * Mutants: MUT_NO_RELEASE (the turn is stored like any other word), MUT_NO_ROOM (slots are filled at
 * once), MUT_EARLY_TAKEN (not when it is done), MUT_HOST_EARLY (the same of a signal that the thread stores
 * itself), MUT_SIGNAL_FIRST (before the copy), MUT_STALE (a turn says that there is an order, not which),
 * MUT_LATE_CLAIM (room is looked for before the claim, and taken for granted after), MUT_FLUSH_POSTED (a flush waits for nobody), MUT_LIMIT_ADD (with a limit the claim is an
 * addition, too, after the look for room), MUT_LIMIT_CLAIMED (who gives up has claimed), MUT_NO_LOOKING (all
 * look, and store what they see), MUT_EARLY_FREE (the next one looks before it is stored).
 */
#define GROUPS 2
#ifndef SLOTS
#define SLOTS 4 /* at most */
#endif
#ifndef ORDERS
#define ORDERS 2 /* of each group */
#endif
#ifndef CLAIM
#define CLAIM 2 /* slots of an order at most */
#endif

#define WORD(g, k) (8 * (g) + (k))

byte claimed, taken;
byte sent, done; /* by the peer's host, and of it */
byte seen;       /* of `taken`, by the group that looks for all */
bool looking;
byte data[4];     /* whose bytes, of which of its orders */
byte floating[4]; /* not visible yet */
byte turn[4], count[4];
byte cell[GROUPS], signal[GROUPS]; /* in the peer's device memory; the second signal in its host memory */

proctype memory() {
end:
    do
    :: atomic { floating[0] != 0 -> data[0] = floating[0]; floating[0] = 0 }
    :: atomic { floating[1] != 0 -> data[1] = floating[1]; floating[1] = 0 }
    :: atomic { floating[2] != 0 -> data[2] = floating[2]; floating[2] = 0 }
    :: atomic { floating[3] != 0 -> data[3] = floating[3]; floating[3] = 0 }
    od
}

/* Wait until `taken` is at least so much. Who looks stores what he sees for the others; it never falls. */
inline await_taken(least) {
#ifndef LOOKING
    (taken >= least)
#else
    do
    :: seen >= least -> break
#ifdef MUT_NO_LOOKING
    :: seen < least && taken != seen -> t = taken; assert(t >= seen); seen = t
#else
    :: atomic { seen < least && !looking && taken != seen -> looking = true };
        t = taken;
        assert(t >= seen);
#ifdef MUT_EARLY_FREE
        looking = false;
#endif
        seen = t;
        looking = false
#endif
    od
#endif
}

/* A claim of n slots with a limit. */
inline claim_limited() {
    limited = true;
    do
    :: limited ->
        first = claimed;
        if
        :: first + n <= taken + SLOTS ->
#ifdef MUT_LIMIT_ADD
            atomic { first = claimed; claimed = claimed + n; limited = false }
#else
            atomic {
                if
                :: claimed == first -> claimed = claimed + n; limited = false
                :: else
                fi
            }
#endif
        :: first + n > taken + SLOTS -> /* it gives up, and begins again */
#ifdef MUT_LIMIT_CLAIMED
            claimed = claimed + n;
#endif
            (first + n <= taken + SLOTS || claimed != first)
        fi
    :: !limited -> break
    od
}

proctype group(byte g) {
    byte k = 1, n, first, i, t;
    bool limited;
    do
    :: k > ORDERS -> break
    :: k <= ORDERS ->
        if
#ifndef LOOKING
        :: n = 1; claim_limited(); goto fill
        :: n = CLAIM; claim_limited(); goto fill
#endif
        :: n = 1
        :: n = CLAIM
        fi;
#ifdef MUT_LATE_CLAIM
        (claimed + n <= taken + SLOTS);
#endif
        atomic { first = claimed; claimed = claimed + n };
#if !defined(MUT_NO_ROOM) && !defined(MUT_LATE_CLAIM)
        if
        :: first + n > SLOTS -> await_taken(first + n - SLOTS)
        :: else
        fi;
#endif
fill:
        i = 0;
        do
        :: i == n -> break
        :: i < n ->
            atomic { floating[(first + i) % SLOTS] = WORD(g, k); i++ }
        od;
#ifndef MUT_NO_RELEASE
        (floating[first % SLOTS] == 0 && floating[(first + n - 1) % SLOTS] == 0);
#endif
        atomic {
            count[first % SLOTS] = n;
#ifdef MUT_STALE
            turn[first % SLOTS] = 1;
#else
            turn[first % SLOTS] = first + 1;
#endif
        };
        k++
    od;
#ifndef MUT_FLUSH_POSTED
    n = claimed;
    await_taken(n);
#endif
    assert(cell[g] == ORDERS)
}

/* The peer's host thread: sends what is ordered, waits for it now and then. Signals of the second group lie in
 * host memory, and it stores them itself. */
proctype server() {
    byte n, v;
end:
    do
#ifdef MUT_STALE
    :: sent - taken < SLOTS / 2 && turn[sent % SLOTS] != 0 ->
#else
    :: sent - taken < SLOTS / 2 && turn[sent % SLOTS] == sent + 1 ->
#endif
        n = count[sent % SLOTS];
        v = data[sent % SLOTS];
        sent = sent + n;
        if
        :: v / 8 == 1 ->
#ifndef MUT_HOST_EARLY
            (done == sent);
#endif
            signal[1] = v % 8
        :: else
        fi
    :: sent != taken ->
#ifndef MUT_EARLY_TAKEN
        (done == sent);
#endif
        taken = sent
    od
}

/* What was sent is done in order. */
proctype stream() {
    byte v, i, n;
end:
    do
    :: done != sent ->
        n = count[done % SLOTS];
        v = data[done % SLOTS];
        i = 1;
        do
        :: i == n -> break
        :: i < n -> assert(data[(done + i) % SLOTS] == v); i++
        od;
        assert(v % 8 == cell[v / 8] + 1);
#ifdef MUT_SIGNAL_FIRST
        if
        :: v / 8 == 0 -> signal[0] = v % 8
        :: else
        fi;
#endif
        cell[v / 8] = v % 8;
        if
        :: v / 8 == 0 -> signal[0] = v % 8
        :: else
        fi;
        done = done + n
    od
}

/* A kernel of the peer, and its CPU. */
proctype reader(byte g) {
    byte k = 1;
    do
    :: k > ORDERS -> break
    :: k <= ORDERS ->
        (signal[g] >= k);
        assert(cell[g] >= k);
        k++
    od
}

init {
    atomic {
        run memory();
        run server();
        run stream();
        run reader(0);
        run reader(1);
        run group(0);
        run group(1)
    }
}
