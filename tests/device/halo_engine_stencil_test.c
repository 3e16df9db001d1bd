/*
 * What halo_stencil_test.c promises, by copy engines.
 *
 * hem-test: ranks=1,2,4 modes=processes,threads timeout=120
 */
#define TWIN_WAY HEM_EXCHANGE_ENGINES
#include "halo_stencil_test.c" /* NOLINT(bugprone-suspicious-include) */
