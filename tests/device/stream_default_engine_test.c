/*
 * What stream_default_test.c promises, with exchanges by copy engines: their copies go other ways on the default stream.
 *
 * hem-test: ranks=1,2,3 modes=processes,threads timeout=120
 */
#define TWIN_WAY HEM_EXCHANGE_ENGINES
#include "stream_default_test.c" /* NOLINT(bugprone-suspicious-include) */
