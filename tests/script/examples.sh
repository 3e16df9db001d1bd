#!/usr/bin/env bash
# hem-test: timeout=240
# The collectives written by hand give the right result in every round, at any number of ranks, and
# so do the example of what goes on by itself and the one of rolling windows.
# 17 is more than a barrier serves without counts.
# shellcheck disable=SC1091,SC2154
source "$(dirname "$0")/common.bash"

# says NAME RANKS: one line, which gives the number of ranks, and nothing else.
says() {
    local what='(1000 rounds of [0-9]+ numbers|500 steps of [0-9]+ points) each'
    local rolling='[0-9]+ rows, windows of [0-9]+: [0-9]+ hops [0-9]+ us, planned in [0-9]+ us, run'
    what="($what|$rolling in [0-9]+ us)"
    out_says "^$1 +$2 ranks, $what: all as they should be\$" "$1, $2"
    check "$1, $2 ranks: not one line" [ "$(wc -l <"$dir/out")" -eq 1 ]
    err_lines 0 "$1, $2 ranks"
}

for name in all-gather reduce-scatter all-reduce async rolling; do
    program=${name//all-/all}
    program=$HEM_BUILD/examples/${program//-/_}
    for ranks in 1 2 3 4 5 8 17; do
        run -n $ranks --timeout 30 "$program"
        code_is 0 "$name, $ranks ranks"
        says $name $ranks
    done
    code=0
    "$program" >"$dir/out" 2>"$dir/err" || code=$?
    code_is 0 "$name without the launcher"
    says $name 1
done

# A halo exchange: a rank that is its own neighbour, one that is on both sides, and several.
for ranks in 1 2 3 4 5 8 17; do
    run -n $ranks --timeout 30 "$HEM_BUILD/examples/halo"
    code_is 0 "halo, $ranks ranks"
    out_says "^halo +$ranks ranks, 200 steps of 120 x 180 points: all as they should be\$" halo
    err_lines 0 "halo, $ranks ranks"
done

# A mesh: both formats, with more ranks than send directly in its set-up.
for file in plate plate-2; do
    for ranks in 1 2 3 5 17; do
        run -n $ranks --timeout 30 "$HEM_BUILD/examples/mesh" "$HEM_SOURCE/examples/data/$file.msh"
        code_is 0 "mesh $file, $ranks ranks"
        out_says "^mesh $ranks ranks, 100 steps of 229 points: all as they should be\$" "mesh $file"
        err_lines 0 "mesh $file, $ranks ranks"
    done
done
run -n 2 --timeout 30 "$HEM_BUILD/examples/mesh" "$HEM_SOURCE/examples/mesh.c"
code_is 1 'a mesh that is none'
err_says 'mesh.c: it is no file of Gmsh' 'a mesh that is none'
summary
