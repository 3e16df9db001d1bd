/*
 * How this works
 *
 * The sleep and wake hand-over, shared by sleep.pml and barrier.pml. Every rank has two words:
 * `bell`, a counter on which its threads sleep, and `count`, how many of them do.
 *
 *   sleeper                                 signaller
 *     seen = bell                             word = value   (into its store buffer)
 *     count += 1                              if count != 0
 *     membarrier                                  bell += 1
 *     condition true? then do not sleep           futex_wake(bell)
 *     futex_wait(bell, seen)
 *     count -= 1, start over
 *
 * The signaller has no fence between its store and its load of `count`, so others may see the two
 * in the opposite order. The sleeper's membarrier repairs that from its side: whoever read `count`
 * before it was raised has its store in memory when the condition is checked again. Whoever read it
 * later rings, and since `bell` then differs from `seen`, a ring that comes before futex_wait is
 * not lost either.
 *
 * -DFALLBACK is the form for systems that refuse membarrier: the signaller fences, and the sleeper
 * relies on its fetch_add being a full fence. -DPLAIN_ANNOUNCE raises `count` by a buffered store,
 * which is enough with one thread per rank.
 *
 * Steps are bundled where that loses no behaviour:
 * - A condition reads all its words at once. They only grow and the condition asks for enough, so
 *   read one by one, a failing check would also have failed all at once, at its failing read (for a
 *   sum or an "or", at its first), and a succeeding one would have succeeded at its last.
 * - The spinning check and `seen = bell` are one step. Were the condition to become true between
 *   them, the second check would find it true, and `seen` would not be used.
 * - -DBELL_BIT, for one thread per rank: the bell counts from its last reading and stops at one,
 *   since nothing but "has it moved since" is ever asked.
 *
 * The callers declare `byte seen`.
 *
 * Mutants: MUT_NO_MEMBARRIER, MUT_NO_RECHECK, MUT_NO_BUMP (wake without ringing), MUT_LATE_SEEN
 * (read the bell after the second check), MUT_NO_FENCE (-DFALLBACK without the signaller's fence),
 * and MUT_NO_SLEEP (never sleep: the search for cycles must notice).
 */

inline read_bell(me, bell)
{
#ifdef BELL_BIT
    mem[bell] = 0
#else
    load(me, bell, seen)
#endif
}

inline ring(me, bell)
{
#ifdef MUT_NO_BUMP
    skip
#elif defined(BELL_BIT)
    atomic { fence(me); mem[bell] = 1 }
#else
    fetch_add(me, bell, 1)
#endif
}

inline announce(me, count)
{
#ifdef PLAIN_ANNOUNCE
    store(me, count, 1)
#else
    fetch_add(me, count, 1)
#endif
}

inline retire(me, count)
{
#ifdef PLAIN_ANNOUNCE
    store(me, count, 0)
#else
    fetch_add(me, count, -1)
#endif
}

inline wait_until(me, bell, count, condition)
{
    do
    :: (condition) -> break
    :: atomic {
        !(condition) ->
#ifndef MUT_LATE_SEEN
        read_bell(me, bell)
#endif
       };
       announce(me, count);
#if !defined(FALLBACK) && !defined(MUT_NO_MEMBARRIER)
       membarrier(me);
#endif
       if
#ifndef MUT_NO_RECHECK
       :: (condition) ->
            seen = 0;
            retire(me, count);
            break
       :: !(condition) ->
#else
       :: true ->
#endif
#ifdef MUT_LATE_SEEN
            read_bell(me, bell);
#endif
#ifndef MUT_NO_SLEEP
            futex_wait(me, bell, seen);
#endif
            seen = 0;
            retire(me, count)
       fi
    od
}

/*
 * What a signaller does after its store. `count` is another rank's and never in the signaller's own
 * buffer, so that it is read straight from memory.
 */
inline wake_sleepers(me, bell, count)
{
#if defined(FALLBACK) && !defined(MUT_NO_FENCE)
    fence(me);
#endif
    if
    :: mem[count] == 0
    :: mem[count] != 0 ->
        ring(me, bell);
        futex_wake(bell)
    fi
}
