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

# shown CASE PATTERN: rank 0 of two waits in a kernel for rank 1.
shown() {
    export HEM_TEST_HANG=$1
    run -n 2 --timeout $limit "$program"
    if [ "$code" -eq 77 ]; then
        grep -m 1 skipped "$dir/err"
        exit 77
    fi
    code_is 124 "case $1"
    err_says "^rank 0 \(pid [0-9]+\): $2, for [0-9.]+ s$" "case $1"
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
look() { "$HEM" ps >"$dir/ps" 2>"$dir/ps-err" && grep -q 'hem_dev_take_stamped' "$dir/ps"; }
check "not shown while it runs" until_true 30 look
check "shown otherwise: $(cat "$dir/ps")" \
    grep -qE '^ +0  [0-9]+ +waiting +a kernel in hem_dev_take_stamped: .*, data with stamp 77 from rank 1, for [0-9.]+ s$' "$dir/ps"
if command -v python3 >/dev/null; then
    "$HEM" ps --json >"$dir/json"
    check "wrong JSON" python3 - "$dir/json" "$program" <<'PYTHON'
import json, sys
jobs = [j for j in json.load(open(sys.argv[1])) if sys.argv[2] in j["command"]]
assert len(jobs) == 1, jobs
waits = [w for w in jobs[0]["ranks"][0]["waits"] if w["kernel"]]
assert len(waits) == 1 and waits[0]["call"] == "hem_dev_take_stamped", waits
assert waits[0]["peer"] == 1 and 0 < waits[0]["seconds"] < 60, waits
PYTHON
fi

# Another job, whose wait began right after its start. All that is said is of one time: that job is no younger than its
# wait, though an onlooker lets time pass to see whether kernels still wait.
kernels=$front
unset HEM_TEST_HANG
start -n 3 "$programs/hang" signal
ready 3
both() { "$HEM" ps --json >"$dir/json" && grep -q hem_wait_signal_from "$dir/json" && grep -q hem_dev_take_stamped "$dir/json"; }
check "not both are shown" until_true 30 both
if command -v python3 >/dev/null; then
    check "not of one time" python3 - "$dir/json" <<'PYTHON'
import json, sys
for job in json.load(open(sys.argv[1])):
    for rank in job["ranks"]:
        for wait in rank["waits"]:
            assert wait["seconds"] <= job["age_seconds"], (wait, job)
PYTHON
fi
kill -TERM "$front"
finish
front=$kernels
kill -TERM "$front"
finish
summary
