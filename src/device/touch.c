/* Memory that is given to calls of the host. */
#include "device/touch.h"

#include "device/device.h"

#define PAGE_BITS 12

static bool ask(const hemi_device *device, const void *data) {
    const hemi_device_memory_ops *ops = device->module->memory;
    if (ops->host_reaches != NULL)
        return ops->host_reaches(device->context, data);
    /* A table that a test has made up may not have that either. */
    return ops->kind == NULL || ops->kind(device->context, data) == HEM_MEMORY_HOST;
}

static bool is_reached(hemi_device *device, const void *data) {
    uint64_t page = (uint64_t)(uintptr_t)data >> PAGE_BITS;
    uint64_t *seen = &device->touched[page % HEMI_DEVICE_TOUCHED];
    if (hemi_load64_relaxed(seen) == page)
        return true;
    if (!ask(device, data))
        return false;
    hemi_store64_relaxed(seen, page);
    return true;
}

hem_status hemi_device_check_host(const hemi_root *root, const void *data, size_t bytes,
                                  const char *call, const char *instead) {
    hemi_device *device = hemi_device_peek(root);
    if (device == NULL || bytes == 0 || is_reached(device, data))
        return HEM_OK;
    return hemi_fail(HEM_ERR_UNSUPPORTED,
                     "%s: %p is in device memory, which the host does not reach: %s", call, data,
                     instead);
}
