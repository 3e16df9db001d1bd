#!/usr/bin/env bash
# hem-test: timeout=30 labels=source
# The shared library exports what the public headers declare, and nothing else.
set -euo pipefail
: "${HEM_SOURCE:?}" "${HEM_BUILD:?}"
library=$HEM_BUILD/libhem.so

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# The version names of src/hem.map are symbols too, of kind A.
nm --dynamic --defined-only --format=posix "$library" |
    awk '$2 != "A" { sub(/@.*/, "", $1); print $1 }' | sort -u >"$dir/exported"
cat "$HEM_SOURCE"/include/hem/*.h | tr '\n' ' ' | grep -oE '[^#a-z ] *HEM_API [^;(]*\(' |
    grep -oE 'hem_[a-z0-9_]+ *\($' | tr -d ' (' | sort -u >"$dir/declared"

if ! diff -u --label 'declared in include/hem' --label 'exported by libhem.so' \
    "$dir/declared" "$dir/exported"; then
    echo "the library, src/hem.map and the headers disagree"
    exit 1
fi
if [ ! -s "$dir/exported" ]; then
    echo "nothing is exported"
    exit 1
fi
if ! objdump -p "$library" | grep -qE 'SONAME +libhem\.so\.0$'; then
    echo "the SONAME is not libhem.so.0"
    exit 1
fi
echo "$(wc -l <"$dir/exported") symbols"
