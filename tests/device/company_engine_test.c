/*
 * What company_test.c promises, with exchanges by copy engines and memory operations of streams.
 *
 * hem-test: ranks=2,3 modes=processes,threads timeout=120
 */
#define TWIN_WAY HEM_EXCHANGE_ENGINES
#include "company_test.c" /* NOLINT(bugprone-suspicious-include) */
