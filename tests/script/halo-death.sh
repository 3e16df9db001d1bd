#!/bin/bash
# hem-test: timeout=240 labels=processes
#
# A process that dies is noticed by its peers within 50 ms, whatever set-up or run of a halo exchange
# they are in; they go on without it. The checks themselves are in tests/rank/halo_death_test.c: here
# they run under the launcher, where every survivor must have said that it survived.
# shellcheck source=tests/script/death.bash
. "${HEM_SOURCE:?the source folder}/tests/script/death.bash"

# one KIND RANKS VICTIM MANNER CODE
one() { death "$2" "$3" "$5" rank_halo_death "$1" "$3" "$4"; }

for kind in grid mesh lists sphere create validate run busy started reverse test op stream; do
    one $kind 2 1 kill 137
    one $kind 3 0 exit 3
    one $kind 4 2 kill 137
    kills one $kind
done
for ((i = 0; i < 20; i++)); do
    one anywhere $((2 + i % 4)) $((i % 2)) kill 137
done

finish
