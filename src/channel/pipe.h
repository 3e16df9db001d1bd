/*
 * Inside of a pipe, on the host.
 *
 * The protocol is in hem/device/pipe.h. A pipe stands on a window in device memory, whose bytes are:
 *
 *   error      this rank's, on a line of its own
 *   ways       the table of hemd_way, one per rank
 *   cursors    per peer that was named: those of its lanes for sending, then for receiving
 *   areas      per peer that was named: what that peer writes here
 *
 * The last signal id of the window, which a CPU can read, carries -status of ranks that have failed.
 */
#ifndef HEMI_CHANNEL_PIPE_H
#define HEMI_CHANNEL_PIPE_H

#include "core/world.h"
#include "device/device.h"

#include <hem/cuda.h>
#include <hem/device/way.h>

/** Warps of each role in a block, at most. */
#define HEMI_PIPE_WARPS 16

/** What a rank keeps of each rank. */
typedef struct hemi_pipe_peer {
    bool named;
    bool near;             /**< on the same GPU */
    uint64_t here;         /**< offset of its area in this rank's memory */
    uint64_t there;        /**< offset of this rank's area in its memory */
    unsigned char *memory; /**< with a window of buffers: its memory there, as kernels see it */
    uint64_t bytes;
} hemi_pipe_peer;

struct hem_pipe {
    hemi_child child;
    hem_world *world; /**< NULL once it is closed */
    hem_window *window;
    hemi_device *device;
    uint32_t rank;
    uint32_t size;
    uint32_t blocks;
    bool asked; /**< the caller has said how many */
    uint32_t slots;
    uint64_t slot_bytes;
    uint64_t short_bytes;
    uint32_t lanes;
    hem_window *straight; /**< where buffers may lie; the caller's. NULL: none */
    uint32_t sharing;     /**< ranks of the world on this rank's GPU, itself included */
    int64_t timeout_ns;
    hemd_area area;
    uint64_t cursors; /**< offset */
    uint64_t areas;
    uint64_t bytes;
    /** How many blocks of this many warps fit on the GPU at once: of the kernel for rings, and of the
     *  one for messages that may go straight, whose blocks have HEMI_PIPE_WARPS at most. */
    uint32_t fit[2 * HEMI_PIPE_WARPS + 1];
    uint32_t fit_straight[HEMI_PIPE_WARPS + 1];
    hem_dev_pipe dev;
    hemd_way *ways; /**< what kernels see in device memory, too */
    hemi_pipe_peer peers[];
};

/** Read the options into the pipe, with defaults. `pipe->peers` says who was named. */
hem_status hemi_pipe_read_options(hem_pipe *pipe, const hem_pipe_options *options);

/** Whether the peers that were named reach each other's memory in the window of buffers. Notes where
 *  it is. */
hem_status hemi_pipe_check_window(hem_pipe *pipe);

/** What must be the same on all ranks. */
uint64_t hemi_pipe_fingerprint(const hem_pipe *pipe);

/** How a call goes, with defaults: blocks, warps, chunk, time limit, team. Checked. */
typedef struct hemi_pipe_form {
    uint32_t blocks;
    uint32_t warps; /**< of each role */
    uint32_t team;
    uint32_t chunk;
    int64_t timeout_ns;
} hemi_pipe_form;

/** What a call is that a form is chosen for. */
typedef struct hemi_pipe_want {
    uint32_t lanes; /**< that the longer half uses; 0: there is none */
    uint32_t roles; /**< 1 or 2 */
    bool straight;  /**< by the kernel for messages that may go straight */
} hemi_pipe_want;

hem_status hemi_pipe_choose(const hem_pipe *pipe, const hem_pipe_how *how,
                            const hemi_pipe_want *want, hemi_pipe_form *form_p);

#endif
