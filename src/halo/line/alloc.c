/* Memory for a payload, asked for without the lock. */
#include "halo/line/line.h"

#include <stdio.h>
#include <stdlib.h>

/* What was found for a payload. */
typedef struct room {
    hem_line_buffer buffer;
    hemi_line_mark mark;
    void *bounce;
    char why[HEMI_OP_TEXT]; /* not empty: it is no good */
} room;

static bool no_room(room *found, const char *why) {
    (void)snprintf(found->why, sizeof found->why, "%s", why);
    return false;
}

/* The last error says more. */
static bool failed(room *found, const char *why) {
    (void)snprintf(found->why, sizeof found->why, "%s (%.160s)", why, hem_last_error());
    return false;
}

/* Nobody said where it should be, and it comes out of device memory. */
static bool take_device_memory(hem_line *line, int s, room *found) {
    hem_delivery *delivery = &line->in[s].at->in[s];
    hemi_line_memory *memory = &hemi_delivery_keep(delivery)->memory;
    if (hemi_line_equip(line, &line->in[s].stage) != HEM_OK ||
        hemi_line_memory_alloc(line->world, line->device, delivery->data_bytes, memory) != HEM_OK)
        return failed(found, "there is no device memory");
    found->buffer.data = memory->address;
    found->buffer.kind = HEM_MEMORY_DEVICE;
    return true;
}

/* What it takes to fill device memory of the caller's. */
static bool prepare(hem_line *line, int s, room *found) {
    uint32_t flags = line->in[s].message.header.magic;
    if (hemi_line_equip(line, &line->in[s].stage) != HEM_OK)
        return failed(found, "there is no way into device memory");
    if ((flags & (HEMI_LINE_DEVICE | HEMI_LINE_DATA)) != 0)
        return true;
    found->bounce = malloc(line->in[s].message.header.data_bytes);
    return found->bounce != NULL || no_room(found, "there is no memory");
}

static bool ask(hem_line *line, int s, room *found) {
    const hem_delivery *delivery = &line->in[s].at->in[s];
    const hemi_root *root = line->world->root;
    hem_line_buffer buffer = {0};
    hem_status status =
        line->alloc(line->alloc_arg, (int)line->sides->side[s].lane.peer, delivery->meta,
                    delivery->meta_bytes, delivery->data_bytes, &buffer);
    if (status != HEM_OK)
        return no_room(found, "the allocator has no memory");
    bool device = hemi_line_is_device(hemi_line_device_peek(root), buffer.data);
    bool named = buffer.kind == HEM_MEMORY_DEVICE;
    buffer.kind = device ? HEM_MEMORY_DEVICE : buffer.kind;
    found->buffer = buffer;
    if (buffer.data == NULL || (named && !device) || (!named && buffer.kind > HEM_MEMORY_DEVICE))
        return no_room(found, "the allocator gave no memory of a kind that can be used");
    if (device && !prepare(line, s, found))
        return false;
    if (buffer.stream != NULL &&
        hemi_line_mark_set(root, buffer.stream, "hem_line_exchange", &found->mark) != HEM_OK)
        return failed(found, "the allocator gave a stream that cannot be used");
    return true;
}

/* Without the lock, but for the ends of it. */
static void allocate(hem_line *line, int s) {
    hem_world *world = line->world;
    hemi_line_in *in = &line->in[s];
    room found = {0};
    in->calling = true;
    hemi_engine_unlock(world);
    bool good = line->alloc != NULL ? ask(line, s, &found) : take_device_memory(line, s, &found);
    hemi_engine_lock(world);
    in->calling = false;
    in->at->in[s].buffer = found.buffer;
    in->bounce = found.bounce;
    in->mark = found.mark;
    if (!line->broken) {
        if (good)
            hemi_line_accept(line, s);
        else
            hemi_line_refuse(line, s, found.why);
    }
    hemi_engine_list(world, &line->task);
    hemi_wake(world->root, world->root->me);
}

void hemi_line_allocate(hem_op *op, hem_status status, void *arg) {
    hem_line *line = arg;
    hem_world *world = op->world;
    (void)status;
    hemi_engine_lock(world);
    for (int s = HEMI_LEFT; s <= HEMI_RIGHT; s++)
        if (line->in[s].phase == HEMI_IN_ALLOC && !line->in[s].calling && !line->broken)
            allocate(line, s);
    hemi_engine_unlock(world);
}
