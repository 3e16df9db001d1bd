#!/bin/bash
# hem-test: timeout=240 labels=processes
#
# A process is killed at a random moment in the middle of collectives of each kind, small and large.
# Its peers notice within 50 ms (one death in fifty may be late, see death.bash), agree on what was
# completed, shrink, and go on. The checks are in tests/rank/coll_death_test.c; a death ends the job, so
# every survivor must have said that it survived.
# shellcheck source=tests/script/death.bash
. "${HEM_SOURCE:?the source folder}/tests/script/death.bash"

grace=8000
# one RANKS SEED
one() {
    run_job "$1" rank_coll_death "$2"
    if [ "$(grep -c '^survived' "$folder/out")" -ne $(($1 - 1)) ] || [ $code -ne 137 ]; then
        complain "$1 ranks, seed $2: exit code $code"
    fi
}

# Kinds follow each other with the seed: 15 of them, small and large.
first=${HEM_SEED:-$((RANDOM * 32768 + RANDOM))}
rounds=90
[ "${HEM_SOAK:-0}" = 0 ] || rounds=3000
for ((round = 0; round < rounds; round++)); do
    one $((2 + round % 4)) $((first + round))
done

finish
