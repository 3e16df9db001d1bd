#!/bin/bash
# hem-test: timeout=240 labels=processes
#
# A process that dies is noticed by its peers within 50 ms, whatever set-up or run of a halo exchange
# they are in; they go on without it. The checks themselves are in tests/rank/halo_death_test.c: here
# they run under the launcher, where every survivor must have said that it survived.
set -u
# A rank that ends without closing its world leaves its handles behind; that is what is tested here.
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0"
hem=${HEM:?the command to test}
programs=${HEM_BUILD:?the build folder}/tests
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=0
cases=0

complain() {
    echo "FAILED: $1"
    sed 's/^/  out: /' "$folder/out"
    sed 's/^/  err: /' "$folder/err"
    failed=$((failed + 1))
}

# one KIND RANKS VICTIM MANNER CODE
one() {
    local code wanted
    cases=$((cases + 1))
    timeout 60 "$hem" run --grace 5000 --timeout 50 -n "$2" \
        "$programs/rank_halo_death" "$1" "$3" "$4" >"$folder/out" 2>"$folder/err"
    code=$?
    wanted=$(for ((rank = 0; rank < $2; rank++)); do
        ((rank == $3)) || echo "survived $rank"
    done)
    if [ "$(sort "$folder/out")" != "$wanted" ]; then
        complain "$*: not all survived"
    elif [ $code -ne "$5" ]; then
        complain "$*: exit code $code, not $5"
    fi
}

for kind in grid mesh lists sphere create validate run busy started reverse test op stream; do
    one $kind 2 1 kill 137
    one $kind 3 0 exit 3
    one $kind 4 2 kill 137
    if [ "${HEM_SOAK:-0}" != 0 ]; then
        for ranks in 2 3 5 8; do
            for victim in 0 $((ranks - 1)); do
                one $kind $ranks $victim kill 137
            done
        done
    fi
done
for ((i = 0; i < 20; i++)); do
    one anywhere $((2 + i % 4)) $((i % 2)) kill 137
done

echo "$cases cases, $failed failed"
[ $failed -eq 0 ]
