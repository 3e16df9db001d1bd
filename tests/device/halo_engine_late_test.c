/*
 * What halo_direct_late_test.c promises of halos that were not given free and of fields that are freed with
 * their exchange, by copy engines: what is on a stream cannot be stopped, so it must be held back.
 *
 * hem-test: ranks=2,3,5 modes=processes,threads timeout=120
 */
#define TWIN_WAY HEM_EXCHANGE_ENGINES
#include "halo_direct_late_test.c" /* NOLINT(bugprone-suspicious-include) */
