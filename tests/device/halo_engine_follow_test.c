/*
 * What halo_follow_test.c promises, by copy engines and memory operations of streams, without a kernel.
 *
 * hem-test: ranks=1,2,3 modes=processes,threads timeout=120
 */
#define TWIN_WAY HEM_EXCHANGE_ENGINES
#include "halo_follow_test.c" /* NOLINT(bugprone-suspicious-include) */
