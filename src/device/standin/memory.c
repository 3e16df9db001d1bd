/* Memory of the stand-in: memfds, mapped where they are reached. */
#include "base/atomic.h"
#include "device/standin/inside.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGE (2ull << 20)

/* A mapping of this process: memory of its own, or of a peer. */
typedef struct range {
    struct range *next;
    unsigned char *address;
    uint64_t whole;
    int fd; /* -1: a peer's */
    uint32_t holders;
    uint64_t members; /* of a team */
    bool hidden;      /* other processes do not get at it */
    void *handle;     /* the first to it, so that what a dead rank has left is not lost sight of */
} range;

static pthread_mutex_t ranges_lock = PTHREAD_MUTEX_INITIALIZER;
static range *ranges;
static size_t pins; /* mapped host memory */

/* What hemi_device_memory.inside points to. */
typedef struct hold {
    struct hold *next; /* of those that were abandoned */
    range *owned;      /* goes with it; NULL: adopted, or memory of another rank of this process */
} hold;

/* Kernels of ranks that are there yet may look at what others have abandoned: it stays until the last
 * rank of the process has given up its device, as on a GPU. Under ranges_lock. */
static hold *abandoned;
static uint32_t users;

static const uint8_t uuid[HEMI_DEVICE_UUID] = "hem's stand-in";

void hemi_standin_uuid(uint8_t *uuid_p) {
    memcpy(uuid_p, uuid, sizeof uuid);
}

static void range_free(range *made) {
    if (made == NULL)
        return;
    if (made->address != NULL)
        munmap(made->address, made->whole);
    if (made->fd >= 0)
        close(made->fd);
    free(made);
}

/* Map `whole` bytes of `fd` at a multiple of PAGE. NULL if there is no room. */
static unsigned char *map_aligned(int fd, uint64_t whole) {
    unsigned char *room =
        mmap(NULL, whole + PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED)
        return NULL;
    uint64_t skip = (PAGE - (uintptr_t)room % PAGE) % PAGE;
    unsigned char *at = room + skip;
    if (mmap(at, whole, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED) {
        munmap(room, whole + PAGE);
        return NULL;
    }
    if (skip > 0)
        munmap(room, skip);
    munmap(at + whole, PAGE - skip);
    return at;
}

static void range_list(range *made) {
    made->holders = 1;
    pthread_mutex_lock(&ranges_lock);
    made->next = ranges;
    ranges = made;
    pthread_mutex_unlock(&ranges_lock);
}

static range *range_make(uint64_t bytes) {
    if (bytes > UINT64_MAX / 4)
        return NULL;
    range *made = calloc(1, sizeof *made);
    if (made == NULL)
        return NULL;
    made->whole = bytes == 0 ? PAGE : (bytes + PAGE - 1) / PAGE * PAGE;
    made->fd = memfd_create("hem-standin", MFD_CLOEXEC);
    if (made->fd >= 0 && ftruncate(made->fd, (off_t)made->whole) == 0)
        made->address = map_aligned(made->fd, made->whole);
    if (made->address == NULL) {
        range_free(made);
        return NULL;
    }
    range_list(made);
    return made;
}

static void range_remove(range *gone) {
    pthread_mutex_lock(&ranges_lock);
    range **at = &ranges;
    bool last = --gone->holders == 0;
    while (*at != NULL && *at != gone)
        at = &(*at)->next;
    if (last && *at != NULL)
        *at = gone->next;
    pthread_mutex_unlock(&ranges_lock);
    if (last)
        range_free(gone);
}

/* Under ranges_lock. */
static range *range_find(const void *address, uint64_t bytes) {
    for (range *at = ranges; at != NULL; at = at->next) {
        uint64_t offset = (uintptr_t)address - (uintptr_t)at->address;
        if (offset < at->whole && bytes <= at->whole - offset)
            return at;
    }
    return NULL;
}

static bool is_device(const void *address, uint64_t bytes, bool own) {
    pthread_mutex_lock(&ranges_lock);
    const range *found = range_find(address, bytes);
    bool good = found != NULL && (!own || found->fd >= 0);
    pthread_mutex_unlock(&ranges_lock);
    return good;
}

/* A team is there as long as a member is: one more of them, or NULL if it is none. */
static range *range_share(const void *address) {
    pthread_mutex_lock(&ranges_lock);
    range *found = range_find(address, 0);
    bool team = found != NULL && found->members > 0;
    if (team)
        found->holders++;
    pthread_mutex_unlock(&ranges_lock);
    return team ? found : NULL;
}

static hem_status memory_give(const void *context, void *address, uint64_t bytes, range *owned,
                              hemi_device_memory *memory_p) {
    hold *inside = malloc(sizeof *inside);
    if (inside == NULL) {
        if (owned != NULL)
            range_remove(owned);
        return hemi_standin_fail(context, HEM_ERR_MEMORY, "no memory for a handle");
    }
    inside->next = NULL;
    inside->owned = owned;
    if (owned != NULL && owned->handle == NULL)
        owned->handle = inside;
    memory_p->address = address;
    memory_p->bytes = bytes;
    memory_p->inside = inside;
    return HEM_OK;
}

static hem_status op_alloc(void *context, uint64_t bytes, hemi_device_memory *memory_p) {
    range *made = range_make(bytes);
    if (made == NULL)
        return hemi_standin_fail(context, HEM_ERR_MEMORY, "no %llu bytes of device memory",
                                 (unsigned long long)bytes);
    return memory_give(context, made->address, bytes, made, memory_p);
}

static hem_status op_adopt(void *context, void *address, uint64_t bytes,
                           hemi_device_memory *memory_p) {
    if (!is_device(address, bytes, true))
        return hemi_standin_fail(context, HEM_ERR_ARG, "%llu bytes at %p are no device memory",
                                 (unsigned long long)bytes, address);
    return memory_give(context, address, bytes, NULL, memory_p);
}

static hem_status op_name(void *context, const hemi_device_memory *memory, hemi_device_name *name_p,
                          int *fd_p) {
    hemi_device_name name = {.kind = HEMI_DEVICE_NAME_FD, .pid = (uint32_t)getpid()};
    int fd = -1;

    pthread_mutex_lock(&ranges_lock);
    const range *found = range_find(memory->address, memory->bytes);
    if (found != NULL && found->fd >= 0) {
        name.offset = (uintptr_t)memory->address - (uintptr_t)found->address;
        name.whole = found->whole;
        name.members = found->members;
        if (found->hidden)
            name.kind = HEMI_DEVICE_NAME_POINTER;
        else
            fd = fcntl(found->fd, F_DUPFD_CLOEXEC, 0);
    }
    pthread_mutex_unlock(&ranges_lock);
    if (name.whole == 0)
        return hemi_standin_fail(context, HEM_ERR_ARG, "%p is no device memory of this process",
                                 memory->address);
    if (fd < 0 && name.kind == HEMI_DEVICE_NAME_FD)
        return hemi_standin_fail(context, HEM_ERR_SYSTEM, "no descriptor for device memory: %s",
                                 strerror(errno));
    memcpy(name.uuid, uuid, sizeof uuid);
    name.address = (uintptr_t)memory->address;
    name.bytes = memory->bytes;
    *name_p = name;
    *fd_p = fd;
    return HEM_OK;
}

/* What a peer says, held against the descriptor that came with it. */
static bool name_fits(const hemi_device_name *name, int fd) {
    struct stat file;
    return name->kind == HEMI_DEVICE_NAME_FD && name->whole > 0 && name->whole % PAGE == 0 &&
           name->offset <= name->whole && name->bytes <= name->whole - name->offset &&
           (name->members == 0 || name->bytes <= name->whole / name->members) &&
           fstat(fd, &file) == 0 && file.st_size > 0 && (uint64_t)file.st_size >= name->whole;
}

static hem_status map_here(void *context, const hemi_device_name *name,
                           hemi_device_memory *memory_p) {
    void *address = (void *)(uintptr_t)name->address;
    if (name->pid != (uint32_t)getpid() || !is_device(address, name->bytes, true))
        return hemi_standin_fail(context, HEM_ERR_ARG, "%p is no device memory of this process",
                                 address);
    return memory_give(context, address, name->bytes, range_share(address), memory_p);
}

static hem_status op_map(void *context, const hemi_device_name *name, int fd, bool same_process,
                         hemi_device_memory *memory_p) {
    if (memcmp(name->uuid, uuid, sizeof uuid) != 0)
        return hemi_standin_fail(context, HEM_ERR_UNSUPPORTED,
                                 "the memory is of a device that kernels here do not reach");
    if (same_process)
        return map_here(context, name, memory_p);
    if (!name_fits(name, fd))
        return hemi_standin_fail(context, HEM_ERR_ARG, "the name of a peer's memory is malformed");
    range *made = calloc(1, sizeof *made);
    if (made == NULL)
        return hemi_standin_fail(context, HEM_ERR_MEMORY, "no memory for a mapping");
    made->fd = -1;
    made->members = name->members;
    made->whole = name->whole;
    made->address = map_aligned(fd, name->whole);
    if (made->address == NULL) {
        free(made);
        return hemi_standin_fail(context, HEM_ERR_MEMORY, "cannot map %llu bytes of a peer: %s",
                                 (unsigned long long)name->whole, strerror(errno));
    }
    range_list(made);
    return memory_give(context, made->address + name->offset, name->bytes, made, memory_p);
}

static void op_release(void *context, hemi_device_memory *memory) {
    (void)context;
    hold *inside = memory->inside;
    if (inside == NULL)
        return;
    if (inside->owned != NULL)
        range_remove(inside->owned);
    free(inside);
    *memory = (hemi_device_memory){NULL, 0, NULL};
}

static void op_abandon(void *context, hemi_device_memory *memory) {
    (void)context;
    hold *inside = memory->inside;
    if (inside == NULL)
        return;
    pthread_mutex_lock(&ranges_lock);
    inside->next = abandoned;
    abandoned = inside;
    pthread_mutex_unlock(&ranges_lock);
    *memory = (hemi_device_memory){NULL, 0, NULL};
}

void hemi_standin_memory_open(void) {
    pthread_mutex_lock(&ranges_lock);
    users++;
    pthread_mutex_unlock(&ranges_lock);
}

void hemi_standin_memory_close(void) {
    pthread_mutex_lock(&ranges_lock);
    hold *left = NULL;
    if (--users == 0) {
        left = abandoned;
        abandoned = NULL;
    }
    pthread_mutex_unlock(&ranges_lock);
    /* As on a GPU, where freeing waits for all that is under way. */
    if (left == NULL || !hemi_standin_await_idle())
        return;
    while (left != NULL) {
        hold *gone = left;
        left = gone->next;
        if (gone->owned != NULL)
            range_remove(gone->owned);
        free(gone);
    }
}

static void pins_add(size_t change) {
    pthread_mutex_lock(&ranges_lock);
    pins += change;
    pthread_mutex_unlock(&ranges_lock);
}

static hem_status op_map_host(void *context, void *host, uint64_t bytes, bool frozen,
                              void **address_p) {
    (void)frozen;
    if (host == NULL || bytes == 0)
        return hemi_standin_fail(context, HEM_ERR_ARG, "no host memory to map");
    pins_add(1);
    *address_p = host;
    return HEM_OK;
}

static void op_unmap_host(void *context, void *host, uint64_t bytes) {
    (void)context, (void)host, (void)bytes;
    hemi_standin_await_grids();
    pins_add(SIZE_MAX);
}

static hem_memory_kind op_kind(void *context, const void *address) {
    (void)context;
    return is_device(address, 1, false) ? HEM_MEMORY_DEVICE : HEM_MEMORY_HOST;
}

/* How much later what was sent comes. */
#define SENT_US 50

/* Under the lock. */
static void complete(hemi_standin_context *context) {
    if (context->sent_count > 0)
        usleep(SENT_US);
    for (uint32_t i = 0; i < context->sent_count; i++) {
        const hemi_standin_sent *sent = &context->sent[i];
        hemi_standin_copy(sent->to, sent->from != NULL ? sent->from : &sent->word, sent->bytes);
    }
    context->sent_count = 0;
}

static hem_status op_copy(void *context, void *to, const void *from, uint64_t bytes) {
    hemi_standin_context *mine = context;
    pthread_mutex_lock(&mine->lock);
    complete(mine);
    pthread_mutex_unlock(&mine->lock);
    if (bytes > 0)
        hemi_standin_copy(to, from, bytes);
    return HEM_OK;
}

/* As late as it may be: who does not wait for it is found out. */
static hem_status op_send(void *context, void *to, const void *from, uint64_t bytes) {
    hemi_standin_pass();
    hemi_standin_context *mine = context;
    hemi_standin_sent sent = {.to = to, .from = from, .bytes = bytes};
    if (bytes == sizeof sent.word) {
        memcpy(&sent.word, from, sizeof sent.word);
        sent.from = NULL;
    }
    pthread_mutex_lock(&mine->lock);
    if (mine->sent_count == HEMI_STANDIN_SENT)
        complete(mine);
    mine->sent[mine->sent_count++] = sent;
    pthread_mutex_unlock(&mine->lock);
    return HEM_OK;
}

const hemi_device_memory_ops hemi_standin_memory_ops = {
    .alloc = op_alloc,
    .adopt = op_adopt,
    .name = op_name,
    .map = op_map,
    .release = op_release,
    .map_host = op_map_host,
    .unmap_host = op_unmap_host,
    .kind = op_kind,
    .copy = op_copy,
    .send = op_send,
    .abandon = op_abandon,
};

void *hemi_standin_range_make(uint64_t bytes, uint64_t *whole_p) {
    range *made = range_make(bytes);
    if (made == NULL)
        return NULL;
    *whole_p = made->whole;
    return made->address;
}

uint64_t hemi_standin_range_members(const void *address, uint64_t members) {
    pthread_mutex_lock(&ranges_lock);
    range *found = range_find(address, 0);
    if (found != NULL && members != 0)
        found->members = members;
    members = found != NULL ? found->members : 0;
    pthread_mutex_unlock(&ranges_lock);
    return members;
}

HEM_API void *hemi_standin_alloc(size_t bytes) {
    uint64_t whole = 0;
    return hemi_standin_range_make(bytes, &whole);
}

void hemi_standin_range_free(void *address) {
    pthread_mutex_lock(&ranges_lock);
    range *found = range_find(address, 0);
    pthread_mutex_unlock(&ranges_lock);
    if (found == NULL || found->address != address)
        abort();
    range_remove(found);
}

HEM_API void hemi_standin_free(void *address) {
    if (address != NULL)
        hemi_standin_range_free(address);
}

HEM_API void hemi_standin_hide(const void *address) {
    pthread_mutex_lock(&ranges_lock);
    range *found = range_find(address, 0);
    if (found != NULL)
        found->hidden = true;
    pthread_mutex_unlock(&ranges_lock);
}

/* A signal that a CPU gives a kernel is such a copy: words that others look at meanwhile. */
void hemi_standin_move(void *to, const void *from, size_t bytes) {
    if (bytes > 64 || (bytes | (uintptr_t)to | (uintptr_t)from) % 8 != 0) {
        memcpy(to, from, bytes);
        return;
    }
    for (size_t i = 0; i < bytes / 8; i++)
        hemi_store64_release((uint64_t *)to + i, hemi_load64_acquire((const uint64_t *)from + i));
}

HEM_API void hemi_standin_copy(void *to, const void *from, size_t bytes) {
    hemi_standin_pass();
    hemi_standin_move(to, from, bytes);
}

HEM_API size_t hemi_standin_held(void) {
    pthread_mutex_lock(&ranges_lock);
    size_t held = pins;
    for (const range *at = ranges; at != NULL; at = at->next)
        held++;
    pthread_mutex_unlock(&ranges_lock);
    return held;
}
