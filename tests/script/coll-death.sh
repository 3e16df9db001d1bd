#!/bin/bash
# hem-test: timeout=240 labels=processes
#
# A process is killed at a random moment in the middle of collectives of each kind, small and large.
# Its peers notice within 50 ms, agree on what was completed, shrink, and go on. The checks are in
# tests/rank/coll_death_test.c; a death ends the job, so every survivor must have said that it
# survived.
set -u
# A rank that is killed leaves its handles behind; that is what is tested here.
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0"
hem=${HEM:?the command to test}
program=${HEM_BUILD:?the build folder}/tests/rank_coll_death
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=0
cases=0

# one RANKS SEED
one() {
    local code
    cases=$((cases + 1))
    timeout 60 "$hem" run --grace 8000 --timeout 50 -n "$1" "$program" "$2" \
        >"$folder/out" 2>"$folder/err"
    code=$?
    if [ "$(grep -c '^survived' "$folder/out")" -ne $(($1 - 1)) ] || [ $code -ne 137 ]; then
        echo "FAILED: $1 ranks, seed $2: exit code $code"
        sed 's/^/  out: /' "$folder/out"
        sed 's/^/  err: /' "$folder/err"
        failed=$((failed + 1))
    fi
}

# Kinds follow each other with the seed: 15 of them, small and large.
first=${HEM_SEED:-$((RANDOM * 32768 + RANDOM))}
rounds=90
[ "${HEM_SOAK:-0}" = 0 ] || rounds=3000
for ((round = 0; round < rounds; round++)); do
    one $((2 + round % 4)) $((first + round))
done

echo "$cases cases, $failed failed"
[ $failed -eq 0 ]
