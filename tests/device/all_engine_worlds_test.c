/*
 * What all_worlds_test.c promises, with exchanges by copy engines.
 *
 * hem-test: ranks=2,3,5 modes=processes,threads timeout=120
 */
#define TWIN_WAY HEM_EXCHANGE_ENGINES
#include "all_worlds_test.c" /* NOLINT(bugprone-suspicious-include) */
