/*
 * Thousands of messages of random lengths follow each other without a pause, in one direction and
 * in both, so that slots, ring and large copies alternate and the size of chunks changes from one
 * message to the next.
 *
 * hem-test: ranks=1,2,4 modes=processes,threads timeout=60
 */
#include "channel_kit.h"

int rank_main(hem_world *world) {
    int size = hem_world_size(world);

    chan_stream(world, harness_rounds(5000 / size), 1500000);
    chan_crossing(world, 1, harness_rounds(6000 / size), 300000);
    chan_crossing(world, 15, harness_rounds(300), 1500000);
    harness_close(world, HEM_OK);
    return 0;
}
