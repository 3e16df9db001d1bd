/* Device memory that outlives the world it was for. */
#include "device/device.h"

#include "base/lock.h"

#include <stdlib.h>
#include <string.h>

typedef struct hemi_retired {
    struct hemi_retired *next;
    hemi_device_memory memory;
} hemi_retired;

void hemi_device_retire(hemi_root *root, hemi_device_memory *memory) {
    hemi_device *device = hemi_device_peek(root);
    if (device == NULL || memory->address == NULL)
        return;
    hemi_retired *retired = calloc(1, sizeof *retired);
    /* Without memory to remember it by, it goes with the process. */
    if (retired != NULL) {
        retired->memory = *memory;
        hemi_lock(root->platform, &root->device_lock);
        retired->next = device->retired;
        device->retired = retired;
        hemi_unlock(&root->device_lock);
    }
    memset(memory, 0, sizeof *memory);
}

void hemi_device_free_retired(hemi_device *device) {
    const hemi_device_memory_ops *ops = device->module->memory;
    while (device->retired != NULL) {
        hemi_retired *retired = device->retired;
        device->retired = retired->next;
        if (ops->abandon != NULL)
            ops->abandon(device->context, &retired->memory);
        else
            ops->release(device->context, &retired->memory);
        free(retired);
    }
}
