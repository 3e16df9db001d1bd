/* What the tests of peers that are reached through their hosts share. */
#ifndef HEM_TESTS_DEVICE_PROXY_KIT_H
#define HEM_TESTS_DEVICE_PROXY_KIT_H

#include "window_kit.h"

/** Which peers are reached through their hosts. */
typedef enum proxy_kit_who {
    PROXY_KIT_NONE,
    PROXY_KIT_ODD, /**< every other one: direct and proxied peers in one window */
    PROXY_KIT_ALL,
    PROXY_KIT_OUT /**< rank 0 reaches others so, and nobody else anybody */
} proxy_kit_who;

static inline bool proxy_kit_proxied(proxy_kit_who who, int from, int to) {
    if (from == to || who == PROXY_KIT_NONE)
        return false;
    if (who == PROXY_KIT_OUT)
        return from == 0;
    return who == PROXY_KIT_ALL || (from + to) % 2 == 1;
}

/** With all else as `o` says. */
static inline hem_window *proxy_kit_create_with(hem_world *world, hem_window_options o,
                                                proxy_kit_who who) {
    int peers[64];
    CHECK(hem_world_size(world) <= 64);
    for (int r = 0; r < hem_world_size(world); r++)
        if (proxy_kit_proxied(who, hem_world_rank(world), r))
            peers[o.proxy_peer_count++] = r;
    o.proxy_peers = peers;
    return window_kit_create(world, &o);
}

static inline hem_window *proxy_kit_create(hem_world *world, size_t bytes, proxy_kit_who who) {
    return proxy_kit_create_with(world, window_kit_options(bytes), who);
}

#endif
