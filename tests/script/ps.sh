#!/usr/bin/env bash
# hem-test: timeout=60
# hem ps: shows running jobs and what their ranks wait for, as a table and as JSON, and disturbs none.
# shellcheck disable=SC1091,SC2016,SC2154
source "$(dirname "$0")/common.bash"

look() { "$HEM" ps >"$dir/ps" 2>"$dir/ps-err" || complain "hem ps fails: $(cat "$dir/ps-err")"; }
# The lines of the job whose command has this word.
job_lines() { awk -v word="$1" '/^job / { mine = index($0, word) > 0 } mine' "$dir/ps"; }
# has WORD PATTERN WHAT
has() {
    cases=$((cases + 1))
    job_lines "$1" | grep -qE -- "$2" && return
    complain "$3: not shown: $2"
    sed 's/^/  ps: /' "$dir/ps"
}

# Other jobs of this user may run now, so that only a user without any can see none.
user=$((60000 + $$ % 5000))
if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null &&
    setpriv --reuid=$user --regid=$user --clear-groups "$HEM" ps >"$dir/ps" 2>"$dir/err"; then
    check "no job" [ "$(cat "$dir/ps")" = "no Hem job of yours is running" ]
    setpriv --reuid=$user --regid=$user --clear-groups "$HEM" ps --json >"$dir/ps"
    check "no job in JSON" [ "$(cat "$dir/ps")" = "[]" ]
else
    echo "left out: the case without any job, which takes root and setpriv"
fi

word=a-word-to-find-$$
start -n 3 --grace 5000 "$programs/hang" signal "$word"
ready 3
# Rank 1 has what rank 0 sends, and waits for more, as rank 2 does.
waits() {
    look && job_lines "$word" | grep -qE '^ +1  .*hem_wait_signal_from: .*is 4, wants >= 5' &&
        job_lines "$word" | grep -qE '^ +2  .*hem_wait_signal_from: .*is 0, wants >= 5'
}
check "ranks 1 and 2 do not wait" until_true 10 waits
has "$word" "^job [0-9a-f]{16}  .*hang signal $word$" "head"
has "$word" '^  3 ranks, launched, for [0-9.]+ s, made by process [0-9]+$' "head"
has "$word" '^ +0  [0-9]+ +running +running, in no Hem call that waits$' "rank 0"
has "$word" '^ +1  [0-9]+ +waiting +hem_wait_signal_from: .*window 1, signal 2 from rank 0: is 4, wants >= 5, for [0-9.]+ s$' "rank 1"
check "the job is shown twice" lines_are "$dir/ps" "$word" 1
keeper=$(keeper_of "$front")
kill -STOP "$(rank_pid "$keeper" 1)"
stopped() { look && job_lines "$word" | grep -qE '^ +1  [0-9]+ +stopped +stopped, in hem_wait_signal_from'; }
check "a stopped rank is not shown as such" until_true 5 stopped

if command -v python3 >/dev/null; then
    "$HEM" ps --json >"$dir/json"
    check "no JSON" python3 -m json.tool "$dir/json" /dev/null
    check "wrong JSON" python3 - "$dir/json" "$word" "$keeper" <<'PYTHON'
import json, sys
jobs = [j for j in json.load(open(sys.argv[1])) if sys.argv[2] in j["command"]]
assert len(jobs) == 1, jobs
job = jobs[0]
assert job["kind"] == "launched" and job["size"] == 3 and job["maker_pid"] == int(sys.argv[3]), job
assert [r["rank"] for r in job["ranks"]] == [0, 1, 2], job
assert [r["state"] for r in job["ranks"]] == ["running", "stopped", "waiting"], job
wait = job["ranks"][1]["waits"][0]
assert wait["call"] == "hem_wait_signal_from" and wait["peer"] == 0 and wait["id"] == 2, wait
assert wait["seen"] == "4" and wait["wanted"] == "5" and wait["window"] == "1", wait
assert wait["seconds"] > 0 and job["age_seconds"] >= wait["seconds"], job
PYTHON
else
    echo "left out: JSON, there is no python3"
fi

# Looking many times changes nothing, and the end of a job ends its entry.
for ((i = 0; i < 20; i++)); do "$HEM" ps >/dev/null; done
check "the job did not survive being looked at" kill -0 "$front"
kill -9 "$(rank_pid "$keeper" 2)"
dead() { look && job_lines "$word" | grep -qE '^ +2  [0-9]+ +failed +was killed by signal 9 \(Killed\) after [0-9.]+ s'; }
check "a dead rank is not shown as such" until_true 1 dead
finish
code_is 137 "the job"
left_nothing "the job"
look
check "the job is over, and still shown" lines_are "$dir/ps" "$word" 0

# A command with odd characters neither breaks the table nor the JSON.
odd=$(printf 'q"\\\001\303\251\377-%s' "$word")
start -n 1 sh -c 'echo ready; sleep 20' "$odd"
ready 1
look
check "odd characters: not one line" lines_are "$dir/ps" "$word" 1
check "odd characters: control characters" [ "$(tr -d '\n' <"$dir/ps" | LC_ALL=C grep -c '[[:cntrl:]]')" -eq 0 ]
if command -v python3 >/dev/null; then
    "$HEM" ps --json >"$dir/json"
    check "odd characters: no JSON" python3 -m json.tool "$dir/json" /dev/null
fi
kill -TERM "$front"
finish

# Memory that only looks like a job is left out; one of another version is mentioned.
if command -v python3 >/dev/null; then
    for head in 'b""' 'b"nonsense" * 1000' 'b"hemarena" + (99).to_bytes(4, "little") + bytes(4096)'; do
        : >"$dir/out" # what the one before said is there until the next has begun
        env "$mark" python3 -c "
import os, time
fd = os.memfd_create('hem-arena', os.MFD_ALLOW_SEALING)
os.write(fd, $head)
print('ready', flush=True)
time.sleep(20)" >"$dir/out" &
        fake=$!
        ready 1
        look
        check "fake: shown" eval '! grep -q "process $fake\b" "$dir/ps"'
        case $head in
        *hemarena*) check "fake: not mentioned" grep -q "left out a job of process $fake:" "$dir/ps-err" ;;
        *) check "fake: mentioned" eval '! grep -q "process $fake\b" "$dir/ps-err"' ;;
        esac
        kill -9 "$fake"
        wait "$fake" 2>/dev/null || true
    done
fi

code=0
"$HEM" ps --all >/dev/null 2>"$dir/err" || code=$?
code_is 2 "unknown option"
err_says '^hem ps: --all is no option$' "unknown option"
code=0
"$HEM" ps 12 >/dev/null 2>"$dir/err" || code=$?
code_is 2 "an argument"
"$HEM" ps --help >"$dir/out"
out_says '^Usage: hem ps' "help"
summary
