#!/usr/bin/env bash
# hem-test: timeout=60
# hem run on a terminal: Ctrl-C reaches each rank once, Ctrl-Z stops and fg continues the job, a
# terminal that goes away ends it.
# shellcheck disable=SC1091,SC2016,SC2154
source "$(dirname "$0")/common.bash"

if ! command -v python3 >/dev/null; then
    echo "skipped: a terminal is made with python3, which is not there"
    exit 77
fi

cat >"$dir/terminal.py" <<'PYTHON'
"""terminal.py keys|stop|close HEM ARGS...: run it on a terminal of its own and act on that."""
import os, pty, select, signal, sys, time

def read_until(fd, word, count, seconds=20):
    text = b""
    end = time.monotonic() + seconds
    while text.count(word) < count:
        left = end - time.monotonic()
        assert left > 0, text
        if select.select([fd], [], [], left)[0]:
            text += os.read(fd, 65536)
    return text

# A shell stands between, as people have it: the terminal is its own, the job is a group of its own.
how, command = sys.argv[1], sys.argv[2:]
shell, terminal = pty.fork()
if shell == 0:
    job = os.fork()
    if job == 0:
        os.setpgid(0, 0)
        signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        os.tcsetpgrp(0, os.getpid())
        signal.signal(signal.SIGTTOU, signal.SIG_DFL)
        os.execv(command[0], command)
    while True:
        _, status = os.waitpid(job, os.WUNTRACED)
        if os.WIFSTOPPED(status):
            print(f"\nstopped {job}", flush=True)
            time.sleep(0.5)
            os.kill(-job, signal.SIGCONT)
            continue
        code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)
        print(f"\ncode {code}", flush=True)
        os._exit(code)

text = read_until(terminal, b"ready", 2)
if how == "keys":
    os.write(terminal, b"\x03")
elif how == "stop":
    os.write(terminal, b"\x1a")
    text += read_until(terminal, b"stopped", 1)
if how == "close":
    # The shell dies of it, and the kernel tells the job.
    os.close(terminal)
else:
    text += read_until(terminal, b"code ", 1)
    sys.stdout.write(text.decode().replace("\r", ""))
_, status = os.waitpid(shell, 0)
sys.exit(os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status))
PYTHON

# terminal HOW ARGS...
terminal() {
    local how=$1
    shift
    code=0
    env "$mark" timeout -s KILL 40 python3 "$dir/terminal.py" "$how" "$HEM" run "$@" \
        >"$dir/out" 2>"$dir/err" || code=$?
}

terminal keys -n 2 "$programs/interrupted"
code_is 130 "Ctrl-C"
check "Ctrl-C: not once in each rank" lines_are "$dir/out" 'got 1$' 2
out_says '^hem run: ended by signal 2 \(Interrupt\)' "Ctrl-C"
left_nothing "Ctrl-C"

terminal stop -n 2 sh -c 'echo ready; sleep 0.3; exit 0'
code_is 0 "Ctrl-Z"
out_says '^stopped [0-9]+' "Ctrl-Z"
left_nothing "Ctrl-Z"

terminal close -n 2 sh -c 'echo ready; while :; do sleep 0.05; done'
code_is 129 "a terminal that goes away"
left_nothing "a terminal that goes away"
summary
