#!/usr/bin/env bash
# hem-test: timeout=120 labels=source
# Each public header compiles alone as C11 and C++17, and dev/check-headers sees one that does not.
set -euo pipefail
check=${HEM_SOURCE:?}/dev/check-headers

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/hem"

# refused LINE: a header with this line in it must be refused.
refused() {
    echo "$1" >"$dir/hem/bad.h"
    local status=0
    "$check" "$dir" >"$dir/output" 2>&1 || status=$?
    if [ $status != 1 ]; then
        echo "not refused: $1"
        cat "$dir/output"
        exit 1
    fi
}
refused 'size_t f(void);'
refused 'struct twice { int member; };'
if command -v g++ >/dev/null; then
    refused 'extern int class;'
fi

"$check" "$HEM_SOURCE/include"
