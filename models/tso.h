/*
 * How this works
 *
 * x86-TSO for Promela. Include it first, after defining PROCS (processes), WORDS (memory words)
 * and SB (entries of a store buffer).
 *
 * A store goes into its process's FIFO buffer and reaches memory later. Each buffer is a Promela
 * process of its own, whose only step moves the oldest entry to memory, so that the checker tries
 * every delay. A load takes the newest entry for that word in its own buffer, otherwise memory.
 * Read-modify-writes wait until their own buffer is empty and then act on memory.
 *
 * membarrier() is modelled as weakly as the kernel promises it: first a full fence of the caller,
 * then every other process passes a full fence at some moment of its own before the call returns.
 * "Passes a fence" means that its buffer is empty at that moment. Taking the first such moment
 * loses nothing: a later one would only forbid more. Processes in the mask UNREGISTERED have not
 * registered for membarrier and are passed over.
 *
 * futex_wait() compares and falls asleep in one step; there are no spurious returns, as those would
 * hide a lost wake-up. futex_wake() wakes everybody on the word.
 *
 * Models bundle steps to stay small. A store into the own buffer may be joined to the step *before*
 * it, because nobody else can see the buffer. A load may not be joined to a store before it, since
 * the buffer may drain in between. Any other bundling is explained where it is done.
 */

#ifndef UNREGISTERED
#define UNREGISTERED 0
#endif

typedef Buffer {
    byte n;
    byte at[SB];
    byte val[SB];
};

byte mem[WORDS];
Buffer buf[PROCS];
byte asleep[PROCS];   /* the word slept on plus one, or 0 */
byte unfenced[PROCS]; /* during membarrier by p: bit q is set until q has passed its fence */

hidden byte i_; /* scratch, always used within one step */

/* The process numbers of the buffers are 0 .. PROCS-1 because this is the first proctype. */
active [PROCS] proctype StoreBuffer()
{
end:
    do
    :: d_step {
        buf[_pid].n > 0 ->
        mem[buf[_pid].at[0]] = buf[_pid].val[0];
        i_ = 1;
        do
        :: i_ < SB ->
            buf[_pid].at[i_ - 1] = buf[_pid].at[i_];
            buf[_pid].val[i_ - 1] = buf[_pid].val[i_];
            i_++
        :: else -> break
        od;
        buf[_pid].at[SB - 1] = 0;
        buf[_pid].val[SB - 1] = 0;
        buf[_pid].n--;
        i_ = 0;
        do
        :: buf[_pid].n == 0 && i_ < PROCS ->
            unfenced[i_] = unfenced[i_] & ~(1 << _pid);
            i_++
        :: else -> break
        od;
        i_ = 0
    }
    od
}

inline store(p, a, v)
{
    d_step {
        buf[p].n < SB ->
        buf[p].at[buf[p].n] = a;
        buf[p].val[buf[p].n] = v;
        buf[p].n++
    }
}

inline load(p, a, dst)
{
    d_step {
        dst = mem[a];
        i_ = 0;
        do
        :: i_ < buf[p].n ->
            if
            :: buf[p].at[i_] == (a) -> dst = buf[p].val[i_]
            :: else
            fi;
            i_++
        :: else -> break
        od;
        i_ = 0
    }
}

inline fence(p)
{
    (buf[p].n == 0)
}

inline fetch_add(p, a, k)
{
    d_step { buf[p].n == 0 -> mem[a] = mem[a] + (k) }
}

inline compare_swap(p, a, old, new, won)
{
    d_step {
        buf[p].n == 0 ->
        won = (mem[a] == (old));
        if
        :: won -> mem[a] = new
        :: else
        fi
    }
}

inline membarrier(p)
{
    d_step {
        buf[p].n == 0 ->
        i_ = 0;
        do
        :: i_ < PROCS ->
            if
            :: buf[i_].n > 0 && !(UNREGISTERED & (1 << i_)) ->
                unfenced[p] = unfenced[p] | (1 << i_)
            :: else
            fi;
            i_++
        :: else -> break
        od;
        i_ = 0
    };
    (unfenced[p] == 0)
}

inline futex_wait(p, a, expected)
{
    d_step {
        if
        :: mem[a] == expected -> asleep[p] = (a) + 1
        :: else
        fi
    };
    (asleep[p] == 0)
}

inline futex_wake(a)
{
    d_step {
        i_ = 0;
        do
        :: i_ < PROCS ->
            if
            :: asleep[i_] == (a) + 1 -> asleep[i_] = 0
            :: else
            fi;
            i_++
        :: else -> break
        od;
        i_ = 0
    }
}
