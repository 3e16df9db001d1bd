/* Inside of a world. */
#ifndef HEMI_CORE_WORLD_H
#define HEMI_CORE_WORLD_H

#include "base/platform.h"
#include "base/status.h"
#include "core/arena.h"
#include "core/liveness.h"

#include <hem/world.h>

struct hemi_monitor;
struct hemi_device_room;

/** What the environment says about channels and collectives. */
typedef struct hemi_settings {
    uint32_t slots;        /**< of a lane */
    uint64_t ring_bytes;   /**< of a lane */
    uint64_t stage_bytes;  /**< of one step of a collective */
    bool check;            /**< compare what the ranks call */
    uint32_t copy;         /**< how large messages go: enum hemi_copy */
    uint64_t direct_bytes; /**< messages of an exchange at least this long are left in the field */
    char algorithm[128];   /**< "allreduce=ring,broadcast=direct", or empty */
} hemi_settings;

/** How large messages between processes go if no side's buffer is library memory. */
enum hemi_copy {
    HEMI_COPY_AUTO = 0,
    HEMI_COPY_STAGED,
    HEMI_COPY_SINGLE
};

/** What the ranks that are threads of one arena have in common, in their process. */
typedef struct hemi_mates {
    uint32_t devices_lock;
    struct hemi_device_room *devices; /**< those that are open: device/pinned.c */
} hemi_mates;

/** What all worlds of one rank that share an arena have in common. */
typedef struct hemi_root {
    hemi_arena arena;
    const hemi_platform *platform;
    hemi_rank_block *me;
    uint32_t rank; /**< root rank */
    uint32_t refs; /**< worlds; atomic */
    bool
        fence; /**< this process fences when it signals: membarrier does not reach it, or not all */
    bool all_fence; /**< every rank does, so that sleepers need no membarrier */
    bool threads;   /**< all ranks are threads of this process */
    uint32_t spin;  /**< polls before a wait yields */
    uint64_t yield_ns;
    uint64_t cache_bytes;
    hemi_settings settings;
    uint32_t worlds_lock;
    struct hem_world *worlds;     /**< those that are open, newest first */
    uint32_t streams_lock;        /**< guards the next two */
    uint64_t streams_made;        /**< their numbers */
    struct hem_stream *streams;   /**< of all worlds, newest first: core/stream_queue.h */
    struct hemi_monitor *monitor; /**< NULL where the monitor is outside */
    /* The rank's GPU, which core/ knows nothing of: device/room.h. */
    uint32_t device_lock;            /**< held while it is opened */
    struct hemi_device_room *device; /**< NULL until it is asked for; released, then constant */
    /** The rank has ended without closing: end the kernels that wait, and the watcher. */
    void (*device_abandon)(struct hemi_device_room *room);
    /** With the root. */
    void (*device_free)(struct hemi_device_room *room);
    hemi_mates *mates; /**< of all ranks if they are threads, and outlives them; else `alone` */
    hemi_mates alone;
} hemi_root;

/** Something that lives in a world and must not touch it once it is closed. */
typedef struct hemi_child {
    struct hemi_child *next;
    struct hemi_child **link;
    /**
     * The world goes: forget it, and free shared memory unless world->keep_memory. With `dead`, the
     * whole rank has ended without closing, nobody will use the handle again, and it goes too.
     */
    void (*orphan)(struct hemi_child *child, bool dead);
} hemi_child;

struct hemi_task;
struct hemi_hub;
struct hemi_worker;

/** What is under way in a world: see core/engine.h. */
typedef struct hemi_engine {
    uint32_t lock;       /**< guards everything here and all that tasks and operations hold */
    uint32_t completed;  /**< there are callbacks to call; read without the lock */
    uint32_t listed;     /**< tasks in the list; read without the lock */
    uint32_t timed;      /**< those with a time limit */
    uint32_t alarm_seen; /**< the alarm count up to which tasks have been told of deaths */
    uint32_t moves; /**< counted up by tasks that have moved something; read without the lock */
    bool settling;  /**< a thread calls callbacks */
    struct hemi_task *tasks;
    struct hemi_task *cursor; /**< the next task of the pass that is going on */
    struct hem_op *callbacks; /**< completed and to be called back, oldest first */
    struct hem_op **callbacks_end;
    uint64_t events;            /**< completions since the last hem_world_event_read */
    int event_fd;               /**< -1: nobody asked for one */
    struct hemi_worker *worker; /**< the progress thread, or NULL */
    struct hemi_hub *hub;       /**< NULL until channels or collectives are used: core/hub.h */
    void *lanes;                /**< of channel/, with `lanes_free` to free them */
    void (*lanes_free)(void *lanes);
    void *coll; /**< of coll/, with `coll_free` */
    void (*coll_free)(void *coll);
    void *left; /**< of halo/: exchanges that were given up, with `left_free` */
    void (*left_free)(void *left);
} hemi_engine;

struct hem_world {
    hemi_root *root;
    hem_world *next; /**< in root->worlds */
    hem_world **link;
    hemi_team *team;
    hemi_cell *cells;
    uint32_t *members; /**< root rank of every rank: a checked copy */
    uint32_t rank;
    uint32_t size;
    uint64_t id;
    uint64_t team_offset;
    int64_t timeout_ns;
    /** The alarm count up to which no member of this world had died and nobody had revoked it. */
    uint32_t alarm_seen;
    uint32_t children_lock;
    hemi_child *children;
    bool keep_memory;      /**< the world is closing, and some rank did not come */
    uint64_t objects_made; /**< windows and such: their number names them to people */
    uint64_t routes_made;  /**< of halo/pattern/route.h, counted alike by all ranks */
    hemi_engine engine;
};

/** HEM_FOREVER or not negative. @return HEM_OK or HEM_ERR_ARG. */
hem_status hemi_check_timeout(int64_t timeout_ns, const char *call);

/** See the comment at hemi_world_check_peer: look properly next time. */
void hemi_world_distrust(const hem_world *world);

void hemi_world_adopt(hem_world *world, hemi_child *child);
void hemi_world_abandon(hem_world *world, hemi_child *child);

/** Whether rank can still do something in this world: neither dead nor closed. */
bool hemi_world_may_come(const hem_world *world, uint32_t rank);

/** Record "rank 3 was killed by signal 9 (Killed)" and return HEM_ERR_PEER. */
hem_status hemi_world_fail_peer(const hem_world *world, uint32_t rank, const char *call);

/** Record that the world was revoked and return HEM_ERR_REVOKED. */
hem_status hemi_world_fail_revoked(const hem_world *world, const char *call);

/** The slow half of hemi_world_check_peer. */
hem_status hemi_world_check_slowly(hem_world *world, uint32_t rank, const char *call);

/** One load in the good case: is the world not revoked and `rank` alive? */
static inline hem_status hemi_world_check_peer(hem_world *world, uint32_t rank, const char *call) {
    uint32_t alarm = hemi_load32_acquire(&world->root->arena.head->alarm);
    if (__builtin_expect(alarm == hemi_load32_relaxed(&world->alarm_seen), 1))
        return HEM_OK;
    return hemi_world_check_slowly(world, rank, call);
}

/**
 * Make this rank's handle on a team. Checks the block. On failure nothing is kept; on success the
 * root has one more reference.
 */
hem_status hemi_world_make(hemi_root *root, uint64_t team_offset, uint32_t rank, int64_t timeout_ns,
                           hem_world **world_p);

/** Free the handle and drop its reference to the root. Touches no shared memory of the team. */
void hemi_world_free(hem_world *world);

/** Split off the ranks with one's colour; `call` is what errors name. */
hem_status hemi_world_split(hem_world *world, uint32_t call, int colour, int key,
                            hem_world **world_p);

#endif
