/*
 * Ranks may have different staging: each decides for its own memory, and the sender goes by what it
 * finds there.
 *
 * hem-test: ranks=2,4 modes=processes timeout=60
 */
#include "channel_kit.h"

static int body(hem_world *world) {
    chan_sizes(world, 66000, true);
    chan_stream(world, harness_rounds(600), 300000);
    chan_crossing(world, 0, harness_rounds(600), 300000);
    harness_close(world, HEM_OK);
    return 0;
}

int main(int argc, char **argv) {
    const char *rank = getenv("HEM_RANK");
    int number = rank ? atoi(rank) : 0;

    if (number == 0)
        chan_geometry("1", "4096");
    else if (number == 2)
        chan_geometry("3", "65536");
    else if (number == 3)
        chan_geometry("7", "12288");
    return chan_main(argc, argv, body);
}
