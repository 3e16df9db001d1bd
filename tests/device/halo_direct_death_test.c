/*
 * What halo_death_test.c promises, with values that go straight into the neighbours' halos: the dead
 * rank never gives its halos free.
 *
 * hem-test: ranks=2,3,5 modes=threads timeout=60
 */
#define TWIN_WAY HEM_EXCHANGE_DIRECT
#include "halo_death_test.c" /* NOLINT(bugprone-suspicious-include) */
