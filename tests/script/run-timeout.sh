#!/usr/bin/env bash
# hem-test: timeout=60
# hem run --timeout: a job that hangs is ended, and says what each rank was waiting for.
# shellcheck disable=SC1091,SC2016,SC2154
source "$(dirname "$0")/common.bash"

run -n 3 --timeout 2.5 "$programs/hang" barrier
code_is 124 "barrier"
err_says '^rank 0 \(pid [0-9]+\): running, in no Hem call that waits$' "barrier"
for rank in 1 2; do
    err_says "^rank $rank \(pid [0-9]+\): hem_barrier: .*window 1, barrier 1 .*rank 0.* for [0-9.]+ s$" "barrier"
done
last_says '^hem run: the time limit of 2.500 s is over; the job ends with 124$' "barrier"
err_lines 4 "barrier"
left_nothing "barrier"

run -n 2 --timeout 2 "$programs/hang" signal
code_is 124 "signal"
err_says '^rank 1 \(pid [0-9]+\): hem_wait_signal_from: .*window 1, signal 2 from rank 0: is 4, wants >= 5, for [0-9.]+ s$' "signal"
left_nothing "signal"

run -n 2 --timeout 2 "$programs/hang" open
code_is 124 "open"
err_says '^rank 0 \(pid [0-9]+\): has not opened its world yet$' "open"
err_says '^rank 1 \(pid [0-9]+\): hem_world_open: .*rank 0' "open"
left_nothing "open"

# Programs that know nothing of Hem, and that do not hear.
begun=$(date +%s%N)
run -n 2 --timeout 0.3 sh -c 'trap "" TERM INT; while :; do sleep 0.02; done'
took=$((($(date +%s%N) - begun) / 1000000))
code_is 124 "deaf"
check "deaf: took $took ms" [ $took -ge 300 -a $took -lt 5000 ]
left_nothing "deaf"

# One that ends in time is not touched, and one rank that ended is shown as such.
run -n 2 --timeout 20 true
code_is 0 "in time"
err_lines 0 "in time"
run -n 2 --timeout 1 sh -c 'if [ $HEM_RANK = 1 ]; then exit 0; fi; sleep 10'
code_is 124 "half"
err_says '^rank 1 \(pid [0-9]+\): has exited after [0-9.]+ s$' "half"
left_nothing "half"

# A failure before the limit is what counts.
run -n 2 --timeout 1.5 --grace 1000 sh -c 'if [ $HEM_RANK = 1 ]; then exit 6; fi; sleep 10'
code_is 6 "failure first"
left_nothing "failure first"
summary
