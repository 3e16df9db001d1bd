#!/bin/bash
# hem-test: timeout=120 labels=processes
#
# A process dies that streams wait for with memory operations, in an exchange by copy engines: they are
# released, and the survivors exchange among themselves. The checks are in halo_death_test.c.
# shellcheck source=tests/script/death.bash
. "${HEM_SOURCE:?the source folder}/tests/script/death.bash"

for ranks in 2 3 5; do
    for victim in 0 $((ranks - 1)); do
        settings=("HEM_DEVICE_MODULE=$programs/libhem_standin.so" HEM_TEST_DIE=kill
            "HEM_TEST_VICTIM=$victim")
        death $ranks $victim 137 device_halo_engine_death
    done
done

finish
