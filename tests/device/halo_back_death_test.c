/*
 * What halo_death_test.c promises, with runs that go back.
 *
 * hem-test: ranks=2,3,5 modes=threads timeout=60
 */
#define TWIN_COMBINE HEM_COMBINE_REPLACE
#include "halo_death_test.c" /* NOLINT(bugprone-suspicious-include) */
