#!/usr/bin/env bash
# hem-test: timeout=120
# hem run under limits that are too low: one clear sentence, and nothing is left behind.
# shellcheck disable=SC1091,SC2016,SC2154
source "$(dirname "$0")/common.bash"

# limited ULIMIT-OPTION VALUE ARGS...
limited() {
    local option=$1 value=$2
    shift 2
    code=0
    (
        ulimit "$option" "$value"
        exec env "$mark" "$HEM" run "$@"
    ) </dev/null >"$dir/out" 2>"$dir/err" || code=$?
}

# refused WHAT PATTERN
refused() {
    code_is 1 "$1"
    err_lines 1 "$1"
    last_says "^hem run: .*$2" "$1"
    left_nothing "$1"
}

# Whatever the number of descriptors, it works or it is one sentence.
for files in 4 5 6 7 8 9 10 11 12 13 14 16 20; do
    limited -n $files -n 3 --bind none true
    # With descriptors inherited from whoever runs this, not even the loader gets that far.
    if grep -q 'error while loading shared libraries' "$dir/err"; then continue; fi
    if [ $code -eq 0 ]; then
        check "$files descriptors: works, but complains" [ ! -s "$dir/err" ]
    else
        refused "$files descriptors" '(ulimit -n|Too many open files)'
    fi
    left_nothing "$files descriptors"
done
code_is 0 "20 descriptors"
limited -n 64 -n 40 --tag-output true
refused "descriptors for tags" '--tag-output with 40 ranks takes [0-9]+ descriptors, and the limit \(ulimit -n\) is 64'
# Ranks do not pay for tags: only the launcher's own limit is raised.
code=0
(
    ulimit -S -n 64
    exec env "$mark" HEM_ARENA_SIZE=16M "$HEM" run -n 40 --tag-output sh -c 'ulimit -S -n'
) </dev/null >"$dir/out" 2>"$dir/err" || code=$?
code_is 0 "soft limit"
check "soft limit: changed in the ranks" lines_are "$dir/out" '] 64$' 40

if [ -n "${HEM_TEST_SANITIZE:-}" ]; then
    echo "left out: the limit on address space, a sanitizer takes more than any"
else
    limited -v 100000 -n 8 true
    refused "address space" 'address space each do not fit: .*RLIMIT_AS, ulimit -v'
    run -n 2 sh -c 'ulimit -v 30000; exec "$1" barrier' - "$programs/hang"
    code_is 3 "address space of the ranks"
    err_says '^hem_world_open: cannot map [0-9]+ MiB of shared memory: .*ulimit -v' "address space of the ranks"
    left_nothing "address space of the ranks"
    code=0
    env "$mark" HEM_ARENA_SIZE=1 "$HEM" run -n 2 true >"$dir/out" 2>"$dir/err" || code=$?
    refused "HEM_ARENA_SIZE" 'HEM_ARENA_SIZE=1 is not a number from'
fi

# The limit on processes is per user and none for root, so root turns into somebody without any.
# limit_processes NUMBER
limit_processes() {
    local user=$((50000 + $$ % 10000))
    code=0
    env "$mark" setpriv --reuid="$user" --regid="$user" --clear-groups \
        bash -c 'ulimit -u "$1"; shift; exec "$@"' - "$1" "$HEM" run -n 12 sleep 20 \
        </dev/null >"$dir/out" 2>"$dir/err" || code=$?
}
chmod 755 "$dir"
if [ -n "${HEM_TEST_SANITIZE:-}" ]; then
    echo "left out: the limit on processes, a sanitizer wants one more at the end"
elif [ "$(id -u)" -ne 0 ] || ! command -v setpriv >/dev/null; then
    echo "left out: the limit on processes, which takes root and setpriv to set for a fresh user"
elif ! setpriv --reuid=50000 --regid=50000 --clear-groups "$HEM" --version >/dev/null 2>&1; then
    echo "left out: the limit on processes, since another user may not run $HEM"
else
    for processes in 2 5 9; do
        limit_processes "$processes"
        refused "$processes processes" 'cannot start rank [0-9]+ of 12: .*ulimit -u'
    done
    limit_processes 1
    refused "one process" 'cannot start a process .*ulimit -u'

    # A rank that has become another user's cannot be ended. The job ends all the same and says so.
    cp "$(command -v setpriv)" "$dir/setpriv"
    chmod 4755 "$dir/setpriv"
    user=$((50000 + $$ % 10000))
    as_user=(env "$mark" setpriv "--reuid=$user" "--regid=$user" --clear-groups)
    if "${as_user[@]}" "$dir/setpriv" --reuid=0 true 2>/dev/null; then
        code=0
        "${as_user[@]}" timeout -s KILL 30 "$HEM" run -n 2 --timeout 0.5 "$dir/setpriv" --reuid=0 sleep 60 \
            </dev/null >"$dir/out" 2>"$dir/err" || code=$?
        code_is 124 "another user's"
        last_says '^hem run: processes of another user cannot be ended and are left: 2$' "another user's"
        for pid in $(marked); do kill -9 "$pid"; done
    else
        echo "left out: ranks of another user, programs in $dir cannot change theirs"
    fi
fi
summary
