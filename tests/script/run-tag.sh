#!/usr/bin/env bash
# hem-test: timeout=120
# hem run --tag-output: whole lines with their rank, nothing lost, no deadlock, nobody held up.
# shellcheck disable=SC1091,SC2016,SC2154
source "$(dirname "$0")/common.bash"

# whole RANKS LINES BYTES FILE: LINES lines per rank, each of one letter, BYTES long, tagged.
whole() {
    awk -v ranks="$1" -v lines="$2" -v bytes="$3" '
        {
            tag = substr($0, 1, 4)
            body = substr($0, 5)
            if (tag !~ /^\[[0-9]\] $/ || length(body) != bytes)
                bad++
            gsub(substr(body, 1, 1), "", body)
            if (body != "")
                bad++
            count[substr(tag, 2, 1)]++
        }
        END {
            for (r = 0; r < ranks; r++)
                if (count[r] != lines)
                    bad++
            exit bad > 0
        }' "$4"
}

# unmixed FILE: every line is from rank 0 and of one letter.
unmixed() {
    awk '{
        body = substr($0, 5)
        gsub(substr(body, 1, 1), "", body)
        if (substr($0, 1, 4) != "[0] " || body != "")
            bad++
    }
    END { exit bad > 0 || NR == 0 }' "$1"
}

run -n 3 --tag-output "$programs/writer" 100 20
code_is 0 "short lines"
check "short lines: stdout" whole 3 50 20 "$dir/out"
check "short lines: stderr" whole 3 50 20 "$dir/err"

run -n 4 --tag-output "$programs/writer" 6 1048576
code_is 0 "long lines"
check "long lines: stdout" whole 4 3 1048576 "$dir/out"
check "long lines: stderr" whole 4 3 1048576 "$dir/err"

# The last line may lack its end, and the rank its life.
run -n 2 --tag-output "$programs/writer" 1 5 last
code_is 0 "no end of line"
check "no end of line" [ "$(sort "$dir/out" | tr '\n' ';')" = "[0] aaaaa;[0] last;[1] bbbbb;[1] last;" ]
run -n 1 --tag-output sh -c 'printf "last words"; kill -9 $$'
code_is 137 "last words"
check "last words" [ "$(cat "$dir/out")" = "[0] last words" ]
run -n 11 --tag-output sh -c 'echo; echo text'
check "aligned" [ "$(sort -u "$dir/out" | grep -c '^\[[ 1][0-9]\] text$')" -eq 11 ]
check "aligned: empty lines" [ "$(grep -c '^\[[ 1][0-9]\] $' "$dir/out")" -eq 11 ]

# A line longer than the limit comes in pieces, each of them tagged, and complete.
run -n 1 --tag-output "$programs/writer" 1 40000000
code_is 0 "a line beyond the limit"
check "a line beyond the limit: bytes are missing" [ "$(tr -d -c a <"$dir/out" | wc -c)" -eq 40000000 ]
check "a line beyond the limit: an untagged piece" [ "$(grep -cv '^\[0\] a' "$dir/out")" -eq 0 ]

# What a child of a rank writes after the rank is gone is still there at the end.
run -n 2 --tag-output sh -c 'if [ $HEM_RANK = 0 ]; then (sleep 0.2; echo late) & exit 0; fi; sleep 0.6'
code_is 0 "late"
check "late" [ "$(cat "$dir/out")" = "[0] late" ]

# Somebody else keeps the pipe open: the job ends, and what was written is printed.
start -n 1 --tag-output sh -c 'echo ready; printf partial; exec sleep 100'
ready 1
rank=$(rank_pid "$(keeper_of "$front")" 0)
exec 8>"/proc/$rank/fd/1"
kill -9 "$rank"
finish
exec 8>&-
code_is 137 "an open pipe"
check "an open pipe: something is missing" [ "$(tail -n 1 "$dir/out")" = "[0] partial" ]

# A slow reader: everything arrives.
code=0
env "$mark" "$HEM" run -n 3 --tag-output "$programs/writer" 4000 2000 </dev/null 2>/dev/null |
    (sleep 0.5 && cat) >"$dir/out" || code=$?
code_is 0 "slow reader"
check "slow reader" whole 3 2000 2000 "$dir/out"

# A reader that goes away ends the job, as it ends a program.
{
    code=0
    env "$mark" timeout -s KILL 30 "$HEM" run -n 2 --grace 300 --tag-output yes </dev/null 2>"$dir/err" ||
        code=$?
    echo $code >"$dir/code"
} | head -n 1 >"$dir/out"
code=$(cat "$dir/code")
code_is 141 "reader gone"
last_says 'was killed by signal 13' "reader gone"
left_nothing "reader gone"

# Output that nobody reads holds up the ranks, but not the keeper: a death is noticed, the job is
# ended, and only the two processes that hold the output are left, until somebody reads it.
two_are_left() { [ "$(marked | wc -l)" -eq 2 ]; }
# stuck: starts such a job, and opens its output at descriptor 9.
stuck() {
    rm -f "$dir/fifo"
    mkfifo "$dir/fifo"
    rm -f "$dir/begun"
    env "$mark" "$HEM" run -n 2 --grace 200 --tag-output sh -c \
        'if [ $HEM_RANK = 1 ]; then echo >"$2"; sleep 0.5; kill -9 $$; fi; exec "$1" 300 10000' \
        - "$programs/writer" "$dir/begun" </dev/null >"$dir/fifo" 2>"$dir/err" &
    front=$!
    exec 9<"$dir/fifo"
    until_true 20 test -e "$dir/begun"
    check "stuck: ranks are left" until_true 20 two_are_left
}
stuck
cat <&9 >"$dir/out"
exec 9<&-
finish
code_is 137 "stuck"
last_says '^hem run: rank 1 was killed by signal 9' "stuck"
check "stuck: lines are mixed" unmixed "$dir/out"
left_nothing "stuck"
stuck
kill -TERM "$front"
finish
check "stuck: a signal does not end it" [ "$code" -ne 0 ]
exec 9<&-
left_nothing "stuck, then a signal"
stuck
kill -9 "$front"
finish
left_nothing "stuck, then killed"
exec 9<&-
# One signal is enough, also if it comes while the ranks still run.
rm -f "$dir/fifo"
mkfifo "$dir/fifo"
env "$mark" "$HEM" run -n 2 --grace 300 --tag-output "$programs/writer" 300 10000 \
    </dev/null >"$dir/fifo" 2>"$dir/err" &
front=$!
exec 9<"$dir/fifo"
sleep 0.5
kill -TERM "$front"
finish
exec 9<&-
code_is 143 "stuck, and a signal"
left_nothing "stuck, and a signal"
summary
