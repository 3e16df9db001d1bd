/*
 * Windows in device memory, from the host's side.
 *
 * How this works. The control block in the arena is there as for every window, and carries what CPUs
 * tell each other: barriers, counters, and the CPU's lane of signals that a CPU waits for. On top,
 *
 *   - each rank has one piece of device memory: its bytes, then a control block that kernels use
 *     (rows of slots and arrivals, epochs, the tables of hem/device/types.h). Over the caller's own
 *     memory the control block is a piece of its own. Peers map both at creation;
 *   - ranks whose memory is not mapped are reached through their hosts: window/proxy.h;
 *   - each rank has a block of slots in its part of the arena for the ids that its CPU waits for. It
 *     is pinned by every rank whose kernels may signal there; only the `kernel` words are used.
 *
 * The CPU reaches device memory by the module's copy, never by a load or store, and so no payload
 * rides in a line and there are no atomics: hemi_peer_ready refuses such windows, a region without
 * a mapping does the copying, and what else differs is asked in the slow paths.
 *
 * Other rooms make such windows with hemi_device_window_create, or hem_window_create where they need
 * more, and take what kernels need from hem_window_device and hemi_window_device_address.
 */
#ifndef HEMI_WINDOW_DEVICE_H
#define HEMI_WINDOW_DEVICE_H

#include "device/device.h"
#include "window/window.h"

#include <hem/device/types.h>
#include <hem/device/word.h>

/** A CPU that waits for a word which kernels write looks again this often. */
#define HEMI_DEVICE_NAP_NS 50000

/** Offsets inside of the control block in device memory, and of the slots in host memory. */
typedef struct hemi_device_layout {
    uint64_t row_bytes;     /**< of slots; rows of different sources share no line */
    uint64_t arrivals;      /**< rows of them, after the rows of slots */
    uint64_t arrival_bytes; /**< of a row */
    uint64_t pair_epochs;   /**< rank by rank, `barriers` each */
    uint64_t epochs;
    uint64_t counters;
    uint64_t claims; /**< of rings, one per rank */
    uint64_t peers;  /**< the table of hemd_peer */
    uint64_t home;
    uint64_t bytes;          /**< of the whole control block */
    uint64_t host_row_bytes; /**< 0: no id is for CPUs, and no barrier is mixed */
    uint64_t host_bytes;     /**< of all slots in host memory */
} hemi_device_layout;

/** What a rank says of its part when it says where its control block is. */
typedef struct hemi_device_place {
    uint64_t bytes;
    hemi_pinned slots;
    uint8_t uuid[HEMI_DEVICE_UUID];
} hemi_device_place;

/** How this rank reaches one rank. */
typedef struct hemi_device_reach {
    hemi_device *device;
    hem_window *window;
    uint32_t rank;
    bool wanted;            /**< mapped, where that is possible */
    bool proxied;           /**< through its host: window/proxy.h */
    bool near;              /**< its GPU is this rank's */
    unsigned char *data;    /**< as kernels here see it; NULL: not mapped, or 0 bytes of its own */
    unsigned char *control; /**< NULL: not mapped */
    uint64_t bytes;
    hemi_pinned slots;           /**< in its host memory */
    hemd_slot *host;             /**< the same as kernels here see it; NULL: not mapped */
    hemi_device_memory map;      /**< of what the library allocated there */
    hemi_device_memory own_data; /**< of memory that is the caller's own there */
    hemd_ring *rings;            /**< of this rank's orders to it, by lane */
    hemd_ring *kernel_ring;      /**< that of kernels, as they see it */
    hemd_ring *served;           /**< of its orders to this rank; NULL: it gives none */
    uint32_t post_lock;          /**< of the CPU's orders, and: */
    uint64_t posted;             /**< slots of them */
} hemi_device_reach;

typedef struct hemi_window_device {
    hemi_device *device; /**< NULL until creation has come so far */
    hemi_device_layout layout;
    bool adopted; /**< the bytes are the caller's own memory */
    bool listed;  /**< the caller named its peers: all of them must be reached */
    void *memory; /**< the caller's own */
    int64_t proxy_limit_ns;
    hemi_trouble *trouble;
    uint32_t *trouble_words;  /**< as kernels see them */
    hemi_pinned rings;        /**< of all orders to peers */
    struct hemi_proxy *proxy; /**< what is carried out for peers; NULL: nothing */
    hem_dev_window dev;
    hemi_device_reach reach[]; /**< by rank; one's own holds what is to be released */
} hemi_window_device;

/** Offsets for `size` ranks. */
void hemi_device_lay_out(hemi_device_layout *layout, uint32_t size, uint32_t signals,
                         uint32_t device_signals, uint32_t barriers, uint32_t counters,
                         uint32_t mixed_barriers);

/** Read the options that are about devices; `window->device` is made if it is such a window. */
hem_status hemi_device_read_options(hem_window *window, hem_window_options *o);

/** Open the device and allocate this rank's part. `window->memory` becomes a device address. */
hem_status hemi_device_allocate(hem_window *window);

/** What to say about it, and what a peer has said, which is checked. */
void hemi_device_say(const hem_window *window, hemi_device_place *place_p);
hem_status hemi_device_hear(hem_window *window, uint32_t rank, const hemi_device_place *place);

/** Map each other's memory and fill in the tables. Collective; agreed. */
hem_status hemi_device_connect(hem_window *window, uint32_t call, hem_status status,
                               uint64_t fingerprint);

/** Write the tables that kernels read. */
hem_status hemi_device_write_tables(hem_window *window);

/**
 * Stop watching and unmap what is the peers'. No kernel uses it any more, except that with `closed`
 * those that wait are told to stop. May be called again.
 */
void hemi_device_unmap(hem_window *window, bool closed);

/** Of what is one's own the library's memory stays, since peers may still look at it; what is known of the
 *  caller's own goes. */
void hemi_device_disown(hem_window *window);

/** Free what is one's own; the peers have unmapped it. May be called again. `closed` as above. */
void hemi_device_free(hem_window *window, bool closed);

/** The region through which the CPU copies to and from `rank`. */
void hemi_device_region(const hem_window *window, uint32_t rank, hemi_region *region_p);

/** A signal of this CPU to an id that kernels wait for. */
hem_status hemi_device_signal(hem_window *window, hemi_peer *peer, uint32_t id, int op,
                              uint64_t value);

/** Whether kernels of a rank can be told anything. @return HEM_OK, HEM_ERR_UNSUPPORTED. */
hem_status hemi_device_check_reach(const hemi_device_reach *reach);

/** Store the CPU's word of slot `at` in a row of a mapped rank's device memory. */
hem_status hemi_device_set_slot(const hem_window *window, const hemi_device_reach *reach,
                                uint32_t row, uint32_t at, uint64_t value);

/**
 * Make a window of `bytes` bytes of device memory for another object of the library, which `call`
 * names in errors. peers_wanted[r]: kernels of this rank reach rank r; NULL: all. With a list, a peer
 * that cannot be reached is HEM_ERR_UNSUPPORTED. It has the default numbers of ids. Destroyed by
 * hem_window_destroy. Collective; agreed.
 */
hem_status hemi_device_window_create(hem_world *world, uint32_t call, uint64_t bytes,
                                     const bool *peers_wanted, hem_window **window_p);

/** This rank's slot in host memory that kernels of `rank` change; a CPU waits for `id`. */
hemd_slot *hemi_device_host_slot(const hem_window *window, uint32_t rank, uint32_t id);

/** Where kernels of this rank see the memory of `rank`, or NULL. One's own rank is allowed. */
void *hemi_window_device_address(const hem_window *window, uint32_t rank);

/** The device of the window, or NULL if it lies in host memory. */
hemi_device *hemi_window_device_of(const hem_window *window);

#endif
