/* Inside of a rank's device: what hangs from root->device. */
#ifndef HEMI_DEVICE_ROOM_H
#define HEMI_DEVICE_ROOM_H

#include "device/device.h"

#include <pthread.h>

/**
 * The watcher. Made with the room; its thread starts with the first trouble and ends with the room.
 *
 * Who writes what. `lock` guards the list, `running`, `closed` and every store into the words of a
 * trouble. The thread is parked on the alarm count of the arena, which every death, revoke and close
 * counts up and wakes; nobody who signals this rank pays for it.
 */
typedef struct hemi_watch {
    uint32_t lock;
    uint32_t order; /**< 1: the thread is to end; released by who ends it */
    uint32_t ended; /**< released by the thread */
    bool running;
    bool closed; /**< the rank has ended: nothing is watched any more */
    pthread_t thread;
    hemi_trouble *troubles;
} hemi_watch;

/** Who goes round the chores. `lock` guards all of it but `order`, and is held in a round. */
typedef struct hemi_chores {
    uint32_t lock;
    uint32_t order; /**< 1: the thread is to end */
    bool running;
    bool closed; /**< the rank has ended */
    pthread_t thread;
    hemi_chore *first;
} hemi_chores;

typedef struct hemi_pin hemi_pin;

/** Constant once it is in root->device, but for the watcher, the chores and what is pinned. */
typedef struct hemi_device_room {
    hemi_root *root;
    hem_status status; /**< HEM_OK: `device` is open */
    char sentence[HEMI_ERROR_MAX];
    hemi_device device;
    hemi_watch watch;
    hemi_chores chores;
    uint32_t pins_lock;
    struct hemi_pin *pins;         /**< under pins_lock: device/pinned.c */
    struct hemi_device_room *next; /**< of root->mates, in pinned.c */
} hemi_device_room;

/**
 * Open the device of this rank through a table instead of a file, if it has none yet. For tests.
 */
hem_status hemi_device_use(hemi_root *root, const hemi_device_module *module);

/** Raise HEM_ERR_CLOSED everywhere, and end the thread. Twice does no harm. */
void hemi_watch_close(hemi_device_room *room);

/** Forget all that is left. After hemi_watch_close. The words stay where they are. */
void hemi_watch_free(hemi_device_room *room);

/** Do nothing any more, and end the thread. Twice does no harm. */
void hemi_chores_close(hemi_device_room *room);

/** The device was opened; it is about to be closed. pinned.c */
void hemi_pins_open(hemi_device_room *room);
void hemi_pins_close(hemi_device_room *room);

#endif
