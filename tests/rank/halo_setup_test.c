/*
 * What it takes to set a pattern up, per rank, does not depend on the number of ranks but for a
 * logarithm: messages, bytes and memory, for a grid and a mesh of which each rank has as much in worlds
 * of 4 ranks up to all. The exchanges work, too.
 *
 * hem-test: ranks=8,64,256 modes=threads timeout=120
 */
#include "halo_setup.h"

int rank_main(hem_world *world) {
    return halo_setup_main(world);
}
