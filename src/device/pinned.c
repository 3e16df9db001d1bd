/*
 * Host memory that kernels see.
 *
 * How this works. Unpinning memory waits on a GPU until all kernels of the process have ended, and
 * nobody else gets at the device meanwhile: with ranks that are threads of one process, a kernel that
 * waits for one of them would never end. So the library's own words lie in chunks of the rank's part
 * of the arena that are pinned once, at first use, and stay so; what is asked for is cut out of them.
 * Peers see a whole chunk, too, and keep it. A chunk is never given back to the heap: the pages that
 * others have pinned must stay the pages that lie there.
 *
 * All is unpinned when the last rank of this process with the same arena gives up its device. Those
 * that go earlier, dead or not, leave what they have pinned to one that stays.
 */
#include "device/room.h"

#include "base/lock.h"
#include "core/heap.h"

#include <stdlib.h>
#include <string.h>

#define CHUNK   (256u << 10)
#define GRANULE 256u

/* What is in use of a chunk of one's own. */
typedef struct block {
    struct block *next; /* by offset */
    uint64_t offset;
    uint64_t bytes;
} block;

struct hemi_pin {
    struct hemi_pin *next;
    void *host;
    uint64_t bytes;
    unsigned char *device; /* where kernels see it */
    uint64_t offset;       /* in the arena */
    block *blocks;
    bool own;   /* a chunk to cut from */
    bool left;  /* by a rank that has gone: only to be unpinned */
    bool field; /* it is the caller's memory, not of the arena */
};

static uint64_t round_up(uint64_t bytes, uint64_t to) {
    return (bytes + to - 1) / to * to;
}

static void unpin(const hemi_device_room *room, hemi_pin *pin) {
    room->device.module->memory->unmap_host(room->device.context, pin->host, pin->bytes);
    while (pin->blocks != NULL) {
        block *gone = pin->blocks;
        pin->blocks = gone->next;
        free(gone);
    }
    free(pin);
}

/* Under the lock of the room's pins. */
static hem_status pin_range(hemi_device_room *room, uint64_t offset, uint64_t bytes, bool own,
                            hemi_pin **pin_p) {
    hemi_pin *pin = calloc(1, sizeof *pin);
    if (pin == NULL)
        return hemi_fail(HEM_ERR_MEMORY, "no memory to describe pinned memory");
    void *device = NULL;
    pin->host = hemi_arena_at(&room->root->arena, offset);
    pin->offset = offset;
    pin->bytes = bytes;
    pin->own = own;
    hem_status status = room->device.module->memory->map_host(room->device.context, pin->host,
                                                              bytes, false, &device);
    if (status != HEM_OK) {
        free(pin);
        return status;
    }
    pin->device = device;
    pin->next = room->pins;
    room->pins = pin;
    *pin_p = pin;
    return HEM_OK;
}

/* Cut the first gap that is large enough out of a chunk. False: there is none. */
static bool cut(hemi_pin *pin, block *made) {
    block **link = &pin->blocks;
    uint64_t at = pin->offset;
    while (*link != NULL && (*link)->offset - at < made->bytes) {
        at = (*link)->offset + (*link)->bytes;
        link = &(*link)->next;
    }
    if (*link == NULL && pin->offset + pin->bytes - at < made->bytes)
        return false;
    made->offset = at;
    made->next = *link;
    *link = made;
    return true;
}

/* What is larger than the usual chunk has one of its own size, from which nothing else is cut: so
 * peers know how large the chunk of anything is. */
static uint64_t chunk_of(uint64_t bytes) {
    return bytes > CHUNK ? round_up(bytes, HEMI_PAGE) : CHUNK;
}

static hem_status grow(hemi_device_room *room, uint64_t bytes, hemi_pin **pin_p) {
    hemi_root *root = room->root;
    uint64_t offset = 0;
    uint64_t whole = chunk_of(bytes);
    hem_status status = hemi_heap_alloc(&root->arena, root->platform, root->rank, whole,
                                        HEMI_HEAP_RESERVED, &offset);
    if (status != HEM_OK)
        return status;
    status = pin_range(room, offset, whole, true, pin_p);
    if (status != HEM_OK) /* nobody has seen it yet */
        hemi_heap_free(&root->arena, root->platform, root->rank, offset, root->cache_bytes);
    return status;
}

static hem_status take(hemi_device_room *room, block *made, hemi_pin **pin_p) {
    hemi_pin *pin = room->pins;
    while (pin != NULL &&
           !(pin->own && !pin->left && pin->bytes == chunk_of(made->bytes) && cut(pin, made)))
        pin = pin->next;
    hem_status status = HEM_OK;
    if (pin == NULL) {
        status = grow(room, made->bytes, &pin);
        if (status == HEM_OK)
            (void)cut(pin, made);
    }
    *pin_p = pin;
    return status;
}

static hem_status room_of(hemi_root *root, hemi_device_room **room_p) {
    hemi_device *device = NULL;
    hem_status status = hemi_device_get(root, &device);
    if (status == HEM_OK)
        *room_p = root->device;
    return status;
}

hem_status hemi_device_pinned_alloc(hemi_root *root, uint64_t bytes, hemi_pinned *pinned_p) {
    hemi_device_room *room = NULL;
    hem_status status = room_of(root, &room);
    if (status != HEM_OK)
        return status;
    block *made = calloc(1, sizeof *made);
    if (made == NULL)
        return hemi_fail(HEM_ERR_MEMORY, "no memory to describe pinned memory");
    made->bytes = round_up(bytes > 0 ? bytes : 1, GRANULE);
    hemi_pin *pin = NULL;
    hemi_lock(root->platform, &room->pins_lock);
    status = take(room, made, &pin);
    if (status == HEM_OK)
        *pinned_p = (hemi_pinned){made->offset, bytes, pin->offset, pin->bytes};
    hemi_unlock(&room->pins_lock);
    if (status != HEM_OK)
        free(made);
    else
        memset(hemi_arena_at(&root->arena, pinned_p->offset), 0, bytes);
    return status;
}

static void uncut(hemi_pin *pin, uint64_t offset) {
    block **link = &pin->blocks;
    while (*link != NULL && (*link)->offset != offset)
        link = &(*link)->next;
    block *gone = *link;
    if (gone != NULL)
        *link = gone->next;
    free(gone);
}

void hemi_device_pinned_free(hemi_root *root, hemi_pinned *pinned) {
    hemi_device_room *room = root->device;
    if (pinned->offset != 0 && room != NULL) {
        hemi_lock(root->platform, &room->pins_lock);
        for (hemi_pin *pin = room->pins; pin != NULL; pin = pin->next)
            if (pin->own && !pin->left && pin->offset == pinned->chunk)
                uncut(pin, pinned->offset);
        hemi_unlock(&room->pins_lock);
    }
    *pinned = (hemi_pinned){0};
}

bool hemi_device_pinned_fits(const hemi_root *root, uint32_t root_rank, const hemi_pinned *pinned) {
    return pinned->chunk % HEMI_PAGE == 0 && pinned->bytes <= pinned->chunk_bytes &&
           pinned->chunk_bytes == chunk_of(pinned->bytes) &&
           hemi_arena_in_part(&root->arena, root_rank, pinned->chunk, pinned->chunk_bytes) &&
           pinned->offset % GRANULE == 0 && pinned->offset >= pinned->chunk &&
           pinned->offset - pinned->chunk <= pinned->chunk_bytes - pinned->bytes;
}

hem_status hemi_device_pinned_see(hemi_root *root, uint32_t root_rank, const hemi_pinned *pinned,
                                  void **address_p) {
    hemi_device_room *room = NULL;
    hem_status status = room_of(root, &room);
    if (status == HEM_OK && !hemi_device_pinned_fits(root, root_rank, pinned))
        status = hemi_fail(HEM_ERR_MISMATCH,
                           "rank %u of all named pinned memory outside of its own", root_rank);
    if (status != HEM_OK)
        return status;
    hemi_lock(root->platform, &room->pins_lock);
    hemi_pin *pin = room->pins;
    while (pin != NULL && (pin->left || pin->field || pin->offset != pinned->chunk ||
                           pin->bytes != pinned->chunk_bytes))
        pin = pin->next;
    if (pin == NULL)
        status = pin_range(room, pinned->chunk, pinned->chunk_bytes, false, &pin);
    if (status == HEM_OK)
        *address_p = pin->device + (pinned->offset - pinned->chunk);
    hemi_unlock(&room->pins_lock);
    return status;
}

/* The caller's memory. */

static bool overlaps(const hemi_pin *pin, const void *host, uint64_t bytes) {
    uintptr_t a = (uintptr_t)pin->host;
    uintptr_t b = (uintptr_t)host;
    return pin->field && a < b + bytes && b < a + pin->bytes;
}

static void unpin_overlaps(hemi_device_room *room, const void *host, uint64_t bytes) {
    hemi_lock(room->root->platform, &room->pins_lock);
    hemi_pin **link = &room->pins;
    while (*link != NULL) {
        hemi_pin *pin = *link;
        if (!overlaps(pin, host, bytes)) {
            link = &pin->next;
            continue;
        }
        *link = pin->next;
        unpin(room, pin);
    }
    hemi_unlock(&room->pins_lock);
}

hem_status hemi_device_pin(hemi_root *root, void *host, uint64_t bytes, bool frozen,
                           void **address_p) {
    hemi_device_room *room = NULL;
    hem_status status = room_of(root, &room);
    if (status != HEM_OK)
        return status;
    /* What a dead rank has left pinned may be other pages than those that are here by now. */
    hemi_lock(root->platform, &root->mates->devices_lock);
    for (hemi_device_room *r = root->mates->devices; r != NULL; r = r->next)
        unpin_overlaps(r, host, bytes);
    hemi_unlock(&root->mates->devices_lock);
    return room->device.module->memory->map_host(room->device.context, host, bytes, frozen,
                                                 address_p);
}

void hemi_device_unpin(hemi_root *root, void *host, uint64_t bytes) {
    hemi_device_room *room = root->device;
    /* Pairs with the compare-and-swap in hemi_liveness_ended. */
    bool dead = hemi_load32_acquire(&root->me->state) > HEMI_STATE_ALIVE;
    hemi_pin *pin = dead ? calloc(1, sizeof *pin) : NULL;
    if (pin == NULL) {
        room->device.module->memory->unmap_host(room->device.context, host, bytes);
        return;
    }
    pin->host = host;
    pin->bytes = bytes;
    pin->field = true;
    hemi_lock(root->platform, &room->pins_lock);
    pin->next = room->pins;
    room->pins = pin;
    hemi_unlock(&room->pins_lock);
}

bool hemi_device_is_shared(const hemi_root *root) {
    uint32_t apart = 1;
    if (!root->threads)
        return false;
    hemi_lock(root->platform, &root->mates->devices_lock);
    for (const hemi_device_room *r = root->mates->devices; r != NULL; r = r->next)
        apart += r != root->device && memcmp(r->device.facts.uuid, root->device->device.facts.uuid,
                                             HEMI_DEVICE_UUID) != 0;
    hemi_unlock(&root->mates->devices_lock);
    return apart < root->arena.ranks;
}

/* Coming and going. */

void hemi_pins_open(hemi_device_room *room) {
    hemi_mates *mates = room->root->mates;
    hemi_lock(room->root->platform, &mates->devices_lock);
    room->next = mates->devices;
    mates->devices = room;
    hemi_unlock(&mates->devices_lock);
}

static hemi_device_room *find_heir(const hemi_device_room *room) {
    hemi_device_room *heir = room->root->mates->devices;
    while (heir != NULL && heir->device.module != room->device.module)
        heir = heir->next;
    return heir;
}

static void leave_to(hemi_device_room *heir, hemi_device_room *room) {
    hemi_lock(heir->root->platform, &heir->pins_lock);
    while (room->pins != NULL) {
        hemi_pin *pin = room->pins;
        room->pins = pin->next;
        pin->left = true;
        pin->next = heir->pins;
        heir->pins = pin;
    }
    hemi_unlock(&heir->pins_lock);
}

void hemi_pins_close(hemi_device_room *room) {
    hemi_mates *mates = room->root->mates;
    hemi_lock(room->root->platform, &mates->devices_lock);
    hemi_device_room **link = &mates->devices;
    while (*link != NULL && *link != room)
        link = &(*link)->next;
    if (*link != NULL)
        *link = room->next;
    hemi_device_room *heir = find_heir(room);
    if (heir != NULL)
        leave_to(heir, room);
    hemi_unlock(&mates->devices_lock);
    while (room->pins != NULL) {
        hemi_pin *pin = room->pins;
        room->pins = pin->next;
        unpin(room, pin);
    }
}
