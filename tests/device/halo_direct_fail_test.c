/*
 * What halo_fail_test.c promises, with values that go straight into the neighbours' halos: here it is
 * the start that waits, for halos to be free.
 *
 * hem-test: ranks=2,3 modes=processes,threads timeout=60
 */
#define TWIN_WAY HEM_EXCHANGE_DIRECT
#include "halo_fail_test.c" /* NOLINT(bugprone-suspicious-include) */
