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
sanitize=${HEM_TEST_SANITIZE:-}
failed=0
cases=0
turn=0

# one RANKS NAME=VALUE...: as threads and as processes; with a sanitizer the two take turns.
one() {
    local ranks=$1
    shift
    turn=$((turn + 1))
    if [ -z "$sanitize" ] || [ $((turn % 2)) = 0 ]; then
        cases=$((cases + 1))
        env "$@" timeout 100 "$program" --threads "$ranks" >"$out" 2>&1 ||
            complain "$ranks threads" "$@"
    fi
    if [ -z "$sanitize" ] || [ $((turn % 2)) = 1 ]; then
        cases=$((cases + 1))
        env "$@" timeout 100 "$hem" run --timeout 90 -n "$ranks" "$program" >"$out" 2>&1 ||
            complain "$ranks processes" "$@"
    fi
}

complain() {
    echo "FAILED: $*"
    head -n 20 "$out" | sed 's/^/  /'
    failed=$((failed + 1))
}

all="2 3"
[ -z "$sanitize" ] || all=3
for ranks in $all; do
    one "$ranks" HEM_COLL_BYTES=4096
    one "$ranks" HEM_COLL_BYTES=8192 HEM_CHECK=1
    one "$ranks" HEM_ALGORITHM=allreduce=ring,reduce_scatter=ring,reduce_scatterv=ring
    one "$ranks" HEM_ALGORITHM=allgather=ring,allgatherv=ring,allreduce=doubling,broadcast=tree
    one "$ranks" HEM_ALGORITHM=allgather=doubling,reduce=tree,barrier=dissemination,gather=linear
    one "$ranks" HEM_ALGORITHM=alltoall=pairwise,alltoallv=pairwise,allreduce=pairwise
    one "$ranks" HEM_ALGORITHM=reduce_scatter=pairwise,reduce_scatterv=pairwise,gatherv=linear
    one "$ranks" HEM_ALGORITHM=scatter=linear,scatterv=linear,allreduce=ring \
        HEM_CHANNEL_SLOTS=1 HEM_CHANNEL_BYTES=4096
done

echo "$cases cases, $failed failed"
[ $failed -eq 0 ]
