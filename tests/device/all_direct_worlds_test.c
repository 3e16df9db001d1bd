/*
 * What all_worlds_test.c promises, where exchanges write straight into the neighbours' halos, and pipes
 * straight into buffers.
 *
 * hem-test: ranks=2,3,5 modes=processes,threads timeout=120
 */
#define TWIN_WAY     HEM_EXCHANGE_DIRECT
#define ALL_STRAIGHT 1
#include "all_worlds_test.c" /* NOLINT(bugprone-suspicious-include) */
