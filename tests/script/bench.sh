#!/usr/bin/env bash
# hem-test: timeout=300
# hem bench: every benchmark of messages and collectives gives a line for each memory and size at 2
# and 3 ranks, with every payload checked; bad usage is refused.
# shellcheck disable=SC1091,SC2154
source "$(dirname "$0")/common.bash"

# bench ARGS...: leaves $code, $dir/out and $dir/err.
bench() {
    code=0
    env "$mark" timeout -s KILL 60 "$HEM" bench "$@" </dev/null >"$dir/out" 2>"$dir/err" || code=$?
}

# refused PATTERN ARGS...
refused() {
    local pattern=$1
    shift
    bench "$@"
    code_is 2 "bench $*"
    err_says "$pattern" "bench $*"
}

refused 'which benchmark'
refused 'no benchmark "nothing"' nothing
refused 'one benchmark at a time' barrier put
refused 'no option' barrier --wrong
refused '2 ranks only' signal -n 3
refused 'must be even' sendrecv -n 3
refused 'multiples of 8' allreduce --sizes 12
refused 'multiples of 8' reduce-scatter --sizes 8,9
refused 'no sizes' barrier --sizes 8
refused '2,4,8' tune -n 4,2
refused 'must grow' tune --sizes 64,8
refused 'no option' tune --wrong

bench --help
code_is 0 'help'
for kind in raw signal put get barrier sendrecv sendrecv-ring allreduce allgather reduce-scatter \
    alltoall bcast sparse tune; do
    out_says "^  $kind " 'help'
done

if [ ! -x "$HEM_BUILD/bench/hem-bench-hem" ]; then
    echo 'the benchmarks are not built: nothing was measured'
    summary
    exit
fi

# measures KIND RANKS: both memories at both sizes. With a busy machine a size may have no
# undisturbed moment, and then no line; an error would have an exit code or a note.
measures() {
    bench "$1" -n "$2" --sizes 64,40k --repeat 1 --peers none --json
    code_is 0 "$1 with $2 ranks"
    check "$1 with $2 ranks: notes" [ ! -s "$dir/err" ]
    out_says "\"bench\":\"$1\",\"impl\":\"hem(-lib)?\",\"ranks\":$2,\"bytes\":(64|40960)," "$1"
    left_nothing "$1 with $2 ranks"
}

for kind in sendrecv-ring allreduce allgather reduce-scatter alltoall bcast sparse; do
    measures $kind 2
    measures $kind 3
done
measures sendrecv 2
measures sendrecv 4

summary
