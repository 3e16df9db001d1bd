#!/usr/bin/env bash
# hem-test: timeout=90
# hem run and signals: forwarded, a second one kills, stop and continue, a stopped rank is not dead.
# shellcheck disable=SC1091,SC2016,SC2154
source "$(dirname "$0")/common.bash"

listen='trap "echo got-$1; exit 0" $1; echo ready; while :; do sleep 0.02; done'
number() { kill -l "$1"; }

# Each signal reaches every rank, and the exit code says which it was.
for name in INT TERM HUP QUIT; do
    start -n 2 sh -c "$listen" - "$name"
    ready 2
    kill -s "$name" "$front"
    finish
    code_is $((128 + $(number $name))) "SIG$name"
    check "SIG$name: not in both ranks" lines_are "$dir/out" "got-$name" 2
    last_says "^hem run: ended by signal $(number $name) \(.*\) after .* s; the job ends with $((128 + $(number $name)))$" "SIG$name"
    left_nothing "SIG$name"
done

# To the whole group, as timeout(1) and others do: still one signal, not the second that kills.
set -m
start -n 2 --grace 5000 sh -c 'trap "sleep 0.3; echo done; exit 0" TERM; echo ready; while :; do sleep 0.02; done'
set +m
ready 2
kill -TERM -- "-$front"
finish
code_is 143 "to the group"
check "to the group: no time to end" lines_are "$dir/out" '^done$' 2
left_nothing "to the group"

# Who does not listen is killed: by the second signal, or after the grace period.
deaf='trap "" INT TERM; echo ready; while :; do sleep 0.02; done'
start -n 2 --grace 20000 sh -c "$deaf"
ready 2
begun=$(date +%s%N)
for ((i = 0; i < 20; i++)); do
    # Two at once could be one to a launcher that does not get to run.
    kill -INT "$front" 2>/dev/null || break
    sleep 0.3
done
finish
took=$((($(date +%s%N) - begun) / 1000000))
code_is 130 "second signal"
check "second signal: took $took ms" [ $took -lt 10000 ]
left_nothing "second signal"
start -n 2 --grace 300 sh -c "$deaf"
ready 2
kill -TERM "$front"
finish
code_is 143 "signal and grace"
left_nothing "signal and grace"

# USR1 is passed on and ends nothing.
start -n 2 sh -c 'trap "echo usr" USR1; trap "exit 0" USR2; echo ready; while :; do sleep 0.02; done'
ready 2
kill -USR1 "$front"
check "SIGUSR1: not in both ranks" until_true 5 lines_are "$dir/out" '^usr$' 2
kill -USR2 "$front"
finish
code_is 0 "SIGUSR1 and SIGUSR2"

state() { ps -o stat= -p "$1" | cut -c 1; }
is_stopped() { [ "$(state "$1")" = T ]; }
runs() { [ "$(state "$1")" != T ]; }

# Stop and continue. In a group of its own, or the kernel would not let it stop.
set -m
start -n 2 sh -c 'echo ready; exec sleep 30'
set +m
ready 2
rank=$(rank_pid "$(keeper_of "$front")" 1)
kill -TSTP "$front"
check "stop: the front goes on" until_true 5 is_stopped "$front"
check "stop: a rank goes on" until_true 5 is_stopped "$rank"
kill -CONT "$front"
check "continue: a rank does not" until_true 5 runs "$rank"
kill -TERM "$front"
finish
code_is 143 "stop and continue"
left_nothing "stop and continue"

# A stopped rank is not a dead one.
start -n 3 --grace 5000 "$programs/survivor" wait
ready 3 'is process'
rank=$(rank_pid "$(keeper_of "$front")" 1)
kill -STOP "$rank"
sleep 0.7
check "stopped rank: taken for dead" lines_are "$dir/out" heard 0
kill -CONT "$rank"
sleep 0.2
check "continued rank: taken for dead" lines_are "$dir/out" heard 0
kill -STOP "$rank"
kill -9 "$rank"
finish
code_is 137 "stopped, then killed"
check "stopped, then killed: not heard" lines_are "$dir/out" 'heard after -1 us: .*rank 1 was killed by signal 9' 2
left_nothing "stopped, then killed"
summary
