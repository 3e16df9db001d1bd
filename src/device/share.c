/*
 * Showing device memory to peers.
 *
 * How this works. Each rank writes a note into its part of the arena: what names its memory, whose
 * memory it wants, and where its socket is. One step of agreement tells where the notes lie. Then
 * everybody knows whom it sends its descriptor to and from whom one will come, so that nobody serves
 * and nobody asks: each sends until all are sent and takes until all have come, without ever
 * blocking in either. A second step agrees on how it ended; until then the notes stay.
 *
 * A rank that fails in between says so in its note, for those who would wait for it, and brings its
 * sentence to the second step, where all get it.
 */
#include "device/device.h"

#include "core/heap.h"
#include "core/team.h"
#include "device/fds.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NOTE_MAGIC 0x65746f6e6d6568u /* "hemnote" */
/* How long to wait for a descriptor before looking whether its sender is alive. */
#define LOOK_MS 10
/* How long until a receiver that had no room is tried again. */
#define RETRY_MS 1

/* Written by its owner before the first step; constant but for `failed`. */
typedef struct note {
    uint64_t magic;
    uint32_t shows;
    uint32_t failed; /* its owner has given up: 0, then 1 */
    hemi_fds_name where;
    hemi_device_name name;
    uint8_t wants[]; /* one per rank */
} note;

/* A peer's note, copied and checked. */
typedef struct peer {
    const uint32_t *failed;
    hemi_fds_name where;
    hemi_device_name name;
    bool shows;
    bool send; /* my descriptor is still to be sent there */
    bool take; /* its descriptor has not come yet */
} peer;

typedef struct share {
    hem_world *world;
    uint32_t call;
    const hemi_device *device;
    const hemi_device_memory *mine;
    const bool *wants;
    hemi_device_memory *maps;
    peer *peers;
    uint64_t offset; /* of my note; 0: none */
    hemi_fds fds;
    int fd; /* of my memory, or -1 */
    uint32_t sends;
    uint32_t takes;
} share;

static uint64_t note_bytes(const hem_world *world) {
    return sizeof(note) + world->size;
}

static note *my_note(const share *s) {
    return hemi_arena_at(&s->world->root->arena, s->offset);
}

static bool wants_rank(const share *s, uint32_t rank) {
    return s->wants != NULL && s->wants[rank];
}

static bool wants_any(const share *s) {
    for (uint32_t r = 0; r < s->world->size; r++)
        if (r != s->world->rank && wants_rank(s, r))
            return true;
    return false;
}

static hem_status write_note(share *s, const hemi_device_name *name) {
    hemi_root *root = s->world->root;
    hem_status status = hemi_heap_alloc(&root->arena, root->platform, root->rank,
                                        note_bytes(s->world), HEMI_HEAP_RESERVED, &s->offset);
    if (status != HEM_OK)
        return status;
    note *n = my_note(s);
    n->magic = NOTE_MAGIC;
    n->shows = s->mine != NULL;
    n->where = s->fds.where;
    n->name = *name;
    n->name.pid = (uint32_t)getpid();
    for (uint32_t r = 0; r < s->world->size; r++)
        n->wants[r] = wants_rank(s, r);
    return HEM_OK;
}

static hem_status prepare(share *s) {
    hemi_root *root = s->world->root;
    hemi_device_name name = {.kind = 0};
    hemi_device *device = NULL;
    hem_status status = HEM_OK;
    s->maps = calloc(s->world->size, sizeof *s->maps);
    s->peers = calloc(s->world->size, sizeof *s->peers);
    if (s->maps == NULL || s->peers == NULL)
        return hemi_fail(HEM_ERR_MEMORY, "no memory to share with %u ranks", s->world->size);
    if (s->mine != NULL || wants_any(s))
        status = hemi_device_get(root, &device);
    s->device = device;
    if (status == HEM_OK && s->mine != NULL)
        status = device->module->memory->name(device->context, s->mine, &name, &s->fd);
    if (status == HEM_OK && !root->threads && s->world->size > 1)
        status = hemi_fds_open(root->platform, &s->fds);
    return status == HEM_OK ? write_note(s, &name) : status;
}

/* What can be seen of a name to be wrong without knowing the device. */
static bool is_name(const hemi_device_name *name) {
    if (name->kind < HEMI_DEVICE_NAME_POINTER || name->kind > HEMI_DEVICE_NAME_POOL)
        return false;
    if (name->address == 0 || name->bytes == 0 || name->bytes > UINT64_MAX - name->address)
        return false;
    return name->kind == HEMI_DEVICE_NAME_POINTER ||
           (name->bytes <= name->whole && name->offset <= name->whole - name->bytes);
}

static hem_status read_note(share *s, uint32_t rank) {
    const hem_world *world = s->world;
    const hemi_arena *arena = &world->root->arena;
    peer *p = &s->peers[rank];
    uint64_t offset = 0;
    hemi_team_heard(world, rank, &offset, sizeof offset);
    if (offset % HEMI_PAGE != 0 ||
        !hemi_arena_in_part(arena, world->members[rank], offset, note_bytes(world)))
        return hemi_fail(HEM_ERR_MISMATCH, "rank %u named a note outside of its memory", rank);
    const note *n = hemi_arena_at(arena, offset);
    p->failed = &n->failed;
    p->where = n->where;
    p->name = n->name;
    p->shows = n->shows == 1;
    if (n->magic != NOTE_MAGIC || (p->shows && !is_name(&p->name)))
        return hemi_fail(HEM_ERR_MISMATCH, "rank %u named device memory that is none", rank);
    if (world->root->threads || rank == world->rank)
        return HEM_OK;
    p->send = s->fd >= 0 && n->wants[world->rank] != 0;
    bool comes = p->name.kind == HEMI_DEVICE_NAME_FD || p->name.kind == HEMI_DEVICE_NAME_POOL;
    p->take = p->shows && wants_rank(s, rank) && comes;
    s->sends += p->send;
    s->takes += p->take;
    return HEM_OK;
}

static hem_status read_notes(share *s) {
    hem_status status = HEM_OK;
    for (uint32_t r = 0; status == HEM_OK && r < s->world->size; r++)
        status = read_note(s, r);
    hemi_team_done(s->world);
    return status;
}

/* Map what a rank shows. That kernels here cannot reach it is no error. */
static hem_status map(share *s, uint32_t rank, int fd) {
    const hemi_device *device = s->device;
    bool here = s->world->root->threads;
    hemi_device_memory memory = {.address = NULL};
    if (s->peers[rank].name.kind == HEMI_DEVICE_NAME_POINTER && !here)
        return HEM_OK;
    hem_status status =
        device->module->memory->map(device->context, &s->peers[rank].name, fd, here, &memory);
    if (status == HEM_ERR_UNSUPPORTED)
        return HEM_OK;
    if (status == HEM_OK)
        s->maps[rank] = memory;
    return status;
}

/* All that need no descriptor. */
static hem_status map_named(share *s) {
    hem_status status = HEM_OK;
    for (uint32_t r = 0; status == HEM_OK && r < s->world->size; r++) {
        const peer *p = &s->peers[r];
        if (!p->shows || p->take || !wants_rank(s, r))
            continue;
        if (r == s->world->rank)
            s->maps[r] = *s->mine;
        else
            status = map(s, r, -1);
    }
    return status;
}

static hem_status send_all(share *s) {
    for (uint32_t r = 0; s->sends > 0 && r < s->world->size; r++) {
        peer *p = &s->peers[r];
        if (!p->send)
            continue;
        hem_status status = hemi_fds_send(&s->fds, &p->where, s->world->rank, s->fd);
        if (status == HEMI_AGAIN)
            continue;
        if (status != HEM_OK)
            return status;
        p->send = false;
        s->sends--;
    }
    return HEM_OK;
}

static hem_status take_all(share *s) {
    for (;;) {
        uint32_t rank = 0;
        int fd = -1;
        hem_status status = hemi_fds_take(&s->fds, s->world->size, &rank, &fd);
        if (status != HEM_OK)
            return status == HEMI_AGAIN ? HEM_OK : status;
        if (s->peers[rank].take) {
            s->peers[rank].take = false;
            s->takes--;
            status = map(s, rank, fd);
        }
        close(fd);
        if (status != HEM_OK)
            return status;
    }
}

/* The first rank that something is still to come from or to go to, or the size of the world. */
static uint32_t first_missing(const share *s) {
    uint32_t r = 0;
    while (r < s->world->size && !s->peers[r].send && !s->peers[r].take)
        r++;
    return r;
}

/* Whether to give up. `*stop_p`: somebody else has, and will say why. */
static hem_status look_for_trouble(const share *s, bool *stop_p) {
    const char *call = hemi_call_name(s->call);
    hem_world *world = s->world;
    if (hemi_load32_acquire(&world->team->revoked) != 0)
        return hemi_world_fail_revoked(world, call);
    for (uint32_t r = 0; r < world->size; r++) {
        const peer *p = &s->peers[r];
        /* Pairs with the release in run. */
        if (hemi_load32_acquire(p->failed) != 0)
            *stop_p = true;
        if ((p->send || p->take) && !hemi_world_may_come(world, r))
            return hemi_world_fail_peer(world, r, call);
    }
    return HEM_OK;
}

static hem_status hand_over(share *s, uint64_t deadline) {
    const hemi_platform *platform = s->world->root->platform;
    bool stop = false;
    for (;;) {
        hem_status status = send_all(s);
        if (status == HEM_OK && s->takes > 0)
            status = take_all(s);
        if (status != HEM_OK || (s->sends == 0 && s->takes == 0))
            return status;
        status = look_for_trouble(s, &stop);
        if (status != HEM_OK || stop)
            return status;
        if (platform->now(platform->ctx) >= deadline)
            return hemi_fail(HEM_ERR_TIMEOUT, "%s: rank %u did not %s device memory in time",
                             hemi_call_name(s->call), first_missing(s),
                             s->peers[first_missing(s)].take ? "hand over its"
                                                             : "take this rank's");
        struct pollfd p = {.fd = s->fds.socket, .events = POLLIN};
        (void)poll(&p, s->takes > 0 ? 1 : 0, s->sends > 0 ? RETRY_MS : LOOK_MS);
    }
}

static hem_status exchange(share *s, uint64_t deadline) {
    hemi_root *root = s->world->root;
    uint32_t missing = first_missing(s);
    if (missing == s->world->size)
        return HEM_OK;
    uint64_t start = root->platform->now(root->platform->ctx);
    hemi_flight_note n = {
        .call = s->call, .peer = (int32_t)s->world->members[missing], .world = s->world->id};
    hemi_flight *flight = hemi_flight_enter(&root->arena, root->rank, &n, start);
    hem_status status = hand_over(s, deadline);
    hemi_flight_leave(flight);
    return status;
}

/* After the first step: returns what the second one said. */
static hem_status run(share *s, int64_t timeout_ns) {
    const hemi_platform *platform = s->world->root->platform;
    uint64_t now = platform->now(platform->ctx);
    uint64_t deadline = timeout_ns < 0 ? UINT64_MAX : now + (uint64_t)timeout_ns;
    hem_status status = read_notes(s);
    if (status == HEM_OK)
        status = map_named(s);
    if (status == HEM_OK)
        status = exchange(s, deadline);
    if (status != HEM_OK)
        hemi_store32_release(&my_note(s)->failed, 1);
    /* Others may come as late as their limit lets them, and then they know better what was wrong. */
    now = platform->now(platform->ctx);
    if (timeout_ns >= 0 && timeout_ns < INT64_MAX / 2 && now < deadline)
        timeout_ns += (int64_t)(deadline - now);
    return hemi_team_agree(s->world, s->call, status, 0, NULL, 0, timeout_ns);
}

static void clean(share *s, bool failed) {
    hemi_root *root = s->world->root;
    for (uint32_t r = 0; failed && s->maps != NULL && r < s->world->size; r++)
        if (r != s->world->rank && s->maps[r].address != NULL)
            s->device->module->memory->release(s->device->context, &s->maps[r]);
    if (s->offset != 0)
        hemi_heap_free(&root->arena, root->platform, root->rank, s->offset, root->cache_bytes);
    hemi_fds_close(&s->fds);
    if (s->fd >= 0)
        close(s->fd);
    free(s->maps);
    free(s->peers);
}

hem_status hemi_device_share(hem_world *world, uint32_t call, hem_status status,
                             const hemi_device_memory *mine, const bool *wants,
                             hemi_device_memory *maps_p, int64_t timeout_ns) {
    share s = {.world = world,
               .call = call,
               .mine = mine,
               .wants = wants,
               .fds = {.socket = -1},
               .fd = -1};
    if (status == HEM_OK)
        status = prepare(&s);
    status = hemi_team_agree(world, call, status, 0, &s.offset, sizeof s.offset, timeout_ns);
    if (status == HEM_OK)
        status = run(&s, timeout_ns);
    if (status == HEM_OK)
        memcpy(maps_p, s.maps, world->size * sizeof *maps_p);
    clean(&s, status != HEM_OK);
    return status;
}
