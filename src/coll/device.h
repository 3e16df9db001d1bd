/*
 * Collectives on device buffers, from the host's side: a persistent operation that is one launch.
 *
 * How this works. Making one is collective. First the ranks compare what they call and say how much
 * they move; from that all decide alike which form the kernel takes (device/kernels/coll.h). For the
 * form between barriers they then show each other their buffers; if some rank cannot reach some
 * buffer, all stage theirs: copies in stream order bring `send` into the window before the kernel and
 * the result out of it after. Where multicast is on, they stage in memory of a team instead
 * (device_multi.c). Then a window in device memory is made, whose bytes are
 *
 *   state      counts and the word of failure, hemd_coll_state
 *   spans      what this rank sends to and receives from each rank, hemi_coll_span: the peers read it
 *   tables     what the kernel reads
 *   units      staging of the unit form: two halves, a row per rank in each
 *   sends      staged copy of `send`, where buffers are not reached
 *   results    what is copied to `recv` after the kernel, there or where it works in place
 *
 * at the same offsets on all ranks. Each rank reads its peers' spans, checks that they fit its own,
 * and writes its tables.
 */
#ifndef HEMI_COLL_DEVICE_H
#define HEMI_COLL_DEVICE_H

#include "coll/job.h"
#include "core/engine.h"
#include "device/device.h"
#include "device/kernels/coll_table.h"

/** What goes between this rank and another: bytes of `send` and of `recv`. */
typedef struct hemi_coll_span {
    uint64_t send_at;
    uint64_t send_bytes;
    uint64_t recv_at;
    uint64_t recv_bytes;
} hemi_coll_span;

/** What a rank says of its part, and what all have said. */
typedef struct hemi_coll_wish {
    uint8_t uuid[HEMI_DEVICE_UUID];
    uint32_t fit;        /**< blocks that its device runs at once */
    uint32_t wants;      /**< blocks that its work is worth */
    uint32_t moved;      /**< it works in place so that results must be written aside */
    uint32_t multi;      /**< ranks on its device that can be in one team */
    uint32_t blocks;     /**< that it allows */
    uint64_t send_bytes; /**< extent of its buffers */
    uint64_t recv_bytes;
    uint64_t pair_bytes; /**< the most between it and another rank */
} hemi_coll_wish;

/** Pieces that are copied in stream order. */
typedef struct hemi_coll_copies {
    uint32_t count;
    void **to;
    const void **from;
    size_t *bytes;
} hemi_coll_copies;

enum {
    HEMI_COLL_SEND,
    HEMI_COLL_RECV,
    HEMI_COLL_BUFFERS
};

typedef struct hemi_coll_device {
    struct hem_op op;
    hemi_task task;
    hemi_child child; /**< the device's part goes with the world, the handle may stay */
    hemi_root *root;
    hemi_device *device; /**< NULL: nothing of the device is left */
    hemi_job job;
    uint32_t rank;
    uint32_t size;
    int64_t timeout_ns; /**< of making it */
    unsigned char *buffers[HEMI_COLL_BUFFERS];
    uint64_t extents[HEMI_COLL_BUFFERS];
    hemi_coll_span *spans;  /**< one per rank */
    hemi_coll_span *theirs; /**< what each says of this rank */
    bool *wants;            /**< whose buffers to map: everybody's */
    hemi_coll_wish all;     /**< the most that any rank said; `fit`, `multi`, `blocks` the least */
    uint32_t sharing;       /**< the most ranks on one device */
    uint64_t group;         /**< a number for the devices of all ranks */
    bool units;
    bool direct; /**< buffers are read and written where they are */
    bool multi;  /**< staged in the memory of a team, by multicast */
    hemi_device_memory team;
    uint64_t slot; /**< bytes of a slot in it */
    hemi_device_memory own[HEMI_COLL_BUFFERS];
    hemi_device_memory *maps[HEMI_COLL_BUFFERS]; /**< one per rank */
    hem_window *window;
    uint64_t spans_at;
    uint64_t tables_at;
    uint64_t units_at;
    uint64_t staged_at[HEMI_COLL_BUFFERS];
    uint64_t bytes;
    uint32_t blocks;
    uint32_t threads;
    hemd_coll_args args;
    hemi_coll_copies before;
    hemi_coll_copies after;
    void *stream; /**< lent for the run that the host has started, else NULL */
} hemi_coll_device;

/** Whether this rank's buffers are in device memory. `look`: find out also where no device is open
 *  yet, which takes a system call. */
bool hemi_coll_is_device(hem_world *world, const hem_coll *coll, bool look);

/** Make a handle. Collective. @return as hem_coll_plan. */
hem_status hemi_coll_device_plan(hem_world *world, const hem_coll *coll, bool persistent,
                                 int64_t timeout_ns, hem_op **op_p);

/** Plan, run, free. Collective. */
hem_status hemi_coll_device_run(hem_world *world, const hem_coll *coll, int64_t timeout_ns);

/** Set up what is local: spans, extents, the device. device_spans.c */
hem_status hemi_coll_device_prepare(hemi_coll_device *d, const hem_coll *coll);

/** Sharing and staging. Collective, agreed. device_connect.c */
hem_status hemi_coll_device_connect(hemi_coll_device *d, hem_status status, uint64_t fingerprint);

/** Whether the failure is one that no other form helps against, on all ranks alike. */
static inline bool hemi_coll_device_is_final(hem_status status) {
    return status == HEM_ERR_PEER || status == HEM_ERR_TIMEOUT || status == HEM_ERR_REVOKED ||
           status == HEM_ERR_CLOSED;
}

/** Make a team, where multicast is on and all ranks can: d->multi. Collective, agreed.
 *  device_multi.c */
hem_status hemi_coll_device_team(hemi_coll_device *d);

/** Where what goes to or comes from rank r is staged in this rank's memory of the team. */
unsigned char *hemi_coll_device_slot(const hemi_coll_device *d, int which, uint32_t r);

/** Tell the kernel this rank's part; of an all-reduce that is a slice of the vector. */
void hemi_coll_device_part(hemi_coll_device *d, uint64_t begin, uint64_t bytes);

/** The kernel's arguments, its tables and the copies around it. device_tables.c */
hem_status hemi_coll_device_fill(hemi_coll_device *d);

/** Bytes of tables that hemi_coll_device_fill writes. */
uint64_t hemi_coll_device_tables(const hemi_coll_device *d);

/** Whether the kind combines elements. */
static inline bool hemi_coll_device_combines(const hemi_job *job) {
    return job->op != 0;
}

/** The kernel's name of a reduction and how many of its elements one of the host's is; 0: a copy. */
uint32_t hemi_coll_device_code(const hemi_job *job, uint32_t *parts_p);

/** Which kernel a run is. */
static inline enum hemi_kernel hemi_coll_device_kernel(const hemi_coll_device *d) {
    if (d->multi)
        return HEMI_KERNEL_COLL_MULTI;
    /* Several words of a rank for each thread. */
    bool deep = d->units && d->args.words > (uint64_t)d->blocks * d->threads;
    return deep ? HEMI_KERNEL_COLL_DEEP : HEMI_KERNEL_COLL;
}

/** Give back what is the device's. `closed`: the world has gone, and kernels may still look at it. */
void hemi_coll_device_drop(hemi_coll_device *d, bool closed);

extern const hemi_op_type hemi_coll_device_type;

#endif
