/*
 * Finding and opening the device of a rank. What came of it is kept in root->device, good or bad: a
 * program that tries GPUs first and goes on without pays once.
 */
#include "device/room.h"

#include "base/env.h"
#include "base/lock.h"

#include <hem/cuda.h>

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILE_NAME  "libhem_cuda.so"
#define ENTRY      "hemi_device_module_get"
#define PATH_BYTES 4096

static const hemi_device_host host = {
    .version = HEMI_DEVICE_VERSION, .fail = hemi_fail, .env = hemi_env_text};

/* What this library is linked into, without the name of the file; false if that is not known. */
static bool own_folder(char *folder, size_t size) {
    Dl_info info;
    if (dladdr(&host, &info) == 0 || info.dli_fname == NULL)
        return false;
    const char *slash = strrchr(info.dli_fname, '/');
    if (slash == NULL || (size_t)(slash - info.dli_fname) + 1 >= size)
        return false;
    memcpy(folder, info.dli_fname, (size_t)(slash - info.dli_fname));
    folder[slash - info.dli_fname] = '\0';
    return true;
}

/* GPU runtimes do not survive being unloaded, hence NODELETE. */
static void *load(const char *path) {
    return dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
}

static const char *why(void) {
    const char *text = dlerror();
    return text != NULL ? text : "the loader does not say why";
}

/* `path` gets what was opened, for sentences. */
static hem_status find(char *path, size_t size, void **library_p) {
    const char *named = hemi_env_text("HEM_DEVICE_MODULE");
    char folder[PATH_BYTES - sizeof FILE_NAME - 1];
    if (named != NULL) {
        snprintf(path, size, "%s", named);
        *library_p = load(named);
        if (*library_p == NULL)
            return hemi_fail(HEM_ERR_UNSUPPORTED,
                             "HEM_DEVICE_MODULE names what cannot be opened: %s", why());
        return HEM_OK;
    }
    if (own_folder(folder, sizeof folder)) {
        snprintf(path, size, "%s/%s", folder, FILE_NAME);
        if (access(path, F_OK) == 0) {
            *library_p = load(path);
            if (*library_p == NULL)
                return hemi_fail(HEM_ERR_UNSUPPORTED, "the module for GPUs cannot be opened: %s",
                                 why());
            return HEM_OK;
        }
    }
    snprintf(path, size, "%s", FILE_NAME);
    *library_p = load(FILE_NAME);
    if (*library_p == NULL)
        return hemi_fail(HEM_ERR_UNSUPPORTED,
                         "the module for GPUs is neither beside this library nor where the loader "
                         "looks: %s",
                         why());
    return HEM_OK;
}

static hem_status check_module(const hemi_device_module *module, const char *path) {
    if (module == NULL)
        return hemi_fail(HEM_ERR_UNSUPPORTED, "%s gave no device module", path);
    if (module->version != HEMI_DEVICE_VERSION)
        return hemi_fail(HEM_ERR_UNSUPPORTED,
                         "%s has version %u of the interface to devices, this library has %u", path,
                         module->version, HEMI_DEVICE_VERSION);
    if (module->memory == NULL || module->stream == NULL || module->open == NULL ||
        module->close == NULL)
        return hemi_fail(HEM_ERR_UNSUPPORTED, "%s is not a whole device module", path);
    return HEM_OK;
}

static hem_status open_file(hemi_device *device) {
    char path[PATH_BYTES];
    hem_status status = find(path, sizeof path, &device->library);
    if (status != HEM_OK)
        return status;
    hemi_device_module_fn get = NULL;
    void *entry = dlsym(device->library, ENTRY);
    if (entry == NULL)
        return hemi_fail(HEM_ERR_UNSUPPORTED, "%s is no device module: it has no %s", path, ENTRY);
    memcpy(&get, &entry, sizeof get);
    device->module = get();
    return check_module(device->module, path);
}

static hem_status open_device(hemi_device *device, const hemi_device_module *module) {
    hem_status status = HEM_OK;
    device->module = module;
    if (module == NULL)
        status = open_file(device);
    else
        status = check_module(module, "the table");
    if (status == HEM_OK)
        status = device->module->open(&host, &device->context, &device->facts);
    device->facts.name[sizeof device->facts.name - 1] = '\0';
    if (status != HEM_OK && device->library != NULL) {
        dlclose(device->library);
        device->library = NULL;
    }
    return status;
}

/* The rank has ended, well or not: kernels hear of it, and nothing is done for them any more. */
static void abandon_room(hemi_device_room *room) {
    hemi_watch_close(room);
    hemi_chores_close(room);
}

static void free_room(hemi_device_room *room) {
    hemi_device *device = &room->device;
    abandon_room(room);
    hemi_watch_free(room);
    if (room->status == HEM_OK) {
        hemi_device_free_streams(device);
        hemi_device_free_retired(device);
        hemi_pins_close(room);
        device->module->close(device->context);
    }
    if (device->library != NULL)
        dlclose(device->library);
    free(room);
}

static hemi_device_room *look(const hemi_root *root) {
    /* Pairs with the release in enter. */
    return __atomic_load_n(&root->device, __ATOMIC_ACQUIRE);
}

/* Under the lock. */
static hemi_device_room *enter(hemi_root *root, const hemi_device_module *module) {
    hemi_device_room *room = calloc(1, sizeof *room);
    if (room == NULL)
        return NULL;
    room->root = root;
    room->status = open_device(&room->device, module);
    if (room->status == HEM_OK)
        hemi_pins_open(room);
    else
        hemi_error_save(room->sentence);
    root->device_abandon = abandon_room;
    root->device_free = free_room;
    __atomic_store_n(&root->device, room, __ATOMIC_RELEASE);
    return room;
}

static hem_status get_room(hemi_root *root, const hemi_device_module *module,
                           hemi_device_room **room_p) {
    hemi_device_room *room = look(root);
    if (room == NULL) {
        hemi_lock(root->platform, &root->device_lock);
        room = look(root);
        if (room == NULL)
            room = enter(root, module);
        hemi_unlock(&root->device_lock);
    }
    if (room == NULL)
        return hemi_fail(HEM_ERR_MEMORY, "no memory for a device");
    if (room->status != HEM_OK)
        hemi_error_restore(room->sentence);
    *room_p = room;
    return room->status;
}

hem_status hemi_device_use(hemi_root *root, const hemi_device_module *module) {
    hemi_device_room *room = NULL;
    return get_room(root, module, &room);
}

hem_status hemi_device_get(hemi_root *root, hemi_device **device_p) {
    hemi_device_room *room = NULL;
    hem_status status = get_room(root, NULL, &room);
    if (status == HEM_OK)
        *device_p = &room->device;
    return status;
}

hemi_device *hemi_device_peek(const hemi_root *root) {
    hemi_device_room *room = look(root);
    return room != NULL && room->status == HEM_OK ? &room->device : NULL;
}

void hemi_device_close(hemi_root *root) {
    hemi_device_room *room = look(root);
    if (room == NULL)
        return;
    __atomic_store_n(&root->device, NULL, __ATOMIC_RELEASE);
    free_room(room);
}

hem_status hem_device_open(hem_world *world, hem_device_facts *facts_p) {
    if (world == NULL)
        return hemi_fail(HEM_ERR_ARG, "hem_device_open: world is NULL");
    if (facts_p != NULL && facts_p->struct_size < sizeof *facts_p)
        return hemi_fail(HEM_ERR_ARG, "hem_device_open: struct_size is %zu, not that of the facts",
                         facts_p->struct_size);
    hemi_device *device = NULL;
    hem_status status = hemi_device_get(world->root, &device);
    if (status != HEM_OK || facts_p == NULL)
        return status;
    hem_device_facts facts = {.struct_size = facts_p->struct_size,
                              .ordinal = device->facts.ordinal,
                              .processors = device->facts.processors,
                              .l2_bytes = device->facts.l2_bytes,
                              .capability = device->facts.capability};
    memcpy(facts.name, device->facts.name, sizeof facts.name);
    *facts_p = facts;
    return HEM_OK;
}
