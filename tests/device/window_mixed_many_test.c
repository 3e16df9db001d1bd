/*
 * What window_mixed_test.c promises, with more ranks than tell each other of their CPUs' barriers directly.
 *
 * hem-test: ranks=17 modes=processes,threads timeout=180 labels=standin
 */
#include "window_mixed_test.c" /* NOLINT(bugprone-suspicious-include) */
