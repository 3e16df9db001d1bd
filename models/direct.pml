/*
 * Exchanges on a device that write straight into the neighbour's halo (device/kernels/halo.h), between
 * two ranks. Memory of a GPU as in pipe.pml: stores of a rank become visible in any order, unless a
 * fence comes between; each store that is not fenced floats until it is flushed.
 *
 * Run e of a rank: its start says `begun = e` at the neighbour, which gives its own halo free; waits
 * for the neighbour's; looks whether that has gone; writes the neighbour's halo; fences; note = e. Its
 * finish waits for the neighbour's note. Between two runs the halo is read, slowly. With -DGIVES=n rank
 * 0 (1), rank 1 (2) or both (3) may give up at any wait: tell the neighbour, fence, and free the field
 * when the neighbour does not write to it any more.
 *
 * What is checked: nothing is written into a halo that is being read or was freed; what a finish finds
 * in the halo is the neighbour's value of that very run; nobody waits for ever.
 */
#ifndef RUNS
#define RUNS 3
#endif
#ifndef GIVES
#define GIVES 0
#endif

byte halo[2];    /* of each rank, written by the other */
byte begun[2];   /* at each rank, by the other: its halo is free for this run */
byte note[2];    /* at each rank, by the other: this rank's halo is written */
bit gone[2];     /* at each rank, by the other */
bit reading[2];  /* the halo of a rank is being read */
bit freed[2];    /* the field of a rank is not there any more */

/* Stores that are not visible yet, by who stored them: value + 1, so that 0 is nothing. */
byte f_halo[2], f_begun[2], f_note[2];
bit f_gone[2];

proctype memory() {
end:
    do
    :: atomic { f_halo[0] != 0 -> assert(!freed[1] && !reading[1]); halo[1] = f_halo[0] - 1; f_halo[0] = 0 }
    :: atomic { f_halo[1] != 0 -> assert(!freed[0] && !reading[0]); halo[0] = f_halo[1] - 1; f_halo[1] = 0 }
    :: atomic { f_begun[0] != 0 -> begun[1] = f_begun[0] - 1; f_begun[0] = 0 }
    :: atomic { f_begun[1] != 0 -> begun[0] = f_begun[1] - 1; f_begun[1] = 0 }
    :: atomic { f_note[0] != 0 -> note[1] = f_note[0] - 1; f_note[0] = 0 }
    :: atomic { f_note[1] != 0 -> note[0] = f_note[1] - 1; f_note[1] = 0 }
    :: atomic { f_gone[0] -> gone[1] = 1; f_gone[0] = 0 }
    :: atomic { f_gone[1] -> gone[0] = 1; f_gone[1] = 0 }
    od
}

/* All that this rank has stored is visible. */
#define FENCED(r) (f_halo[r] == 0 && f_begun[r] == 0 && f_note[r] == 0 && !f_gone[r])

#define PUT(where, value) atomic { where == 0 -> where = (value) + 1 }

#define VALUE(e) (e)
#ifdef MUT_ANY_FREE
#define IS_FREE(r, e) (begun[r] != 0)
#else
#define IS_FREE(r, e) (begun[r] == (e))
#endif
#define IS_THERE(r, e) (note[r] == (e))

#define MAY_GIVE(r) ((GIVES >> (r)) & 1)

/* Give up: the neighbour is told, and what it still writes is waited for. */
inline give_up() {
#ifdef MUT_QUIET_GONE
    skip;
#else
    PUT(f_gone[r], 0);
#endif
#ifndef MUT_GONE_UNFENCED
    FENCED(r);
#endif
#ifndef MUT_NO_DRAIN
    (begun[r] == 0 || note[r] == begun[r] || gone[r]);
#endif
    freed[r] = 1;
    goto out
}

proctype rank(byte r) {
    byte e = 1;
    do
    :: e > RUNS -> break
    :: else ->
        /* What has read the old halo is done: start. */
        reading[r] = 0;
#ifdef MUT_WAIT_FIRST
        IS_FREE(r, e);
#endif
#ifndef MUT_FREE_UNFENCED
        FENCED(r);
#endif
        PUT(f_begun[r], VALUE(e));
#ifndef MUT_BEGUN_UNFENCED
        FENCED(r);
#endif
        if
#ifndef MUT_NO_FREE
        :: IS_FREE(r, e) -> skip
#else
        :: skip
#endif
        :: gone[r] && !IS_FREE(r, e) -> give_up()
        :: MAY_GIVE(r) -> give_up()
        fi;
#ifndef MUT_GONE_BLIND
        if
        :: gone[r] -> give_up()
        :: else -> skip
        fi;
#endif
        PUT(f_halo[r], e);
#ifndef MUT_NO_RELEASE
        FENCED(r);
#endif
        PUT(f_note[r], VALUE(e));
        /* Finish. */
        if
        :: IS_THERE(r, e) -> skip
        :: gone[r] && !IS_THERE(r, e) -> give_up()
        :: MAY_GIVE(r) -> give_up()
        fi;
        reading[r] = 1;
        assert(halo[r] == e);
        assert(halo[r] == e);
        e++
    od;
    reading[r] = 0;
    /* Given up in order: as above. */
    give_up();
out:
    skip
}

init {
    atomic {
        run memory();
        run rank(0);
        run rank(1)
    }
}
