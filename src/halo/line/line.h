/*
 * Inside of a line.
 *
 * How this works. A line has two sides (halo/line/side.h), each with a lane of its own to the
 * neighbour there. Rounds wait in one queue, oldest first. Of each side one round is being sent and one
 * received, and each of the four goes on to the next round by itself; a round is done when all of them
 * have passed it. One task of the engine moves all that.
 *
 * What goes to a neighbour in a round is one message that begins with a header. Metadata and data ride
 * in it if all of it is short; otherwise they follow, as messages straight from the caller's memory and
 * into that of the receiver's allocator. The allocator is called without the engine's lock, where
 * callbacks are called; meanwhile the round waits, whatever happens. Whoever has memory for a payload
 * says so in `accepted` of the neighbour's notice, whoever refuses one in `refused`; a sender ends its
 * round only when it has heard, unless nobody is asked: short payloads and no allocator.
 *
 * All done. D is the round in which this rank said that it is done. The header of round k to the right
 * carries the largest D of this rank and all to the left of it, as far as they had said so by then, or
 * 0 if not all had; so do those to the left. To know that in time, a rank that is done sends round k
 * only when it has the headers of round k - 1. So the D of a rank is known d ranks away when the header
 * of round D + d - 1 is there, and all know the largest, T, in round T + n - 2 at the latest. All say
 * so in round T + n - 1. A ring is cut between its last and first rank for this.
 *
 * Device memory. What comes out of it or goes into it passes through slots of pinned host memory
 * (halo/line/stage.c), in pieces that are messages of their own if the sender has it in device memory: its
 * header says so. Copies are on a stream of the line's own that never waits: they are put there when the
 * host knows that what must come before is done, by marks on the streams of others
 * (halo/line/device.h). Whoever waits for a mark looks again every 50 us, as for a buffer that is not
 * ready.
 *
 * Errors. What goes wrong breaks the line: letters under way are dropped, and when no peer and no
 * allocator touches their memory any more, all rounds end, the one at fault with the error and the
 * others with HEM_ERR_REVOKED. Neighbours find `gone` in their notice; what was published before that
 * still counts. So it spreads.
 */
#ifndef HEMI_HALO_LINE_LINE_H
#define HEMI_HALO_LINE_LINE_H

#include "halo/line/device.h"
#include "halo/line/side.h"

#define HEMI_LINE_META_MAX (1u << 20)
/** Metadata and data up to this length ride with the header. */
#define HEMI_LINE_SHORT 4096

/** The ends of a line. */
enum {
    HEMI_LEFT = 0,
    HEMI_RIGHT = 1
};

enum hemi_line_flags {
    HEMI_LINE_PRESENT = 1, /**< there is a payload */
    HEMI_LINE_META = 2,    /**< the metadata is in this message */
    HEMI_LINE_DATA = 4,    /**< so is the data */
    HEMI_LINE_DEVICE = 8   /**< it comes in pieces of HEMI_LINE_PIECE, out of device memory */
};

#define HEMI_LINE_MAGIC (0x6c69u << 16) /* with flags below */

/** What every message of a round begins with. */
typedef struct hemi_line_header {
    uint32_t magic; /**< | enum hemi_line_flags */
    uint32_t meta_bytes;
    uint64_t data_bytes;
    uint64_t round;
    uint64_t done; /**< see "all done" above */
} hemi_line_header;

typedef struct hemi_line_message {
    hemi_line_header header;
    unsigned char rest[HEMI_LINE_SHORT];
} hemi_line_message;

/** One round of this rank. */
typedef struct hemi_round {
    struct hem_op op;
    struct hemi_round *next;
    hem_line *line; /**< NULL when it is done */
    uint64_t number;
    uint64_t needs[2]; /**< the neighbour must have accepted this round */
    bool gives[2];
    bool all_done;
    bool taken;
    bool device[2];      /**< the payload is in device memory */
    hemi_line_mark mark; /**< payloads are ready */
    void *stream;        /**< of a device, if `streamed` */
    bool streamed;
    hem_payload out[2];
    hem_delivery in[2];
} hemi_round;

/** What lies before the metadata of a delivery: how to give the delivery back, without the line. */
typedef struct hemi_line_keep {
    hemi_line_memory memory; /**< the library's device memory, if any */
    hem_line_free_fn release;
    void *arg;
    size_t bytes;
    size_t magic;
} __attribute__((aligned(16))) hemi_line_keep;

enum hemi_line_part {
    HEMI_PART_HEADER = 0,
    HEMI_PART_META,
    HEMI_PART_DATA,
    HEMI_PART_STAGED, /**< the data, in pieces */
    HEMI_PART_END
};

/** Sending at one side. */
typedef struct hemi_line_out {
    hemi_round *at; /**< the round that is being sent; NULL: all were */
    uint32_t part;  /**< what comes next */
    uint64_t sent;  /**< rounds */
    bool held;      /**< by a stream, and not by the neighbour */
    hemi_letter letter;
    hemi_line_stage stage;
    hemi_line_message message;
} hemi_line_out;

enum hemi_line_phase {
    HEMI_IN_HEADER = 0, /**< waiting for the next header */
    HEMI_IN_FIRST,      /**< it comes by a letter */
    HEMI_IN_META,       /**< so does the metadata */
    HEMI_IN_ALLOC,      /**< the allocator is to be called */
    HEMI_IN_READY,      /**< the buffer's earlier work is to end */
    HEMI_IN_DATA,       /**< the data comes by a letter */
    HEMI_IN_PIECES,     /**< by several, straight into the buffer */
    HEMI_IN_STAGED      /**< it goes on to device memory, by letters or from `stage.from` */
};

/** Receiving at one side. */
typedef struct hemi_line_in {
    hemi_round *at;
    uint32_t phase;
    bool calling;        /**< a thread is in the allocator */
    uint64_t received;   /**< rounds */
    uint64_t heard;      /**< headers */
    uint64_t done;       /**< of the last header */
    bool held;           /**< by a stream, and not by the neighbour */
    void *bounce;        /**< data that came in one letter and goes to device memory */
    hemi_line_mark mark; /**< of the buffer's stream */
    hemi_letter letter;
    hemi_line_stage stage;
    hemi_line_message message;
} hemi_line_in;

struct hem_line {
    hemi_child child;
    hem_world *world; /**< NULL once it is closed */
    hemi_sides *sides;
    hemi_task task;
    uint64_t held_ns; /**< nothing has moved since */
    bool moved;
    hemi_task nap;            /**< listed while a stream is waited for: nobody rings then */
    struct hem_op *chore;     /**< called back where the allocator may be called */
    hemi_line_device *device; /**< NULL until it is used */
    hem_line_alloc_fn alloc;
    hem_line_free_fn release;
    void *alloc_arg;
    bool ring;
    bool asks[2]; /**< the neighbour has an allocator */
    bool broken;
    hem_status why;  /**< of the round at fault */
    uint64_t fault;  /**< its number */
    uint64_t rounds; /**< started */
    uint64_t done;   /**< the round in which this rank said that it is done, or 0 */
    hemi_round *head;
    hemi_round *last;
    hemi_line_out out[2];
    hemi_line_in in[2];
    char text[HEMI_OP_TEXT]; /**< why it is broken */
};

/** Whether there is a neighbour. */
static inline bool hemi_line_has(const hem_line *line, int s) {
    return line->sides->side[s].told != NULL;
}

/** Whether the side is an end of the line, or where a ring is cut. */
static inline bool hemi_line_ends(const hem_line *line, int s) {
    const hem_world *world = line->world;
    return s == HEMI_LEFT ? world->rank == 0 : world->rank + 1 == world->size;
}

/* All of the following under the engine's lock. */

/** One step of one direction. @return whether something was done. */
bool hemi_line_send(hem_line *line, int s);
bool hemi_line_recv(hem_line *line, int s);

/** As the task does. */
hem_status hemi_line_advance(hemi_task *task);
void hemi_line_trouble(hemi_task *task, uint64_t now_ns);
hem_status hemi_line_nap(hemi_task *task);
void hemi_line_wake_up(hemi_task *task, uint64_t now_ns);

/** Have the task called again soon: a stream is waited for. */
void hemi_line_watch(hem_line *line);

/** Break the line in round `number`, with the last error sentence. */
void hemi_line_break(hem_line *line, hem_status status, uint64_t number);

/** The same for what went wrong at a side; if the neighbour has said why, that is the reason. */
void hemi_line_break_side(hem_line *line, int s, hem_status status, uint64_t number);

/** After a break: wait until all rounds have ended. May drop the lock meanwhile. */
void hemi_line_await_end(hem_line *line);

/** Whether the side has something to do for the round yet. */
bool hemi_line_lacks(const hem_line *line, const hemi_round *round, int s);

/** Slots for the direction that `stage` is of, if it has none, and the line's device. Without the
 *  lock; may take a while. @return HEM_OK, an error. */
hem_status hemi_line_equip(hem_line *line, hemi_line_stage *stage);

/** Data of a round out of device memory, one step of it. @return whether something was done. */
bool hemi_line_send_staged(hem_line *line, int s);

/** Into device memory: by letters, or from `from` if it is not NULL. @return true. */
bool hemi_line_begin_staged(hem_line *line, int s, const void *from);
bool hemi_line_recv_staged(hem_line *line, int s);

/** In pieces straight into host memory. @return true. */
bool hemi_line_begin_pieces(hem_line *line, int s);
bool hemi_line_recv_pieces(hem_line *line, int s);

/** Fill in a letter of the direction and begin it. */
void hemi_line_send_letter(hem_line *line, int s, const void *data, size_t bytes);
void hemi_line_recv_letter(hem_line *line, int s, void *data, size_t bytes, uint32_t phase);

/** The round at a side is received. @return true. */
bool hemi_line_recv_end(hem_line *line, int s);

/** What a neighbour sent cannot be: break the line. @return true. */
bool hemi_line_nonsense(hem_line *line, int s, const char *what);

/** There is a buffer for the payload at a side, or there is none: `why` is the beginning of the
 *  sentence. @return true. */
bool hemi_line_accept(hem_line *line, int s);
bool hemi_line_refuse(hem_line *line, int s, const char *why);

/** What the callback of line->chore does, without the lock. */
void hemi_line_allocate(hem_op *op, hem_status status, void *arg);

/** Whether the data of the round is ready to be read. Breaks the line if it never will be. */
bool hemi_line_is_ready(hem_line *line, hemi_round *round);

/** Make room for what the header announces, but for its data. @return whether there was memory. */
bool hemi_delivery_make(const hem_line *line, const hemi_line_header *header,
                        hem_delivery *delivery);

/** Free what came; `dead`: the rank has ended, and its allocator is not called any more. */
void hemi_delivery_free(hem_delivery *delivery, bool dead);

/** What lies before its metadata. It is present. */
static inline hemi_line_keep *hemi_delivery_keep(const hem_delivery *delivery) {
    return (hemi_line_keep *)delivery->meta - 1;
}

extern const hemi_op_type hemi_line_round_type;

#endif
