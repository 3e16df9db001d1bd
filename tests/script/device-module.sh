#!/usr/bin/env bash
# hem-test: timeout=60 labels=source
# Where the module for GPUs is looked for, and what is said if it is missing or broken: an outside
# program asks for its GPU with different files beside the library.
set -euo pipefail
: "${HEM_SOURCE:?}" "${HEM_BUILD:?}"
cc=${HEM_TEST_CC:-cc}
unset HEM_DEVICE_MODULE

if [ -n "${HEM_TEST_SANITIZE:-}" ]; then
    echo "skipped: an outside program does not know of the sanitizers"
    exit 77
fi

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/lib" "$dir/apart"
cp "$HEM_BUILD"/libhem.so.0.* "$dir/lib/libhem.so.0"
ln -s libhem.so.0 "$dir/lib/libhem.so"
cat >"$dir/ask.c" <<'C'
#include <hem/cuda.h>
#include <stdio.h>

static int ask(hem_world *world, void *arg) {
    hem_device_facts facts = {.struct_size = sizeof facts};
    hem_status status = hem_device_open(world, &facts);
    (void)arg;
    printf("%s %s\n", hem_status_name(status), status == HEM_OK ? facts.name : hem_last_error());
    return hem_world_close(world);
}

int main(void) {
    return hem_world_threads(1, ask, NULL, NULL) != HEM_OK;
}
C
cat >"$dir/module.c" <<'C'
const void *hemi_device_module_get(void);
const void *hemi_device_module_get(void) {
    static const unsigned newer[64] = {4711};
    return newer;
}
C
"$cc" -std=c11 -I"$HEM_SOURCE/include" -o "$dir/ask" "$dir/ask.c" -L"$dir/lib" -lhem
"$cc" -shared -fPIC -o "$dir/apart/libhem_cuda.so" "$dir/module.c"

# says PART SETTINGS...: the program says this with these settings.
says() {
    local part=$1 output
    output=$(env LD_LIBRARY_PATH="$dir/lib" "${@:2}" "$dir/ask")
    if [[ $output != *"$part"* ]]; then
        echo "with ${*:2}: not \"$part\" but: $output"
        exit 1
    fi
    echo "$output"
}

says 'neither beside this library nor where the loader looks'
says 'HEM_ERR_UNSUPPORTED HEM_DEVICE_MODULE names' HEM_DEVICE_MODULE="$dir/none.so"
says 'version 4711' HEM_DEVICE_MODULE="$dir/apart/libhem_cuda.so"
says 'version 4711' LD_LIBRARY_PATH="$dir/lib:$dir/apart"
cp "$dir/apart/libhem_cuda.so" "$dir/lib"
says "$dir/lib/libhem_cuda.so has version 4711"
echo nonsense >"$dir/lib/libhem_cuda.so"
says 'cannot be opened'
# What is beside the library is meant, also if the loader would find a better one.
says 'cannot be opened' LD_LIBRARY_PATH="$dir/apart:$dir/lib"
