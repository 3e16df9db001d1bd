/*
 * What all_streams_test.c promises, with exchanges by copy engines.
 *
 * hem-test: ranks=1,2,4 modes=processes,threads timeout=120
 */
#define TWIN_WAY HEM_EXCHANGE_ENGINES
#include "all_streams_test.c" /* NOLINT(bugprone-suspicious-include) */
