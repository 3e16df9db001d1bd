# What the scripts that test the command share; they source it.
#
# Every job is started with a mark in its environment, which all its processes inherit, whatever
# else they do to slip away. So `marked` finds what a job has left behind.
# shellcheck shell=bash
# Programs here end without closing their world, on purpose. Leaks are looked for in unit and rank tests.
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0"

set -euo pipefail
: "${HEM:?the command to test}" "${HEM_BUILD:?the build folder}" "${HEM_SOURCE:?the source folder}"
# shellcheck disable=SC2034 # For the scripts.
programs=$HEM_BUILD/tests/programs
# The environment of an outer job is none of ours.
unset HEM_RANK HEM_SIZE HEM_ARENA_FD HEM_CONTROL_FD
dir=$(mktemp -d)
mark=HEM_TEST_MARK=$$-$RANDOM-$RANDOM
cases=0
failed=0

# The processes of marked jobs. Those that have ended and wait to be reaped are not among them.
marked() {
    local file
    for file in $(grep -lasF "$mark" /proc/[0-9]*/environ 2>/dev/null || true); do
        file=${file#/proc/}
        echo "${file%/environ}"
    done
}

clean_up() {
    local pid
    for pid in $(marked); do kill -9 "$pid" 2>/dev/null || true; done
    rm -rf "$dir"
}
trap clean_up EXIT

# complain WHAT: a check has failed. Shows what the last command printed.
complain() {
    echo "FAILED: $*"
    [ ! -s "$dir/out" ] || head -c 2000 "$dir/out" | sed 's/^/  out: /'
    [ ! -s "$dir/err" ] || head -c 2000 "$dir/err" | sed 's/^/  err: /'
    failed=$((failed + 1))
}

# check WHAT COMMAND...: the command must succeed.
check() {
    local what=$1
    shift
    cases=$((cases + 1))
    "$@" || complain "$what"
}

# run ARGS...: hem run, marked, with a limit. Leaves $code, $dir/out and $dir/err.
run() {
    code=0
    env "$mark" timeout -s KILL 40 "$HEM" run "$@" </dev/null >"$dir/out" 2>"$dir/err" || code=$?
}

# start ARGS...: the same in the background. Leaves $front. Ctrl-C is not ignored in it.
start() {
    : >"$dir/out"
    env --default-signal=INT,QUIT "$mark" "$HEM" run "$@" </dev/null >"$dir/out" 2>"$dir/err" &
    front=$!
}

# finish: wait for what `start` started. Leaves $code.
finish() {
    code=0
    wait "$front" 2>/dev/null || code=$?
}

# until_true SECONDS COMMAND...
until_true() {
    local tries=$(($1 * 50))
    shift
    while ! "$@"; do
        tries=$((tries - 1))
        [ $tries -gt 0 ] || return 1
        sleep 0.02
    done
}

lines_are() { [ "$(grep -c "$2" "$1")" -eq "$3" ]; }
none_marked() { [ -z "$(marked)" ]; }

# ready N [WORD]: wait until N ranks have said so.
ready() { check "$1 ranks did not start" until_true 20 lines_are "$dir/out" "${2:-ready}" "$1"; }

# left_nothing WHAT: every process of the job is gone, or goes right now.
left_nothing() {
    cases=$((cases + 1))
    until_true 5 none_marked && return
    complain "$1: processes are left"
    local pid
    for pid in $(marked); do
        tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null | sed "s/^/  left: $pid /" || true
        echo
        kill -9 "$pid" 2>/dev/null || true
    done
}

# code_is N WHAT
code_is() { check "$2: exit code $code, not $1" [ "$code" -eq "$1" ]; }
# last_says PATTERN WHAT: the last line on stderr.
last_says() { check "$2: the last line is not: $1" last_line_matches "$1"; }
last_line_matches() { tail -n 1 "$dir/err" | grep -qE -- "$1"; }
# err_says PATTERN WHAT, out_says PATTERN WHAT: some line.
err_says() { check "$2: no line on stderr: $1" grep -qE -- "$1" "$dir/err"; }
out_says() { check "$2: no line on stdout: $1" grep -qE -- "$1" "$dir/out"; }
# err_lines N WHAT
err_lines() { check "$2: not $1 lines on stderr" [ "$(wc -l <"$dir/err")" -eq "$1" ]; }

keeper_of() { pgrep -P "$1" | head -n 1; }
# rank_pid KEEPER NUMBER: the process that was started as this rank.
rank_pid() {
    local pid
    for pid in $(pgrep -P "$1"); do
        if tr '\0' '\n' <"/proc/$pid/environ" 2>/dev/null | grep -qx "HEM_RANK=$2"; then
            echo "$pid"
            return
        fi
    done
    return 1
}

summary() {
    echo "$cases checks, $failed failed"
    [ $failed -eq 0 ]
}
