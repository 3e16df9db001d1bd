#!/usr/bin/env bash
# hem-test: timeout=120 labels=processes
# hem run --timeout and hem ps say what kernels wait for: with the stand-in, or on a GPU with HEM_TEST_DEVICE=gpu.
# shellcheck disable=SC1091,SC2016,SC2154
source "$(dirname "$0")/common.bash"

program=$programs/../device_shown
limit=3
if [ "${HEM_TEST_DEVICE:-standin}" = gpu ]; then
    program=$programs/../../gpu/gpu_shown
    limit=12
else
    export HEM_DEVICE_MODULE=$programs/../libhem_standin.so
fi

# shown CASE PATTERN: rank 0 of two waits in a kernel for rank 1. It may get there late, and a kernel of the
# stand-in looks rarely, where others have the cores: then with more time.
shown() {
    export HEM_TEST_HANG=$1
    local line="^rank 0 \(pid [0-9]+\): $2, for [0-9.]+ s$" times
    for times in 1 2 3; do
        run -n 2 --timeout $((limit * times)) "$program"
        if [ "$code" -eq 77 ]; then
            grep -m 1 skipped "$dir/err"
            exit 77
        fi
        if [ "$code" -ne 124 ] || grep -qE -- "$line" "$dir/err"; then break; fi
        echo "case $1: not seen after $((limit * times)) s"
    done
    code_is 124 "case $1"
    err_says "$line" "case $1"
    left_nothing "case $1"
}

shown 0 'a kernel in hem_dev_wait_signal_from: world 2, window [0-9]+, signal 3 from rank 1: is 4, wants >= 5'
shown 1 'a kernel in hem_dev_wait_signal: world 2, window [0-9]+, signal 2 from all ranks: is 0, wants >= 2'
shown 2 'a kernel in hem_dev_wait_counter: world 2, window [0-9]+, counter 1: is 0, wants >= 1'
shown 3 'a kernel in hem_dev_barrier: world 2, window [0-9]+, barrier 1 from rank 1: is 0, wants >= 1'
shown 7 'a kernel in hem_pipe_sendrecv \(recv\): world 2, pipe [0-9]+, 200000 bytes from rank 1'
shown 8 'a kernel in hem_pipe_sendrecv \(send\): world 2, pipe [0-9]+, 200000 bytes to rank 1'
shown 9 'a kernel in hem_exchange_finish_on: world 2, exchange [0-9]+, run 1 from rank 1'
shown 11 'a stream in hem_exchange_start_on \(engines\): world 2, exchange [0-9]+, halos of rank 1'
shown 13 'a kernel in hem_op_start_on: world 2, collective [0-9]+, run 1 from rank 1'

# While it runs, and for programs.
export HEM_TEST_HANG=5
start -n 2 "$program"
row='^ +0  [0-9]+ +waiting +a kernel in hem_dev_take_stamped: .*, data with stamp 77 from rank 1, for [0-9.]+ s$'
# Other jobs of this user may run now. The process that has made ours is its keeper.
keeper=
keeper_is_there() { keeper=$(keeper_of "$front") && [ -n "$keeper" ]; }
check "no job" until_true 10 keeper_is_there
job_lines() { awk -v maker="made by process $keeper" '/^job / { mine = 0 } index($0, maker) > 0 { mine = 1 } mine' "$dir/ps"; }
look() { "$HEM" ps >"$dir/ps" 2>"$dir/ps-err" && job_lines | grep -qE "$row"; }
check "not shown while it runs" until_true 30 look
[ $failed -eq 0 ] || cat "$dir/ps"
# in_json: what a program reads. A kernel that others keep from its core may be missed once.
in_json() {
    "$HEM" ps --json >"$dir/json"
    python3 - "$dir/json" "$keeper" 2>"$dir/said" <<'PYTHON'
import json, sys
jobs = [j for j in json.load(open(sys.argv[1])) if j["maker_pid"] == int(sys.argv[2])]
assert len(jobs) == 1, jobs
waits = [w for w in jobs[0]["ranks"][0]["waits"] if w["kernel"]]
assert len(waits) == 1 and waits[0]["call"] == "hem_dev_take_stamped", waits
assert waits[0]["peer"] == 1 and 0 < waits[0]["seconds"] < 60, waits
PYTHON
}
if command -v python3 >/dev/null; then
    check "wrong JSON" until_true 1 in_json
    cat "$dir/said"
fi

# Another job, whose wait began right after its start. All that is said is of one time: that job is no younger than its
# wait, though an onlooker lets time pass to see whether kernels still wait.
kernels=$front
unset HEM_TEST_HANG
start -n 3 "$programs/hang" signal
ready 3
# of_one_time: 1 if not both are shown.
of_one_time() {
    "$HEM" ps --json >"$dir/json"
    python3 - "$dir/json" "$keeper" "$(keeper_of "$front")" 2>"$dir/said" <<'PYTHON'
import json, sys
jobs = [j for j in json.load(open(sys.argv[1])) if str(j["maker_pid"]) in sys.argv[2:]]
calls = set()
for job in jobs:
    for rank in job["ranks"]:
        for wait in rank["waits"]:
            calls.add(wait["call"])
            if wait["seconds"] > job["age_seconds"]:
                print("older than its job:", wait, job)
                sys.exit(0)
sys.exit(0 if {"hem_wait_signal_from", "hem_dev_take_stamped"} <= calls else 1)
PYTHON
}
if command -v python3 >/dev/null; then
    check "not both are shown" until_true 1 of_one_time >"$dir/older"
    check "not of one time: $(cat "$dir/older")" [ ! -s "$dir/older" ]
fi
kill -TERM "$front"
finish
front=$kernels
kill -TERM "$front"
finish
summary
