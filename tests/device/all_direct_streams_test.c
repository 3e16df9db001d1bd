/*
 * What all_streams_test.c promises, where exchanges write straight into the neighbours' halos, and pipes
 * straight into buffers.
 *
 * hem-test: ranks=1,2,4 modes=processes,threads timeout=120
 */
#define TWIN_WAY     HEM_EXCHANGE_DIRECT
#define ALL_STRAIGHT 1
#include "all_streams_test.c" /* NOLINT(bugprone-suspicious-include) */
