#!/bin/bash
# hem-test: timeout=400 labels=kill
#
# The kill campaign. A rank is killed with SIGKILL at a numbered schedule point of an operation (put,
# put_signal, waits, flush, barrier, window create and destroy, split, shrink, open, close), or at a
# random moment by another process; under the launcher, and without it over an all-gather. Every
# survivor learns of it within 50 ms, agrees with the others on what became of a collective call,
# shrinks its world, goes on in it and closes. Nobody is told of a death that has not happened; a
# rank that is merely stopped is waited for. Either process of the launcher is killed, too. After each
# round no process is left, and in the end no file and no socket. A round is judged by
# tests/kill/campaign, which prints the command that repeats one that failed.
#
# HEM_SEED=n makes the same choices again. HEM_SOAK=1 visits every point and thousands of moments.
set -u
hem=${HEM:?the command to test}
programs=${HEM_BUILD:?the build folder}/tests/kill
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# A sanitizer makes processes slow to start, to end and to wake up.
if [ -n "${HEM_TEST_SANITIZE:-}" ]; then
    export HEM_TEST_DEATH_MS=${HEM_TEST_DEATH_MS:-500}
fi

"$programs/campaign" "$hem" "$programs/rank" "$folder"
