/*
 * How this works
 *
 * The cursor protocol of channels, under x86-TSO (tso.h). Each of RANKS ranks sends MESSAGES
 * messages to the next one over a lane, and receives as many from the one before. A lane has SLOTS
 * slots and a ring of RING bytes at the receiver, and two words of credit at the sender. All counts
 * only grow and survive from message to message.
 *
 *   sender                                      receiver
 *     wait: slot_tail - credit < SLOTS            wait: stamp of slot (head % SLOTS) == head + 1
 *     ring bytes; what the slot says              copy out
 *     stamp = ++slot_tail, stored last            credit slot and bytes, after every slot
 *
 * A message is inline in one slot, or goes in chunks through the ring. The sender chooses the
 * length of messages and the wanted length of chunks as it likes; a chunk takes what is free, ends
 * at the end of the ring, and its slot carries its position and length. At the end of a message
 * both sides round their byte count up to ALIGN. Since a credit may come in the middle of a message
 * and in the middle of ALIGN, rounding may put the sender's tail more than RING ahead: then nothing
 * is free.
 *
 * A rank is one thread that sends and receives as it finds it possible, with one store buffer, so
 * that its credits stand in line with its slots.
 *
 *   default      rank 0 sends to rank 1, which only receives
 *   -DBOTH       two ranks send to each other
 *   -DCYCLE      three ranks in a cycle
 *   -DPAIRED     send and receive of a message end before the next ones begin, as in sendrecv
 *   -DWHOLE      a sender waits until there is room for the chunk it wants
 *   -DSKIP       a sender leaves out the end of the ring where it is too short for the chunk it
 *                wants, if there is room for it at the start
 *   -DABORT      a sender may withdraw a message after its first chunk
 *   -DDISCARD    a receiver may let go of a message at any chunk: it credits without copying
 *
 * Every byte has a number. The receiver must see all of them in order; nothing that is unread may
 * be stored over; the header of every slot must be what the receiver's own cursors say. That every
 * message arrives is checked at the end: who still waits then is in an invalid end state.
 */

/*
 * Mutants: MUT_STAMP_FIRST, MUT_CREDIT_FIRST (before the copy), MUT_CREDIT_BATCHED (after every
 * other slot), MUT_PADDING_LATE (credited with the next message), MUT_PADDING_NEVER,
 * MUT_EQUAL_CHUNKS (the receiver takes all chunks to be as long as the first), MUT_STAMP_MODULO (a
 * slot's stamp is its place), MUT_HEAD_CACHED (credits are read once), MUT_RESTART (a message
 * starts at the start of a ring that is taken to be empty), MUT_UNDERFLOW (free is computed
 * modulo), MUT_ABORT_UNPADDED, MUT_DISCARD_UNCOUNTED, MUT_SEND_FIRST (with -DCYCLE: nothing is
 * received while a message is being sent).
 */

#if defined(CYCLE)
#define RANKS 3
#else
#define RANKS 2
#endif
#if defined(CYCLE) || defined(BOTH)
#define SENDS true
#define RECEIVES true
#else
#define SENDS (me == 0)
#define RECEIVES (me == 1)
#endif
#define PROCS RANKS
#ifndef SB
#define SB 6
#endif
#ifndef MESSAGES
#define MESSAGES 3
#endif
#ifndef SLOTS
#define SLOTS 1
#endif
#ifndef RING
#define RING 4
#endif
#ifndef SHORTEST
#define SHORTEST 0
#endif
#ifndef LONGEST
#define LONGEST 3
#endif
#define ALIGN 2

/* Words of the lane that starts at rank r. */
#define LANE_WORDS (2 + 2 * SLOTS + RING)
#define SLOT_CREDIT(r) ((r) * LANE_WORDS)
#define BYTE_CREDIT(r) ((r) * LANE_WORDS + 1)
#define STAMP(r, k) ((r) * LANE_WORDS + 2 + ((k) - 1) % SLOTS)
#define SAYS(r, k) ((r) * LANE_WORDS + 2 + SLOTS + ((k) - 1) % SLOTS)
#define BYTE(r, b) ((r) * LANE_WORDS + 2 + 2 * SLOTS + (b) % RING)
#define WORDS (RANKS * LANE_WORDS)

/*
 * What a slot says: the byte of an inline message, or that it is withdrawn, or a chunk: first or
 * not, position, length, and what is left of the message.
 */
#define WITHDRAWN 63
#define HEADER(next, at, n, left) \
    (64 + (((next) * RING + (at) % RING) * LONGEST + (n) - 1) * LONGEST + (left) - 1)
#define HAS_CHUNK(h) ((h) > WITHDRAWN)
#define IS_NEXT(h) (((h) - 64) / LONGEST / LONGEST / RING)
#define AT(h) (((h) - 64) / LONGEST / LONGEST % RING)
#define LENGTH(h) (((h) - 64) / LONGEST % LONGEST + 1)
#define LEFT(h) (((h) - 64) % LONGEST + 1)

#include "tso.h"

#define ROUND_UP(b) (((b) + ALIGN - 1) / ALIGN * ALIGN)
#define FROM ((me + RANKS - 1) % RANKS)
#ifdef MUT_STAMP_MODULO
#define STAMP_OF(k) (((k) - 1) % SLOTS + 1)
#else
#define STAMP_OF(k) (k)
#endif

/* For the check only: what has been stored on the lane of a rank and not been read. */
typedef Unread {
    bool slot[SLOTS];
    bool byte_[RING];
};
Unread unread[RANKS];

typedef Sender {
    byte slot_tail, byte_tail; /* ever used */
    byte slot_head, byte_head; /* credit, as last seen */
    byte left, want;           /* of the message: bytes to send, and chunk length */
    bool in_slot, begun;
    byte messages, number; /* ever begun; of the last byte sent */
};
typedef Receiver {
    byte slots, bytes; /* ever used */
    byte left;         /* of the message */
    bool drops;
    byte header; /* of the slot at hand */
    byte messages, number;
    byte chunk, owed; /* for mutants */
};
Sender tx[RANKS];
Receiver rx[RANKS];

/* Scratch of one step. */
hidden byte n_, j_, h_;

#define T tx[me]
#define R rx[me]
#define USED (T.byte_tail - T.byte_head)
#ifdef MUT_UNDERFLOW
#define FREE ((RING - USED) & 255)
#else
#define FREE (USED >= RING -> 0 : RING - USED)
#endif
#define MIN(a, b) ((a) < (b) -> (a) : (b))
#define HERE (RING - T.byte_tail % RING)
#define WANTED MIN(MIN(T.want, T.left), HERE)
#ifdef WHOLE
#define ROOM (FREE >= WANTED)
#else
#define ROOM (FREE > 0)
#endif
#define CAN_SEND (T.slot_tail - T.slot_head < SLOTS && (T.in_slot || ROOM))

/* What the sender does between messages. */
#ifdef PAIRED
#define MAY_BEGIN (T.left == 0 && T.messages < MESSAGES && T.messages <= R.messages)
#else
#define MAY_BEGIN (T.left == 0 && T.messages < MESSAGES)
#endif
inline begin()
{
    atomic {
        SENDS && MAY_BEGIN ->
        T.messages++;
        T.begun = false;
        select(pick : SHORTEST .. LONGEST);
        T.in_slot = (pick == 0);
        T.left = (pick == 0 -> 1 : pick);
#ifdef WANT
        pick = MIN(WANT, T.left);
#else
        select(pick : 1 .. T.left);
#endif
        T.want = pick;
        pick = 0;
#ifdef MUT_RESTART
        T.byte_tail = (T.byte_tail + RING - 1) / RING * RING;
        T.byte_head = T.byte_tail
#endif
    }
}

inline put_stamp()
{
    T.slot_tail++;
    store(me, STAMP(me, T.slot_tail), STAMP_OF(T.slot_tail))
}

inline put_slot(header)
{
    assert(unread[me].slot[T.slot_tail % SLOTS] == false);
    unread[me].slot[T.slot_tail % SLOTS] = true;
    store(me, SAYS(me, T.slot_tail + 1), header)
}

inline put_bytes()
{
#ifdef SKIP
    if
    :: HERE < MIN(T.want, T.left) && FREE >= HERE + MIN(T.want, T.left) ->
        T.byte_tail = T.byte_tail + HERE
    :: else
    fi;
#endif
    n_ = MIN(WANTED, FREE);
    h_ = HEADER((T.begun -> 1 : 0), T.byte_tail, n_, T.left);
    T.left = T.left - n_;
    do
    :: n_ > 0 ->
        assert(unread[me].byte_[T.byte_tail % RING] == false);
        unread[me].byte_[T.byte_tail % RING] = true;
        T.number++;
        store(me, BYTE(me, T.byte_tail), T.number);
        T.byte_tail++;
        n_--
    :: else -> break
    od
}

inline end_of_send()
{
    if
    :: T.left == 0 ->
        T.byte_tail = ROUND_UP(T.byte_tail);
        T.want = 0;
        T.in_slot = false;
        T.begun = false
    :: else
    fi
}

/* One slot, with its chunk if it has one. All of it goes into the own store buffer. */
inline send()
{
    d_step {
        T.left > 0 && CAN_SEND && buf[me].n + 2 + (T.in_slot -> 0 : MIN(T.want, T.left)) <= SB ->
#ifdef MUT_STAMP_FIRST
        put_stamp();
        T.slot_tail--;
#endif
        if
        :: T.in_slot -> T.number++; h_ = T.number; T.left = 0
        :: else -> put_bytes()
        fi;
        put_slot(h_);
#ifdef MUT_STAMP_FIRST
        T.slot_tail++;
#else
        put_stamp();
#endif
        T.begun = true;
        end_of_send();
        h_ = 0
    }
}

inline withdraw()
{
    d_step {
        T.left > 0 && T.begun && T.slot_tail - T.slot_head < SLOTS && buf[me].n + 2 <= SB ->
        put_slot(WITHDRAWN);
        put_stamp();
        T.left = 0;
        end_of_send()
    }
}

inline look_at_credit()
{
    d_step {
        T.left > 0 && !CAN_SEND &&
        (mem[SLOT_CREDIT(me)] != T.slot_head || mem[BYTE_CREDIT(me)] != T.byte_head) ->
        T.slot_head = mem[SLOT_CREDIT(me)];
        T.byte_head = mem[BYTE_CREDIT(me)]
    }
}

#if defined(MUT_PADDING_LATE) || defined(MUT_PADDING_NEVER)
#define CREDITED (R.bytes - R.owed)
#else
#define CREDITED R.bytes
#endif
/* What `bytes` will be after the slot at hand. */
#define GROWN (R.bytes + (HAS_CHUNK(R.header) -> LENGTH(R.header) : 0))
#define AFTER \
    (HAS_CHUNK(R.header) && LEFT(R.header) > LENGTH(R.header) -> GROWN : ROUND_UP(GROWN))
inline credit(bytes_)
{
    R.slots++;
    if
#ifdef MUT_CREDIT_BATCHED
    :: R.slots % 2 != 0
    :: else ->
#else
    :: true ->
#endif
        store(me, SLOT_CREDIT(FROM), R.slots);
        store(me, BYTE_CREDIT(FROM), bytes_)
    fi
}

inline end_of_receive()
{
    R.messages++;
    R.left = 0;
    R.drops = false;
#if defined(MUT_PADDING_LATE)
    R.owed = ROUND_UP(R.bytes) - R.bytes;
#elif defined(MUT_PADDING_NEVER)
    R.owed = R.owed + ROUND_UP(R.bytes) - R.bytes;
#endif
#ifdef MUT_ABORT_UNPADDED
    R.bytes = (R.header == WITHDRAWN -> R.bytes : ROUND_UP(R.bytes))
#else
    R.bytes = ROUND_UP(R.bytes)
#endif
}

inline take_byte(value)
{
    R.number++;
    assert(R.drops || (value) == R.number)
}

/* Bytes that the sender has left out at the end of the ring. */
#define SKIPPED ((AT(R.header) + RING - R.bytes % RING) % RING)
#ifdef SKIP
#define MAY_SKIP (AT(R.header) == 0)
#else
#define MAY_SKIP false
#endif
inline take_chunk()
{
    assert(IS_NEXT(R.header) == (R.left > 0));
    assert(R.left == 0 || R.left == LEFT(R.header));
#ifdef MUT_RESTART
    R.bytes = (R.left == 0 -> (R.bytes + RING - 1) / RING * RING : R.bytes);
#endif
    assert(SKIPPED == 0 || MAY_SKIP);
#if defined(MUT_PADDING_LATE) || defined(MUT_PADDING_NEVER)
    R.owed = R.owed + SKIPPED;
#endif
    R.bytes = R.bytes + SKIPPED;
    R.left = LEFT(R.header);
    n_ = LENGTH(R.header);
#ifdef MUT_EQUAL_CHUNKS
    R.chunk = (R.chunk == 0 -> n_ : R.chunk);
    n_ = MIN(R.chunk, R.left);
#endif
    R.left = R.left - n_;
    do
    :: n_ > 0 ->
        unread[FROM].byte_[R.bytes % RING] = false;
        take_byte(mem[BYTE(FROM, R.bytes)]);
        R.bytes++;
        n_--
    :: else -> break
    od;
#ifdef MUT_DISCARD_UNCOUNTED
    if
    :: R.drops -> R.bytes = R.bytes - LENGTH(R.header)
    :: else
    fi;
#endif
    if
    :: R.left == 0 -> end_of_receive()
    :: else
    fi
}

inline take()
{
    if
    :: R.header < WITHDRAWN ->
        assert(R.left == 0);
        take_byte(R.header);
        end_of_receive()
    :: R.header == WITHDRAWN ->
        assert(R.left > 0);
        end_of_receive()
    :: else -> take_chunk()
    fi;
    R.header = 0
}

#if defined(MUT_SEND_FIRST)
#define MAY_RECEIVE (T.left == 0)
#elif defined(PAIRED)
#define MAY_RECEIVE (R.messages < T.messages)
#else
#define MAY_RECEIVE true
#endif
/*
 * All of a slot in one step, up to the credit in the own store buffer. Read one by one, its words
 * would be the same, or be overwritten before they are read, which the sender's step finds.
 */
inline receive()
{
    atomic {
        MAY_RECEIVE && buf[me].n + 2 <= SB &&
        mem[STAMP(FROM, R.slots + 1)] == STAMP_OF(R.slots + 1) ->
        R.header = mem[SAYS(FROM, R.slots + 1)];
        unread[FROM].slot[R.slots % SLOTS] = false;
#ifdef DISCARD
        if
        :: HAS_CHUNK(R.header) -> R.drops = true
        :: true
        fi;
#endif
        d_step {
#ifdef MUT_PADDING_LATE
            R.owed = 0;
#endif
#ifdef MUT_CREDIT_FIRST
            h_ = AFTER;
            credit(h_);
            h_ = 0
        }
    };
    d_step { take() }
#else
            take();
            credit(CREDITED)
        }
    }
#endif
}

#define SENT_ALL (T.left == 0 && T.messages == (SENDS -> MESSAGES : 0))
#define RECEIVED_ALL (R.messages == (RECEIVES -> MESSAGES : 0))

active [RANKS] proctype Rank()
{
    byte me = _pid - PROCS;
    byte pick;
    do
    :: begin()
    :: send()
#ifdef ABORT
    :: withdraw()
#endif
#ifndef MUT_HEAD_CACHED
    :: look_at_credit()
#endif
    :: receive()
    :: SENT_ALL && RECEIVED_ALL -> break
    od;
    assert(!RECEIVES || R.number == tx[FROM].number)
}
