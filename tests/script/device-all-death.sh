#!/bin/bash
# hem-test: timeout=120 labels=processes
#
# A process is killed at a random moment while everything that it has on a device is busy: the kernels of
# the others end, and they go on without it. The checks are in tests/device/all_death_test.c.
# shellcheck source=tests/script/death.bash
. "${HEM_SOURCE:?the source folder}/tests/script/death.bash"

for ranks in 2 3 4; do
    for victim in 0 $((ranks - 1)); do
        for name in all_death all_direct_death all_engine_death; do
            device_death $ranks $victim $name
        done
    done
done

finish
