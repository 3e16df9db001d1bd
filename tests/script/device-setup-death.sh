#!/bin/bash
# hem-test: timeout=120 labels=processes
#
# A process dies in the middle of setting a device object up with others: all of them hear the same of it,
# keep nothing of the object, and go on without it. The checks themselves are in
# tests/device/setup_death_test.c, where the objects have their numbers.
# shellcheck source=tests/script/death.bash
. "${HEM_SOURCE:?the source folder}/tests/script/death.bash"

parts=(1 4 7)
[ "${HEM_TEST_DEVICE:-standin}" = standin ] || parts=(4) # every job starts CUDA anew
[ "${HEM_SOAK:-0}" = 0 ] || parts=(0 1 2 3 4 5 6 7 8)

for object in 0 1 2 3 4 5 6 7; do
    for part in "${parts[@]}"; do
        device_death 3 $(((object + part) % 3)) setup_death HEM_TEST_CASE=$object HEM_TEST_PART="$part"
    done
done

finish
