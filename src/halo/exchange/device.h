/*
 * An exchange on a device: some rank has a field in device memory, so that kernels do it on all.
 *
 * The lanes of the host keep their areas, without landing buffers, for what CPUs tell each other:
 * who has given the exchange up. Messages, their notes and credits are in device memory that the
 * neighbours have mapped; device/kernels/halo.h says who writes what there. Fields of this rank that
 * are in host memory are shown to the kernels.
 *
 * What a run does (hem_exchange_how) becomes a plan, tables in device memory, when it is first asked
 * for; that of everything, forward, is made with the exchange. A run is two launches.
 */
#ifndef HEMI_HALO_EXCHANGE_DEVICE_H
#define HEMI_HALO_EXCHANGE_DEVICE_H

#include "device/device.h"
#include "device/kernels/halo_table.h"
#include "halo/exchange/exchange.h"
#include "halo/pattern/route.h"

/** Threads of a block, and the warps that they are. */
#define HEMI_HALO_THREADS 256u
#define HEMI_HALO_WARPS   (HEMI_HALO_THREADS / 32u)

/** A list of a part's shape as kernels read it: steps of equally many bytes. */
typedef struct hemi_halo_list {
    void *steps;    /**< the host's */
    uint64_t count; /**< of steps */
    uint64_t chunk; /**< bytes of a step */
    uint64_t bits;  /**< all that are set in any offset */
    uint64_t at;    /**< in the device's tables */
    uint32_t width; /**< of an offset: 4 or 8 */
    uint32_t same;  /**< 1: the steps are another list's */
} hemi_halo_list;

/** What a neighbour and this rank have in each other's device memory. */
typedef struct hemi_halo_reach {
    uint64_t in_at; /**< of the area, in this rank's device memory */
    uint64_t in_bytes;
    uint64_t out_at; /**< in the neighbour's */
    uint64_t out_bytes;
    bool near; /**< the same GPU */
} hemi_halo_reach;

/** One `how`, as launches. */
typedef struct hemi_halo_plan {
    struct hemi_halo_plan *next;
    hem_exchange_how how;
    hemi_device_memory memory;
    hemd_halo_args start;
    hemd_halo_args finish;
    uint32_t start_blocks;
    uint32_t finish_blocks;
    /* With copy engines all that there is: engine.h. */
    hemi_device_rows *rows;
    uint32_t row_count;
} hemi_halo_plan;

/** A field in host memory that kernels were shown. */
typedef struct hemi_halo_pin {
    void *host;
    uint64_t bytes;
} hemi_halo_pin;

/** Pieces of device memory that a rank shows at most. Fields in more allocations are staged. */
#define HEMI_HALO_PIECES 64u

/** Device memory of fields, of this rank and of its neighbours. */
typedef struct hemi_halo_piece {
    hemi_device_memory mine;  /**< address NULL: this rank has fewer */
    hemi_device_memory *maps; /**< one per rank of the world */
} hemi_halo_piece;

typedef struct hemi_halo_engine hemi_halo_engine;

typedef struct hemi_halo_device {
    hemi_root *root;
    hemi_device *device;
    hemi_device_memory areas; /**< the state, then the area of each neighbour */
    hemi_device_memory *maps; /**< of the neighbours, one per rank of the world */
    uint32_t map_count;
    uint32_t rank;
    hemi_halo_reach *reach;  /**< one per lane */
    hemi_halo_piece *pieces; /**< HEMI_HALO_PIECES of them, or NULL */
    uint32_t piece_count;    /**< of the rank that has most */
    hemi_halo_list *lists;
    size_t list_count;
    hemi_device_memory tables; /**< lanes, then lists */
    hemi_halo_pin *pins;
    size_t pin_count;
    hemi_pinned pinned;
    hemd_halo_host *words; /**< there; the kernels write them */
    hemd_halo_host *words_device;
    hemi_trouble *trouble;
    uint32_t *trouble_words; /**< as kernels see them */
    void *stream;            /**< lent for what the host has started, else NULL */
    uint32_t start_blocks;   /**< the most */
    uint32_t direct_blocks;  /**< the most of a start that goes straight into halos: they wait */
    uint32_t finish_blocks;  /**< the most: they wait */
    bool all_near;
    bool some_direct;         /**< of the lanes */
    hemi_halo_engine *engine; /**< copy engines do it, or NULL */
    /* Guarded by the engine's lock. */
    hemi_halo_plan *plans;
    uint64_t launched;    /**< kernels that tell the host when they have ended */
    hemi_halo_plan *open; /**< of the run that is started on a device's stream, and not finished */
    void *open_stream;    /**< its, or that of the last finish there */
    bool open_captured;   /**< that is part of a graph, not under way */
    bool ever;            /**< something was started on a stream of the device */
    hemi_halo_plan *running; /**< of the run that the host has started */
    bool finishing;          /**< its second kernel was launched */
    bool lost;               /**< the device has failed: nothing is heard of kernels any more */
    uint64_t look_ns;        /**< when to ask for that again */
    bool kept;               /**< the areas are never freed */
    uint64_t breaking;       /**< what the neighbours were told: enum hemi_gone */
} hemi_halo_device;

static inline hemd_halo_state *hemi_halo_state(const hemi_halo_device *d) {
    return d->areas.address;
}

/** Room of a part in a message, and of a landing buffer for all parts of a lane, either way. */
uint64_t hemi_halo_room(const hemi_part *part);
uint64_t hemi_halo_landing(const hem_exchange *x, const hemi_halo_lane *lane);

/* Creation: device.c, device_settle.c. */

/** Whether this rank has a field in device memory: x->on_device. Opens the device only if so, or if
 *  it is open already. */
hem_status hemi_halo_find_device(hem_exchange *x, hem_world *world);

/** All ranks make it a device exchange: device memory of all, mapped. Collective, agreed. */
hem_status hemi_halo_device_connect(hem_exchange *x, hem_status status, int64_t timeout_ns);

/** A neighbour has told where its area is. @return HEM_OK, HEM_ERR_MISMATCH, HEM_ERR_UNSUPPORTED. */
hem_status hemi_halo_device_hear(hem_exchange *x, size_t lane, uint64_t at, uint64_t bytes,
                                 const uint8_t *uuid);

/** Make fields of the host visible to kernels; lists and lanes as tables. device_settle.c */
hem_status hemi_halo_show_fields(hem_exchange *x);
hem_status hemi_halo_fill_tables(hem_exchange *x);

/** All is known: show fields, fill tables, plan the run of everything. Local. */
hem_status hemi_halo_device_settle(hem_exchange *x);

/** The caller may free fields in host memory from now on. Not under the lock: it may wait for kernels.
 *  Nothing is launched any more; if a kernel of this exchange has not ended, they stay. */
void hemi_halo_hide_fields(hem_exchange *x);

/** Free everything. No kernel of any rank uses it, or with `closed`, some may still look at it. */
void hemi_halo_device_free(hem_exchange *x, bool closed);

/** Release device memory; with `closed`, once the rank's device is closed. It becomes all zero. */
void hemi_halo_drop(hemi_halo_device *d, hemi_device_memory *memory, bool closed);

/* Straight into halos: device_pieces.c, device_direct.c. */

bool hemi_halo_is_on_device(const hemi_halo_device *d, const hem_field *field);

/** Whether a halo of that shape is worth it, or it was asked for. */
bool hemi_halo_pays(const hem_exchange *x, const hemi_shape *shape);

/** Show the fields that have halos, and map the neighbours'. Collective, agreed. */
hem_status hemi_halo_pieces_show(hem_exchange *x, int64_t timeout_ns);
void hemi_halo_pieces_free(hemi_halo_device *d, bool closed);

/** Whether this rank can write the part into the neighbour's field, which is in that piece of it:
 *  part->reachable. */
void hemi_halo_part_reach(const hem_exchange *x, uint32_t peer, hemi_part *part, uint64_t piece);

/** What receivers tell when they have heard the answers: which parts are direct, and their shapes. */
hem_status hemi_offer_say(hem_exchange *x, hemi_bag *bag);
hem_status hemi_offer_hear(hem_exchange *x, const hemi_bag *bag);

/** The neighbours know that this rank gives up: wait until none writes to its fields any more. Not
 *  under the lock. */
void hemi_halo_device_drain(const hem_exchange *x);

/* Lowering: device_side.c. */

/** The list of a shape, or nothing if it has none: count is 0 then. @return HEM_OK, HEM_ERR_MEMORY. */
hem_status hemi_halo_list_make(const hemi_shape *shape, hemi_halo_list *list);

/** The widest unit, 1 to 16, in which a part can be moved. */
uint32_t hemi_halo_grain(const hemi_part *part);

/** The side of a part, in units of `unit` bytes. `tables`: where the lists are for
 *  kernels, or NULL for the host. */
void hemi_halo_side_make(const hemi_part *part, uint32_t unit, const unsigned char *tables,
                         hemd_halo_side *side);

/** The side of a message of `total` units. */
void hemi_halo_side_message(uint64_t total, uint32_t unit, hemd_halo_side *side);

/** `count` units from `first` on: whole steps of the outermost axis. */
void hemi_halo_side_cut(hemd_halo_side *side, uint64_t first, uint64_t count);

/** What a change of sign means for a type, and the bytes of what has a sign; 0: nothing has. */
uint32_t hemi_halo_change(hem_dtype dtype, uint32_t *change_p);

/** Fill in whether kernels may walk it in registers. */
void hemi_halo_part_settle(hemd_halo_part *part);

/* Plans: device_plan.c, device_cells.c, device_runs.c. */

/** The plan of `how`, if it was made, and making it. Under the lock. */
hemi_halo_plan *hemi_halo_plan_find(const hemi_halo_device *d, const hem_exchange_how *how);
hem_status hemi_halo_plan_make(hem_exchange *x, const hem_exchange_how *how,
                               hemi_halo_plan **plan_p);

/** A heap of tables, to be brought to device memory in one piece. Zeroed is empty. */
typedef struct hemi_halo_heap {
    unsigned char *bytes;
    uint64_t used;
    uint64_t room;
} hemi_halo_heap;

/** Add room for `bytes`, zeroed, at a multiple of 16: `*at_p`. @return HEM_OK, HEM_ERR_MEMORY. */
hem_status hemi_halo_heap_add(hemi_halo_heap *heap, uint64_t bytes, uint64_t *at_p);

static inline void *hemi_halo_heap_at(const hemi_halo_heap *heap, uint64_t at) {
    return heap->bytes + at;
}

/** What comes back in a reverse run to units that follow each other, from places that do. */
typedef struct hemi_halo_run {
    unsigned char *at;
    uint64_t from;   /**< what comes back to the first: HEMD_HALO_FROM_* */
    uint64_t number; /**< in the order in which runs are combined */
    uint32_t units;
    uint32_t odd; /**< `at` modulo the unit: only runs with the same can have units in common */
} hemi_halo_run;

/** Sort runs, of which units are as wide as those of groups[0], and add what is to be combined to the heap: cells
 *  to groups[0], stretches to groups[1]. Pointers in them are places in the heap. device_runs.c. */
hem_status hemi_halo_runs_place(hemi_halo_run *runs, uint64_t count, hemi_halo_heap *heap,
                                hemd_halo_group groups[2]);

/** Where the groups, sources and tiles of the finish of a reverse run are in the heap. */
typedef struct hemi_halo_cells {
    uint64_t groups;
    uint64_t group_count;
    uint64_t sources;
    uint64_t tiles;
    uint64_t tile_count;
} hemi_halo_cells;

hem_status hemi_halo_cells_make(const hem_exchange *x, const hem_exchange_how *how,
                                hemi_halo_heap *heap, hemi_halo_cells *cells);
/** Pointers in groups become those of device memory. */
void hemi_halo_cells_place(const hemi_halo_heap *heap, const hemi_halo_cells *cells,
                           const unsigned char *base);

/** Bytes of a tile if there are `total` bytes of work in all, for so many blocks at most. */
uint64_t hemi_halo_tile_bytes(uint32_t blocks, uint64_t total);

/* Running: device_run.c, device_on.c. */

/** What the kernels have said of their end: HEM_OK, or the sentence recorded. */
hem_status hemi_halo_device_status(const hem_exchange *x);

/** Whether all kernels that were launched have ended. */
bool hemi_halo_device_is_idle(const hem_exchange *x);

/** Whether something is on a stream of the device, or started there and not finished. False for an
 *  exchange of the host. */
bool hemi_halo_device_is_busy(const hem_exchange *x);

/** Whether the exchange is broken, of the device or of the host; what kernels said of that is
 *  noted. Under the lock. */
bool hemi_halo_device_is_broken(hem_exchange *x);

/** Finish what is open, and wait until all that was started is done. As hem_exchange_finish. */
hem_status hemi_halo_device_finish(hem_exchange *x);
hem_status hemi_halo_device_await(hem_exchange *x, int64_t timeout_ns);

/** It is about to be given up: make kernels that are still under way end. Under the lock. */
void hemi_halo_device_stop(hem_exchange *x);

/** One kernel of a plan. `tells`: it is done now, and not captured. Under the lock. */
hem_status hemi_halo_device_launch(hemi_halo_device *d, const hemi_halo_plan *plan, bool finishes,
                                   void *stream, bool tells);

/** Have a stream for what the host starts. Under the lock. */
hem_status hemi_halo_device_stream(hemi_halo_device *d);

/** Give it back, if kernels do not need it any more. Nothing that the host has started is under way.
 *  Under the lock. */
void hemi_halo_device_give(hem_exchange *x);

/** The same, if nothing that the host has started is under way. Not under the lock. */
void hemi_halo_device_rest(hem_exchange *x);

/** Begin a run that the host starts, and move it on: as a task does. Under the lock. */
void hemi_halo_device_begin(hem_exchange *x);
hem_status hemi_halo_device_advance(hem_exchange *x);

/** Launch the second kernel of that run, if it may write halos and that was not done. Under the lock.
 *  @return HEM_OK, or why the exchange is broken now. */
hem_status hemi_halo_device_launch_finish(hem_exchange *x);

/** The exchange is broken: end this rank's kernels, tell the neighbours'. `gone`: enum hemi_gone. */
void hemi_halo_device_break(hem_exchange *x, uint64_t gone);

/** Make what runs with `how` need. Under the lock. */
hem_status hemi_halo_device_prepare(hem_exchange *x, const hem_exchange_how *how);

/** A run on a stream of the device. Under the lock. */
hem_status hemi_halo_device_start_on(hem_exchange *x, const hem_exchange_how *how, void *stream);
hem_status hemi_halo_device_finish_on(hem_exchange *x, void *stream);

/** The host wants to see the end of what is on streams: finish what is open. Under the lock. */
hem_status hemi_halo_device_close_open(hem_exchange *x);

#endif
