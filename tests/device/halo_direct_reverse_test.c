/*
 * What halo_reverse_test.c promises, among forward runs whose values go straight into halos.
 *
 * hem-test: ranks=1,2,4 modes=processes,threads timeout=180
 */
#define TWIN_WAY HEM_EXCHANGE_DIRECT
#include "halo_reverse_test.c" /* NOLINT(bugprone-suspicious-include) */
