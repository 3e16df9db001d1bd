/*
 * Making an exchange one of the device, and giving it up.
 *
 * Whether it is one is a vote: a single field in device memory, on any rank, makes it one on all.
 * Then every rank allocates one piece of device memory with its state and the areas of its
 * neighbours, all zero, and all show theirs to each other. Areas are told in the hello.
 */
#include "halo/exchange/connect.h"
#include "halo/exchange/engine.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A kernel takes at most so many blocks. */
#define MOST_BLOCKS 64u
/* How long a kernel may take to end that was told to, and how long one naps until then. */
#define END_NS 1000000000u
#define NAP_NS 20000u

static hem_status no_memory(void) {
    return hemi_fail(HEM_ERR_MEMORY, "hem_exchange_create: no memory for an exchange on a device");
}

/* Whether the host can read at an address. Only a system call can tell without a fault. */
static bool is_readable(const void *address, int ends[2]) {
    unsigned char byte;
    if (write(ends[1], address, 1) != 1)
        return false;
    return read(ends[0], &byte, 1) == 1;
}

/*
 * A device is not opened for programs that do not use one: as long as none is open, only memory that
 * the host cannot read is taken for a device's.
 */
static hem_status find_first(hem_exchange *x, hem_world *world) {
    int ends[2];
    bool found = false;
    if (x->binding_count == 0)
        return HEM_OK;
    if (pipe(ends) != 0)
        return hemi_fail(HEM_ERR_SYSTEM, "hem_exchange_create: no descriptors are left");
    for (size_t b = 0; b < x->binding_count && !found; b++) {
        const hem_field *f = &x->bindings[b].field;
        found = f->memory != NULL && !is_readable(f->memory, ends);
    }
    close(ends[0]);
    close(ends[1]);
    hemi_device *device;
    return found ? hemi_device_get(world->root, &device) : HEM_OK;
}

hem_status hemi_halo_find_device(hem_exchange *x, hem_world *world) {
    hem_status status = HEM_OK;
    if (hemi_device_peek(world->root) == NULL)
        status = find_first(x, world);
    const hemi_device *device = hemi_device_peek(world->root);
    for (size_t b = 0; b < x->binding_count && device != NULL; b++) {
        const void *memory = x->bindings[b].field.memory;
        if (memory != NULL &&
            device->module->memory->kind(device->context, memory) == HEM_MEMORY_DEVICE)
            x->on_device = true;
    }
    return status;
}

uint64_t hemi_halo_room(const hemi_part *part) {
    return (part->bytes + HEMD_HALO_ALIGN - 1) / HEMD_HALO_ALIGN * HEMD_HALO_ALIGN;
}

static uint64_t rooms(const hemi_parts *parts) {
    uint64_t sum = 0;
    for (size_t i = 0; i < parts->count; i++)
        sum += hemi_halo_room(&parts->parts[i]);
    return sum;
}

uint64_t hemi_halo_landing(const hem_exchange *x, const hemi_halo_lane *lane) {
    if (x->way == HEM_EXCHANGE_ENGINES)
        return 0;
    uint64_t forward = rooms(&lane->recvs);
    uint64_t reverse = rooms(&lane->sends);
    uint64_t bytes = forward > reverse ? forward : reverse;
    return (bytes + HEM_DEV_LINE - 1) / HEM_DEV_LINE * HEM_DEV_LINE;
}

/* The state, then the areas with two landing buffers each. */
static hem_status allocate(hem_exchange *x) {
    hemi_halo_device *d = x->device;
    uint64_t at = sizeof(hemd_halo_state);
    for (size_t l = 0; l < x->lane_count; l++) {
        if (x->lanes[l].way.peer == d->rank)
            continue;
        d->reach[l].in_at = at;
        d->reach[l].in_bytes = hemi_halo_landing(x, &x->lanes[l]);
        at += sizeof(hemd_halo_area) + 2 * d->reach[l].in_bytes;
    }
    return d->device->module->memory->alloc(d->device->context, at, &d->areas);
}

static hem_status prepare(hem_exchange *x, bool *wants) {
    hem_world *world = x->world;
    hemi_halo_device *d = x->device;
    d->root = world->root;
    d->rank = world->rank;
    d->map_count = world->size;
    d->maps = calloc(world->size, sizeof *d->maps);
    d->reach = calloc(x->lane_count + 1, sizeof *d->reach);
    if (wants == NULL || d->maps == NULL || d->reach == NULL)
        return no_memory();
    for (size_t l = 0; l < x->lane_count; l++)
        wants[x->lanes[l].way.peer] = x->lanes[l].way.peer != d->rank;
    hem_status status = hemi_device_get(world->root, &d->device);
    return status == HEM_OK ? allocate(x) : status;
}

hem_status hemi_halo_device_connect(hem_exchange *x, hem_status status, int64_t timeout_ns) {
    hem_world *world = x->world;
    bool *wants = calloc(world->size, sizeof *wants);
    x->device = calloc(1, sizeof *x->device);
    if (x->device == NULL && status == HEM_OK)
        status = no_memory();
    if (status == HEM_OK)
        status = prepare(x, wants);
    hemi_halo_device *d = x->device;
    status = hemi_device_share(world, HEMI_CALL_EXCHANGE_CREATE, status,
                               status == HEM_OK ? &d->areas : NULL, wants,
                               d != NULL ? d->maps : NULL, timeout_ns);
    free(wants);
    return status == HEM_OK ? hemi_halo_pieces_show(x, timeout_ns) : status;
}

hem_status hemi_halo_device_hear(hem_exchange *x, size_t lane, uint64_t at, uint64_t bytes,
                                 const uint8_t *uuid) {
    hemi_halo_device *d = x->device;
    uint32_t peer = x->lanes[lane].way.peer;
    const hemi_device_memory *map = &d->maps[peer];
    if (map->address == NULL)
        return hemi_fail(HEM_ERR_UNSUPPORTED,
                         "hem_exchange_create: kernels of rank %u cannot reach the device memory "
                         "of rank %u",
                         x->world->rank, peer);
    /* Both add up the same parts; it is where this rank will write. */
    if (bytes != hemi_halo_landing(x, &x->lanes[lane]) || at % HEM_DEV_LINE != 0 ||
        at > map->bytes || map->bytes - at < sizeof(hemd_halo_area) + 2 * bytes)
        return hemi_connect_nonsense(peer);
    d->reach[lane].out_at = at;
    d->reach[lane].out_bytes = bytes;
    d->reach[lane].near = memcmp(uuid, d->device->facts.uuid, HEMI_DEVICE_UUID) == 0;
    return HEM_OK;
}

static uint32_t clip(uint32_t blocks) {
    return blocks < 2 ? 2 : (blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS);
}

/*
 * Ranks that share a GPU have kernels that wait for each other: all must fit on it, and there may be
 * several exchanges in flight.
 */
static void find_blocks(hem_exchange *x) {
    hemi_halo_device *d = x->device;
    const hemi_device_stream_ops *ops = d->device->module->stream;
    uint32_t start = ops->fit(d->device->context, HEMI_KERNEL_HALO_START, HEMI_HALO_THREADS);
    uint32_t finish = ops->fit(d->device->context, HEMI_KERNEL_HALO_FINISH, HEMI_HALO_THREADS);
    uint32_t back = ops->fit(d->device->context, HEMI_KERNEL_HALO_BACK, HEMI_HALO_THREADS);
    uint32_t sharing = 1;
    for (size_t l = 0; l < x->lane_count; l++)
        if (x->lanes[l].way.peer != d->rank && d->reach[l].near)
            sharing = x->world->size;
    d->start_blocks = clip(start);
    d->direct_blocks = clip(start / (4 * sharing));
    d->finish_blocks = clip((finish < back ? finish : back) / (4 * sharing));
}

static hem_status make_words(hemi_halo_device *d) {
    void *device = NULL;
    hem_status status = hemi_device_pinned_alloc(d->root, sizeof *d->words, &d->pinned);
    if (status == HEM_OK)
        status = hemi_device_pinned_see(d->root, d->root->rank, &d->pinned, &device);
    if (status != HEM_OK)
        return status;
    d->words = hemi_arena_at(&d->root->arena, d->pinned.offset);
    d->words_device = device;
    return HEM_OK;
}

hem_status hemi_halo_device_settle(hem_exchange *x) {
    hemi_halo_device *d = x->device;
    hemi_halo_plan *everything = NULL;
    const hem_exchange_how how = {0};
    hem_status status = HEM_OK;
    if (x->way == HEM_EXCHANGE_ENGINES)
        status = hemi_halo_engine_allowed(x);
    if (status == HEM_OK)
        status = hemi_halo_show_fields(x);
    if (status == HEM_OK)
        status = hemi_halo_fill_tables(x);
    if (status == HEM_OK)
        status = make_words(d);
    if (status == HEM_OK)
        status = hemi_trouble_watch(x->world, x->number, &d->trouble, &d->trouble_words);
    if (status != HEM_OK)
        return status;
    find_blocks(x);
    d->all_near = d->pin_count == 0;
    for (size_t l = 0; l < x->lane_count; l++)
        d->all_near = d->all_near && (x->lanes[l].way.peer == d->rank || d->reach[l].near);
    status = hemi_halo_plan_make(x, &how, &everything);
    if (status == HEM_OK && x->way == HEM_EXCHANGE_ENGINES)
        status = hemi_halo_engine_make(x);
    return status;
}

void hemi_halo_drop(hemi_halo_device *d, hemi_device_memory *memory, bool closed) {
    if (memory->address == NULL)
        return;
    if (closed)
        hemi_device_retire(d->root, memory);
    else
        d->device->module->memory->release(d->device->context, memory);
    memory->address = NULL;
}

static void free_plans(hemi_halo_device *d, bool closed) {
    while (d->plans != NULL) {
        hemi_halo_plan *plan = d->plans;
        d->plans = plan->next;
        hemi_halo_drop(d, &plan->memory, closed);
        free(plan->rows);
        free(plan);
    }
}

static void hide_fields(hemi_halo_device *d) {
    for (size_t p = 0; p < d->pin_count; p++)
        hemi_device_unpin(d->root, d->pins[p].host, d->pins[p].bytes);
    d->pin_count = 0;
}

void hemi_halo_hide_fields(hem_exchange *x) {
    if (x->device != NULL && x->device->words != NULL && hemi_halo_device_is_idle(x))
        hide_fields(x->device);
}

/* What the device has of ours. What kernels of this rank may still look at stays. */
static void free_mapped(hemi_halo_device *d, bool closed, bool ended) {
    for (uint32_t r = 0; d->maps != NULL && r < d->map_count; r++)
        if (r != d->rank)
            hemi_halo_drop(d, &d->maps[r], closed);
    if (!d->kept)
        hemi_halo_drop(d, &d->areas, closed);
    hemi_halo_drop(d, &d->tables, closed);
    hemi_halo_pieces_free(d, closed);
    if (ended) {
        hide_fields(d);
        hemi_device_pinned_free(d->root, &d->pinned);
    }
    if (ended && !d->lost && d->open == NULL)
        hemi_device_stream_give(d->root, d->device, &d->stream);
    else if (d->stream != NULL)
        d->device->module->stream->destroy(d->device->context, d->stream);
}

/* Kernels that were told of the end come to theirs, unless the device has failed. */
static bool await_end(const hem_exchange *x) {
    const hemi_halo_device *d = x->device;
    const hemi_platform *platform = d->root->platform;
    uint64_t end = platform->now(platform->ctx) + END_NS;
    while (d->words != NULL && !hemi_halo_device_is_idle(x) && platform->now(platform->ctx) < end) {
        if (d->engine != NULL)
            hemi_halo_engine_look(d->engine); /* of a rank that is dead nobody else does */
        platform->nap(platform->ctx, NAP_NS);
    }
    return d->words == NULL || hemi_halo_device_is_idle(x);
}

void hemi_halo_device_free(hem_exchange *x, bool closed) {
    hemi_halo_device *d = x->device;
    if (d == NULL)
        return;
    /* Kernels look at its words until they have ended, and end because of them if it is closed. */
    if (closed)
        hemi_trouble_end(d->trouble, true);
    bool ended = await_end(x);
    hemi_halo_engine_free(d);
    if (!closed)
        hemi_trouble_end(d->trouble, !ended);
    closed = closed || !ended;
    /* Of a rank that has ended without closing, peers may still write to the areas. */
    d->kept = x->world != NULL && x->world->keep_memory;
    x->device = NULL;
    free_plans(d, closed);
    if (d->device != NULL)
        free_mapped(d, closed, ended);
    for (size_t i = 0; i < d->list_count; i++)
        if (d->lists[i].same == 0)
            free(d->lists[i].steps);
    free(d->lists);
    free(d->pins);
    free(d->reach);
    free(d->maps);
    free(d);
}
