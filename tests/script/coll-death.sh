#!/bin/bash
# hem-test: timeout=240 labels=processes
#
# A process is killed at a random moment in the middle of collectives of each kind, small and large.
# Its peers notice within 50 ms, agree on what was completed, shrink, and go on. The checks are in
# tests/rank/coll_death_test.c; a death ends the job, so every survivor must have said that it
# survived.
# shellcheck source=tests/script/death.bash
. "${HEM_SOURCE:?the source folder}/tests/script/death.bash"

# one RANKS SEED
one() {
    cases=$((cases + 1))
    timeout 60 "$hem" run --grace 8000 --timeout 50 -n "$1" "$programs/rank_coll_death" "$2" \
        >"$folder/out" 2>"$folder/err"
    code=$?
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
