/*
 * What all_death_test.c promises, with exchanges by copy engines.
 *
 * hem-test: ranks=2,4 modes=threads timeout=120
 */
#define TWIN_WAY HEM_EXCHANGE_ENGINES
#include "all_death_test.c" /* NOLINT(bugprone-suspicious-include) */
