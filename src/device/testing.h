/*
 * A device module for tests of what stands on this contract: memory is a memfd, there are no streams.
 * Each program that includes this has one; what it is to do is said in `fake`.
 */
#ifndef HEMI_DEVICE_TESTING_H
#define HEMI_DEVICE_TESTING_H

#include "base/atomic.h"
#include "device/room.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/** What the module has done, and what it is to do. All words are atomic. */
typedef struct testing_device {
    uint32_t opened;
    uint32_t apart; /**< 1: each that is opened is another GPU */
    uint32_t closed;
    uint32_t held;   /**< memory and maps */
    uint32_t pinned; /**< calls of map_host less those of unmap_host */
    uint32_t last;   /**< word 0 of what was unmapped last */
    /* Set before use. */
    uint32_t refuse_open; /**< -status */
    uint32_t refuse_map;  /**< -status */
    uint32_t refuse_pin;  /**< -status */
    uint32_t no_fd;       /**< name memory as if it came with a descriptor, and give none */
} testing_device;

static testing_device fake;

static inline hem_status fake_refuse(const void *context, const uint32_t *word, const char *what) {
    const hemi_device_host *host = context;
    uint32_t code = hemi_load32_acquire(word);
    return code == 0 ? HEM_OK
                     : host->fail((hem_status) - (int)code, "the fake refuses to %s", what);
}

static inline hem_status fake_keep(int fd, uint64_t bytes, hemi_device_memory *memory_p) {
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED)
        return HEM_ERR_MEMORY;
    hemi_add32_acq_rel(&fake.held, 1);
    /* A map needs no descriptor, a name does: 0 stands for none. */
    *memory_p = (hemi_device_memory){at, bytes, (void *)(uintptr_t)(unsigned)fd};
    return HEM_OK;
}

static inline hem_status fake_alloc(void *context, uint64_t bytes, hemi_device_memory *memory_p) {
    int fd = memfd_create("hem-fake", MFD_CLOEXEC);
    (void)context;
    if (fd < 0 || ftruncate(fd, (off_t)bytes) != 0)
        return HEM_ERR_MEMORY;
    return fake_keep(fd, bytes, memory_p);
}

static inline hem_status fake_name(void *context, const hemi_device_memory *memory,
                                   hemi_device_name *name_p, int *fd_p) {
    (void)context;
    *name_p = (hemi_device_name){.kind = HEMI_DEVICE_NAME_FD,
                                 .address = (uintptr_t)memory->address,
                                 .bytes = memory->bytes,
                                 .whole = memory->bytes};
    *fd_p = hemi_load32_acquire(&fake.no_fd) != 0 ? -1 : dup((int)(uintptr_t)memory->inside);
    return HEM_OK;
}

static inline hem_status fake_map(void *context, const hemi_device_name *name, int fd,
                                  bool same_process, hemi_device_memory *memory_p) {
    hem_status status = fake_refuse(context, &fake.refuse_map, "map");
    if (status != HEM_OK || !same_process) {
        if (status == HEM_OK)
            status = fake_keep(fd, name->bytes, memory_p);
        if (status == HEM_OK)
            memory_p->inside = NULL;
        return status;
    }
    hemi_add32_acq_rel(&fake.held, 1);
    *memory_p = (hemi_device_memory){(void *)(uintptr_t)name->address, name->bytes, &fake};
    return HEM_OK;
}

static inline void fake_release(void *context, hemi_device_memory *memory) {
    (void)context;
    if (memory->address == NULL)
        return;
    if (memory->inside != &fake)
        munmap(memory->address, memory->bytes);
    if (memory->inside != &fake && memory->inside != NULL)
        close((int)(uintptr_t)memory->inside);
    hemi_add32_acq_rel(&fake.held, UINT32_MAX);
    *memory = (hemi_device_memory){NULL, 0, NULL};
}

static inline hem_status fake_pin(void *context, void *host, uint64_t bytes, bool frozen,
                                  void **address_p) {
    (void)frozen;
    hem_status status = fake_refuse(context, &fake.refuse_pin, "pin");
    (void)bytes;
    if (status != HEM_OK)
        return status;
    hemi_add32_acq_rel(&fake.pinned, 1);
    *address_p = host;
    return HEM_OK;
}

static inline void fake_unpin(void *context, void *host, uint64_t bytes) {
    (void)context;
    (void)bytes;
    hemi_store32_release(&fake.last, hemi_load32_acquire(host));
    hemi_add32_acq_rel(&fake.pinned, UINT32_MAX);
}

static inline hem_status fake_check(void *context, void *stream, bool shared) {
    const hemi_device_host *host = context;
    if (stream == NULL && shared)
        return host->fail(HEM_ERR_UNSUPPORTED, "the default stream is for nobody");
    return HEM_OK;
}

static inline hem_status fake_open(const hemi_device_host *host, void **context_p,
                                   hemi_device_facts *facts_p) {
    uint32_t number = hemi_add32_acq_rel(&fake.opened, 1);
    hem_status status = fake_refuse(host, &fake.refuse_open, "open");
    if (status != HEM_OK)
        return status;
    *facts_p = (hemi_device_facts){
        .name = "fake", .ordinal = 3, .processors = 5, .l2_bytes = 7, .capability = 90, .warp = 1};
    if (hemi_load32_acquire(&fake.apart) != 0)
        facts_p->uuid[0] = (uint8_t)(1 + number);
    *context_p = (void *)(uintptr_t)host;
    return HEM_OK;
}

static inline void fake_close(void *context) {
    (void)context;
    hemi_add32_acq_rel(&fake.closed, 1);
}

static const hemi_device_memory_ops fake_memory = {.alloc = fake_alloc,
                                                   .name = fake_name,
                                                   .map = fake_map,
                                                   .release = fake_release,
                                                   .map_host = fake_pin,
                                                   .unmap_host = fake_unpin};
static const hemi_device_stream_ops fake_stream = {.check = fake_check};

static const hemi_device_module fake_module = {.version = HEMI_DEVICE_VERSION,
                                               .name = "fake",
                                               .memory = &fake_memory,
                                               .stream = &fake_stream,
                                               .open = fake_open,
                                               .close = fake_close};

#endif
