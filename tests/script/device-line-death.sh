#!/bin/bash
# hem-test: timeout=120 labels=processes
#
# A process dies whose neighbours on a line wait for its device memory: they hear of it, and the
# survivors go on with a new line. The checks themselves are in tests/device/line_death_test.c.
# shellcheck source=tests/script/death.bash
. "${HEM_SOURCE:?the source folder}/tests/script/death.bash"

# In cases 8 and 11 a kernel of the victim runs when it is killed. Under MPS CUDA promises nothing then,
# and the survivors' next calls fail (docs/gpu.md).
cases_here="1 4 6 7 8 9 10 11"
if [ "${HEM_TEST_DEVICE:-standin}" = gpu ] && [ -n "${CUDA_MPS_PIPE_DIRECTORY:-}" ]; then
    cases_here="1 4 6 7 9 10"
fi
for ranks in 2 3 5; do
    for case in $cases_here; do
        victim=$((case % ranks))
        device_death $ranks $victim line_death "HEM_TEST_CASE=$case"
    done
done

finish
