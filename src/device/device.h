/*
 * The contract of a device module: memory that kernels reach, and streams that they run on.
 *
 * The library itself is plain C and knows no GPU. What it needs of one stands here; libhem_cuda.so
 * fills it in, and in tests a stand-in does whose kernels are host threads. A module is opened at run
 * time when the first device object of a rank is made (device/open.c); that it is missing, or that
 * there is no GPU, is a sentence then. Nothing here is called from kernels.
 *
 * `context` belongs to one rank. Calls are safe from any thread. Errors are recorded by host->fail.
 * "Set-up" calls may allocate, take locks, and wait for what they themselves put on the device, but for
 * no kernel of anybody; the others may not.
 */
#ifndef HEMI_DEVICE_DEVICE_H
#define HEMI_DEVICE_DEVICE_H

#include "core/world.h"
#include "device/kernels/multi_table.h"

#include <hem/memory.h>

#define HEMI_DEVICE_VERSION 8u
#define HEMI_DEVICE_UUID    16

/** What the module may use of the library. */
typedef struct hemi_device_host {
    uint32_t version;
    /** Record a sentence and return `status`. */
    hem_status (*fail)(hem_status status, const char *format, ...)
        __attribute__((format(printf, 2, 3)));
    /** An environment variable of base/env.c, or NULL. */
    const char *(*env)(const char *name);
} hemi_device_host;

typedef struct hemi_device_facts {
    uint8_t uuid[HEMI_DEVICE_UUID]; /**< of the GPU: equal means the same one */
    char name[64];
    int32_t ordinal;
    uint32_t processors; /**< SMs */
    uint64_t l2_bytes;
    uint32_t capability; /**< such as 90 */
    uint32_t warp;       /**< threads of a warp; 1 for the stand-in */
    uint32_t multi;      /**< ranks on it that can be in one team; 0: no multicast here */
    uint32_t words;      /**< 1: streams can store and await words */
} hemi_device_facts;

/** Memory of this rank's device, or of a peer's that is mapped here. */
typedef struct hemi_device_memory {
    void *address; /**< as kernels of this rank use it */
    uint64_t bytes;
    void *inside; /**< the module's */
} hemi_device_memory;

enum hemi_device_name_kind {
    HEMI_DEVICE_NAME_POINTER = 1, /**< reachable in the owner's process only */
    HEMI_DEVICE_NAME_FD,          /**< comes with a descriptor */
    HEMI_DEVICE_NAME_HANDLE,      /**< `handle` says it all */
    HEMI_DEVICE_NAME_FABRIC,      /**< so does it, for GPUs of several machines too */
    HEMI_DEVICE_NAME_POOL         /**< comes with a descriptor, of a pool, and `handle` */
};

/** What names device memory to a peer. Comes from a peer: checked before it is used. */
typedef struct hemi_device_name {
    uint32_t kind; /**< enum hemi_device_name_kind */
    uint32_t pid;
    uint8_t uuid[HEMI_DEVICE_UUID];
    uint64_t address; /**< in the owner's process */
    uint64_t bytes;
    uint64_t offset; /**< of `address` in what is exported */
    uint64_t whole;  /**< bytes of what is exported */
    uint8_t handle[64];
    uint64_t serial;  /**< of the allocation among all there have been; 0: not known */
    uint64_t members; /**< of a team, which is no memory yet; 0: it is memory */
} hemi_device_name;

/** Set-up calls all. */
typedef struct hemi_device_memory_ops {
    /** Zeroed memory that can be exported, aligned to 2 MiB. HEM_ERR_MEMORY. */
    hem_status (*alloc)(void *context, uint64_t bytes, hemi_device_memory *memory_p);
    /** The caller's own device memory. HEM_ERR_ARG if it is not. */
    hem_status (*adopt)(void *context, void *address, uint64_t bytes, hemi_device_memory *memory_p);
    /** Name it. `fd_p` gets a descriptor for HEMI_DEVICE_NAME_FD and _POOL, the caller's to close, else -1. */
    hem_status (*name)(void *context, const hemi_device_memory *memory, hemi_device_name *name_p,
                       int *fd_p);
    /** Map a peer's memory. `same_process`: its address is good here as it is. `fd` stays the
     *  caller's. HEM_ERR_UNSUPPORTED if kernels here cannot reach it. */
    hem_status (*map)(void *context, const hemi_device_name *name, int fd, bool same_process,
                      hemi_device_memory *memory_p);
    /** Free what alloc gave, forget what was adopted, unmap what was mapped. No kernel uses it. Does
     *  not wait for kernels of others: what cannot be had without that is kept for later. Only a
     *  mapping of HEMI_DEVICE_NAME_POOL may wait, which its owner wants back. */
    void (*release)(void *context, hemi_device_memory *memory);
    /** Make host memory visible to kernels; `address_p` is where they see it. Several may map the
     *  same pages. It stays mapped until unmap_host. `frozen`: nobody writes there by this mapping, and the pages
     *  may be such that nobody can. */
    hem_status (*map_host)(void *context, void *host, uint64_t bytes, bool frozen,
                           void **address_p);
    /** At once. May wait until no kernel of this process runs. */
    void (*unmap_host)(void *context, void *host, uint64_t bytes);
    /** Where an address is. Memory that both sides reach counts as HEM_MEMORY_DEVICE. */
    hem_memory_kind (*kind)(void *context, const void *address);
    /** Copy between host and device, either way, complete on return, and with it all that was sent before; also
     *  with 0 bytes. Not behind kernels that run: they may be waiting for what this brings. */
    hem_status (*copy)(void *context, void *to, const void *from, uint64_t bytes);
    /** Copy from the host in the order of the calls, complete by the next copy. `from` stays until then, but
     *  for 8 bytes. What kernels see of one they see of those before. */
    hem_status (*send)(void *context, void *to, const void *from, uint64_t bytes);
    /** As release, but kernels may still look at it: it is given to nobody else. NULL: release. */
    void (*abandon)(void *context, hemi_device_memory *memory);
    /** Whether the CPU reaches an address: all but device memory; what both sides reach, too. NULL: if
     *  its kind is HEM_MEMORY_HOST. */
    bool (*host_reaches)(void *context, const void *address);
} hemi_device_memory_ops;

/**
 * Teams: memory of several devices under one address (multicast). One rank makes a team; name and map
 * bring it to the others, whose `address` of it is for nobody yet. Each joins; when all have, each
 * binds. What fails anywhere fails for all: they vote after each step. Release and abandon give a
 * team up, also a half-built one. Set-up calls all.
 */
typedef struct hemi_device_team_ops {
    /** With `bytes` of each of `members` devices. `group` is the same for the same ones only. */
    hem_status (*make)(void *context, uint32_t members, uint64_t bytes, uint64_t group,
                       hemi_device_memory *team_p);
    hem_status (*join)(void *context, const hemi_device_memory *team);
    /** Give it this rank's memory, as member number `index`, and say where kernels find all. */
    hem_status (*bind)(void *context, const hemi_device_memory *team, uint32_t index,
                       hemd_multi *multi_p);
} hemi_device_team_ops;

/** Library kernels: their bodies are in device/kernels/, `args` are their structs. */
enum hemi_kernel {
    HEMI_KERNEL_SENDRECV = 0, /**< kernels/sendrecv.h */
    HEMI_KERNEL_HALO_START,   /**< kernels/halo.h */
    HEMI_KERNEL_HALO_FINISH,
    HEMI_KERNEL_COLL,       /**< kernels/coll.h */
    HEMI_KERNEL_COPY,       /**< kernels/copy.h */
    HEMI_KERNEL_STRAIGHT,   /**< kernels/sendrecv.h, in a pipe with a window */
    HEMI_KERNEL_COLL_MULTI, /**< kernels/coll_multi.h */
    HEMI_KERNEL_COLL_DEEP,  /**< kernels/coll_deep.h */
    HEMI_KERNEL_HALO_BACK,  /**< kernels/halo.h: the finish of a reverse run */
    HEMI_KERNELS
};

typedef struct hemi_launch {
    enum hemi_kernel kernel;
    uint32_t blocks;
    uint32_t threads; /**< per block; the stand-in makes fewer of them */
    const void *args; /**< copied */
    size_t bytes;
} hemi_launch;

/** Rows of equally many bytes, `to_step` and `from_step` bytes apart; they do not overlap. */
typedef struct hemi_device_rows {
    void *to;
    const void *from;
    uint64_t bytes; /**< of a row, not 0 */
    uint64_t rows;  /**< not 0 */
    uint64_t to_step;
    uint64_t from_step;
} hemi_device_rows;

/** Rows that are further apart are given one by one. */
#define HEMI_DEVICE_STEP_MOST (1ull << 30)

/** None of these waits. They work on a stream that is being captured where CUDA does. */
typedef struct hemi_device_stream_ops {
    /** Whether ranks may use this stream. HEM_ERR_UNSUPPORTED for the legacy default stream if the device
     *  is `shared` with other ranks of this process: it would wait for their kernels. */
    hem_status (*check)(void *context, void *stream, bool shared);
    hem_status (*launch)(void *context, void *stream, const hemi_launch *launch);
    /** How many blocks of a kernel fit on the device at once. Set-up. */
    uint32_t (*fit)(void *context, enum hemi_kernel kernel, uint32_t threads);
    /** Copy `count` pieces by the copy engines. */
    hem_status (*copy)(void *context, void *stream, uint32_t count, void *const *to,
                       const void *const *from, const size_t *bytes);
    /** Where facts.words is not 0, as await. Store a word after all that is on the stream, visible to
     *  everybody after the copies. */
    hem_status (*store)(void *context, void *stream, uint64_t *word, uint64_t value);
    /** What follows begins when the word is at least `value`. */
    hem_status (*await)(void *context, void *stream, const uint64_t *word, uint64_t value);
    /** Call a function after all that is on the stream; it may not use the device. */
    hem_status (*call)(void *context, void *stream, void (*fn)(void *arg), void *arg);
    /** `after` goes on only when all that is on `before` now is done. Events are pooled. */
    hem_status (*order)(void *context, void *before, void *after);
    /** A stream of the library's own, that waits for no other. Set-up. */
    hem_status (*make)(void *context, void **stream_p);
    void (*destroy)(void *context, void *stream);
    /** Whether all on it is done: HEM_OK, or HEM_ERR_TIMEOUT if not. Also tells that the device has
     *  failed: HEM_ERR_SYSTEM. */
    hem_status (*query)(void *context, void *stream);
    /** Whether it is being captured into a graph: what is put on it is not done now. */
    bool (*captures)(void *context, void *stream);
    /** Remember what is on the stream now, which is not being captured. The mark is the caller's. */
    hem_status (*mark)(void *context, void *stream, void **mark_p);
    /** Whether all that was marked is done: HEM_OK, or HEM_ERR_TIMEOUT if not. Also tells that the
     *  device has failed: HEM_ERR_SYSTEM. */
    hem_status (*test)(void *context, void *mark);
    /** Forget a mark, reached or not. */
    void (*unmark)(void *context, void *mark);
    /** Memory that may be used after all that is on the stream now, by the stream itself or by whoever
     *  knows that it is done: not zeroed, aligned to 256 bytes, for nobody else's device. The stream
     *  does not wait for any other because of it. Not while it is captured. HEM_ERR_MEMORY,
     *  HEM_ERR_UNSUPPORTED. */
    hem_status (*alloc_on)(void *context, void *stream, uint64_t bytes, void **address_p);
    /** Give it back after all that is on the stream now, which may be another one. Does not wait. */
    void (*free_on)(void *context, void *stream, void *address);
    /** As copy, of `count` sets of rows, in any order. */
    hem_status (*copy_rows)(void *context, void *stream, uint32_t count,
                            const hemi_device_rows *rows);
} hemi_device_stream_ops;

typedef struct hemi_device_module {
    uint32_t version; /**< HEMI_DEVICE_VERSION */
    const char *name; /**< "cuda", "stand-in" */
    const hemi_device_memory_ops *memory;
    const hemi_device_stream_ops *stream;
    /** Take the device that is current for the calling thread, and load all kernels. Set-up.
     *  HEM_ERR_UNSUPPORTED if there is none. */
    hem_status (*open)(const hemi_device_host *host, void **context_p, hemi_device_facts *facts_p);
    void (*close)(void *context);
    const hemi_device_team_ops *team; /**< where facts.multi is not 0 */
} hemi_device_module;

/** What a module exports, under the name "hemi_device_module_get". */
typedef const hemi_device_module *(*hemi_device_module_fn)(void);

/** Streams that a rank keeps while nobody has them: as many as a GPU has queues for a process. */
#define HEMI_DEVICE_IDLE 32

/** Pages of host memory that are remembered as such: device/touch.h. */
#define HEMI_DEVICE_TOUCHED 64

/** A rank's device, once it is used. One per root. */
typedef struct hemi_device {
    const hemi_device_module *module;
    void *library; /**< of dlopen */
    void *context;
    hemi_device_facts facts;
    struct hemi_retired *retired; /**< under the lock of the root: device/retire.c */
    uint32_t idle_lock;           /**< guards the streams that nobody has: device/lend.c */
    uint32_t idle_count;
    void *idle[HEMI_DEVICE_IDLE];
    void *common;                          /**< under idle_lock; constant once it is there */
    uint64_t touched[HEMI_DEVICE_TOUCHED]; /**< numbers of pages; atomic */
} hemi_device;

/**
 * The device of this rank, opened on first use: HEM_DEVICE_MODULE, else libhem_cuda.so beside this
 * library, else wherever the loader finds it. Local; takes a lock. @return HEM_OK;
 * HEM_ERR_UNSUPPORTED, saying what is missing.
 */
hem_status hemi_device_get(hemi_root *root, hemi_device **device_p);

/** The device if it was opened, else NULL. */
hemi_device *hemi_device_peek(const hemi_root *root);

/** Whether other ranks of this process have the same device, or may: if one has not opened its own yet,
 *  nobody knows. This rank's is open. Takes a lock. device/pinned.c */
bool hemi_device_is_shared(const hemi_root *root);

/** With the root. */
void hemi_device_close(hemi_root *root);

/**
 * Release memory, which becomes all zero, when the device is closed and not before: the world that it
 * was for is gone, and nobody knows when the kernels that were told so have stopped looking at it.
 * Nothing happens if it is all zero.
 */
void hemi_device_retire(hemi_root *root, hemi_device_memory *memory);

/** The device is about to be closed. */
void hemi_device_free_retired(hemi_device *device);

/*
 * Streams of the library's own, lent for a run: device/lend.c. A GPU has few queues, and streams that
 * share one wait for each other; so an operation has a stream while it is under way, and none while
 * it is idle.
 */

/** A stream that nobody else has, until it is given back. Takes a lock for a moment; makes a stream
 *  only if all that were made are lent. @return HEM_OK, or what making one says. */
hem_status hemi_device_stream_take(hemi_root *root, hemi_device *device, void **stream_p);

/**
 * Give a stream back; *stream becomes NULL, and nothing happens if it is. What is on it ends without
 * anybody doing anything more: all kernels on it have said that they end, or are done. One that may
 * still wait for somebody keeps its stream. Does not wait.
 */
void hemi_device_stream_give(hemi_root *root, hemi_device *device, void **stream);

/** The rank's one stream for what waits for nobody: copies, and memory in the order of a stream. All
 *  who ask share it. It is made when it is first asked for, and stays until the device is closed. */
hem_status hemi_device_stream_common(hemi_root *root, hemi_device *device, void **stream_p);

/** The device is about to be closed. */
void hemi_device_free_streams(hemi_device *device);

/**
 * Show a piece of device memory to peers, and map theirs.
 *
 * `mine` may be NULL: nothing to show. wants[r]: map what rank r shows, if anything. maps_p[r] gets
 * it, with address NULL where kernels of this rank cannot reach it or r shows nothing; wants[own rank]
 * gives `mine` itself. Maps are released with module->memory->release, but for one's own. Names lie
 * in the arena while this goes on, descriptors travel over Unix sockets whose peer must be of the
 * same user and know the world's number. `status` is this rank's so far. Collective; agreed: on an
 * error nothing is kept. device/share.c
 */
hem_status hemi_device_share(hem_world *world, uint32_t call, hem_status status,
                             const hemi_device_memory *mine, const bool *wants,
                             hemi_device_memory *maps_p, int64_t timeout_ns);

/*
 * Pinned host memory: device/pinned.c. The library's own is pinned once, seen by all that ask for it,
 * and unpinned when the device is closed and not before.
 */

/** Where it lies in the arena. All zero: nowhere. What a peer says of it is checked. */
typedef struct hemi_pinned {
    uint64_t offset;
    uint64_t bytes;
    uint64_t chunk; /**< what it was cut out of */
    uint64_t chunk_bytes;
} hemi_pinned;

/** Zeroed memory in this rank's part of the arena, at a multiple of 256. Set-up; takes a lock. */
hem_status hemi_device_pinned_alloc(hemi_root *root, uint64_t bytes, hemi_pinned *pinned_p);

/** No kernel looks at it any more. It becomes all zero; nothing happens if it is. Does not wait. */
void hemi_device_pinned_free(hemi_root *root, hemi_pinned *pinned);

/** Whether what `root_rank` says can be true. */
bool hemi_device_pinned_fits(const hemi_root *root, uint32_t root_rank, const hemi_pinned *pinned);

/** Where kernels of this rank see it: one's own, or that of `root_rank`. Set-up.
 *  HEM_ERR_MISMATCH if it does not fit. */
hem_status hemi_device_pinned_see(hemi_root *root, uint32_t root_rank, const hemi_pinned *pinned,
                                  void **address_p);

/** Show kernels memory of the caller; `frozen`: it is only read. Set-up. */
hem_status hemi_device_pin(hemi_root *root, void *host, uint64_t bytes, bool frozen,
                           void **address_p);

/**
 * The caller may do with it what it likes afterwards. Waits where the device does until no kernel of
 * the process runs, except in a rank that has ended without closing: then it stays pinned until the
 * devices of all ranks of its arena in this process are closed, or until one of them pins other
 * memory there.
 */
void hemi_device_unpin(hemi_root *root, void *host, uint64_t bytes);

/* The watcher: one thread per root while device objects exist. It raises `trouble`. */

/** Pinned words that kernels watch: see hem/device/window.h. */
typedef struct hemi_trouble hemi_trouble;

/** Begin to watch the ranks of `world`. Set-up. `object`: its number, to people; `device_p`: where kernels see
 *  the words. */
hem_status hemi_trouble_watch(hem_world *world, uint64_t object, hemi_trouble **trouble_p,
                              uint32_t **device_p);

/** The words as the host sees them. */
uint32_t *hemi_trouble_words(hemi_trouble *trouble);

/** Stop. NULL is allowed. With `closed`, kernels that still wait end with HEM_ERR_CLOSED first. */
void hemi_trouble_end(hemi_trouble *trouble, bool closed);

/* Chores: what a thread of this rank's host does for kernels, once there is one. device/chores.c */

typedef struct hemi_chore {
    struct hemi_chore *next;
    /** Do what there is to do, a bounded part of it, without waiting. @return whether there was any.
     *  Not in two threads at a time. */
    bool (*work)(struct hemi_chore *chore);
} hemi_chore;

/** From now on `work` is called again and again. The device is open. Set-up.
 *  @return HEM_OK, HEM_ERR_SYSTEM, HEM_ERR_CLOSED. */
hem_status hemi_chore_begin(hemi_root *root, hemi_chore *chore);

/** Not any more: it is not being called when this returns. Nothing happens if it was not. */
void hemi_chore_end(hemi_root *root, hemi_chore *chore);

#endif
