/* What the files of the stand-in share. Nothing of it is exported. */
#ifndef HEMI_DEVICE_STANDIN_INSIDE_H
#define HEMI_DEVICE_STANDIN_INSIDE_H

#include "device/device.h"
#include "device/standin/standin.h"

#include <hem/device/group.h>
#include <pthread.h>

/** What was sent, until the next copy. */
#define HEMI_STANDIN_SENT 16
typedef struct hemi_standin_sent {
    void *to;
    const void *from; /**< NULL: it is `word` */
    uint64_t word;
    size_t bytes;
} hemi_standin_sent;

/** A rank's. */
typedef struct hemi_standin_context {
    const hemi_device_host *host;
    pthread_mutex_t lock;
    uint32_t sent_count;
    hemi_standin_sent sent[HEMI_STANDIN_SENT];
} hemi_standin_context;

/** Record a sentence where the library keeps it; without a context it goes to the error output. */
hem_status hemi_standin_fail(const void *context, hem_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/** All stand-ins of a machine are one device. `uuid_p` has HEMI_DEVICE_UUID bytes. */
void hemi_standin_uuid(uint8_t *uuid_p);

extern const hemi_device_memory_ops hemi_standin_memory_ops;

extern const hemi_device_team_ops hemi_standin_team_ops;

/** How many ranks a team may have: hemi_device_facts.multi. team.c */
uint32_t hemi_standin_team_size(const hemi_device_host *host);

/** Of how many members' memory the piece at `address` is, 0 if it is no team's; from now on of
 *  `members`, if that is not 0. memory.c */
uint64_t hemi_standin_range_members(const void *address, uint64_t members);

/** Ranks come and go: what was abandoned goes with the last. */
void hemi_standin_memory_open(void);
void hemi_standin_memory_close(void);
extern const hemi_device_stream_ops hemi_standin_stream_ops;

/** The body of a kernel of the library. NULL, with a sentence, if it is not there or `bytes` is not
 *  the size of its arguments. kernels.c */
hemi_standin_kernel hemi_standin_kernel_of(const void *context, enum hemi_kernel kernel,
                                           size_t bytes);

/* Crews: the threads that stand in for the warps of one stream's kernels. crew.c */

typedef struct hemi_standin_grid {
    hemi_standin_kernel kernel;
    const void *args;
    uint32_t blocks;
    uint32_t warps; /**< of a block */
} hemi_standin_grid;

/** The most warps of a grid. */
#define HEMI_STANDIN_WARPS 1024u

/** What threads sleep on until something that a lock guards has changed; all zero at first. A condition
 *  variable would do, but glibc before 2.41 now and then loses a wake (its bug 25847). bell.c */
typedef struct hemi_standin_bell {
    uint32_t rings;
    uint32_t sleepers;
} hemi_standin_bell;

/** Both with the lock held; awaiting drops it meanwhile, and may end without a reason. */
void hemi_standin_bell_await(hemi_standin_bell *bell, pthread_mutex_t *lock);
void hemi_standin_bell_ring(hemi_standin_bell *bell);

typedef struct hemi_standin_crew {
    pthread_mutex_t lock;
    hemi_standin_bell start;
    hemi_standin_bell done;
    const hemi_standin_grid *grid;
    hem_host_block *blocks;
    uint64_t turn; /**< grids so far */
    uint32_t size;
    uint32_t busy;
    bool end;
    pthread_t threads[HEMI_STANDIN_WARPS];
} hemi_standin_crew;

void hemi_standin_crew_init(hemi_standin_crew *crew);
/** Run a grid, all of it at once, and wait for its end. HEM_ERR_MEMORY if that many threads cannot
 *  be had. By one thread at a time. */
hem_status hemi_standin_crew_run(hemi_standin_crew *crew, const hemi_standin_grid *grid);
void hemi_standin_crew_end(hemi_standin_crew *crew);

/* Who runs, and who waits for that: busy.c */
void hemi_standin_grid_begin(void);
void hemi_standin_grid_end(void);
/** An item is on a stream, or was done. */
void hemi_standin_item_comes(void);
void hemi_standin_item_goes(void);
/** Wait until nothing is on any stream, but not for ever. @return whether it is so. */
bool hemi_standin_await_idle(void);
/** Before a call that uses the device. */
void hemi_standin_pass(void);
/** What hemi_standin_unpin_waits says. */
void hemi_standin_await_grids(void);

/** The calling thread runs warps from now on, until it leaves: delays.c may stop it. */
void hemi_standin_warp_enter(void);
void hemi_standin_warp_leave(void);

/** Device memory that is listed, or NULL; taken back, which faults from then on. memory.c */
void *hemi_standin_range_make(uint64_t bytes, uint64_t *whole_p);
void hemi_standin_range_free(void *address);

/** Memory that faults until the stream comes to where it was asked for, and from where it was given
 *  back on. ordered.c */
hem_status hemi_standin_alloc_on(void *context, void *stream, uint64_t bytes, void **address_p);
void hemi_standin_free_on(void *context, void *stream, void *address);

/** As hemi_standin_copy, for what was let in already. memory.c */
void hemi_standin_move(void *to, const void *from, size_t bytes);

/* Items: what lies on a stream or in a graph. items.c */

typedef struct hemi_standin_item {
    struct hemi_standin_item *next;
    /** Done by the stream's thread, any number of times. */
    hem_status (*run)(struct hemi_standin_item *item, hemi_standin_crew *crew);
    /** Give back what it holds, if anything, before it is freed. */
    void (*drop)(struct hemi_standin_item *item);
} hemi_standin_item;

/* Each makes an item, or NULL without memory. */
hemi_standin_item *hemi_standin_item_launch(const hemi_standin_grid *grid, size_t bytes);
hemi_standin_item *hemi_standin_item_copy(uint32_t count, void *const *to, const void *const *from,
                                          const size_t *bytes);
hemi_standin_item *hemi_standin_item_rows(uint32_t count, const hemi_device_rows *rows);
hemi_standin_item *hemi_standin_item_store(uint64_t *word, uint64_t value);
hemi_standin_item *hemi_standin_item_await(const uint64_t *word, uint64_t value);
hemi_standin_item *hemi_standin_item_call(void (*fn)(void *arg), void *arg);
/** A pair: the second waits until the first was run. Once only. False without memory. */
bool hemi_standin_item_pair(hemi_standin_item **first_p, hemi_standin_item **second_p);
/** Something to be done once, which tells `mark_p` when it was. */
hemi_standin_item *hemi_standin_item_mark(void **mark_p);
/** HEM_OK when it was done, HEM_ERR_TIMEOUT before, HEM_ERR_SYSTEM if it never will be. */
hem_status hemi_standin_mark_test(void *mark);
void hemi_standin_mark_drop(void *mark);
/** All of a graph; holds a reference to it. */
hemi_standin_item *hemi_standin_item_graph(hemi_standin_graph *graph);
void hemi_standin_item_free(hemi_standin_item *item);
/** Whether it is a kernel. */
bool hemi_standin_item_launches(const hemi_standin_item *item);

/* Streams. stream.c */

struct hemi_standin_stream {
    struct hemi_standin_stream *next; /**< of all, under their lock */
    pthread_mutex_t lock;             /**< guards what follows */
    hemi_standin_bell changed;
    hemi_standin_item *first;
    hemi_standin_item **last;
    uint64_t put;
    uint64_t done;
    bool closing;
    hem_status broken;           /**< the first launch that failed */
    hemi_standin_graph *capture; /**< NULL: not being captured */
    bool loose;                  /**< captured work that the first stream is not ordered after */
    hemi_standin_crew crew;      /**< of the stream's thread alone */
};

/** Whether it is being captured. */
bool hemi_standin_stream_captures(void *stream);

/** The stream itself, or the default stream for NULL, or NULL if that cannot be made. */
hemi_standin_stream *hemi_standin_stream_of(void *stream);
bool hemi_standin_stream_known(const void *stream);
/** Put an item on a stream, or into the graph that captures it. NULL is HEM_ERR_MEMORY. */
hem_status hemi_standin_stream_put(const void *context, void *stream, hemi_standin_item *item);
/** Order and query, with a sentence for `context`. */
hem_status hemi_standin_stream_follow(const void *context, void *before, void *after);
hem_status hemi_standin_stream_look(const void *context, void *stream);

/* Graphs. graph.c */

struct hemi_standin_graph {
    uint32_t refs;        /**< atomic */
    pthread_mutex_t lock; /**< guards the list while it is captured; it is constant after */
    hemi_standin_stream *origin;
    hemi_standin_item *first;
    hemi_standin_item **last;
};

void hemi_standin_graph_add(hemi_standin_graph *graph, hemi_standin_item *item);
void hemi_standin_graph_hold(hemi_standin_graph *graph);
void hemi_standin_graph_drop(hemi_standin_graph *graph);

/** Streams other than the graph's first that it captures leave it. True if one was loose. */
bool hemi_standin_streams_leave(hemi_standin_graph *graph);

#endif
