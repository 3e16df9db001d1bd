# What the scripts about deaths share; they source it.
#
# A rank of a program under the launcher dies, which ends the job, so that every survivor must have
# said that it survived.
# shellcheck shell=bash
set -u
# A rank that ends without closing its world leaves its handles behind; that is what is tested here.
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0"
hem=${HEM:?the command to test}
programs=${HEM_BUILD:?the build folder}/tests
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=0
cases=0
late=0 # cases in which a death was not known within the limit, but soon after
settings=() # of the environment, for the next deaths
grace=5000  # milliseconds that the survivors have
code=0      # of the last job

complain() {
    echo "FAILED: $1"
    sed 's/^/  out: /' "$folder/out"
    sed 's/^/  err: /' "$folder/err"
    failed=$((failed + 1))
}

# run_job RANKS PROGRAM ARGUMENTS...: its exit code is `code`.
run_job() {
    cases=$((cases + 1))
    timeout 60 env "${settings[@]}" "$hem" run --grace "$grace" --timeout 50 -n "$1" \
        "$programs/$2" "${@:3}" >"$folder/out" 2>"$folder/err"
    code=$?
    if grep -q '^late: ' "$folder/err"; then
        grep '^late: ' "$folder/err"
        late=$((late + 1))
    fi
}

# death RANKS VICTIM CODE PROGRAM ARGUMENTS...: false if it has complained.
death() {
    local wanted
    run_job "$1" "$4" "${@:5}"
    if [ $code -eq 77 ]; then # what it needs is not here
        grep -m 1 skipped "$folder/err"
        exit 77
    fi
    wanted=$(for ((rank = 0; rank < $1; rank++)); do
        ((rank == $2)) || echo "survived $rank"
    done)
    if [ "$(sort "$folder/out")" != "$wanted" ]; then
        complain "$*: not all survived"
        return 1
    elif [ $code -ne "$3" ]; then
        complain "$*: exit code $code, not $3"
        return 1
    fi
}

# device_death RANKS VICTIM NAME SETTINGS...: the victim of a test of tests/device is killed, with the
# stand-in as its device, or on a GPU with HEM_TEST_DEVICE=gpu. Without one the script is skipped.
device_death() {
    local program=device_$3
    settings=(HEM_TEST_DIE=kill "HEM_TEST_VICTIM=$2" "${@:4}")
    if [ "${HEM_TEST_DEVICE:-standin}" = gpu ]; then
        program=../gpu/gpu_$3
        grace=20000
    else
        settings+=("HEM_DEVICE_MODULE=$programs/libhem_standin.so")
    fi
    death "$1" "$2" 137 "$program"
}

# kills RUN KIND: in a soak, `RUN KIND RANKS VICTIM kill 137` for more ranks and victims.
kills() {
    local ranks victim
    [ "${HEM_SOAK:-0}" != 0 ] || return 0
    for ranks in 2 3 5 8; do
        for victim in 0 $((ranks - 1)); do
            "$1" "$2" $ranks $victim kill 137
        done
    done
}

# One death, and one in fifty, may have been known late: on a busy machine a process waits for its turn.
finish() {
    echo "$cases cases, $failed failed, $late late"
    if [ $late -gt $((cases / 50 + 1)) ]; then
        echo "FAILED: too many were late"
        failed=$((failed + 1))
    fi
    [ $failed -eq 0 ]
}
