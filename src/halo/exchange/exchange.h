/*
 * Inside of an exchange.
 *
 * A part is one link of one field: which bytes of the field, as a shape. The parts that a rank sends
 * to a neighbour, and those that it receives, are in the same order on both sides: by pattern, field
 * number, link. A forward run packs the sending parts (owners' points) and unpacks the receiving ones
 * (halos); a reverse run packs the receiving ones and combines into the sending ones. A part that a
 * run leaves out takes no room in the message.
 */
#ifndef HEMI_HALO_EXCHANGE_EXCHANGE_H
#define HEMI_HALO_EXCHANGE_EXCHANGE_H

#include "halo/exchange/lane.h"
#include "halo/pattern/pattern.h"
#include "halo/shape.h"

#include <hem/exchange.h>

/** Levels and components besides the dimensions of a link. */
#define HEMI_PART_AXES (HEM_DIMS + 2)

/** What both sides must mean by a part. Travels. */
typedef struct hemi_part_key {
    uint64_t pattern;
    uint64_t points; /**< of the link */
    uint64_t element;
    uint64_t levels;
    uint64_t components;
    uint32_t link; /**< the k-th of the pattern between the two ranks */
    uint16_t number;
    uint8_t dtype; /**< 0: by element size */
    uint8_t half;  /**< of a vector that turns: 1 x, 2 y; else 0 */
} hemi_part_key;

typedef struct hemi_part hemi_part;
struct hemi_part {
    hemi_part_key key;
    const hemi_link *link;
    const hem_field *field; /**< with all defaults filled in */
    hemi_shape *shape;
    unsigned char *memory; /**< of the field */
    uint64_t bytes;
    uint8_t dims;      /**< axes of the link's points */
    uint8_t component; /**< of a vector that turns: the one that this part is */
    bool frozen;       /**< the field is read-only: nothing is written to it */
    bool negated;      /**< on the way from owner to halo */
    bool unwanted;     /**< by the receiver, whose field is read-only: forward runs leave it out */
    bool direct;       /**< a forward run copies from the owner's field to the halo in one go */
    /* Receiving parts that are direct: where the owner's field is. */
    hemi_shape *from_shape;
    const unsigned char *from;
    hemi_shape_pair *pair; /**< of both shapes; also between domains of this rank */
    /* Sending parts that are negated: a packed one, to negate what came in a reverse run. */
    hemi_shape *packed;
    uint8_t order[HEMI_PART_AXES]; /**< of the axes, outermost first, as the owner wants it */
    struct hemi_halo_list *list;   /**< of its shape, as kernels read it, if it has one */
    /* Of an exchange on a device: device_direct.c. */
    uint32_t piece;   /**< of the receiver's memory that was shown, counted from 1; 0: none */
    bool reachable;   /**< the owner can write there, and would */
    hemi_part *there; /**< sending parts that are direct: the receiver's halo, as mapped here */
};

typedef struct hemi_parts {
    hemi_part *parts;
    size_t count;
    uint64_t bytes;  /**< of the message of a forward run of everything */
    uint64_t all;    /**< of that of a reverse run of everything */
    uint64_t direct; /**< bytes that are direct */
} hemi_parts;

/** One neighbour, or this rank itself. */
typedef struct hemi_halo_lane {
    hemi_halo_way way; /**< not used for oneself */
    hemi_parts sends;
    hemi_parts recvs;
    bool packed; /**< in this run */
    bool taken;
    bool waits; /**< the peer copies from our fields in this run */
} hemi_halo_lane;

/** A run that was put on a stream and has not begun. */
typedef struct hemi_how_queue {
    hem_exchange_how *hows;
    size_t room;
    size_t first;
    size_t count;
} hemi_how_queue;

struct hem_exchange {
    struct hem_op op; /**< of the run that is under way; the handle's, too */
    hemi_task task;
    hemi_child child;               /**< the shared memory */
    hem_world *world;               /**< NULL once it is closed */
    struct hem_exchange *next_left; /**< among those given up whose neighbours have not */
    int64_t setup_timeout_ns;
    int64_t run_timeout_ns;
    hem_exchange_way way;
    uint64_t number; /**< on devices: its name to people, the same on all ranks */
    /* Constant after creation. */
    hemi_halo_lane *lanes; /**< ordered by rank, this one among them if it has links to itself */
    size_t lane_count;
    hem_binding *bindings; /**< fields with their defaults filled in; patterns are held */
    size_t binding_count;
    unsigned char *scratch; /**< room for one part between domains of this rank, in reverse runs */
    uint64_t memory;        /**< offset of the areas in the arena; 0: none */
    uint64_t memory_bytes;
    bool on_device;                  /**< a field of this rank is in device memory */
    struct hemi_halo_device *device; /**< kernels do it, on all ranks; else NULL */
    /* Of the run that is under way, guarded by the engine's lock. */
    uint64_t run;
    hem_exchange_how how;
    uint64_t how_hash;
    bool whole;  /**< forward, every part */
    size_t left; /**< lanes that are not done */
    bool broken;
    bool told; /**< it was given up, and the neighbours know it */
    char text[HEMI_OP_TEXT];
    hem_status ending; /**< how a run that failed will end, once nobody copies from our fields */
    /* Runs as the caller counts them: asked for, begun, ended. Read without the lock, too. */
    uint64_t asked;
    uint64_t allowed; /**< the last one that may write halos */
    uint64_t begun;
    uint64_t ended;
    uint64_t good;        /**< the last one that ended well */
    uint64_t items;       /**< put on streams */
    uint64_t items_done;  /**< of them */
    uint64_t last_stream; /**< where the last item is, 0: nowhere */
    uint64_t last_position;
    hemi_how_queue queue;
};

/** What a run is, as both sides of a message compare it. run.c */
uint64_t hemi_exchange_hash(const hem_exchange_how *how);

/** Check bindings, fill in defaults, hold patterns. create-time. field.c */
hem_status hemi_fields_check(hem_exchange *x, hem_world *world,
                             const hem_exchange_options *options);

/** The axes of a part in the order of its link, and the default order for its owner. field.c */
void hemi_part_order(const hemi_part *part, uint8_t *order);
hem_status hemi_part_shape(hemi_part *part);

/** Make lanes and parts of all links. parts.c */
hem_status hemi_parts_make(hem_exchange *x);
void hemi_parts_free(hem_exchange *x);

/** Allocate areas, tell the neighbours, agree. connect.c. Collective. */
hem_status hemi_exchange_connect(hem_exchange *x, hem_world *world, hem_status status);

/** Give the shared memory back, if there is any. connect.c */
void hemi_exchange_release(hem_exchange *x);

/** Set up the operation. run.c */
void hemi_exchange_init(hem_exchange *x, hem_world *world);

/** Begin a run: under the lock, nothing is under way, `how` is good. run.c */
void hemi_exchange_begin(hem_exchange *x, const hem_exchange_how *how);

/** Runs up to this one may write halos from now on. Under the lock. */
static inline void hemi_exchange_allow(hem_exchange *x, uint64_t run) {
    if (x->allowed < run)
        x->allowed = run;
}

/** Break it: tell the neighbours. Under the lock; the sentence was recorded. */
void hemi_exchange_break(hem_exchange *x, hem_status status);

/** Read what the caller of `call` wants of a run. calls.c */
hem_status hemi_exchange_read_how(const hem_exchange *x, const hem_exchange_how *given,
                                  const char *call, hem_exchange_how *how);

/** Record that it is broken, and by what. @return HEM_ERR_REVOKED. */
hem_status hemi_exchange_fail_broken(const hem_exchange *x, const char *call);

/** Whether all neighbours have given it up. */
bool hemi_exchange_all_left(const hem_exchange *x);

/** The caller has given it up: free it, or set it aside until the neighbours have, too. */
void hemi_exchange_leave(hem_exchange *x);

/** Free the exchanges that were given up here and whose neighbours cannot write any more. Under the lock. */
void hemi_exchange_sweep(hem_world *world);

/** Free all private memory. */
void hemi_exchange_free(hem_exchange *x);

/** Say that run `x->begun` has ended. Under the lock. */
void hemi_exchange_end(hem_exchange *x, hem_status status);

/** Wait until run `n` as the caller counts has ended and, if so asked, all items are done. */
hem_status hemi_exchange_await(hem_exchange *x, uint64_t n, bool items, int64_t timeout_ns);

/** The reduction behind a combination, which is not 0 or HEM_COMBINE_REPLACE. */
static inline hem_reduction hemi_combine_reduction(hem_combine combine) {
    return combine == HEM_COMBINE_SUM ? HEM_SUM : combine == HEM_COMBINE_MIN ? HEM_MIN : HEM_MAX;
}

/** Parts of a message start at multiples of this. */
#define HEMI_PART_ALIGN 8u

static inline uint64_t hemi_part_room(const hemi_part *part) {
    return (part->bytes + HEMI_PART_ALIGN - 1) / HEMI_PART_ALIGN * HEMI_PART_ALIGN;
}

/** Whether a part takes part in a run. */
static inline bool hemi_part_is_in(const hemi_part *part, const hem_exchange_how *how) {
    if (how->combine == 0 && part->unwanted)
        return false;
    if (how->fields != 0 && (how->fields >> (part->key.number - 1) & 1) == 0)
        return false;
    return how->sides == 0 || (part->link->sides & ~how->sides) == 0;
}

#endif
