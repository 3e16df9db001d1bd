/*
 * What halo_fail_test.c promises, with runs that go back.
 *
 * hem-test: ranks=2,3 modes=processes,threads timeout=60
 */
#define TWIN_COMBINE HEM_COMBINE_SUM
#define LATE_ROUNDS  1
#include "halo_fail_test.c" /* NOLINT(bugprone-suspicious-include) */
