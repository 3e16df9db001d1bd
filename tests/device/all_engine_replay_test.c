/*
 * What all_replay_test.c promises, with exchanges by copy engines.
 *
 * hem-test: ranks=2,3 modes=processes,threads timeout=240
 */
#define TWIN_WAY HEM_EXCHANGE_ENGINES
#include "all_replay_test.c" /* NOLINT(bugprone-suspicious-include) */
