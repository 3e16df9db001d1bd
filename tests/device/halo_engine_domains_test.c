/*
 * What halo_domains_test.c promises, by copy engines: forward.
 *
 * hem-test: ranks=2,3 modes=processes,threads timeout=90
 */
#define TWIN_WAY HEM_EXCHANGE_ENGINES
#define DOMAINS  32            /* there is no such way into more than 64 allocations of a rank */
#include "halo_domains_test.c" /* NOLINT(bugprone-suspicious-include) */
