/* What the tests of pipes with a window share. */
#ifndef HEM_TESTS_DEVICE_PIPE_STRAIGHT_KIT_H
#define HEM_TESTS_DEVICE_PIPE_STRAIGHT_KIT_H

#include "pipe_kit.h"

/** Where a buffer may lie. Only those inside are reached by peers. */
enum straight_where {
    STRAIGHT_INSIDE = 0,
    STRAIGHT_OUTSIDE,
    STRAIGHT_PARTLY, /**< half of it inside: at the beginning for receiving, at the end for sending */
    STRAIGHT_WHERES
};

/**
 * A rank with a pipe and its window, which is the middle of memory of the caller's own, so that a
 * buffer can lie partly in it. The first half of all memory is for receiving, the other for sending.
 */
typedef struct straight_kit {
    pipe_kit kit;
    hem_window *window;
    unsigned char *all;     /**< `room`, the window's 2 x `room`, `room` */
    unsigned char *outside; /**< 2 x `room` */
    size_t room;
    bool own; /**< the window is over memory of the caller's own */
} straight_kit;

static inline hem_window_options straight_window_options(void *memory, size_t bytes) {
    hem_window_options options;
    memset(&options, 0, sizeof options);
    options.struct_size = sizeof options;
    options.kind = HEM_MEMORY_DEVICE;
    options.memory = memory;
    options.bytes = bytes;
    return options;
}

/** `options->window` is filled in. If not `own`, the window has memory of the library's, and no buffer
 *  can lie partly in it. */
static inline straight_kit straight_open_in(hem_world *world, hem_pipe_options *options,
                                            size_t room, bool own) {
    straight_kit it;
    it.room = room;
    it.own = own;
    it.all = own ? (unsigned char *)device_alloc(4 * room) : NULL;
    it.outside = (unsigned char *)device_alloc(2 * room);
    hem_window_options window = straight_window_options(own ? it.all + room : NULL, 2 * room);
    CHECK_OK(hem_window_create(world, &window, &it.window));
    if (!own)
        it.all = (unsigned char *)hem_window_memory(it.window) - room;
    options->window = it.window;
    it.kit = pipe_kit_open(world, options);
    return it;
}

static inline straight_kit straight_open(hem_world *world, hem_pipe_options *options, size_t room) {
    return straight_open_in(world, options, room, true);
}

/** `want`: how giving the pipe and the window up goes. */
static inline void straight_close(straight_kit *it, hem_status want) {
    pipe_kit_close(&it->kit, want);
    CHECK_STATUS(hem_window_destroy(it->window), want);
    if (it->own)
        device_free(it->all);
    device_free(it->outside);
}

/** Where a buffer of `n` bytes begins, `odd` bytes behind a multiple of 16. */
static inline unsigned char *straight_place(const straight_kit *it, enum straight_where where,
                                            bool receives, size_t n, size_t odd) {
    unsigned char *half = it->all + (receives ? it->room : 2 * it->room);
    size_t by = n / 2 / 16 * 16;
    if (where == STRAIGHT_INSIDE)
        return half + 64 + odd;
    if (where == STRAIGHT_OUTSIDE)
        return it->outside + (receives ? 0 : it->room) + 64 + odd;
    return receives ? half - by + odd : half + it->room - by - 16 + odd;
}

/** Zero what pipe_kit_expect looks at. */
static inline void straight_clear(unsigned char *device, size_t n) {
    unsigned char *host = (unsigned char *)calloc(1, n + 32);
    CHECK(host != NULL);
    device_copy(device - 16, host, n + 32);
    free(host);
}

/** Whether anything has ever been in the bulk rings that `peer` writes here. */
static inline bool straight_ring_used(const straight_kit *it, int peer) {
    hem_dev_pipe dev;
    hemd_way way;
    CHECK_OK(hem_pipe_device(it->kit.pipe, &dev));
    device_copy(&way, dev.ways + peer, sizeof way);
    size_t n = (size_t)dev.lanes * dev.slots * (size_t)dev.slot_bytes;
    unsigned char *host = (unsigned char *)malloc(n);
    CHECK(host != NULL);
    device_copy(host, way.in + way.area.slots, n);
    bool used = false;
    for (size_t i = 0; i < n; i++)
        used = used || host[i] != 0;
    free(host);
    return used;
}

static inline int straight_right(const straight_kit *it) {
    return (it->kit.rank + 1) % it->kit.size;
}

static inline int straight_left(const straight_kit *it) {
    return (it->kit.rank + it->kit.size - 1) % it->kit.size;
}

#endif
