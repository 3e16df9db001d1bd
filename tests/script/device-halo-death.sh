#!/bin/bash
# hem-test: timeout=120 labels=processes
#
# A process dies whose neighbours have kernels of exchanges that wait for it: they end, and the
# survivors exchange among themselves, also with runs that go back. The checks themselves are in
# tests/device/halo_death_test.c.
# shellcheck source=tests/script/death.bash
. "${HEM_SOURCE:?the source folder}/tests/script/death.bash"

for ranks in 2 3 5; do
    for victim in 0 $((ranks - 1)); do
        device_death $ranks $victim halo_death
        device_death $ranks $victim halo_back_death
    done
done

finish
