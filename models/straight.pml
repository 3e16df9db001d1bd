/*
 * One lane of a pipe with a window (hem/device/straight.h): both sides post where their buffers are,
 * decide alike, and then the sender pushes, the receiver pulls, each does a half, or all goes through
 * the ring. Short messages come in between, which nobody waits for. Memory as in pipe.pml: each store
 * floats until it is flushed, in any order, unless a release comes between.
 *
 * What is modelled: posts by turns, `tail`, `credit`, a ring of SLOTS slots, cursors; the source, which
 * the sender makes anew for each message, and the destination in two halves, which the receiver clears
 * before each. What is checked: what has come is what was sent; nobody writes into the destination
 * but between the receiver's post and its end; nobody waits for ever.
 *
 * Mutants: MUT_ONE_POST (one post without turns), MUT_TURN_BY_MESSAGE (turns count short messages, too),
 * MUT_NO_ASK (a push does not wait for the receiver), MUT_OFFER_FLOATS and MUT_ASK_FLOATS (posts are
 * stored like any other word), MUT_TAIL_FLOATS, MUT_NO_TAIL (the receiver returns before the push is
 * done), MUT_NO_WAIT (the sender returns before the pull is done), MUT_NO_CREDIT (a pushed message gives
 * no credit for its slots), MUT_ALONE (the receiver decides by its own buffer alone).
 */
#ifndef MESSAGES
#define MESSAGES 4
#endif
#define SLOTS   2
#define UNITS   2
#define CLEARED 99

#define SHORT 4 /* kinds of messages; else 2 x source in the window + destination in the window */

byte kind[MESSAGES + 1];

/* Posts: place is 1 (nowhere) or 2 (in the window), so that 0 is what was there at first. */
byte offer_number[2], offer_place[2], ask_number[2], ask_place[2];
byte tail, credit, units, unit_credit;
byte slot[SLOTS];
byte source, first, second;
bool owned = true; /* the receiver's buffer is its own, so no store of the sender may land */

/* Stores that are not visible yet. */
byte f_offer_number[2], f_offer_place[2], f_ask_number[2], f_ask_place[2];
byte f_tail, f_slot[SLOTS], f_source, f_first, f_second; /* of the sender */
byte f_first_cleared, f_second_cleared;                  /* of the receiver */

#define LANDS(f, word) atomic { f != 0 -> word = f; f = 0 }

proctype memory() {
end:
    do
    :: LANDS(f_offer_number[0], offer_number[0])
    :: LANDS(f_offer_number[1], offer_number[1])
    :: LANDS(f_offer_place[0], offer_place[0])
    :: LANDS(f_offer_place[1], offer_place[1])
    :: LANDS(f_ask_number[0], ask_number[0])
    :: LANDS(f_ask_number[1], ask_number[1])
    :: LANDS(f_ask_place[0], ask_place[0])
    :: LANDS(f_ask_place[1], ask_place[1])
    :: LANDS(f_tail, tail)
    :: LANDS(f_slot[0], slot[0])
    :: LANDS(f_slot[1], slot[1])
    :: LANDS(f_source, source)
    :: LANDS(f_first_cleared, first)
    :: LANDS(f_second_cleared, second)
    :: atomic { f_first != 0 -> assert(owned == false); first = f_first; f_first = 0 }
    :: atomic { f_second != 0 -> assert(owned == false); second = f_second; f_second = 0 }
    od
}

/* Everything that this side has stored is visible before what comes. */
inline sender_releases() {
    (f_offer_place[0] == 0 && f_offer_place[1] == 0 && f_tail == 0 && f_slot[0] == 0 &&
     f_slot[1] == 0 && f_source == 0 && f_first == 0 && f_second == 0)
}

inline receiver_releases() {
    (f_ask_place[0] == 0 && f_ask_place[1] == 0 && f_first_cleared == 0 && f_second_cleared == 0)
}

#if defined(MUT_ONE_POST)
#define TURN 0
#elif defined(MUT_TURN_BY_MESSAGE)
#define TURN (m % 2)
#else
#define TURN (number % 2)
#endif

proctype sender() {
    byte m = 1, number = 0, slots = 0, there;
    do
    :: m > MESSAGES -> break
    :: m <= MESSAGES && kind[m] == SHORT ->
        (units - unit_credit < UNITS);
        units++;
        m++
    :: m <= MESSAGES && kind[m] != SHORT ->
        atomic { f_source == 0 -> f_source = m };
        number++;
        atomic { f_offer_place[TURN] == 0 -> f_offer_place[TURN] = 1 + kind[m] / 2 };
#ifndef MUT_OFFER_FLOATS
        sender_releases();
#endif
        atomic { f_offer_number[TURN] == 0 -> f_offer_number[TURN] = number };
#ifdef MUT_NO_ASK
        there = kind[m] % 2;
#else
        (ask_number[TURN] >= number);
        there = ask_place[TURN] - 1;
#endif
        slots++;
        if
        :: there == 0 && kind[m] / 2 == 0 ->
            (slots - 1 - credit < SLOTS);
            atomic { f_slot[slots % SLOTS] == 0 -> f_slot[slots % SLOTS] = m }
        :: there == 1 ->
            atomic { f_first == 0 -> f_first = m };
            if
            :: kind[m] / 2 == 0 -> atomic { f_second == 0 -> f_second = m }
            :: else -> skip
            fi
        :: else -> skip
        fi;
#ifndef MUT_TAIL_FLOATS
        sender_releases();
#endif
        atomic { f_tail == 0 -> f_tail = slots };
#ifndef MUT_NO_WAIT
        if
        :: kind[m] / 2 == 1 -> (credit >= slots)
        :: else -> skip
        fi;
#endif
        m++
    od
}

proctype receiver() {
    byte m = 1, number = 0, slots = 0, there;
    do
    :: m > MESSAGES -> break
    :: m <= MESSAGES && kind[m] == SHORT ->
        (units > unit_credit);
        unit_credit++;
        m++
    :: m <= MESSAGES && kind[m] != SHORT ->
        atomic { f_first_cleared == 0 -> f_first_cleared = CLEARED };
        atomic { f_second_cleared == 0 -> f_second_cleared = CLEARED };
        number++;
        atomic { f_ask_place[TURN] == 0 -> f_ask_place[TURN] = 1 + kind[m] % 2 };
#ifndef MUT_ASK_FLOATS
        receiver_releases();
#endif
        atomic {
            f_ask_number[TURN] == 0 ->
            f_ask_number[TURN] = number;
            owned = (kind[m] % 2 == 0)
        };
        (offer_number[TURN] >= number);
        there = offer_place[TURN] - 1;
#ifdef MUT_ALONE
        there = (kind[m] % 2 == 0 -> there : 0);
#endif
        slots++;
        if
        :: there == 0 && kind[m] % 2 == 0 -> /* through the ring */
            (tail >= slots);
            atomic { f_first_cleared == 0 && f_second_cleared == 0 ->
                first = slot[slots % SLOTS];
                second = first
            };
            credit = slots
        :: there == 1 -> /* the half that it pulls, or all */
            atomic { f_second_cleared == 0 -> second = source };
            if
            :: kind[m] % 2 == 0 -> atomic { f_first_cleared == 0 -> first = source }
            :: else -> skip
            fi;
            credit = slots
        :: else ->
#ifndef MUT_NO_CREDIT
            credit = slots
#else
            skip
#endif
        fi;
#ifndef MUT_NO_TAIL
        if
        :: kind[m] % 2 == 1 -> (tail >= slots)
        :: else -> skip
        fi;
#endif
        atomic {
            assert(f_first_cleared == 0 && f_second_cleared == 0);
            assert(first == m && second == m);
            owned = true
        };
        m++
    od
}

init {
    byte m = 1;
    do
    :: m > MESSAGES -> break
    :: m <= MESSAGES ->
        if
        :: kind[m] = 0
        :: kind[m] = 1
        :: kind[m] = 2
        :: kind[m] = 3
        :: kind[m] = SHORT
        fi;
        m++
    od;
    atomic {
        run memory();
        run sender();
        run receiver()
    }
}
