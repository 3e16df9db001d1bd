#!/bin/bash
# hem-test: timeout=120 labels=processes,standin
#
# A process dies whose device memory the others wait for: they hear of it, and keep nothing. The
# checks themselves are in tests/rank/device_share_test.c.
# shellcheck source=tests/script/death.bash
. "${HEM_SOURCE:?the source folder}/tests/script/death.bash"

for ranks in 2 3 5; do
    for victim in 0 $((ranks - 1)); do
        settings=("HEM_TEST_VICTIM=$victim")
        death $ranks $victim 137 rank_device_share
    done
done

finish
