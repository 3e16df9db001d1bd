#!/usr/bin/env bash
# hem-test: timeout=30 labels=source
# Every public call, of the host and of kernels, has a manual page that names it and shows it, every
# page names only calls that there are, and the formatter finds nothing wrong with any of them.
set -euo pipefail
pages=${HEM_SOURCE:?}/docs/man

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

cat "$HEM_SOURCE"/include/hem/*.h | tr '\n' ' ' | grep -oE '[^#a-z ] *HEM_API [^;(]*\(' |
    grep -oE 'hem_[a-z0-9_]+ *\($' | tr -d ' (' >"$dir/host"
# Some of these are there twice, for GPUs and for host threads.
cat "$HEM_SOURCE"/include/hem/device/*.h | tr '\n' ' ' | grep -oE '\bHEM_DEV(_SLOW)? [^;({]*\(' |
    grep -oE '\bhem_[a-z0-9_]+ *\($' | tr -d ' (' | sort -u >"$dir/kernels"
for list in host kernels; do
    [ -s "$dir/$list" ] || { echo "no calls of the $list found in the headers"; exit 1; }
done
sort "$dir/host" "$dir/kernels" >"$dir/declared"

# The names before the dash, and the calls of the synopsis.
for page in "$pages"/*.3; do
    sed -n '/^\.SH NAME/,/^\.SH SYNOPSIS/p' "$page" | grep -v '^\.SH' | sed 's/\\-.*//' |
        grep -oE 'hem_[a-z0-9_]+'
done | sort >"$dir/named"
for page in "$pages"/*.3; do
    sed -n '/^\.SH SYNOPSIS/,/^\.SH DESCRIPTION/p' "$page" | grep -v typedef |
        grep -oE '\bhem_[a-z0-9_]+\(' | tr -d '('
done | sort >"$dir/shown"
for list in named shown; do
    if ! diff -u --label 'declared in include/hem' --label "$list in docs/man" "$dir/declared" \
        "$dir/$list"; then
        echo "the manual pages and the headers disagree"
        exit 1
    fi
done

if ! command -v groff >/dev/null; then
    echo "skipped: no groff, only the names were compared"
    exit 77
fi
for page in "$pages"/*.[137]; do
    groff -man -ww -Tutf8 -z "$page" 2>>"$dir/complaints"
done
if [ -s "$dir/complaints" ]; then
    cat "$dir/complaints"
    exit 1
fi
echo "$(wc -l <"$dir/host") calls of the host, $(wc -l <"$dir/kernels") of kernels"
