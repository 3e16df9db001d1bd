/*
 * What stopped_test.c promises, with exchanges by copy engines and pipes that go straight into buffers.
 *
 * hem-test: ranks=2 modes=processes timeout=60
 */
#define TWIN_WAY     HEM_EXCHANGE_ENGINES
#define ALL_STRAIGHT 1
#include "stopped_test.c" /* NOLINT(bugprone-suspicious-include) */
