#!/usr/bin/env bash
# hem-test: timeout=60 labels=source
# The library has no mutable globals, and dev/check-globals sees each kind of them.
set -euo pipefail
: "${HEM_SOURCE:?}" "${HEM_BUILD:?}"
check=$HEM_SOURCE/dev/check-globals

if [ -n "${HEM_TEST_SANITIZE:-}" ]; then
    echo "skipped: a sanitizer adds globals of its own"
    exit 77
fi
"$check" "$HEM_BUILD/libhem.a"

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# try NAME LINE: compiles the line into a library of its own and checks that.
try() {
    echo "$2" | "${HEM_TEST_CC:-cc}" -x c -fPIC -c -o "$dir/$1.o" -
    ar rcs "$dir/$1.a" "$dir/$1.o"
    "$check" "$dir/$1.a"
}

refused() {
    if try "$@"; then
        echo "not refused: $2"
        exit 1
    fi
}

try constant 'extern int f(int); int (*const table[])(int) = {f}; const int k = 3;'
try last_error '_Thread_local char last_error[8]; const char *f(void); const char *f(void) { return last_error; }'
refused zero 'int count;'
refused value 'int count = 3;'
refused inside 'int f(void); int f(void) { static int count; return ++count; }'
refused thread '_Thread_local int count;'
refused shared_error 'char last_error[8];'
