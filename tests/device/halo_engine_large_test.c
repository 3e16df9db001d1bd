/*
 * What halo_large_test.c promises, by copy engines as far as they do it: not for lists.
 *
 * hem-test: ranks=2,3 modes=processes,threads timeout=120
 */
#define TWIN_WAY HEM_EXCHANGE_ENGINES
#include "halo_large_test.c" /* NOLINT(bugprone-suspicious-include) */
