#!/usr/bin/env bash
# hem-test: timeout=60
# The first program: the README shows it as it is, and it prints what the README says.
set -euo pipefail
: "${HEM:?}" "${HEM_BUILD:?}" "${HEM_SOURCE:?}"

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

awk '/^```c$/ { inside = 1; next } /^```$/ { if (inside) exit } inside' "$HEM_SOURCE/README.md" \
    >"$dir/shown.c"
diff -u "$HEM_SOURCE/examples/hello.c" "$dir/shown.c" || {
    echo "the README shows another program than examples/hello.c"
    exit 1
}

"$HEM" run -n 4 --timeout 30 "$HEM_BUILD/examples/hello" | sort >"$dir/output"
grep -E '^rank [0-3] of 4: greetings from rank [0-3]$' "$HEM_SOURCE/README.md" | sort \
    >"$dir/promised"
[ "$(wc -l <"$dir/promised")" = 4 ]
diff -u "$dir/promised" "$dir/output"

"$HEM_BUILD/examples/hello" | diff -u - <(echo "rank 0 of 1: greetings from rank 0")
