#!/usr/bin/env bash
# hem-test: timeout=180 labels=kill
# kill -9 wherever it strikes, the front, the keeper or a rank, leaves no process behind: no rank, no
# child of a rank, no daemon. With HEM_SOAK, many more rounds at random moments.
# shellcheck disable=SC1091,SC2016,SC2154
source "$(dirname "$0")/common.bash"

family=$programs/family
# A front, a keeper, and per rank itself and six children.
whole_family() { [ "$(marked | wc -l)" -eq $((2 + 7 * $1)) ]; }
# begin RANKS: start families and wait until they are complete.
begin() {
    start -n "$1" --grace 300 "$family" stay
    ready "$1"
    check "the family is not complete" until_true 5 whole_family "$1"
    keeper=$(keeper_of "$front")
}

begin 3
kill -9 "$front"
finish
left_nothing "the front is killed"

begin 3
kill -9 "$keeper"
finish
code_is 137 "the keeper is killed"
last_says "^hem run: the launcher's process $keeper was killed by signal 9 \(Killed\), and all ranks with it; the job ends with 137$" "the keeper is killed"
err_lines 1 "the keeper is killed"
check "the keeper is killed: processes outlive the front" none_marked

begin 3
kill -9 "$(rank_pid "$keeper" 1)"
finish
code_is 137 "a rank is killed"
last_says '^hem run: rank 1 was killed by signal 9 \(Killed\) after .* s; the job ends with 137$' "a rank is killed"
check "a rank is killed: processes outlive the front" none_marked

begin 2
kill -TERM "$front"
finish
code_is 143 "the front is terminated"
check "the front is terminated: processes outlive it" none_marked

# Both at once: there is nobody to look after children, but the ranks themselves go.
start -n 3 sh -c 'echo ready; exec sleep 100'
ready 3
kill -9 "$front" "$(keeper_of "$front")"
finish
left_nothing "front and keeper are killed"

# Whoever is stopped when it happens.
begin 2
kill -STOP "$keeper"
kill -9 "$front"
finish
left_nothing "the keeper is stopped, the front is killed"
begin 2
kill -STOP "$(rank_pid "$keeper" 0)"
kill -STOP "$(rank_pid "$keeper" 1)"
kill -9 "$front"
finish
left_nothing "the ranks are stopped, the front is killed"
begin 2
kill -STOP "$(rank_pid "$keeper" 0)"
kill -9 "$keeper"
finish
code_is 137 "a rank is stopped, the keeper is killed"
left_nothing "a rank is stopped, the keeper is killed"

# By name, as people do it: the keeper is called otherwise, so that one of the two is left to clean.
begin 2
check "front and keeper have the same name" [ "$(cat "/proc/$front/comm")" != "$(cat "/proc/$keeper/comm")" ]
kill -9 "$front"
finish
left_nothing "by name"

# Ranks that ended well have left their children, and then the keeper goes.
start -n 2 sh -c 'if [ $HEM_RANK = 0 ]; then exec "$1" leave; fi; exec "$1" stay' - "$family"
ready 2
check "rank 0 has not left" until_true 5 eval '[ "$(marked | wc -l)" -eq 15 ]'
kill -9 "$(keeper_of "$front")"
finish
left_nothing "orphans, and the keeper is killed"

# Behind shells, which the kernel kills while it knows nothing of the program behind them.
start -n 2 sh -c '"$1" stay; true' - "$family"
ready 2
kill -9 "$(keeper_of "$front")"
finish
left_nothing "behind shells, the keeper is killed"
start -n 2 sh -c '"$1" stay; true' - "$family"
ready 2
kill -9 "$front"
finish
left_nothing "behind shells, the front is killed"

# With tagged output, whose pipes the children hold.
start -n 2 --tag-output "$family" stay
ready 2
kill -9 "$(rank_pid "$(keeper_of "$front")" 1)"
finish
code_is 137 "tagged"
left_nothing "tagged"

# A launcher inside of a rank.
start -n 2 "$HEM" run -n 2 "$family" stay
ready 4
kill -9 "$front"
finish
left_nothing "nested, the outer front is killed"

# At any moment: while it starts, while it runs, while it ends.
rounds=30
[ "${HEM_SOAK:-0}" = 0 ] || rounds=1000
for ((round = 0; round < rounds; round++)); do
    case $((round % 3)) in
    0) start -n 4 "$family" stay ;;
    1) start -n 4 "$family" leave ;;
    2) start -n 4 --tag-output sh -c '"$1" leave; sleep 0.01' - "$family" ;;
    esac
    sleep "0.0$((RANDOM % 60 + 10))"
    # The job may be over by now.
    if [ $((RANDOM % 2)) = 0 ]; then
        kill -9 "$front" 2>/dev/null || true
    else
        keeper=$(keeper_of "$front" || true)
        [ -z "$keeper" ] || kill -9 "$keeper" 2>/dev/null || true
        # What the first blow has not ended, the second one does.
        sleep 0.02
        kill -TERM "$front" 2>/dev/null || true
    fi
    finish
    left_nothing "round $round"
done
summary
