#!/bin/bash
# hem-test: timeout=120 labels=processes
#
# A process that dies is noticed by its neighbours on a line within 50 ms, between rounds and in the
# middle of one, and they go on without it. The checks themselves are in tests/rank/line_death_test.c:
# here they run under the launcher, where every survivor must have said that it survived.
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

# one RANKS CODE BYTES VICTIM MANNER wait|start open|ring
one() {
    local code wanted
    cases=$((cases + 1))
    timeout 60 "$hem" run --grace 5000 --timeout 50 -n "$1" "$programs/rank_line_death" "${@:3}" \
        >"$folder/out" 2>"$folder/err"
    code=$?
    wanted=$(for ((rank = 0; rank < $1; rank++)); do
        ((rank == $4)) || echo "survived $rank"
    done)
    if [ "$(sort "$folder/out")" != "$wanted" ]; then
        complain "$*: not all survived"
    elif [ $code -ne "$2" ]; then
        complain "$*: exit code $code, not $2"
    fi
}

for bytes in 8 4000 100000 500000; do
    one 2 137 $bytes 1 kill wait open
    one 2 137 $bytes 0 kill start ring
    one 3 3 $bytes 1 exit start open
    one 5 137 $bytes 4 kill start ring
done

echo "$cases cases, $failed failed"
[ $failed -eq 0 ]
