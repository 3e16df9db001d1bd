/*
 * A window as kernels see it: what lies where, and who writes it. The calls are in window.h.
 *
 * How this works. hem_window_device fills in a hem_dev_window once; it is passed to kernels by value
 * and never changes. Everything that changes lies in device memory behind it, so that launches,
 * graph replays and eager runs in between see the same numbers (epochs live beside the words).
 *
 * For each ordered pair of ranks (source A, target B) there is a row. Its slots for ids below
 * `device_signals`, and its arrivals, are in B's device memory, where B's kernels poll them; slots of
 * higher ids are in B's host memory, where B's CPU waits. Each slot has two words: `kernel` is
 * changed by A's kernels only, `cpu` by A's CPU only; a wait adds them up. A kernel's ADD is one
 * reduction without an answer, since many blocks of A may signal at a time; its SET is a store.
 *
 *   A: stores data; group barrier; leader: fence; changes `kernel` of the slot at B.
 *   B: leader polls the slot, relaxed; fence; group barrier; all see the data.
 *
 * Barriers: epoch e of an id is counted in A's own memory by A's leader; A releases e into its
 * arrival at every peer and waits until every arrival here is at least e. An arrival only grows, and
 * nobody enters e + 1 before it has left e, so no arrival is missed by being overwritten.
 *
 * `trouble` lies in pinned host memory. The host raises words of it when a rank dies or the world is
 * revoked; waits look at it now and then. A wait that ends with an error has published nothing.
 */
#ifndef HEM_DEVICE_TYPES_H
#define HEM_DEVICE_TYPES_H

#include <stdint.h>

/** How a peer is reached from a kernel. */
enum hemd_route {
    HEMD_ROUTE_NONE = 0, /**< not at all: every call says HEM_ERR_UNSUPPORTED */
    HEMD_ROUTE_SELF,
    HEMD_ROUTE_DIRECT, /**< loads and stores */
    HEMD_ROUTE_PROXY   /**< a host thread carries it out */
};

/** Loaded in one piece, so aligned to its size. */
typedef struct __attribute__((aligned(16))) hemd_slot {
    uint64_t kernel;
    uint64_t cpu;
} hemd_slot;

/**
 * Behind the slots of signals, in either memory, rows have slots for mixed barriers: as many as there are such
 * ids, of each kind. See mixed.h.
 */
enum hemd_mixed {
    HEMD_MIXED_ALL = 0, /**< entries of the row's writer into barriers of all */
    HEMD_MIXED_PAIR,    /**< its entries into barriers with this rank */
    HEMD_MIXED_OWN,     /**< this rank's into those, by itself */
    HEMD_MIXED_KINDS
};

/**
 * What a kernel needs of one rank. Constant. A line of the table, of which what a put with a signal needs comes
 * first: it is in one sector of a GPU's caches then, and its first 16 bytes are loaded in one piece
 * (hemd_head_of).
 */
typedef struct __attribute__((aligned(16))) hemd_peer {
    uint32_t route; /**< enum hemd_route */
    uint32_t near;  /**< its GPU is this rank's */
    unsigned char *data;
    hemd_slot *out;      /**< this rank's slots there, in its device memory */
    hemd_slot *out_host; /**< this rank's slots there for ids from device_signals on */
    uint64_t bytes;
    const hemd_slot *in;      /**< its slots here */
    const hemd_slot *in_host; /**< the same for ids from device_signals on */
    uint64_t *out_arrivals;   /**< one per barrier id, then one per pair barrier id */
    const uint64_t *in_arrivals;
    /** This rank's own, of barriers with that peer, one per id that is not mixed. Of itself: the last entry into the
     *  barrier of all that was told to everybody, if some of them are reached through a proxy. */
    uint64_t *pair_epochs;
    /** Through a proxy: the ring of this rank's kernels, and what they know of it. */
    struct hemd_ring *ring;
    struct hemd_claims *claims;
    uint64_t spare[4];
} hemd_peer;

/*
 * A ring of orders that a rank's kernels, or its CPU, give to a peer's host thread; in pinned host
 * memory of who gives them. hem/device/proxy.h fills it, src/window/proxy_serve.c carries it out.
 */
#define HEMD_RING_BITS  7u
#define HEMD_RING_SLOTS (1u << HEMD_RING_BITS)
/** Bytes of a slot. */
#define HEMD_RING_CHUNK 2048u
/** Slots of one order at most, so that one is being filled while another is carried out. */
#define HEMD_RING_CLAIM (HEMD_RING_SLOTS / 2u)
/** The same where waits for room have a time limit. */
#define HEMD_RING_CLAIM_LIMITED 8u

/** What follows the bytes of an order. */
enum hemd_order_what {
    HEMD_ORDER_NOTHING = 0,
    HEMD_ORDER_ADD, /**< to the slot of a signal */
    HEMD_ORDER_SET, /**< it */
    HEMD_ORDER_ARRIVE /**< set an arrival; `id` counts all barriers, those of pairs, then the slots of mixed ones */
};

typedef struct __attribute__((aligned(64))) hemd_order {
    uint64_t turn;   /**< number of its first slot plus 1: released when the rest is there */
    uint64_t offset; /**< where the bytes go */
    uint64_t bytes;
    uint64_t value;
    uint32_t what; /**< enum hemd_order_what */
    uint32_t id;
    uint32_t slots; /**< that it takes */
    uint32_t spare[5];
} hemd_order;

typedef struct __attribute__((aligned(128))) hemd_ring {
    uint64_t taken;  /**< slots whose orders have been carried out; by who does that */
    uint32_t failed; /**< -status if no more will be; by the same */
    uint32_t spare[29];
    hemd_order orders[HEMD_RING_SLOTS];
    unsigned char data[HEMD_RING_SLOTS][HEMD_RING_CHUNK];
} hemd_ring;

/** What a rank's kernels know of such a ring, in their own device memory. */
typedef struct __attribute__((aligned(32))) hemd_claims {
    uint64_t claimed; /**< slots, by who gives orders */
    uint64_t taken;   /**< as it was when somebody looked last; by who looks */
    uint64_t failed;  /**< the same */
    uint64_t looking; /**< 1: somebody looks at the ring, for all that wait */
} hemd_claims;

/**
 * Words of `trouble`. The host raises some, which are 0 while all is well; with the others a kernel that has
 * waited for long says what for (note.h). The first four are loaded in one piece.
 */
enum hemd_trouble {
    HEMD_TROUBLE_ALL = 0,   /**< -status for everybody: revoked, closed */
    HEMD_TROUBLE_SOME = 1,  /**< not 0: some rank has died or left */
    HEMD_TROUBLE_SEQ = 2,   /**< of the note, by kernels: odd while it is written */
    HEMD_TROUBLE_BEAT = 3,  /**< when it was written, in milliseconds, by kernels */
    HEMD_TROUBLE_NOTE = 4,  /**< a hemd_note */
    HEMD_TROUBLE_RANKS = 32 /**< + rank: -status if that one has died or left */
};

/** What a kernel waits for. */
enum hemd_what {
    HEMD_WHAT_SIGNAL_FROM = 1,
    HEMD_WHAT_SIGNAL,
    HEMD_WHAT_COUNTER,
    HEMD_WHAT_BARRIER,
    HEMD_WHAT_BARRIER_PEER,
    HEMD_WHAT_STAMPED, /**< `wanted` is the stamp */
    HEMD_WHAT_ROOM,    /**< in the ring to a peer that is reached through its host */
    HEMD_WHAT_SEND,    /**< a pipe; `wanted` is the length of the message */
    HEMD_WHAT_RECV,
    HEMD_WHAT_HALO_START, /**< halos that may be written; `wanted` is the number of the run */
    HEMD_WHAT_HALO_FINISH,
    HEMD_WHAT_COLL,         /**< the same */
    HEMD_WHAT_ENGINE_START, /**< a stream's memory operation, of an exchange by copy engines */
    HEMD_WHAT_ENGINE_FINISH,
    HEMD_WHAT_COUNT
};

/** In the words of a trouble. The first half by one of the rank's kernels that waits (with copy engines, by who
 *  looks after the stream), the second by its host, before anybody looks. */
typedef struct hemd_note {
    uint64_t what; /**< enum hemd_what */
    uint64_t peer; /**< rank of the world, or -1: any */
    uint64_t id;
    uint64_t compare; /**< hem_compare */
    uint64_t wanted;
    uint64_t seen;
    uint64_t since_ns; /**< by the device's clock */
    uint64_t now_ns;   /**< when it was written, by the same */
    uint64_t world;
    uint64_t object; /**< the window, pipe, exchange or collective */
    /** Of the world. As many words, behind those of its ranks, say which of all ranks they are. */
    uint64_t size;
} hemd_note;

/** What this rank's kernels share. Only `epochs` and `counters` point to what changes. */
typedef struct hemd_home {
    uint32_t *trouble;
    uint64_t *epochs;   /**< one per barrier id */
    uint64_t *counters; /**< one per counter id */
    uint32_t signals;
    uint32_t device_signals;
    uint32_t barriers;
    uint32_t counter_count;
    uint32_t proxied; /**< how many ranks are reached through a proxy */
    uint32_t spare32;
    /** Of calls through a proxy that have no limit of their own; below 0: none. */
    int64_t proxy_limit_ns;
    uint64_t spare[2];
} hemd_home;

/** A window, to be passed to kernels by value. Filled in by hem_window_device. */
typedef struct hem_dev_window {
    int32_t rank;
    int32_t size;
    const hemd_peer *peers; /**< one per rank */
    const hemd_home *home;
    uint32_t device_signals; /**< as in `home`; here since each signal needs it */
    uint32_t mixed_barriers; /**< ids below this are mixed */
} hem_dev_window;

/** A pipe, to be passed to kernels by value. Filled in by hem_pipe_device. */
typedef struct hem_dev_pipe {
    hem_dev_window window;
    const struct hemd_way *ways; /**< one per rank, in device memory: hem/device/pipe.h */
    uint32_t lanes;
    uint32_t slots;
    uint64_t slot_bytes;
    uint64_t short_bytes;
    hem_dev_window straight; /**< the window that buffers may lie in; `peers` is NULL: none */
} hem_dev_pipe;

#endif
