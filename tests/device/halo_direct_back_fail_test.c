/*
 * What halo_fail_test.c promises, with runs that go back, of exchanges whose other runs go straight into
 * the neighbours' halos.
 *
 * hem-test: ranks=2,3 modes=processes,threads timeout=60
 */
#define TWIN_WAY     HEM_EXCHANGE_DIRECT
#define TWIN_COMBINE HEM_COMBINE_SUM
#define LATE_ROUNDS  1
#include "halo_fail_test.c" /* NOLINT(bugprone-suspicious-include) */
