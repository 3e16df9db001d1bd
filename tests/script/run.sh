#!/usr/bin/env bash
# hem-test: timeout=120
# hem run: exit codes, the line about the first failure, what ranks inherit, wrong command lines.
# shellcheck disable=SC1091,SC2016,SC2154
source "$(dirname "$0")/common.bash"

run -n 3 sh -c 'echo "$HEM_RANK of $HEM_SIZE"'
code_is 0 "three ranks"
check "three ranks: wrong ranks" [ "$(sort "$dir/out" | tr '\n' ';')" = "0 of 3;1 of 3;2 of 3;" ]
err_lines 0 "three ranks"
run -n 1 "$programs/writer" 1 3
code_is 0 "one rank"
out_says '^aaa$' "one rank"

# The first failure decides, and others may end in the grace period.
run -n 3 sh -c 'if [ $HEM_RANK = 1 ]; then exit 3; fi; sleep 0.3; exit 4'
code_is 3 "first failure"
last_says '^hem run: rank 1 exited with code 3 after [0-9]+\.[0-9]{3} s; the job ends with 3$' "first failure"
err_lines 1 "first failure"
run -n 2 sh -c 'if [ $HEM_RANK = 0 ]; then kill -SEGV $$; fi'
code_is 139 "signal"
last_says '^hem run: rank 0 was killed by signal 11 \(Segmentation fault\) after .* s; the job ends with 139$' "signal"
left_nothing "signal"

# Grace: SIGTERM after it, SIGKILL for who does not hear.
begun=$(date +%s%N)
run -n 3 --grace 300 sh -c 'case $HEM_RANK in 0) exit 9;; 1) trap "echo term; exit 0" TERM;; 2) trap "" TERM;; esac; while :; do sleep 0.02; done'
took=$((($(date +%s%N) - begun) / 1000000))
code_is 9 "grace"
out_says '^term$' "grace: SIGTERM comes first"
err_says '^hem run: 2 of the other ranks had to be ended$' "grace"
check "grace: took $took ms" [ $took -ge 450 -a $took -lt 5000 ]
left_nothing "grace"
begun=$(date +%s%N)
run -n 2 --grace 20000 sh -c 'if [ $HEM_RANK = 0 ]; then exit 5; fi; sleep 0.2'
took=$((($(date +%s%N) - begun) / 1000000))
code_is 5 "grace is not waited for"
check "grace is not waited for: took $took ms" [ $took -lt 5000 ]

# A program that cannot be run.
run -n 3 hem-no-such-program
code_is 127 "missing program"
err_lines 1 "missing program"
last_says '^hem run: cannot run hem-no-such-program: No such file or directory$' "missing program"
run -n 2 "$dir/nothing"
code_is 127 "missing file"
echo 'exit 0' >"$dir/plain"
run -n 2 "$dir/plain"
code_is 126 "not executable"
err_lines 1 "not executable"
last_says '^hem run: cannot run .*/plain: Permission denied$' "not executable"
printf '#!/hem/no/such/interpreter\n' >"$dir/script"
chmod +x "$dir/script"
run -n 1 "$dir/script"
code_is 127 "no interpreter"
last_says 'the interpreter that it names is not there$' "no interpreter"
left_nothing "programs that cannot be run"

# usage PATTERN ARGS...: exit code 2 and one sentence.
usage() {
    local pattern=$1
    shift
    run "$@"
    code_is 2 "hem run $*"
    check "hem run $*: not said: $pattern" grep -qE -- "^hem run: $pattern" "$dir/err"
    err_lines 2 "hem run $*"
}
usage 'say how many ranks' true
usage 'say which program' -n 2
usage 'say which program' -n 2 ''
usage '-n 0: the number of ranks is 1 to 65536' -n 0 true
usage '-n 65537: the number of ranks' -n 65537 true
usage '-n 99999999999999999999: the number' -n 99999999999999999999 true
usage '-n -1: the number of ranks' -n -1 true
usage '-n 2x: the number of ranks' -n 2x true
usage '-n : the number of ranks' -n '' true
usage '-n needs a value' -n
usage '--timeout 0: a number of seconds' -n 1 --timeout 0 true
usage '--timeout -1: a number of seconds' -n 1 --timeout -1 true
usage '--timeout nan: a number of seconds' -n 1 --timeout nan true
usage '--timeout 1e5: a number of seconds' -n 1 --timeout 1e5 true
usage '--timeout 1.2.3: a number of seconds' -n 1 --timeout 1.2.3 true
usage '--timeout .: a number of seconds' -n 1 --timeout . true
usage '--grace x: a number of milliseconds' -n 1 --grace x true
usage '--grace 3600001: a number' -n 1 --grace 3600001 true
usage '--bind socket: either core or none' -n 1 --bind socket true
usage '--fast is no option' -n 1 --fast true
usage 'there is no option -x' -x -n 1 true
run -n 1 --bind core -- sh -c 'exit 0' --help
code_is 0 "options of the program are its own"
run --help
code_is 0 "help"
out_says '^Usage: hem run -n N' "help"

# Descriptors: rank 0 has our stdin, nobody has more of us than the arena and the control socket.
code=0
echo from-stdin | env "$mark" "$HEM" run -n 2 sh -c 'cat' >"$dir/out" 2>"$dir/err" || code=$?
code_is 0 "stdin"
check "stdin goes to rank 0 alone" [ "$(cat "$dir/out")" = from-stdin ]
run -n 2 sh -c 'ls -l /proc/self/fd'
code_is 0 "descriptors"
check "descriptors: two arenas" lines_are "$dir/out" memfd:hem-arena 2
check "descriptors: two sockets" lines_are "$dir/out" 'socket:' 2
check "descriptors: nothing else of ours" lines_are "$dir/out" 'anon_inode' 0
code=0
env "$mark" "$HEM" run -n 2 sh -c 'true' <&- >&- 2>&- || code=$?
code_is 0 "closed standard descriptors"

# Signals that were ignored stay so, those that were not do not begin to be.
code=0
(trap '' HUP && exec env "$mark" "$HEM" run -n 1 grep SigIgn /proc/self/status) >"$dir/out" 2>"$dir/err" || code=$?
out_says '^SigIgn:.*[13579bdf]$' "an ignored SIGHUP stays ignored"
run -n 1 grep -E 'Sig(Ign|Blk)' /proc/self/status
grep -E 'Sig(Ign|Blk)' /proc/self/status >"$dir/want"
check "signals are as they were" diff "$dir/want" "$dir/out"

# Children that a shell had before it became us by exec are not ours to end.
env "$mark" bash -c 'sleep 30 & echo $! >"$1"; exec "$2" run -n 1 true' - "$dir/pid" "$HEM" </dev/null >/dev/null 2>&1
check "a child from before was ended" kill -0 "$(cat "$dir/pid")"
kill "$(cat "$dir/pid")"

# What a rank leaves behind lives until the end of the job, and orphans that end are reaped.
start -n 2 sh -c 'if [ $HEM_RANK = 0 ]; then (sleep 100 &); (sleep 0.1 &); exit 0; fi; echo ready; sleep 2'
ready 1
sleep 0.4
check "left behind: gone too early" pgrep -P "$(keeper_of "$front")" -x sleep >/dev/null
check "left behind: a zombie is not reaped" [ -z "$(pgrep -r Z -P "$(keeper_of "$front")")" ]
finish
code_is 0 "left behind"
left_nothing "left behind"
summary
