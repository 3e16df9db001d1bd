#!/bin/bash
# hem-test: timeout=120 labels=processes
#
# A process dies whose neighbours would write straight into its halos and wait until they may: their
# kernels end, and the survivors exchange among themselves. The checks are in halo_death_test.c.
# shellcheck source=tests/script/death.bash
. "${HEM_SOURCE:?the source folder}/tests/script/death.bash"

for ranks in 2 3 5; do
    for victim in 0 $((ranks - 1)); do
        device_death $ranks $victim halo_direct_death
    done
done

finish
