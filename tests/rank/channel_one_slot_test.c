/*
 * With a single slot and a ring of one page, every length still arrives whole, and so do long
 * streams of mixed lengths in one direction and in both.
 *
 * hem-test: ranks=1,2,4 modes=processes,threads timeout=60
 */
#include "channel_kit.h"

static int body(hem_world *world) {
    bool few = hem_world_size(world) <= 2 && !harness_sanitized();

    chan_sizes(world, few ? 131073 : 8193, true);
    chan_stream(world, harness_rounds(400), 60000);
    chan_crossing(world, 1, harness_rounds(400), 60000);
    harness_close(world, HEM_OK);
    return 0;
}

int main(int argc, char **argv) {
    chan_geometry("1", "4096");
    return chan_main(argc, argv, body);
}
