/*
 * What crowd_test.c promises, with ranks that are processes: on a GPU their kernels run at the same time
 * under MPS, where they share the room and the queues of one GPU all the same.
 *
 * hem-test: ranks=2,4 modes=processes timeout=120
 */
#include "crowd_test.c" /* NOLINT(bugprone-suspicious-include) */
