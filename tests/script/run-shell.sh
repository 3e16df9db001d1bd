#!/usr/bin/env bash
# hem-test: timeout=60
# hem run: ranks behind a shell. The process that attached is watched, not only the shell around it.
# shellcheck disable=SC1091,SC2016,SC2154
source "$(dirname "$0")/common.bash"

heard() { check "$2: not heard of by both" lines_are "$dir/out" "heard after [0-9]* us: .*rank 1 $1" 2; }

# The shell passes the code on.
run -n 3 sh -c '"$1" kill=9; exit $?' - "$programs/survivor"
code_is 137 "a shell that passes on"
heard 'was killed by signal 9' "a shell that passes on"
last_says '^hem run: rank 1 was killed by signal 9' "a shell that passes on"
left_nothing "a shell that passes on"

# The shell hides it: the peers hear of it all the same, the job is what the shells say.
run -n 3 sh -c '"$1" exit=3; true' - "$programs/survivor"
code_is 0 "a shell that hides"
heard '' "a shell that hides"
left_nothing "a shell that hides"

# The shell goes on: the peers do not wait for it. The time is in microseconds.
run -n 3 sh -c '"$1" kill=9; sleep 1.5; exit 7' - "$programs/survivor"
code_is 7 "a shell that goes on"
heard 'exited with code 255' "a shell that goes on"
check "a shell that goes on: heard too late" [ "$(sed -n 's/.*heard after \([0-9]*\) us.*/\1/p' "$dir/out" | sort -n | tail -n 1)" -lt 1000000 ]
left_nothing "a shell that goes on"

# The shell leaves first: the program is the rank, and its code is the rank's.
run -n 3 sh -c '"$1" exit=5 >"$2-$HEM_RANK" & until grep -q "is process" "$2-$HEM_RANK"; do sleep 0.02; done' \
    - "$programs/survivor" "$dir/said"
cat "$dir"/said-* >"$dir/out"
code_is 5 "a shell that leaves"
heard 'exited with code 5' "a shell that leaves"
last_says '^hem run: rank 1 exited with code 5' "a shell that leaves"
left_nothing "a shell that leaves"

# The shell is killed: so is its program, and the peers hear of it.
start -n 3 --grace 5000 sh -c '"$1" wait; true' - "$programs/survivor"
ready 3 'is process'
kill -9 "$(rank_pid "$(keeper_of "$front")" 1)"
finish
code_is 137 "a shell that is killed"
check "a shell that is killed: not heard of by both" lines_are "$dir/out" 'heard after -1 us: .*rank 1 was killed by signal 9' 2
left_nothing "a shell that is killed"

# The program behind the shell is killed from outside.
start -n 3 --grace 5000 sh -c '"$1" wait; exit $?' - "$programs/survivor"
ready 3 'is process'
kill -9 "$(sed -n 's/^rank 1 is process //p' "$dir/out")"
finish
code_is 137 "a program that is killed"
check "a program that is killed: not heard of by both" lines_are "$dir/out" 'heard after -1 us: .*rank 1 was killed by signal 9' 2
left_nothing "a program that is killed"
summary
