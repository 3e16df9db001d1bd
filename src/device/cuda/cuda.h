/*
 * Inside of the CUDA module: a rank's GPU, and the calls that its files share.
 *
 * The module has CUDA's runtime in it (static, hidden), which knows nothing of the program's own
 * copy: what both share is the driver. So a rank's device is the driver's context that was current
 * when it was opened; every entry makes it current for the calling thread and puts back what was
 * there. Driver calls are looked up through the runtime, so that nothing here is linked with
 * libcuda and the module builds where there is no driver.
 *
 * After open nothing here synchronises with the device: waits are queries with naps in between, on
 * a stream of the rank's own, since kernels that run may be waiting for what this brings. Nothing is
 * freed or unmapped, either, but kept (keep.c). The exceptions: unmap_host, for which the caller has
 * to know what it does; mappings of a peer's pools; memory that is short; and the end of the last rank of the
 * process.
 */
#ifndef HEMI_DEVICE_CUDA_CUDA_H
#define HEMI_DEVICE_CUDA_CUDA_H

#include "device/cuda/driver.h"
#include "device/cuda/kernels.h"
#include "device/device.h"

#include <cuda_runtime_api.h>
#include <pthread.h>

#if CUDART_VERSION < 12040
#error "Hem needs CUDA 12.4 or newer"
#endif

#define HEMI_CUDA_EVENTS  32
#define HEMI_CUDA_IDLE    16
#define HEMI_CUDA_MARKS   64
#define HEMI_CUDA_DEVICES 32
/** What allocations are aligned to. */
#define HEMI_CUDA_ALIGN (UINT64_C(2) << 20)

/** One rank's device: the `context` of device.h. */
typedef struct hemi_cuda {
    hemi_device_host host;
    hemi_cuda_driver driver;
    CUcontext context;
    CUdevice device;
    bool primary;        /**< the context is the device's primary one, retained here */
    bool vmm;            /**< allocate so that memory can be exported as a descriptor */
    bool fabric;         /**< HEM_CUDA_FABRIC: export as a fabric handle */
    uint32_t processors; /**< SMs */
    uint8_t uuid[HEMI_DEVICE_UUID];
    /** Who may use what is allocated here: this device first, then those that can reach it. */
    CUmemAccessDesc access[HEMI_CUDA_DEVICES];
    size_t access_count;
    pthread_mutex_t copies;        /**< one at a time is on the stream */
    cudaStream_t stream;           /**< the rank's own: zeroing and copies */
    struct hemi_cuda_shelf *shelf; /**< memory that is kept: keep.c */
    cudaEvent_t events[HEMI_CUDA_EVENTS];
    uint32_t event_taken[HEMI_CUDA_EVENTS]; /**< atomic */
    /** Streams that nobody needs at the moment, under `copies`. A new one might share a queue of the
     *  GPU with another rank's, and so wait for it: the fewer are ever made, the better. */
    cudaStream_t idle[HEMI_CUDA_IDLE];
    uint32_t idle_count;
    CUmemoryPool pool; /**< of memory in the order of streams, or NULL; made under `copies` */
    pthread_mutex_t marking;
    cudaEvent_t marks[HEMI_CUDA_MARKS]; /**< that nobody needs at the moment, under `marking` */
    uint32_t mark_count;
} hemi_cuda;

/** What the calling thread had before it came in. */
typedef struct hemi_cuda_turn {
    CUstreamCaptureMode mode;
} hemi_cuda_turn;

/**
 * Make the rank's context current. The thread may be in the middle of a capture of another stream,
 * or some other thread in one that forbids what we do to everybody: ours are no part of it.
 */
hem_status hemi_cuda_enter(const hemi_cuda *cuda, hemi_cuda_turn *turn_p);
void hemi_cuda_leave(const hemi_cuda *cuda, hemi_cuda_turn *turn);

/** HEM_OK, or the status that an error of the runtime means, with a sentence. */
hem_status hemi_cuda_check(const hemi_cuda *cuda, cudaError_t error, const char *what);
/** The same for the driver's. */
hem_status hemi_cuda_check_driver(const hemi_cuda *cuda, CUresult result, const char *what);

/** Wait until the rank's own stream is empty, by queries. The caller has entered and is alone. */
hem_status hemi_cuda_drain(const hemi_cuda *cuda);

/** module->memory->copy and send: copy.c */
hem_status hemi_cuda_copy(void *context, void *to, const void *from, uint64_t bytes);
hem_status hemi_cuda_send(void *context, void *to, const void *from, uint64_t bytes);

/** name and map: peer.c */
hem_status hemi_cuda_name(void *context, const hemi_device_memory *memory, hemi_device_name *name_p,
                          int *fd_p);
hem_status hemi_cuda_map(void *context, const hemi_device_name *name, int fd, bool same_process,
                         hemi_device_memory *memory_p);

/** map_host and unmap_host: host.c */
hem_status hemi_cuda_map_host(void *context, void *host, uint64_t bytes, bool frozen,
                              void **address_p);
void hemi_cuda_unmap_host(void *context, void *host, uint64_t bytes);

/** How a piece of memory came here, and so how it goes. */
typedef enum hemi_cuda_how {
    HEMI_CUDA_CREATED = 1, /**< physical memory of ours, mapped */
    HEMI_CUDA_MALLOCED,    /**< by cudaMalloc */
    HEMI_CUDA_ADOPTED,     /**< the caller's */
    HEMI_CUDA_IMPORTED,    /**< a peer's physical memory, mapped */
    HEMI_CUDA_OPENED,      /**< a peer's, by legacy IPC */
    HEMI_CUDA_POOLED,      /**< a peer's, of a pool: pools.c */
    HEMI_CUDA_SHARED,      /**< of this process: nothing to undo */
    HEMI_CUDA_TEAM         /**< a multicast object: team.c */
} hemi_cuda_how;

/** hemi_device_memory.inside */
typedef struct hemi_cuda_piece {
    hemi_cuda_how how;
    uint32_t kind; /**< enum hemi_device_name_kind: as what it is shown to other processes */
    bool held;     /**< `handle` is */
    CUmemGenericAllocationHandle handle;
    CUdeviceptr base; /**< of what is mapped, allocated or opened as a whole */
    uint64_t whole;
    struct hemi_cuda_opening *opening; /**< of legacy IPC */
    CUmemoryPool pool;                 /**< that it is of, the caller's or one that was mapped */
    uint64_t room;                     /**< bytes from the address that alloc gives */
    uint64_t serial;                   /**< see hemi_device_name */
    struct hemi_cuda_piece *next;      /**< among those that are kept */
    bool again;                        /**< may be given out again */
    /* Of a team, whose `base` is that of reserved addresses: how far it is. */
    bool joined;
    bool bound;
    bool mapped;
    uint32_t members;
    uint64_t group;                 /**< who makes it finds it by that; 0: made by another */
    struct hemi_cuda_piece *member; /**< this rank's memory of it */
} hemi_cuda_piece;

/** A stream of the library's own, which has its queue. The caller has entered. stream.c */
hem_status hemi_cuda_stream_create(const hemi_cuda *cuda, cudaStream_t *stream_p);

/** Really free a piece. The device waits for all kernels of the context. memory.c */
void hemi_cuda_drop(const hemi_cuda *cuda, hemi_cuda_piece *piece);

/** New physical memory, mapped, neither zeroed nor what was kept. memory.c */
hem_status hemi_cuda_create(const hemi_cuda *cuda, uint64_t bytes, hemi_cuda_piece **piece_p);

/** As hemi_cuda_map, of a team: `*piece_p` is empty before, and free on an error. team.c */
hem_status hemi_cuda_team_map(const hemi_cuda *cuda, const hemi_device_name *name, int fd,
                              bool same_process, hemi_cuda_piece **piece_p);
/** Undo whatever was done for a team. Waits for kernels. team.c */
void hemi_cuda_team_undo(const hemi_cuda *cuda, hemi_cuda_piece *piece);

/** A number that no other allocation has or had: of the driver's for it, or a new one for 0. keep.c */
uint64_t hemi_cuda_serial(uint64_t buffer);

/* Memory that nobody needs at the moment. The caller has entered. keep.c */

hem_status hemi_cuda_keep_open(hemi_cuda *cuda);
/** Before the context is given up. The last of its users frees all: this may wait for kernels. */
void hemi_cuda_keep_close(hemi_cuda *cuda);
/** Take it over: created, malloced, imported or, if not `again`, pooled. `again`: no kernel looks at it any more. */
void hemi_cuda_keep(const hemi_cuda *cuda, hemi_cuda_piece *piece, bool again);
/** Free all that is kept: memory is short. Waits for kernels. @return whether there was anything. */
bool hemi_cuda_keep_empty(const hemi_cuda *cuda);
/** Own memory with room for `bytes`, not zeroed, or NULL. */
hemi_cuda_piece *hemi_cuda_keep_take_own(const hemi_cuda *cuda, uint64_t bytes);
/** The mapping of what a peer names, or NULL. */
hemi_cuda_piece *hemi_cuda_keep_take_import(const hemi_cuda *cuda, const hemi_device_name *name);
/** The team with this serial; or for 0 one that was made here for `group` with room for `bytes`. */
hemi_cuda_piece *hemi_cuda_keep_take_team(const hemi_cuda *cuda, uint64_t serial, uint64_t group,
                                          uint64_t bytes);

/**
 * Map physical memory for the `count` devices of cuda->access. Fills in base and whole; does not
 * take the handle over. memory.c
 */
hem_status hemi_cuda_settle(const hemi_cuda *cuda, CUmemGenericAllocationHandle handle,
                            uint64_t whole, size_t count, hemi_cuda_piece *piece);
void hemi_cuda_unsettle(const hemi_cuda *cuda, const hemi_cuda_piece *piece);

/** Legacy IPC: a handle is opened once in a process, however many ranks map it, and kept. ipc.c */
hem_status hemi_cuda_ipc_open(const hemi_cuda *cuda, const hemi_device_name *name,
                              hemi_cuda_piece *piece);
void hemi_cuda_ipc_close(const hemi_cuda *cuda, hemi_cuda_piece *piece);
/** Close what is open in this context and used by nobody. Waits for kernels. @return whether any. */
bool hemi_cuda_ipc_close_idle(const hemi_cuda *cuda);

/** A peer may have said a wrong length: what was mapped has its own. peer.c */
hem_status hemi_cuda_check_length(const hemi_cuda *cuda, const void *base,
                                  const hemi_device_name *name);

/** Memory of the caller's pools: whether others can map it; name and map it. pools.c */
bool hemi_cuda_pools_shows(const hemi_cuda *cuda, const hemi_cuda_piece *piece);
hem_status hemi_cuda_pools_export(const hemi_cuda *cuda, const hemi_cuda_piece *piece,
                                  hemi_device_name *name, int *fd_p);
hem_status hemi_cuda_pools_import(const hemi_cuda *cuda, const hemi_device_name *name, int fd,
                                  hemi_cuda_piece *piece);
/** Give it back: no kernel looks at it any more. */
void hemi_cuda_pools_release(hemi_cuda *cuda, const hemi_cuda_piece *piece);
/** The same if one may. Waits for kernels. */
void hemi_cuda_pools_drop(const hemi_cuda *cuda, const hemi_cuda_piece *piece);

/** Memory and marks in the order of streams: ordered.c */
hem_status hemi_cuda_mark(void *context, void *stream, void **mark_p);
hem_status hemi_cuda_test(void *context, void *mark);
void hemi_cuda_unmark(void *context, void *mark);
hem_status hemi_cuda_alloc_on(void *context, void *stream, uint64_t bytes, void **address_p);
void hemi_cuda_free_on(void *context, void *stream, void *address);
/** Give marks and the pool up; what was not given back to it stays. The caller has entered. */
void hemi_cuda_ordered_close(hemi_cuda *cuda);

extern const hemi_device_memory_ops hemi_cuda_memory_ops;
extern const hemi_device_stream_ops hemi_cuda_stream_ops;
extern const hemi_device_team_ops hemi_cuda_team_ops;

/** NULL for a number that names no kernel. */
const hemi_cuda_kernel *hemi_cuda_kernel_of(enum hemi_kernel kernel);

/** Where an address is, as far as the driver knows it. */
typedef enum hemi_cuda_place {
    HEMI_CUDA_HOST = 0,
    HEMI_CUDA_DEVICE,
    HEMI_CUDA_MANAGED /**< the driver moves it to whoever uses it */
} hemi_cuda_place;

hemi_cuda_place hemi_cuda_place_of(const hemi_cuda *cuda, const void *address);

/** One pointer attribute, or false where the driver knows nothing of the address. */
bool hemi_cuda_attribute(const hemi_cuda *cuda, CUpointer_attribute attribute, const void *address,
                         void *value_p);

static inline const void *hemi_cuda_at(uint64_t address) {
    return (const void *)(uintptr_t)address;
}

#endif
