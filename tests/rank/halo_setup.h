/* What it takes to set patterns up at growing numbers of ranks. */
#ifndef HEM_TESTS_RANK_HALO_SETUP_H
#define HEM_TESTS_RANK_HALO_SETUP_H

#include "harness.h"

/** The body of the tests of it. */
int halo_setup_main(hem_world *world);

#endif
