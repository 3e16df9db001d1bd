/*
 * What halo_hasty_test.c promises, by copy engines: a copy that is on a stream cannot be stopped.
 *
 * hem-test: ranks=2 modes=processes,threads timeout=90
 */
#define TWIN_WAY HEM_EXCHANGE_ENGINES
#include "halo_hasty_test.c" /* NOLINT(bugprone-suspicious-include) */
