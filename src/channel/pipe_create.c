/*
 * Making and giving up a pipe. First all agree on what it is to be, and hear which GPU each rank has.
 * Then each tells its peers where in its memory their areas are, through a small window in host
 * memory; that also shows who was named by one side only. Then the window in device memory is made,
 * and each rank writes the table of its ways.
 */
#include "base/atomic.h"
#include "channel/pipe.h"
#include "core/team.h"
#include "window/device.h"

#include <hem/window.h>
#include <stdlib.h>
#include <string.h>

/* What a rank says at first. */
typedef struct pipe_say {
    uint8_t uuid[HEMI_DEVICE_UUID];
} pipe_say;

_Static_assert(sizeof(pipe_say) <= HEMI_SAY_MAX, "fits into a step");

static void free_handle(hem_pipe *pipe) {
    free(pipe->ways);
    free(pipe);
}

static void orphan(hemi_child *child, bool dead) {
    hem_pipe *pipe = (hem_pipe *)(void *)child;
    pipe->world = NULL;
    if (dead)
        free_handle(pipe);
}

static uint64_t on_line(uint64_t offset) {
    return hemd_divide_up(offset, HEM_DEV_LINE) * HEM_DEV_LINE;
}

/* Where everything is in this rank's memory. */
static void lay_out(hem_pipe *pipe) {
    pipe->area = hemd_area_of(pipe->lanes, pipe->slots, pipe->slot_bytes, pipe->short_bytes,
                              pipe->straight != NULL);
    uint64_t named = 0;
    for (uint32_t r = 0; r < pipe->size; r++)
        named += pipe->peers[r].named ? 1 : 0;
    pipe->cursors = on_line(HEM_DEV_LINE + pipe->size * sizeof(hemd_way));
    pipe->areas = on_line(pipe->cursors + named * 2 * pipe->lanes * sizeof(hemd_cursor));
    uint64_t at = pipe->areas;
    for (uint32_t r = 0; r < pipe->size; r++) {
        if (!pipe->peers[r].named)
            continue;
        pipe->peers[r].here = at;
        at += on_line(pipe->area.bytes);
    }
    pipe->bytes = at;
}

static hem_status open_device(hem_pipe *pipe) {
    hem_status status = hemi_device_get(pipe->world->root, &pipe->device);
    if (status != HEM_OK)
        return status;
    const hemi_device_stream_ops *ops = pipe->device->module->stream;
    void *context = pipe->device->context;
    for (uint32_t warps = 1; warps <= 2 * HEMI_PIPE_WARPS; warps++)
        pipe->fit[warps] = ops->fit(context, HEMI_KERNEL_SENDRECV, 32 * warps);
    for (uint32_t warps = 1; warps <= HEMI_PIPE_WARPS && pipe->straight != NULL; warps++)
        pipe->fit_straight[warps] = ops->fit(context, HEMI_KERNEL_STRAIGHT, 32 * warps);
    pipe->ways = calloc(pipe->size, sizeof *pipe->ways);
    if (pipe->ways == NULL)
        return hemi_fail(HEM_ERR_MEMORY, "no memory for a pipe of %u ranks", pipe->size);
    return HEM_OK;
}

/* Step 1: all want the same, and who shares this rank's GPU? */
static hem_status agree(hem_pipe *pipe, hem_status status) {
    hem_world *world = pipe->world;
    pipe_say mine = {{0}};
    if (status == HEM_OK)
        memcpy(mine.uuid, pipe->device->facts.uuid, sizeof mine.uuid);
    status = hemi_team_agree(world, HEMI_CALL_PIPE_CREATE, status, hemi_pipe_fingerprint(pipe),
                             &mine, sizeof mine, pipe->timeout_ns);
    for (uint32_t r = 0; status == HEM_OK && r < pipe->size; r++) {
        pipe_say say;
        hemi_team_heard(world, r, &say, sizeof say);
        pipe->peers[r].near = memcmp(say.uuid, mine.uuid, sizeof mine.uuid) == 0;
        pipe->sharing += pipe->peers[r].near ? 1 : 0;
    }
    hemi_team_done(world);
    return status;
}

static hem_status hear_place(hem_pipe *pipe, uint32_t rank, uint64_t there) {
    hemi_pipe_peer *peer = &pipe->peers[rank];
    if (peer->named != (there != 0))
        return hemi_fail(HEM_ERR_MISMATCH,
                         "hem_pipe_create: rank %u named rank %u as a peer, but "
                         "not the other way round",
                         peer->named ? pipe->rank : rank, peer->named ? rank : pipe->rank);
    if (there % HEM_DEV_LINE != 0)
        return hemi_fail(HEM_ERR_MISMATCH,
                         "hem_pipe_create: rank %u named byte %llu, which is "
                         "not on a line",
                         rank, (unsigned long long)there);
    peer->there = there;
    return HEM_OK;
}

static hem_status tell_places(hem_pipe *pipe, hem_window *table) {
    hem_status status = HEM_OK;
    for (uint32_t r = 0; r < pipe->size && status == HEM_OK; r++)
        if (pipe->peers[r].named)
            status = hem_put_value(table, (int)r, 8 * (size_t)pipe->rank, pipe->peers[r].here);
    return status;
}

/* Step 2: where are the areas? */
static hem_status meet_peers(hem_pipe *pipe) {
    hem_window_options options = {.struct_size = sizeof options,
                                  .bytes = 8 * (size_t)pipe->size,
                                  .timeout_ns = pipe->timeout_ns};
    hem_window *table = NULL;
    hem_status status = hem_window_create(pipe->world, &options, &table);
    if (status != HEM_OK)
        return status;
    status = tell_places(pipe, table);
    status =
        hemi_team_agree(pipe->world, HEMI_CALL_PIPE_CREATE, status, 1, NULL, 0, pipe->timeout_ns);
    const uint64_t *words = hem_window_memory(table);
    for (uint32_t r = 0; r < pipe->size && status == HEM_OK; r++)
        status = hear_place(pipe, r, hemi_load64_acquire(&words[r]));
    status =
        hemi_team_agree(pipe->world, HEMI_CALL_PIPE_CREATE, status, 2, NULL, 0, pipe->timeout_ns);
    char sentence[HEMI_ERROR_MAX];
    hemi_error_save(sentence);
    (void)hem_window_destroy(table);
    hemi_error_restore(sentence);
    return status;
}

static hem_status make_window(hem_pipe *pipe) {
    bool *wanted = calloc(pipe->size, sizeof *wanted);
    hem_status status = HEM_OK;
    if (wanted == NULL)
        status = hemi_fail(HEM_ERR_MEMORY, "no memory for a pipe of %u ranks", pipe->size);
    status =
        hemi_team_agree(pipe->world, HEMI_CALL_PIPE_CREATE, status, 3, NULL, 0, pipe->timeout_ns);
    for (uint32_t r = 0; status == HEM_OK && r < pipe->size; r++)
        wanted[r] = pipe->peers[r].named;
    if (status == HEM_OK)
        status = hemi_device_window_create(pipe->world, HEMI_CALL_PIPE_CREATE, pipe->bytes, wanted,
                                           &pipe->window);
    free(wanted);
    return status;
}

/* The way to and from one peer; `index` counts those that were named. */
static hem_status make_way(hem_pipe *pipe, uint32_t rank, uint64_t index) {
    hemd_way *way = &pipe->ways[rank];
    const hemi_pipe_peer *peer = &pipe->peers[rank];
    unsigned char *mine = hemi_window_device_address(pipe->window, pipe->rank);
    unsigned char *theirs = hemi_window_device_address(pipe->window, rank);
    if (mine == NULL || theirs == NULL)
        return hemi_fail(HEM_ERR_UNSUPPORTED,
                         "hem_pipe_create: kernels of rank %u cannot reach rank %u", pipe->rank,
                         rank);
    if (peer->there > hem_window_bytes(pipe->window, (int)rank) ||
        pipe->area.bytes > hem_window_bytes(pipe->window, (int)rank) - peer->there)
        return hemi_fail(HEM_ERR_MISMATCH,
                         "hem_pipe_create: rank %u named a place that it does "
                         "not have",
                         rank);
    way->out = theirs + peer->there;
    way->in = mine + peer->here;
    way->sent = (hemd_cursor *)(void *)(mine + pipe->cursors) + index * 2 * pipe->lanes;
    way->taken = way->sent + pipe->lanes;
    way->error = (uint64_t *)(void *)mine;
    way->near = peer->near ? 1 : 0;
    way->peer = (int32_t)rank;
    way->area = pipe->area;
    return HEM_OK;
}

/* Step 3: what kernels need. */
static hem_status make_ways(hem_pipe *pipe) {
    hem_status status = hem_window_device(pipe->window, &pipe->dev.window);
    uint64_t index = 0;
    for (uint32_t r = 0; r < pipe->size && status == HEM_OK; r++)
        if (pipe->peers[r].named)
            status = make_way(pipe, r, index++);
    if (status == HEM_OK)
        status = hem_put(pipe->window, (int)pipe->rank, HEM_DEV_LINE, pipe->ways,
                         pipe->size * sizeof *pipe->ways);
    if (status != HEM_OK)
        return status;
    unsigned char *mine = hemi_window_device_address(pipe->window, pipe->rank);
    pipe->dev.ways = (const hemd_way *)(void *)(mine + HEM_DEV_LINE);
    pipe->dev.lanes = pipe->lanes;
    pipe->dev.slots = pipe->slots;
    pipe->dev.slot_bytes = pipe->slot_bytes;
    pipe->dev.short_bytes = pipe->short_bytes;
    return pipe->straight != NULL ? hem_window_device(pipe->straight, &pipe->dev.straight) : HEM_OK;
}

static hem_status build(hem_pipe *pipe) {
    lay_out(pipe);
    hem_status status = meet_peers(pipe);
    if (status == HEM_OK)
        status = make_window(pipe);
    if (status != HEM_OK)
        return status;
    status = make_ways(pipe);
    return hemi_team_agree(pipe->world, HEMI_CALL_PIPE_CREATE, status, 4, NULL, 0,
                           pipe->timeout_ns);
}

/* Of a pipe that nobody got. All ranks come here together. */
static void unmake(hem_pipe *pipe) {
    char sentence[HEMI_ERROR_MAX];
    hemi_error_save(sentence);
    (void)hem_window_destroy(pipe->window);
    free_handle(pipe);
    hemi_error_restore(sentence);
}

hem_status hem_pipe_create(hem_world *world, const hem_pipe_options *options, hem_pipe **pipe_p) {
    if (world == NULL)
        return hemi_fail(HEM_ERR_ARG, "hem_pipe_create: world is NULL");
    hem_pipe *pipe = calloc(1, sizeof *pipe + world->size * sizeof pipe->peers[0]);
    if (pipe == NULL) {
        hem_status none = hemi_fail(HEM_ERR_MEMORY, "no memory for a pipe");
        return hemi_team_agree(world, HEMI_CALL_PIPE_CREATE, none, 0, NULL, 0, world->timeout_ns);
    }
    pipe->world = world;
    pipe->rank = world->rank;
    pipe->size = world->size;
    pipe->timeout_ns = world->timeout_ns;
    hem_status status = hemi_pipe_read_options(pipe, options);
    if (status == HEM_OK && pipe_p == NULL)
        status = hemi_fail(HEM_ERR_ARG, "hem_pipe_create: pipe_p is NULL");
    if (status == HEM_OK)
        status = open_device(pipe);
    status = agree(pipe, status);
    if (status == HEM_OK)
        status = build(pipe);
    if (status != HEM_OK) {
        unmake(pipe);
        return status;
    }
    pipe->child.orphan = orphan;
    hemi_world_adopt(world, &pipe->child);
    *pipe_p = pipe;
    return HEM_OK;
}

hem_status hem_pipe_destroy(hem_pipe *pipe) {
    if (pipe == NULL)
        return HEM_OK;
    if (pipe->world != NULL)
        hemi_world_abandon(pipe->world, &pipe->child);
    hem_status status = hem_window_destroy(pipe->window);
    free_handle(pipe);
    return status;
}
