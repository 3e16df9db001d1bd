/*
 * One lane of a pipe (hem/device/pipe.h): a sender, a receiver, and messages of both forms and several
 * lengths in any order. Memory of a GPU: stores of a thread become visible in any order, unless a
 * release comes between; here each store that is not released floats in a set until it is flushed.
 *
 * What is modelled: the bulk ring of SLOTS slots and the short ring of UNITS units, `tail`, both
 * credits, cursors that both sides keep. What is checked: the receiver takes what was sent, in order;
 * nothing that it still reads is overwritten; and the two do not wait for each other for ever.
 *
 * Mutants: MUT_NO_RELEASE (tail is stored like any other word), MUT_NO_CREDIT (slots are used again at
 * once), MUT_NO_UNIT_CREDIT, MUT_STAMP (units carry no number of the message), MUT_EARLY_CREDIT (before
 * the loads), MUT_LATE_CREDIT (only when the ring has been emptied as a whole message, which is longer).
 */
#ifndef SLOTS
#define SLOTS    2 /* or 1 */
#endif
#define UNITS    2
#ifndef MESSAGES
#define MESSAGES 4
#endif
#define LONGEST  3 /* slots of a message of the bulk form */

byte slot[SLOTS];   /* what is in it: the number of the message; 0 at first */
byte unit[UNITS];   /* data and stamp are one store */
byte tail, credit_slots, credit_units;

/* Stores of the sender that are not visible yet: at most one per place, in any order. */
byte floating_slot[SLOTS];
byte floating_unit[UNITS];
byte floating_tail;

byte stored; /* units that the sender has stored, for the assertion alone */
byte length[MESSAGES + 1]; /* 0: short form, of one unit; else slots */

proctype memory() {
end:
    do
    :: atomic { floating_slot[0] != 0 -> slot[0] = floating_slot[0]; floating_slot[0] = 0 }
#if SLOTS > 1
    :: atomic { floating_slot[1] != 0 -> slot[1] = floating_slot[1]; floating_slot[1] = 0 }
#endif
    :: atomic { floating_unit[0] != 0 -> unit[0] = floating_unit[0]; floating_unit[0] = 0 }
    :: atomic { floating_unit[1] != 0 -> unit[1] = floating_unit[1]; floating_unit[1] = 0 }
    :: atomic { floating_tail != 0 -> tail = floating_tail; floating_tail = 0 }
    od
}

inline release() {
    /* Everything that was stored before is visible before what comes. */
    (floating_slot[0] == 0 && floating_slot[SLOTS - 1] == 0 && floating_unit[0] == 0 &&
     floating_unit[1] == 0 && floating_tail == 0)
}

proctype sender() {
    byte m = 1, slots = 0, units = 0, i;
    do
    :: m > MESSAGES -> break
    :: m <= MESSAGES && length[m] == 0 ->
#ifndef MUT_NO_UNIT_CREDIT
        (units - credit_units < UNITS);
#endif
        atomic { floating_unit[units % UNITS] == 0 ->
#ifdef MUT_STAMP
            floating_unit[units % UNITS] = 1;
#else
            floating_unit[units % UNITS] = m;
#endif
            units++;
            stored = units
        };
        m++
    :: m <= MESSAGES && length[m] > 0 ->
        i = 0;
        do
        :: i == length[m] -> break
        :: i < length[m] ->
#ifndef MUT_NO_CREDIT
            (slots - credit_slots < SLOTS);
#endif
            atomic { floating_slot[slots % SLOTS] == 0 -> floating_slot[slots % SLOTS] = m };
            slots++;
#ifndef MUT_NO_RELEASE
            release();
#endif
            atomic { floating_tail == 0 -> floating_tail = slots };
            i++
        od;
        m++
    od
}

proctype receiver() {
    byte m = 1, slots = 0, units = 0, i;
    do
    :: m > MESSAGES -> break
    :: m <= MESSAGES && length[m] == 0 ->
#ifdef MUT_STAMP
        (unit[units % UNITS] != 0);
#else
        (unit[units % UNITS] == m);
#endif
        assert(units < stored);
        units++;
        credit_units = units;
        m++
    :: m <= MESSAGES && length[m] > 0 ->
        i = 0;
        do
        :: i == length[m] -> break
        :: i < length[m] ->
            (tail > slots);
#ifdef MUT_EARLY_CREDIT
            credit_slots = slots + 1;
#endif
            assert(slot[slots % SLOTS] == m);
            slots++;
            i++;
#ifdef MUT_LATE_CREDIT
            if
            :: i == length[m] -> credit_slots = slots
            :: else -> skip
            fi
#else
            credit_slots = slots
#endif
        od;
        m++
    od
}

init {
    byte m = 1;
    do
    :: m > MESSAGES -> break
    :: m <= MESSAGES ->
        if
        :: length[m] = 0
        :: length[m] = 1
        :: length[m] = LONGEST
        fi;
        m++
    od;
    atomic {
        run memory();
        run sender();
        run receiver()
    }
}
