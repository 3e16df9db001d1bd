/*
 * How this works
 *
 * Mixed barriers (include/hem/device/mixed.h) over three ranks, each of which enters in each round by its
 * kernel or its CPU, and leaves by either. Per pair of target and source there are four words: what the source's
 * kernels and CPU have told the target's kernels (in device memory) and its CPU (in host memory). An entry
 * is told in both memories; a rank's next epoch is one more than the later of its own two words.
 *
 * Rank 0 reaches rank 1 through its host: data and entries of its kernels wait in one ring, those of its CPU in
 * another. The host takes from either. Who orders by its CPU waits until the host has taken the order; a kernel that
 * enters waits for all that was put before, and then tells of its entry, which may be taken later.
 *
 * What is stored after a fence becomes visible in any order, so a kernel's two words are stored in either.
 * Before it enters, a rank puts the number of the round at the others, and one of them also into a place of all, in each
 * round another one; who leaves must find both, the latter from this round or a later one, and must have
 * counted as many entries as there were rounds. A wait that never ends is an invalid end state. Barriers of two and
 * entries that are taken up again are not in it (tests/device/proto_ring_test.c).
 *
 * Mutants: MUT_NO_SETTLE (a kernel does not wait for what it has ordered), MUT_LATE_SETTLE (it does after it has told
 * the others), MUT_OWN_LANE (epochs are counted by kernels and by CPUs apart), MUT_ONE_HOME (kernels tell
 * kernels only), MUT_ONE_LANE (a CPU looks at what CPUs told only).
 */

#define RANKS 3
#ifndef ROUNDS
#define ROUNDS 2
#endif

#define AT(t, s) ((t) * RANKS + (s))
#define LATER(a, b) ((a) > (b) -> (a) : (b))
#define FAR(s, t) ((s) == 0 && (t) == 1)
#define IS_LAST(s, t, value) (((t) + 1 + (value) % 2) % RANKS == (s))
#define DATA 0
#define ARRIVE 1

byte dev_kernel[9];
byte dev_cpu[9];
byte host_kernel[9];
byte host_cpu[9];
byte data[9];
byte last[3];

chan kernels = [4] of { bit, byte };
chan cpus = [2] of { bit, byte };
byte kernels_left, cpus_left; /* ordered and not carried out */

/* An order of rank 0 to the host of rank 1. */
inline order(what, value)
{
    if
    :: cpu -> atomic { cpus_left++; cpus ! what, value }; cpus_left == 0
    :: else -> atomic { nfull(kernels) -> kernels_left++; kernels ! what, value }
    fi
}

inline put(t)
{
    if
    :: t == me -> skip
    :: t != me && FAR(me, t) -> order(DATA, round + 1)
    :: else ->
        atomic {
            data[AT(t, me)] = round + 1;
            if
            :: IS_LAST(me, t, round + 1) -> last[t] = round + 1
            :: else
            fi
        }
    fi
}

inline tell(t)
{
    if
    :: FAR(me, t) ->
        order(ARRIVE, epoch);
        if
        :: cpu -> host_cpu[AT(t, me)] = epoch
        :: else
        fi
    :: !FAR(me, t) && cpu ->
        dev_cpu[AT(t, me)] = epoch;
        host_cpu[AT(t, me)] = epoch
#ifdef MUT_ONE_HOME
    :: else -> dev_kernel[AT(t, me)] = epoch
#else
    :: !FAR(me, t) && !cpu ->
        dev_kernel[AT(t, me)] = epoch;
        host_kernel[AT(t, me)] = epoch
    :: !FAR(me, t) && !cpu ->
        host_kernel[AT(t, me)] = epoch;
        dev_kernel[AT(t, me)] = epoch
#endif
    fi
}

inline await(s)
{
    if
#ifdef MUT_ONE_LANE
    :: cpu -> s == me || host_cpu[AT(me, s)] >= epoch
#else
    :: cpu -> s == me || LATER(host_kernel[AT(me, s)], host_cpu[AT(me, s)]) >= epoch
#endif
    :: else -> s == me || LATER(dev_kernel[AT(me, s)], dev_cpu[AT(me, s)]) >= epoch
    fi
}

inline either()
{
    if
    :: cpu = true
    :: cpu = false
    fi
}

proctype Rank(byte me)
{
    byte round, epoch;
    bool cpu;
    do
    :: round < ROUNDS ->
        either();
        if
#ifdef MUT_OWN_LANE
        :: cpu -> epoch = host_cpu[AT(me, me)] + 1
        :: else -> epoch = dev_kernel[AT(me, me)] + 1
#else
        :: cpu -> epoch = LATER(host_kernel[AT(me, me)], host_cpu[AT(me, me)]) + 1
        :: else -> epoch = LATER(dev_kernel[AT(me, me)], dev_cpu[AT(me, me)]) + 1
#endif
        fi;
        put(0); put(1); put(2);
#if !defined(MUT_NO_SETTLE) && !defined(MUT_LATE_SETTLE)
        me != 0 || cpu || kernels_left == 0;
#endif
        tell(me); tell((me + 1) % RANKS); tell((me + 2) % RANKS);
#ifdef MUT_LATE_SETTLE
        me != 0 || kernels_left == 0;
#endif
        either();
        await(0); await(1); await(2);
        round++;
        assert(epoch == round);
        assert(last[me] >= round);
        assert(me == 0 || data[AT(me, 0)] >= round);
        assert(me == 1 || data[AT(me, 1)] >= round);
        assert(me == 2 || data[AT(me, 2)] >= round)
    :: else -> break
    od
}

inline put_far(value)
{
    atomic {
        data[AT(1, 0)] = value;
        if
        :: IS_LAST(0, 1, value) -> last[1] = value
        :: else
        fi
    }
}

proctype Host()
{
    bit what;
    byte value;
end:
    do
    :: kernels ? what, value ->
        if
        :: what == DATA -> put_far(value)
        :: else -> dev_kernel[AT(1, 0)] = value; host_kernel[AT(1, 0)] = value
        fi;
        kernels_left--
    :: cpus ? what, value ->
        if
        :: what == DATA -> put_far(value)
        :: else -> dev_cpu[AT(1, 0)] = value
        fi;
        cpus_left--
    od
}

init
{
    atomic { run Rank(0); run Rank(1); run Rank(2); run Host() }
}
