#!/usr/bin/env bash
# hem-test: timeout=60
# hem run: what ranks write on the control socket. Nonsense is ignored and mentioned once, and only the
# first process that says which rank it is can end that rank.
# shellcheck disable=SC1091,SC2016,SC2154
source "$(dirname "$0")/common.bash"

if ! command -v python3 >/dev/null; then
    echo "skipped: messages are made with python3, which is not there"
    exit 77
fi
cat >"$dir/say.py" <<'PYTHON'
"""say.py VERSION WHAT: write on the control socket as a rank does, or as it should not."""
import array, os, socket, struct, sys, time

version, what = int(sys.argv[1]), sys.argv[2]
rank = int(os.environ["HEM_RANK"])
control = socket.socket(fileno=os.dup(int(os.environ["HEM_CONTROL_FD"])))

def hello(rank=rank, version=version, magic=0x6F6C6C6568):
    return struct.pack("<QII", magic, version, rank)

if what == "nonsense":
    for message in [b"", b"x", hello()[:-1], hello() + b"x", os.urandom(5000), hello(magic=1),
                    hello(version=version + 1), hello(rank=2), hello(rank=0xFFFFFFFF)]:
        control.send(message)
elif what == "descriptors":
    # Whoever attaches descriptors does not use up the launcher's.
    zero = os.open("/dev/zero", os.O_RDONLY)
    for _ in range(3000):
        control.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [zero] * 8))])
    print("ready", flush=True)
    time.sleep(1)
elif what == "impostor":
    control.send(hello())
    if os.fork() == 0:
        control.send(hello())
        os._exit(9)
    os.wait()
    print("ready", flush=True)
    time.sleep(1.5)
elif what == "other":
    # A rank may say that it is another one, but there is one that came first.
    if rank == 1:
        time.sleep(0.5)
        control.send(hello(rank=0))
        os._exit(0)
    control.send(hello())
    print("ready", flush=True)
    time.sleep(1.5)
PYTHON
version=$(sed -n 's/#define HEMI_LAYOUT_VERSION \([0-9]*\).*/\1/p' "$HEM_SOURCE/src/core/layout.h")

run -n 2 python3 "$dir/say.py" "$version" nonsense
code_is 0 "nonsense"
err_lines 1 "nonsense"
last_says '^hem run: ignored a message of the wrong length \(process [0-9]+\)$' "nonsense"

start -n 1 python3 "$dir/say.py" "$version" descriptors
ready 1
check "descriptors: kept" [ "$(find "/proc/$(keeper_of "$front")/fd" -lname '/dev/zero' | wc -l)" -eq 0 ]
finish
code_is 0 "descriptors"

# state_of RANK: as hem ps shows it.
state_of() { "$HEM" ps | awk -v maker="made by process $1\$" -v rank="$2" '$0 ~ maker { mine = 1 } mine && $1 == rank { print $3; exit }'; }
start -n 1 python3 "$dir/say.py" "$version" impostor
ready 1
sleep 0.3
check "impostor: its end was the rank's" [ "$(state_of "$(keeper_of "$front")" 0)" = starting ]
finish
code_is 0 "impostor"
err_lines 1 "impostor"
last_says '^hem run: process [0-9]+ says that it is rank 0, which process [0-9]+ is already$' "impostor"

start -n 2 python3 "$dir/say.py" "$version" other
ready 1
sleep 0.8
check "another's number: its end was the rank's" [ "$(state_of "$(keeper_of "$front")" 0)" = starting ]
finish
code_is 0 "another's number"
left_nothing "another's number"
summary
