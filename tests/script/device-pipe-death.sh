#!/bin/bash
# hem-test: timeout=120 labels=processes
#
# A process dies while kernels of the others wait for its messages or for room there, in pipes with a
# window and without: they end, and what they copy does not fault. The checks themselves are in
# tests/device/pipe_death_test.c and pipe_straight_death_test.c.
# shellcheck source=tests/script/death.bash
. "${HEM_SOURCE:?the source folder}/tests/script/death.bash"

for ranks in 2 3 5; do
    device_death $ranks $((ranks - 1)) pipe_death
    device_death $ranks $((ranks - 1)) pipe_straight_death
done

finish
