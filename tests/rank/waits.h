/* Every call that waits for another rank, for the tests of what ends a wait. */
#ifndef HEM_TESTS_RANK_WAITS_H
#define HEM_TESTS_RANK_WAITS_H

#include "harness.h"

enum wait_kind {
    WAIT_FROM,
    WAIT_SUM,
    WAIT_ANY,
    WAIT_BARRIER,
    WAIT_BARRIER_HALF,
    WAIT_BARRIER_PEER,
    WAIT_CREATE,
    WAIT_SPLIT,
    WAIT_DESTROY,
    WAIT_CLOSE,
    WAIT_KINDS
};

/** The name of a kind, and the kind of a name or WAIT_KINDS. */
const char *wait_name(enum wait_kind kind);
enum wait_kind wait_of_name(const char *name);

/**
 * Wait, with LIMIT, for something that needs `other` and that it never does. Uses signal id 1 and
 * barrier ids 1 and 2. WAIT_DESTROY takes the window, WAIT_CLOSE the world.
 */
hem_status wait_for(enum wait_kind kind, hem_world *world, hem_window *window, int other);

#endif
