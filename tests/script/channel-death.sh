#!/bin/bash
# hem-test: timeout=240 labels=processes
#
# A process that dies is noticed by its peers within 50 ms, whatever they wait in on a channel and
# in the middle of large messages, too; they go on without it. The checks themselves are in
# tests/rank/channel_death_test.c: here they run under the launcher, where every survivor must have
# said that it survived.
# shellcheck source=tests/script/death.bash
. "${HEM_SOURCE:?the source folder}/tests/script/death.bash"

# one KIND RANKS VICTIM MANNER CODE
one() { death "$2" "$3" "$5" rank_channel_death "$1" "$3" "$4"; }

for kind in recv send full sendrecv op test all any persistent callback prepare mid-recv mid-send; do
    one $kind 2 1 kill 137
    one $kind 3 0 exit 3
    kills one $kind
done
for kind in send sendrecv mid-recv mid-send; do
    for copy in single staged; do
        settings=("HEM_CHANNEL_COPY=$copy")
        one $kind 2 0 kill 137
    done
done

finish
