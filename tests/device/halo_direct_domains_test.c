/*
 * What halo_domains_test.c promises, with values that go straight into the neighbours' halos.
 *
 * hem-test: ranks=2,3 modes=processes,threads timeout=90
 */
#define TWIN_WAY HEM_EXCHANGE_DIRECT
#define DOMAINS  32            /* there is no such way into more than 64 allocations of a rank */
#include "halo_domains_test.c" /* NOLINT(bugprone-suspicious-include) */
