#!/bin/bash
# hem-test: timeout=120 labels=processes,standin
#
# A process dies in a step of making a team for multicast, or while kernels of the others wait for it:
# nobody waits for it, and they go on without it. The checks themselves are in
# tests/device/coll_multi_death_test.c.
# shellcheck source=tests/script/death.bash
. "${HEM_SOURCE:?the source folder}/tests/script/death.bash"

for ranks in 2 3 5; do
    for where in kill 1 2 3; do
        victim=$((ranks - 1))
        [ $where != 1 ] || victim=0
        device_death $ranks $victim coll_multi_death "HEM_TEST_DIE=$where"
    done
done

finish
