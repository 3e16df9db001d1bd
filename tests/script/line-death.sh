#!/bin/bash
# hem-test: timeout=120 labels=processes
#
# A process that dies is noticed by its neighbours on a line within 50 ms, between rounds and in the
# middle of one, and they go on without it. The checks themselves are in tests/rank/line_death_test.c:
# here they run under the launcher, where every survivor must have said that it survived.
# shellcheck source=tests/script/death.bash
. "${HEM_SOURCE:?the source folder}/tests/script/death.bash"

# one RANKS CODE BYTES VICTIM MANNER wait|start open|ring
one() { death "$1" "$4" "$2" rank_line_death "${@:3}"; }

for bytes in 8 4000 100000 500000; do
    one 2 137 $bytes 1 kill wait open
    one 2 137 $bytes 0 kill start ring
    one 3 3 $bytes 1 exit start open
    one 5 137 $bytes 4 kill start ring
done

finish
