/*
 * What halo_setup_test says, with ranks as processes.
 *
 * hem-test: ranks=8,64 modes=processes timeout=120
 */
#include "halo_setup.h"

int rank_main(hem_world *world) {
    return halo_setup_main(world);
}
