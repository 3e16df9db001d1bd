/*
 * What company_test.c promises, with values that go straight into the neighbours' halos.
 *
 * hem-test: ranks=2,3 modes=processes,threads timeout=120
 */
#define TWIN_WAY HEM_EXCHANGE_DIRECT
#include "company_test.c" /* NOLINT(bugprone-suspicious-include) */
