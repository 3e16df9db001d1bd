#!/usr/bin/env bash
# hem-test: timeout=60 labels=source
# The source keeps the rules of its rooms, and dev/check-layers sees each rule broken.
set -euo pipefail
source_dir=${HEM_SOURCE:-$(dirname "$0")/../..}
check=$source_dir/dev/check-layers

"$check" "$source_dir"

tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT

# file PATH LINE...: writes a file of the small tree.
file() {
    mkdir -p "$tree/$(dirname "$1")"
    printf '%s\n' "${@:2}" >"$tree/$1"
}

file include/hem/world.h '#include <stdint.h>'
file src/base/atomic.h '/* nothing'
file src/base/platform.c '#include <time.h>' 'int now(void) { return clock_gettime(0, 0); }'
file src/core/wait.h '#include "base/atomic.h"'
file include/hem/device/word.h 'int now(void) { return clock_gettime(0, 0); }'
file src/device/device.h '#include "core/wait.h"'
file src/device/kernels/put.h '#include <hem/device/word.h>'
file src/device/standin/run.h '#include "device/device.h"'
file src/device/standin/run.c '#include "run.h"' '#include "device/kernels/put.h"' \
    'int nap(void) { return nanosleep(0, 0); }'
file src/transport/transport.h '#include "core/wait.h"' '#include "device/device.h"'
file src/transport/shm/shm.h '#include "transport/transport.h"'
file src/transport/shm/shm.c '#include "transport/shm/shm.h"' '#include "shm.h"'
file src/transport/select.c '#include "transport.h"' '#include <hem/world.h>'
file src/window/put.c '#include "transport/transport.h"' \
    '/* A comment may speak of a futex' '   and of getenv(). */' 'char s[] = "clock_gettime";'
file src/hem.c '#include "transport/shm/shm.h"' '#include "window/put.h"'
file src/window/put.h ''

"$check" "$tree" || { echo "a good tree was refused"; exit 1; }

# refused SENTENCE PATH LINE...: the tree with this one file more must be refused with the sentence.
refused() {
    local sentence=$1 output
    shift
    file "$@"
    if output=$("$check" "$tree"); then
        echo "not refused: $*"
        exit 1
    fi
    if [[ $output != *"$sentence"* ]]; then
        printf 'refused with the wrong sentence: %s\n%s\n' "$*" "$output"
        exit 1
    fi
    rm "$tree/$1"
    echo "refused as it should be: $sentence"
}

refused 'base may not include core/wait.h' src/base/bad.c '#include "core/wait.h"'
refused 'base may not include core/wait.h' src/base/bad.h '#  include <core/wait.h>'
refused 'core may not include transport/transport.h' src/core/bad.c '/* x */ #include "../transport/transport.h"'
refused 'transport may not include window/put.h' src/transport/self/bad.c '#include "window/put.h"'
refused 'core may not include device/device.h' src/core/bad.c '#include "device/device.h"'
refused 'is inside of a device module' src/device/bad.c '#include "device/standin/run.h"'
refused 'is inside of a device module' src/window/bad.c '#include "device/standin/run.h"'
refused 'is inside of a device module' src/device/cuda/bad.h '#include "../standin/run.h"'
refused 'the body of a kernel may not include device/device.h' src/device/kernels/bad.h \
    '#include "device/device.h"'
refused 'nanosleep goes through' src/device/bad.c 'int f(void) { return nanosleep(0, 0); }'
refused 'is a concrete transport' src/window/bad.c '#include "transport/shm/shm.h"'
refused 'is a concrete transport' src/transport/bad.c '#include "shm/shm.h"'
refused 'is a concrete transport' src/transport/self/bad.c '#include "../shm/shm.h"'
refused 'attic is no room' src/attic/bad.c '#include "base/atomic.h"'
refused 'is not in src/ or include/' src/base/bad.c '#include "tools/hem/run.h"'
refused 'is not in src/ or include/' src/base/bad.c '#include "../../tests/rank/harness.h"'
refused 'includes the private' include/hem/bad.h '#include "base/atomic.h"'
refused 'does not know MPI' src/core/bad.c '#include <mpi.h>'
refused 'called cuda' src/core/bad.c '#include <cuda_runtime.h>'
refused 'called ucx' src/core/bad.c '#include <ucp/api/ucp.h>'
for call in clock_gettime nanosleep sched_yield getenv getrandom; do
    refused "$call goes through" src/core/bad.c '/* no */' "int f(void) { return $call(0); }"
done
refused 'SYS_futex goes through' src/base/bad.c 'long f(int *p) { return syscall(SYS_futex, p); }'
