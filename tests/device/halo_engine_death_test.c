/*
 * What halo_death_test.c promises, by copy engines: streams that wait for the dead rank are released, and
 * only when their neighbours know that the exchange is broken.
 *
 * hem-test: ranks=2,3,5 modes=threads timeout=60
 */
#define TWIN_WAY HEM_EXCHANGE_ENGINES
#include "halo_death_test.c" /* NOLINT(bugprone-suspicious-include) */
