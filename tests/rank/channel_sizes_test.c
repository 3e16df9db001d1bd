/*
 * Messages of every length around a boundary of the staging arrive whole, at every alignment of
 * both buffers, with nothing written beside them, by every way to send and receive.
 *
 * hem-test: ranks=1,2,3 modes=processes,threads timeout=60
 */
#include "channel_kit.h"

int rank_main(hem_world *world) {
    chan_sizes(world, harness_sanitized() ? 1048577 : 2097153, false);
    harness_close(world, HEM_OK);
    return 0;
}
