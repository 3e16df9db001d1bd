/*
 * What halo_hasty_test.c promises, with values that go straight into the neighbours' halos.
 *
 * hem-test: ranks=2 modes=processes,threads timeout=90
 */
#define TWIN_WAY HEM_EXCHANGE_DIRECT
#include "halo_hasty_test.c" /* NOLINT(bugprone-suspicious-include) */
