#!/bin/bash
# hem-test: timeout=120 labels=processes
#
# A process dies that kernels of the others wait for: their waits end, its memory stays readable for
# them, and they go on without it; also where its host carries out what they order. The checks themselves
# are in tests/device/window_death_test.c and proxy_death_test.c.
# shellcheck source=tests/script/death.bash
. "${HEM_SOURCE:?the source folder}/tests/script/death.bash"

for ranks in 2 3 5; do
    for victim in 0 $((ranks - 1)); do
        device_death $ranks $victim window_death
    done
done

for ranks in 2 3; do
    device_death $ranks $((ranks - 1)) proxy_death
done

finish
