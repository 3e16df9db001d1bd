#!/bin/bash
# hem-test: timeout=240 labels=processes
#
# Collectives give the same bits whichever algorithm does them and however little staging there is:
# the product test of collectives, once for each setting of the environment that changes the way.
set -u
hem=${HEM:?the command to test}
program=${HEM_BUILD:?the build folder}/tests/rank_coll_product
out=$(mktemp)
trap 'rm -f "$out"' EXIT
failed=0
cases=0

# one RANKS NAME=VALUE...
one() {
    local ranks=$1
    shift
    cases=$((cases + 2))
    env "$@" timeout 100 "$program" --threads "$ranks" >"$out" 2>&1 || complain "$ranks threads" "$@"
    env "$@" timeout 100 "$hem" run --timeout 90 -n "$ranks" "$program" >"$out" 2>&1 ||
        complain "$ranks processes" "$@"
}

complain() {
    echo "FAILED: $*"
    head -n 20 "$out" | sed 's/^/  /'
    failed=$((failed + 1))
}

for ranks in 2 3; do
    one $ranks HEM_COLL_BYTES=4096
    one $ranks HEM_COLL_BYTES=8192 HEM_CHECK=1
    one $ranks HEM_ALGORITHM=allreduce=ring,reduce_scatter=ring,reduce_scatterv=ring
    one $ranks HEM_ALGORITHM=allgather=ring,allgatherv=ring,allreduce=doubling,broadcast=tree
    one $ranks HEM_ALGORITHM=allgather=doubling,reduce=tree,barrier=dissemination,gather=linear
    one $ranks HEM_ALGORITHM=alltoall=pairwise,alltoallv=pairwise,allreduce=pairwise
    one $ranks HEM_ALGORITHM=reduce_scatter=pairwise,reduce_scatterv=pairwise,gatherv=linear
    one $ranks HEM_ALGORITHM=scatter=linear,scatterv=linear,allreduce=ring \
        HEM_CHANNEL_SLOTS=1 HEM_CHANNEL_BYTES=4096
done

echo "$cases cases, $failed failed"
[ $failed -eq 0 ]
