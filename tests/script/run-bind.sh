#!/usr/bin/env bash
# hem-test: timeout=60
# hem run --bind: one core for each rank while there are enough, and no binding otherwise.
# shellcheck disable=SC1091,SC2016,SC2154
source "$(dirname "$0")/common.bash"

usable=$(nproc)
cores_of_rank() { sed -n "s/^$1 .*list: *//p" "$dir/out"; }
show='echo "$HEM_RANK $(taskset -cp $$)"'
run -n 1 --bind core sh -c 'echo "$HEM_RANK $(taskset -cp $$)"'
code_is 0 "one rank"
if [ "$usable" -ge 2 ]; then
    run -n 2 sh -c "$show"
    code_is 0 "two ranks"
    check "two ranks: both have a list" lines_are "$dir/out" list 2
    check "two ranks: not on cores of their own" [ "$(cores_of_rank 0)" != "$(cores_of_rank 1)" ]
    # Within what we may use ourselves.
    code=0
    first=$(taskset -cp $$ | sed 's/.*: *//; s/[-,].*//')
    env "$mark" taskset -c "$first" "$HEM" run -n 1 --bind core sh -c "$show" >"$dir/out" 2>"$dir/err" || code=$?
    code_is 0 "restricted"
    check "restricted: not on core $first" [ "$(cores_of_rank 0)" = "$first" ]
fi
all=$(taskset -cp $$ | sed 's/.*: *//')
run -n 1 --bind none sh -c "$show"
check "--bind none: bound" [ "$(cores_of_rank 0)" = "$all" ]
run -n $((usable + 1)) sh -c "$show"
code_is 0 "more ranks than cores"
check "more ranks than cores: bound" [ "$(cores_of_rank "$usable")" = "$all" ]
run -n $((usable + 1)) --bind core sh -c "$show"
code_is 2 "more ranks than cores, bound"
err_lines 1 "more ranks than cores, bound"
last_says "^hem run: --bind core: $((usable + 1)) ranks are more than the cores" "more ranks than cores, bound"
summary
