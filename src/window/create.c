/*
 * How this works. Creation has two steps in which all agree (core/team.h). First everybody says what
 * it wants, and whether it makes sense; nothing is allocated before that has been agreed on. Then
 * everybody allocates, clears, and says where its control block is; only then does anybody have a
 * window. Over the caller's own memory a third step proves that peers can reach it.
 */
#include "base/options.h"
#include "core/heap.h"
#include "core/team.h"
#include "window/device.h"

#include <inttypes.h>
#include <stdlib.h>
#include <sys/prctl.h>

#define SIGNALS_DEFAULT  16
#define BARRIERS_DEFAULT 4
#define COUNTERS_DEFAULT 4
#define SIGNALS_MAX      4096
#define BARRIERS_MAX     256
#define COUNTERS_MAX     4096

/* Second step: where everything is. */
typedef struct place_say {
    uint64_t control;
    hemi_device_place device; /* zero in host memory */
} place_say;

_Static_assert(sizeof(place_say) <= HEMI_SAY_MAX, "fits into a step");

static void free_handle(hem_window *window) {
    for (uint32_t r = 0; window->peers != NULL && r < window->size; r++)
        free(window->peers[r]);
    free(window->peers);
    free(window->controls);
    hemi_buffers_free(window->buffers, window->buffer_count);
    free(window->device);
    free(window);
}

static void free_shared(hem_window *window, bool closed) {
    hemi_root *root = window->root;
    hemi_device_free(window, closed);
    if (window->memory_offset != 0)
        hemi_heap_free(&root->arena, root->platform, root->rank, window->memory_offset,
                       root->cache_bytes);
    if (window->control != NULL)
        hemi_heap_free(&root->arena, root->platform, root->rank,
                       hemi_window_control(window, window->rank), root->cache_bytes);
    window->memory_offset = 0;
    window->control = NULL;
}

static void orphan(hemi_child *child, bool dead) {
    hem_window *window = (hem_window *)(void *)child;
    hemi_device_unmap(window, true);
    if (!window->world->keep_memory)
        free_shared(window, true);
    else
        hemi_device_disown(window);
    window->world = NULL;
    window->root = NULL;
    window->memory = NULL;
    if (dead || window->destroyed)
        free_handle(window);
}

static hem_status check_limits(hem_window_options *o) {
    if (o->signals > SIGNALS_MAX || o->barriers > BARRIERS_MAX || o->counters > COUNTERS_MAX)
        return hemi_fail(HEM_ERR_RANGE, "%u signals, %u barriers, %u counters: at most %d, %d, %d",
                         o->signals, o->barriers, o->counters, SIGNALS_MAX, BARRIERS_MAX,
                         COUNTERS_MAX);
    bool device = o->kind == HEM_MEMORY_DEVICE;
    if (o->memory != NULL && o->signals != 0 && !device)
        return hemi_fail(HEM_ERR_UNSUPPORTED,
                         "a window over the caller's own memory carries no signals");
    if (o->memory != NULL && (uintptr_t)o->memory > UINTPTR_MAX - o->bytes)
        return hemi_fail(HEM_ERR_RANGE, "%zu bytes end beyond all memory", o->bytes);
    if (o->signals == 0 && (o->memory == NULL || device))
        o->signals = SIGNALS_DEFAULT;
    if (o->align == 0)
        o->align = HEMI_LINE;
    if (o->barriers == 0)
        o->barriers = BARRIERS_DEFAULT;
    if (o->counters == 0)
        o->counters = COUNTERS_DEFAULT;
    return HEM_OK;
}

static hem_status check_size(const hem_world *world, uint64_t bytes) {
    if (bytes > world->root->arena.part_bytes)
        return hemi_fail(HEM_ERR_MEMORY,
                         "%" PRIu64 " bytes are more than the %" PRIu64
                         " MiB of shared memory that a rank has; raise HEM_ARENA_SIZE",
                         bytes, world->root->arena.part_bytes >> 20);
    return HEM_OK;
}

/* Everything that can be said about the arguments without asking anybody. */
static hem_status read_options(hem_window *window, const hem_window_options *options,
                               hem_window_options *o, hem_window **window_p) {
    hem_status status = hemi_options_read(o, sizeof *o, options, "hem_window_create");
    if (status == HEM_OK && window_p == NULL)
        status = hemi_fail(HEM_ERR_ARG, "hem_window_create: window_p is NULL");
    if (status == HEM_OK)
        status = check_limits(o);
    if (status == HEM_OK && o->timeout_ns != 0)
        status = hemi_check_timeout(o->timeout_ns, "hem_window_create");
    window->bytes = o->bytes;
    if (status == HEM_OK)
        status = hemi_buffers_place(o, &window->buffers, &window->bytes);
    if (window->buffers != NULL)
        window->buffer_count = o->buffer_count;
    if (status == HEM_OK)
        status = hemi_device_read_options(window, o);
    if (status == HEM_OK && o->memory == NULL && window->device == NULL)
        status = check_size(window->world, window->bytes);
    if (status != HEM_OK)
        return status;
    window->own_memory = o->memory != NULL && window->device == NULL;
    window->memory = o->memory;
    window->quick = window->device == NULL ? window->size : 0;
    window->signals = o->signals;
    window->barriers = o->barriers;
    window->counters = o->counters;
    if (o->timeout_ns != 0)
        window->timeout_ns = o->timeout_ns;
    return HEM_OK;
}

/* The control block: reserve what this rank itself writes, and name the memory in its head. */
static hem_status make_control(hem_window *window) {
    hemi_root *root = window->root;
    uint64_t control = 0;
    hem_status status = hemi_heap_alloc(&root->arena, root->platform, root->rank,
                                        window->layout.bytes, HEMI_HEAP_SPARSE, &control);
    if (status != HEM_OK)
        return status;
    hemi_window_set_control(window, window->rank, control);
    window->control = hemi_arena_at(&root->arena, control);
    status = hemi_arena_reserve(&root->arena, control, window->layout.list);
    if (status != HEM_OK)
        return status;
    hemi_window_head *head = hemi_window_own_head(window);
    head->magic = HEMI_WINDOW_MAGIC;
    head->id = window->id;
    if (window->own_memory)
        head->data = hemi_name_make(root, HEMI_NAME_OWN, (uintptr_t)window->memory, window->bytes);
    else if (window->device == NULL)
        head->data = hemi_name_make(root, HEMI_NAME_LIBRARY, window->memory_offset, window->bytes);
    return HEM_OK;
}

static hem_status make_memory(hem_window *window) {
    hemi_root *root = window->root;
    if (window->device != NULL)
        return hemi_device_allocate(window);
    if (window->own_memory) {
        /* See hem_memory_register. */
        prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
        return HEM_OK;
    }
    hem_status status = hemi_heap_alloc(&root->arena, root->platform, root->rank, window->bytes,
                                        HEMI_HEAP_RESERVED, &window->memory_offset);
    if (status == HEM_OK)
        window->memory = hemi_arena_at(&root->arena, window->memory_offset);
    return status;
}

static hem_status allocate(hem_window *window) {
    window->peers = calloc(window->size, sizeof(hemi_peer *));
    window->controls = calloc(window->size, sizeof(uint32_t));
    if (window->peers == NULL || window->controls == NULL)
        return hemi_fail(HEM_ERR_MEMORY, "no memory for a window of %u ranks", window->size);
    hemi_window_lay_out(&window->layout, window->size, window->signals, window->barriers,
                        window->counters);
    hem_status status = make_memory(window);
    return status == HEM_OK ? make_control(window) : status;
}

/* What the others said: their control blocks must lie where only they allocate. */
static hem_status hear_places(hem_window *window) {
    hem_world *world = window->world;
    for (uint32_t r = 0; r < window->size; r++) {
        place_say say;
        hemi_team_heard(world, r, &say, sizeof say);
        if (say.control % HEMI_PAGE != 0 ||
            !hemi_arena_in_part(&world->root->arena, world->members[r], say.control,
                                window->layout.bytes))
            return hemi_fail(HEM_ERR_MISMATCH, "rank %u named a window outside of its memory", r);
        hemi_window_set_control(window, r, say.control);
        hem_status status =
            window->device == NULL ? HEM_OK : hemi_device_hear(window, r, &say.device);
        if (status != HEM_OK)
            return status;
    }
    return HEM_OK;
}

/* Over the caller's own memory: can the next rank's be read at all? */
static hem_status probe(hem_window *window) {
    hemi_peer *peer = NULL;
    unsigned char byte = 0;
    hem_status status = hemi_peer_find(window, (int)((window->rank + 1) % window->size),
                                       "hem_window_create", &peer);
    if (status != HEM_OK || peer->data.bytes == 0)
        return status;
    return hemi_region_get(&peer->data, 0, &byte, 1);
}

static hem_status build(hem_window *window, uint32_t call, uint64_t fingerprint) {
    hem_world *world = window->world;
    hem_status status = allocate(window);
    place_say mine = {0};
    if (window->control != NULL)
        mine.control = hemi_window_control(window, window->rank);
    if (status == HEM_OK && window->device != NULL)
        hemi_device_say(window, &mine.device);
    status =
        hemi_team_agree(world, call, status, fingerprint, &mine, sizeof mine, window->timeout_ns);
    window->named = status == HEM_OK;
    if (status == HEM_OK)
        status = hear_places(window);
    hemi_team_done(world);
    if (window->named && window->device != NULL)
        return hemi_device_connect(window, call, status, fingerprint + 1);
    if (status == HEM_OK && window->own_memory) {
        status = probe(window);
        status = hemi_team_agree(world, call, status, fingerprint + 1, NULL, 0, window->timeout_ns);
    }
    return status;
}

hem_status hemi_window_create(hem_world *world, uint32_t call, const hem_window_options *options,
                              hem_window **window_p) {
    hem_window *window = calloc(1, sizeof *window);
    hem_window_options o = {0};
    hem_status status = HEM_OK;
    if (window == NULL) {
        status = hemi_fail(HEM_ERR_MEMORY, "no memory for a window");
    } else {
        window->world = world;
        window->root = world->root;
        window->rank = world->rank;
        window->size = world->size;
        window->timeout_ns = world->timeout_ns;
        window->inner = call != HEMI_CALL_WINDOW_CREATE;
        status = read_options(window, options, &o, window_p);
    }
    uint64_t fingerprint = hemi_window_fingerprint(&o);
    status = hemi_team_agree(world, call, status, fingerprint, NULL, 0,
                             window != NULL ? window->timeout_ns : world->timeout_ns);
    if (window == NULL)
        return status;
    if (status == HEM_OK) {
        window->id = ++world->objects_made;
        status = build(window, call, fingerprint);
    }
    if (status != HEM_OK && !window->named) {
        free_shared(window, false);
        free_handle(window);
        return status;
    }
    window->child.orphan = orphan;
    /* A peer that was told of it may still look at it: then it goes with the world. */
    window->destroyed = status != HEM_OK;
    hemi_world_adopt(world, &window->child);
    if (status == HEM_OK)
        *window_p = window;
    return status;
}

hem_status hem_window_create(hem_world *world, const hem_window_options *options,
                             hem_window **window_p) {
    if (world == NULL)
        return hemi_fail(HEM_ERR_ARG, "hem_window_create: world is NULL");
    return hemi_window_create(world, HEMI_CALL_WINDOW_CREATE, options, window_p);
}

/* Wait for all; of device memory a second time, until nobody has it mapped any more. */
static hem_status leave_together(hem_window *window) {
    hem_status status =
        hemi_team_meet(window->world, HEMI_CALL_WINDOW_DESTROY, window->id, window->timeout_ns);
    if (window->device == NULL || (status != HEM_OK && status != HEM_ERR_PEER))
        return status;
    hemi_device_unmap(window, false);
    return hemi_team_meet(window->world, HEMI_CALL_WINDOW_DESTROY, window->id, window->timeout_ns);
}

hem_status hem_window_destroy(hem_window *window) {
    if (window == NULL)
        return HEM_OK;
    hem_status status = HEM_OK;
    if (window->world != NULL) {
        status = leave_together(window);
        if (status != HEM_OK && status != HEM_ERR_PEER) {
            /* Whoever did not come may still put into this rank's memory: it goes with the world. */
            window->destroyed = true;
            return status;
        }
        hemi_world_abandon(window->world, &window->child);
        /* A kernel of a rank that is dead, but whose process is not, may be on its way to its end. */
        free_shared(window, status == HEM_ERR_PEER);
    }
    free_handle(window);
    return status;
}

void *hem_window_memory(const hem_window *window) {
    return window == NULL ? NULL : window->memory;
}

size_t hem_window_bytes(hem_window *window, int rank) {
    hemi_peer *peer = NULL;
    if (hemi_peer_find(window, rank, "hem_window_bytes", &peer) != HEM_OK)
        return 0;
    return peer->data.bytes;
}

void *hem_window_peer_address(hem_window *window, int peer, size_t offset) {
    hemi_peer *p = NULL;
    if (hemi_peer_find(window, peer, "hem_window_peer_address", &p) != HEM_OK)
        return NULL;
    unsigned char *start = p->data.mapped;
    if (window->device != NULL)
        start = hemi_window_device_address(window, (uint32_t)peer);
    return start == NULL || offset >= p->data.bytes ? NULL : start + offset;
}

void *hem_window_translate(hem_window *window, const void *local, int peer) {
    if (hemi_window_check(window, "hem_window_translate") != HEM_OK || local == NULL ||
        window->memory == NULL)
        return NULL;
    uintptr_t address = (uintptr_t)local;
    uintptr_t start = (uintptr_t)window->memory;
    if (address < start || address - start >= window->bytes)
        return NULL;
    return hem_window_peer_address(window, peer, address - start);
}
