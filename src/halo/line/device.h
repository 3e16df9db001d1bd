/*
 * What lines need of a device: marks on streams, memory in the order of streams, slots of pinned memory
 * that data passes through. Nothing of it is there in a program that has not opened a device.
 */
#ifndef HEMI_HALO_LINE_DEVICE_H
#define HEMI_HALO_LINE_DEVICE_H

#include "core/engine.h"
#include "device/device.h"

#include <hem/line.h>

/** Data that comes out of device memory is sent in messages of so many bytes; the last is shorter. */
#define HEMI_LINE_PIECE (256u << 10)
/** Pieces of one direction that may be under way. */
#define HEMI_LINE_SLOTS 2

/** A line's device, and the stream for copies that all lines of the rank share: whatever is on it ends by
 *  itself. Counted: the line and each piece of memory that it has given out hold it. */
typedef struct hemi_line_device {
    uint32_t refs;
    hemi_device *device;
    void *stream;
} hemi_line_device;

/** The rank's device if it is open and does what lines need, else NULL. */
hemi_device *hemi_line_device_peek(const hemi_root *root);

/** Whether an address is in device memory. `device` may be NULL. */
static inline bool hemi_line_is_device(const hemi_device *device, const void *address) {
    return device != NULL &&
           device->module->memory->kind(device->context, address) == HEM_MEMORY_DEVICE;
}

hem_status hemi_line_device_make(hemi_root *root, hemi_device *device, hemi_line_device **device_p);
void hemi_line_device_drop(hemi_line_device *device);

/* Marks: what is on a stream at a time. */

typedef struct hemi_line_flag hemi_line_flag;

/** All zero: nothing to wait for. */
typedef struct hemi_line_mark {
    hemi_line_flag *flag; /**< on a stream of the host */
    hemi_device *device;  /**< with `mark`: on one of the device */
    void *mark;
} hemi_line_mark;

/** Mark what is on the stream now. `root`: of the rank that it has to be of. @return HEM_OK;
 *  HEM_ERR_ARG, HEM_ERR_CLOSED, HEM_ERR_MEMORY, HEM_ERR_UNSUPPORTED, HEM_ERR_SYSTEM. */
hem_status hemi_line_mark_set(const hemi_root *root, hem_stream *stream, const char *call,
                              hemi_line_mark *mark_p);

/** @return HEM_OK: all of it is done, and the mark is all zero again; HEMI_AGAIN: not yet; or what
 *  went wrong on the stream. */
hem_status hemi_line_mark_test(hemi_line_mark *mark);

/** Forget it. All zero is allowed. */
void hemi_line_mark_drop(hemi_line_mark *mark);

/* Memory that the library gives out. It goes with the world if it is not given back before. */

typedef struct hemi_line_memory {
    hemi_child child;
    hem_world *world;         /**< whose child it is; NULL: closed, the memory is gone */
    hemi_line_device *device; /**< NULL: none was allocated */
    void *address;
    void *stream; /**< whose order it is freed in; if not `streamed`, the line's own */
    bool streamed;
} hemi_line_memory;

/** Allocate in the order of the device's stream into a zeroed `memory`. @return HEM_OK, an error. */
hem_status hemi_line_memory_alloc(hem_world *world, hemi_line_device *device, size_t bytes,
                                  hemi_line_memory *memory);

/** Give it back; `kept`: it is the caller's now. Nothing happens if it is all zero. */
void hemi_line_memory_free(hemi_line_memory *memory, bool kept);

/* Slots of one direction. */

typedef struct hemi_line_stage {
    hemi_pinned pinned;
    unsigned char *slots; /**< NULL: there are none yet */
    hemi_device *device;
    void *marks[HEMI_LINE_SLOTS]; /**< of the copy that a slot is used by, or NULL */
    void *loose;                  /**< the stream of a copy that could not be marked, or NULL */
    uint64_t copied;              /**< bytes that were put on the device's stream */
    uint64_t passed;              /**< bytes that letters, or the CPU, have moved */
    const unsigned char *from;    /**< where the CPU moves them from; NULL: letters do */
    bool moving;                  /**< a letter was begun and not looked at yet */
} hemi_line_stage;

/** Begin anew with other data. No copy is under way. */
void hemi_line_stage_begin(hemi_line_stage *stage, const void *from);

/** The slot of the piece at `offset`. */
static inline unsigned char *hemi_line_slot(const hemi_line_stage *stage, uint64_t offset) {
    return stage->slots + offset / HEMI_LINE_PIECE % HEMI_LINE_SLOTS * HEMI_LINE_PIECE;
}

/** Bytes of the piece at `offset` of `bytes`. */
static inline uint64_t hemi_line_piece(uint64_t offset, uint64_t bytes) {
    return bytes - offset < HEMI_LINE_PIECE ? bytes - offset : HEMI_LINE_PIECE;
}

/** Whether no copy uses the slot of `offset`: HEM_OK, HEMI_AGAIN, or what the device says. */
hem_status hemi_line_stage_test(hemi_line_stage *stage, uint64_t offset);

/** The same for all slots. After an error nothing is under way any more. */
hem_status hemi_line_stage_settle(hemi_line_stage *stage);

/** Copy the next piece between its slot and `memory`, of `bytes` in all. */
hem_status hemi_line_stage_copy(hemi_line_stage *stage, const hemi_line_device *device,
                                unsigned char *memory, uint64_t bytes, bool out);

/** Give the slots back. What is still being copied keeps them. */
void hemi_line_stage_free(hemi_root *root, hemi_line_stage *stage);

#endif
