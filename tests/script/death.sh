#!/bin/bash
# hem-test: timeout=240 labels=processes
#
# A process that dies is noticed by its peers within 50 ms, whatever they wait in and however it
# dies; they go on without it; and the job ends with the exit code of the one that failed. The
# checks themselves are in tests/rank/death_test.c and death_again_test.c: here they run under the
# launcher, where a death ends the job, so that every survivor must have said that it survived.
# shellcheck source=tests/script/death.bash
. "${HEM_SOURCE:?the source folder}/tests/script/death.bash"

# one KIND RANKS VICTIM MANNER CODE
one() {
    death "$2" "$3" "$5" rank_death "$1" "$3" "$4" || return
    if [ "$5" -ne 0 ] && ! tail -n 1 "$folder/err" | grep -q "rank $3"; then
        complain "$*: the last line on stderr does not name rank $3"
    fi
}

for kind in from sum any barrier half pair create split destroy close; do
    one $kind 2 1 kill 137
    one $kind 2 0 exit 3
    one $kind 3 1 zero 0
    one $kind 4 3 orphan 137
    one $kind 4 0 4 4
    if [ "${HEM_SOAK:-0}" != 0 ]; then
        for ranks in 2 3 5 8; do
            for victim in 0 $((ranks - 1)); do
                one $kind $ranks $victim kill 137
                one $kind $ranks $victim exit 3
                one $kind $ranks $victim orphan 137
            done
        done
    fi
done

# Death after death until one is left.
again() {
    cases=$((cases + 1))
    timeout 60 "$hem" run --grace 30000 --timeout 50 -n "$1" "$programs/rank_death_again" "$2" \
        >"$folder/out" 2>"$folder/err"
    code=$?
    [ "$(cat "$folder/out")" = survived ] || complain "again $*: nobody survived"
    [ $code -eq 137 ] || complain "again $*: exit code $code, not 137"
}

first=$((RANDOM * 32768 + RANDOM))
rounds=6
[ "${HEM_SOAK:-0}" = 0 ] || rounds=200
for ((round = 0; round < rounds; round++)); do
    again $((2 + round % 5)) $((first + round))
done

finish
