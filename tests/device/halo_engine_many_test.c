/*
 * What halo_many_test.c promises, by copy engines and memory operations of streams.
 *
 * hem-test: ranks=2,3,4 modes=processes,threads timeout=120
 */
#define TWIN_WAY HEM_EXCHANGE_ENGINES
#include "halo_many_test.c" /* NOLINT(bugprone-suspicious-include) */
