#!/usr/bin/env bash
# hem-test: timeout=300
# hem bench: every benchmark of messages, collectives, halos and lines gives a line for each memory
# and size at 2 and 3 ranks, with every payload checked; bad usage is refused.
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
refused 'dims takes 2 or 3' grid --dims 4
refused 'halo takes 1, 2 or 3' mesh --halo 0
refused 'fields takes a number' grid --fields 17
refused 'pattern takes mesh or grid' pattern-setup --pattern sphere
refused 'grid has no --levels' grid --levels 2
refused 'mesh has no --dims' mesh --dims 2
refused 'line has no --pattern' line --pattern grid
refused 'dimension that the grid does not have' grid --dims 2 --axis 2
refused 'as long as the halo' grid --sizes 2 --halo 3
refused '256 to 100M points' mesh --sizes 100
refused 'one number of ranks' grid -n 2,4
refused 'takes a value' grid --halo
refused 'from 1 to 64' gpu-put --blocks 4,65
refused 'for benchmarks on GPUs' put --blocks 4
refused '2 ranks only' gpu-sendrecv -n 3

bench --help
code_is 0 'help'
for kind in raw signal put get barrier sendrecv sendrecv-ring allreduce allgather reduce-scatter \
    alltoall bcast sparse grid mesh line rolling pattern-setup stream gpu-signal \
    gpu-put gpu-sendrecv gpu-exchange gpu-allreduce gpu-allgather tune; do
    out_says "^  $kind " 'help'
done

# Without a GPU, or without what measures on one, there is a reason instead of a number.
bench gpu-signal --sizes 8 --repeat 1
if [ "$code" -ne 0 ]; then
    code_is 1 'gpu-signal'
    out_says '^hem: not measured, ' 'gpu-signal'
fi
left_nothing 'gpu-signal'

if [ ! -x "$HEM_BUILD/bench/hem-bench-hem" ]; then
    echo 'the benchmarks are not built: nothing was measured'
    summary
    exit
fi

# measured ARGS...: without peers. With a busy machine a size may have no undisturbed moment, and then no line; an
# error would have an exit code or a note. Without any line the exit code is 1, and it is tried again.
measured() {
    for _ in 1 2 3; do
        bench "$@" --repeat 1 --peers none --json
        if [ "$code" -ne 1 ] || [ -s "$dir/err" ]; then break; fi
    done
}

# measures KIND RANKS: both memories at both sizes.
measures() {
    measured "$1" -n "$2" --sizes 64,40k
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

# shaped PATTERN KIND ARGS...: a line that fits, no note, nothing left behind.
shaped() {
    local pattern=$1
    shift
    measured "$@"
    code_is 0 "$*"
    check "$*: notes" [ ! -s "$dir/err" ]
    out_says "\"bench\":\"$1\",$pattern" "$*"
    left_nothing "$*"
}

for n in 2 3; do
    shaped "\"impl\":\"hem(-lib)?\",\"ranks\":$n,\"bytes\":(5|16),.*\"moved\":" \
        grid -n $n --sizes 5,16 --dims 2 --halo 2 --fields 3 --periodic
    shaped "\"impl\":\"hem(-lib)?\",\"ranks\":$n,\"bytes\":8,.*\"moved\":" \
        grid -n $n --sizes 8 --halo 3 --fields 16 --axis 2
    shaped "\"impl\":\"hem(-lib)?\",\"ranks\":$n,\"bytes\":(400|3001),.*\"moved\":" \
        mesh -n $n --sizes 400,3001 --halo 2 --fields 2 --levels 3
    shaped "\"impl\":\"hem(-lib)?\",\"ranks\":$n,\"bytes\":(1|40960),.*\"moved\":" \
        line -n $n --sizes 1,40k
    shaped "\"impl\":\"hem-hops\",\"ranks\":$n,\"bytes\":(3|1000),.*\"moved\":" \
        rolling -n $n --sizes 3,1000 --hops 2
done
shaped '"impl":"hem-(asleep|finish)","ranks":2,"bytes":8,' stream --sizes 8
for pattern in mesh grid; do
    shaped '"impl":"hem-threads","ranks":5,"bytes":300,.*"messages":[0-9]+,"peak":[0-9]+}' \
        pattern-setup --pattern $pattern -n 3,5 --sizes 300
done

summary
