/* Element types, and named buffers carved out of a window. */
#include "window/window.h"

#include <stdlib.h>
#include <string.h>

#define NAME_MAX_BYTES 255
#define BUFFERS_MAX    65536

size_t hem_dtype_size(hem_dtype dtype) {
    switch (dtype) {
    case HEM_BYTE:
    case HEM_I8:
    case HEM_U8:
    case HEM_BOOL:
        return 1;
    case HEM_I16:
    case HEM_U16:
    case HEM_F16:
    case HEM_BF16:
        return 2;
    case HEM_I32:
    case HEM_U32:
    case HEM_F32:
        return 4;
    case HEM_I64:
    case HEM_U64:
    case HEM_F64:
    case HEM_C64:
        return 8;
    case HEM_C128:
        return 16;
    }
    return 0;
}

static hem_status check_one(const hem_window_options *options, size_t i) {
    const hem_buffer *b = &options->buffers[i];
    if (b->name == NULL || b->name[0] == '\0' || strlen(b->name) > NAME_MAX_BYTES)
        return hemi_fail(HEM_ERR_ARG, "buffer %zu has no name, or one longer than %d", i,
                         NAME_MAX_BYTES);
    if (hem_dtype_size(b->dtype) == 0)
        return hemi_fail(HEM_ERR_ARG, "buffer %s: %d is no type", b->name, (int)b->dtype);
    for (size_t j = 0; j < i; j++)
        if (strcmp(options->buffers[j].name, b->name) == 0)
            return hemi_fail(HEM_ERR_ARG, "two buffers are called %s", b->name);
    return HEM_OK;
}

/* Where buffer `b` goes if the ones before it end at `end`; `*end_p` moves behind it. */
static hem_status place_one(hem_buffer *b, uint64_t align, uint64_t *end_p) {
    uint64_t start = 0;
    uint64_t bytes = 0;
    if (__builtin_mul_overflow((uint64_t)b->count, hem_dtype_size(b->dtype), &bytes) ||
        __builtin_add_overflow(*end_p, align - 1, &start) ||
        __builtin_add_overflow(start / align * align, bytes, end_p))
        return hemi_fail(HEM_ERR_RANGE, "buffer %s of %zu elements is larger than all memory",
                         b->name, b->count);
    b->offset = start / align * align;
    return HEM_OK;
}

static hem_status copy_all(const hem_window_options *options, hem_buffer *copy) {
    for (size_t i = 0; i < options->buffer_count; i++) {
        hem_status status = check_one(options, i);
        if (status != HEM_OK)
            return status;
        copy[i] = options->buffers[i];
        copy[i].name = strdup(options->buffers[i].name);
        if (copy[i].name == NULL)
            return hemi_fail(HEM_ERR_MEMORY, "no memory for a buffer's name");
    }
    return HEM_OK;
}

hem_status hemi_buffers_place(const hem_window_options *options, hem_buffer **buffers_p,
                              uint64_t *bytes) {
    size_t count = options->buffer_count;
    uint64_t align = options->align == 0 ? HEMI_LINE : options->align;
    if (align > HEMI_PAGE || (align & (align - 1)) != 0)
        return hemi_fail(HEM_ERR_ARG, "align %zu is not a power of two up to %u", options->align,
                         HEMI_PAGE);
    if (count == 0)
        return HEM_OK;
    if (options->buffers == NULL || count > BUFFERS_MAX)
        return hemi_fail(HEM_ERR_ARG, "%zu buffers, but buffers is NULL or they are too many",
                         count);
    hem_buffer *copy = calloc(count, sizeof *copy);
    if (copy == NULL)
        return hemi_fail(HEM_ERR_MEMORY, "no memory for %zu buffers", count);
    hem_status status = copy_all(options, copy);
    uint64_t end = 0;
    for (size_t i = 0; status == HEM_OK && i < count; i++)
        status = place_one(&copy[i], align, &end);
    if (status == HEM_OK && *bytes != 0 && end > *bytes)
        status = hemi_fail(HEM_ERR_RANGE, "the buffers need %llu bytes, the window has %llu",
                           (unsigned long long)end, (unsigned long long)*bytes);
    if (status != HEM_OK) {
        hemi_buffers_free(copy, count);
        return status;
    }
    if (*bytes == 0)
        *bytes = end;
    *buffers_p = copy;
    return HEM_OK;
}

void hemi_buffers_free(hem_buffer *buffers, size_t count) {
    for (size_t i = 0; buffers != NULL && i < count; i++)
        free((void *)(uintptr_t)buffers[i].name);
    free(buffers);
}

static uint64_t mix(uint64_t hash, const void *data, size_t n) {
    const unsigned char *bytes = data;
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ bytes[i]) * 0x100000001b3u; /* FNV-1a */
    return hash;
}

uint64_t hemi_window_fingerprint(const hem_window_options *options) {
    uint64_t hash = 0xcbf29ce484222325u;
    uint64_t numbers[] = {options->signals,      options->barriers,       options->counters,
                          options->buffer_count, options->memory != NULL, options->align,
                          options->kind,         options->device_signals, options->mixed_barriers};
    hash = mix(hash, numbers, sizeof numbers);
    if (options->buffers == NULL || options->buffer_count > BUFFERS_MAX)
        return hash;
    for (size_t i = 0; i < options->buffer_count; i++) {
        const hem_buffer *b = &options->buffers[i];
        if (b->name != NULL)
            hash = mix(hash, b->name, strlen(b->name) + 1);
        hash = mix(hash, &b->dtype, sizeof b->dtype);
    }
    return hash;
}

hem_status hem_window_buffer(hem_window *window, const char *name, hem_buffer *buffer_p) {
    hem_status status = hemi_window_check(window, "hem_window_buffer");
    if (status == HEM_OK && (name == NULL || buffer_p == NULL))
        status = hemi_fail(HEM_ERR_ARG, "hem_window_buffer: name or buffer_p is NULL");
    if (status != HEM_OK)
        return status;
    for (size_t i = 0; i < window->buffer_count; i++)
        if (strcmp(window->buffers[i].name, name) == 0) {
            *buffer_p = window->buffers[i];
            return HEM_OK;
        }
    return hemi_fail(HEM_ERR_RANGE, "hem_window_buffer: no buffer is called %s", name);
}
