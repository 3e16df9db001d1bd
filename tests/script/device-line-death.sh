#!/bin/bash
# hem-test: timeout=120 labels=processes
#
# A process dies whose neighbours on a line wait for its device memory: they hear of it, and the
# survivors go on with a new line. The checks themselves are in tests/device/line_death_test.c.
# shellcheck source=tests/script/death.bash
. "${HEM_SOURCE:?the source folder}/tests/script/death.bash"

for ranks in 2 3 5; do
    for case in 1 4 6 7 8 9 10 11; do
        victim=$((case % ranks))
        settings=("HEM_DEVICE_MODULE=${HEM_BUILD:?}/tests/libhem_standin.so" HEM_TEST_DIE=kill
            "HEM_TEST_VICTIM=$victim" "HEM_TEST_CASE=$case")
        death $ranks $victim 137 device_line_death
    done
done

finish
