#!/bin/bash
# hem-test: timeout=120 labels=processes
#
# A process dies while kernels of the others wait for it in a collective: their waits end, and they go
# on without it. The checks themselves are in tests/device/coll_death_test.c, and of all kinds in
# coll_death_kinds_test.c.
# shellcheck source=tests/script/death.bash
. "${HEM_SOURCE:?the source folder}/tests/script/death.bash"

for ranks in 2 3 5; do
    device_death $ranks $((ranks - 1)) coll_death
done

grace=20000 # what waits here are threads by the dozen, and the machine may be busy
for ranks in 2 3; do
    device_death $ranks $((ranks - 2)) coll_death_kinds
done

finish
