#include "base/lock.h"
#include "core/stream_queue.h"

#include <stdlib.h>
#include <string.h>

static hemi_clock_entry *find(const hemi_clock *clock, uint64_t id) {
    for (uint32_t i = 0; i < clock->count; i++)
        if (clock->entries[i].id == id)
            return &clock->entries[i];
    return NULL;
}

bool hemi_clock_has(const hemi_clock *clock, uint64_t id, uint64_t position) {
    const hemi_clock_entry *entry = find(clock, id);
    return entry != NULL && entry->position >= position;
}

void hemi_clock_raise(hemi_clock *clock, uint64_t id, uint64_t position) {
    hemi_clock_entry *entry = find(clock, id);
    if (entry == NULL) {
        entry = &clock->entries[clock->count++];
        *entry = (hemi_clock_entry){.id = id};
    }
    if (entry->position < position)
        entry->position = position;
}

static hem_status reserve(hemi_clock *clock, uint32_t count) {
    if (count <= clock->room)
        return HEM_OK;
    uint32_t room = clock->room < 4 ? 4 : clock->room;
    while (room < count)
        room *= 2;
    hemi_clock_entry *entries = realloc(clock->entries, room * sizeof *entries);
    if (entries == NULL)
        return hemi_fail(HEM_ERR_MEMORY, "no memory for the order among %u streams", count);
    clock->entries = entries;
    clock->room = room;
    return HEM_OK;
}

hem_status hemi_clock_copy(hemi_clock *to, const hemi_clock *from, uint64_t id, uint64_t position) {
    hem_status status = reserve(to, from->count + 1);
    if (status != HEM_OK)
        return status;
    to->count = from->count;
    for (uint32_t i = 0; i < from->count; i++)
        to->entries[i] = from->entries[i];
    hemi_clock_raise(to, id, position);
    return HEM_OK;
}

/* The stream with this number, or NULL if it was destroyed. Under streams_lock. */
static hem_stream *stream_of(const hemi_root *root, uint64_t id) {
    hem_stream *stream = root->streams;
    while (stream != NULL && stream->id != id)
        stream = stream->next;
    return stream;
}

/* Of a stream that was destroyed, everything is done and everybody knows. Under streams_lock. */
static bool is_known(const hemi_root *root, uint64_t id, uint64_t position) {
    const hem_stream *stream = stream_of(root, id);
    return stream == NULL || hemi_load64_acquire(&stream->seen) >= position;
}

static void forget_known(hemi_root *root, hemi_clock *clock) {
    uint32_t kept = 0;
    hemi_lock(root->platform, &root->streams_lock);
    for (uint32_t i = 0; i < clock->count; i++)
        if (!is_known(root, clock->entries[i].id, clock->entries[i].position))
            clock->entries[kept++] = clock->entries[i];
    hemi_unlock(&root->streams_lock);
    clock->count = kept;
}

hem_status hemi_clock_merge(hemi_root *root, hemi_clock *to, const hemi_clock *from) {
    /* A stream that lives long waits for many that do not. */
    if (to->count + from->count > to->room)
        forget_known(root, to);
    hem_status status = reserve(to, to->count + from->count);
    for (uint32_t i = 0; status == HEM_OK && i < from->count; i++)
        hemi_clock_raise(to, from->entries[i].id, from->entries[i].position);
    return status;
}

static void raise_seen(hem_stream *stream, uint64_t position) {
    uint64_t seen = hemi_load64_acquire(&stream->seen);
    while (seen < position)
        if (hemi_cas64_acq_rel(&stream->seen, &seen, position))
            return;
}

void hemi_clock_saw(hemi_root *root, const hemi_clock *clock) {
    if (clock->count == 0)
        return;
    hemi_lock(root->platform, &root->streams_lock);
    for (uint32_t i = 0; i < clock->count; i++) {
        hem_stream *stream = stream_of(root, clock->entries[i].id);
        if (stream == NULL)
            continue;
        /* A pair may have been raised since to a place that is not done; the old one is. */
        uint64_t done = hemi_load64_acquire(&stream->done);
        uint64_t position = clock->entries[i].position;
        raise_seen(stream, position < done ? position : done);
    }
    hemi_unlock(&root->streams_lock);
}

void hemi_stream_saw(hem_stream *stream, uint64_t position) {
    raise_seen(stream, position);
    hemi_lock(stream->platform, &stream->lock);
    hemi_clock_saw(stream->root, &stream->clock);
    hemi_unlock(&stream->lock);
}

bool hemi_stream_follows(hem_stream *stream, uint64_t id, uint64_t position) {
    if (stream->id == id || position == 0)
        return true;
    hemi_lock(stream->platform, &stream->lock);
    bool follows = hemi_clock_has(&stream->clock, id, position);
    hemi_unlock(&stream->lock);
    if (follows)
        return true;
    hemi_root *root = stream->root;
    hemi_lock(root->platform, &root->streams_lock);
    follows = is_known(root, id, position);
    hemi_unlock(&root->streams_lock);
    return follows;
}
