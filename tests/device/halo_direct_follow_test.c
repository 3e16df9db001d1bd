/*
 * What halo_follow_test.c promises, with values that go straight into the neighbours' halos.
 *
 * hem-test: ranks=1,2,3 modes=processes,threads timeout=120
 */
#define TWIN_WAY HEM_EXCHANGE_DIRECT
#include "halo_follow_test.c" /* NOLINT(bugprone-suspicious-include) */
