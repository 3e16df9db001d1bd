#!/usr/bin/env bash
# hem-test: timeout=180
# The demo: without a terminal a few plain lines and a PNG that decodes, with one a live picture;
# the same bits at any number of ranks; a clear refusal of what it cannot do.
set -euo pipefail
: "${HEM:?}" "${HEM_BUILD:?}"
heat=$HEM_BUILD/examples/heat

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

fail() {
    echo "$*"
    cat output errors
    exit 1
}

# demo RANKS OPTION...: runs it; the lines it prints are in the files `output` and `errors`.
demo() {
    "$HEM" run -n "$1" --timeout 60 "$heat" "${@:2}" >output 2>errors </dev/null
}

# decodes FILE WIDTH HEIGHT: all of it, with Python's zlib; without Python only its beginning.
decodes() {
    if ! command -v python3 >/dev/null; then
        echo "python3 is not there: of $1 only the signature is checked"
        [ "$(head -c 8 "$1" | od -An -tx1 | tr -d ' \n')" = 89504e470d0a1a0a ]
        return
    fi
    python3 - "$@" <<'PYTHON'
import struct, sys, zlib

path, width, height = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
data = open(path, "rb").read()
assert data[:8] == b"\x89PNG\r\n\x1a\n", "the signature"
chunks, at = {}, 8
while at < len(data):
    length, kind = struct.unpack(">I4s", data[at : at + 8])
    body = data[at + 8 : at + 8 + length]
    (crc,) = struct.unpack(">I", data[at + 8 + length : at + 12 + length])
    assert crc == zlib.crc32(kind + body), f"the checksum of {kind}"
    chunks[kind] = body
    at += 12 + length
assert list(chunks) == [b"IHDR", b"PLTE", b"IDAT", b"IEND"], list(chunks)
assert struct.unpack(">IIBBBBB", chunks[b"IHDR"]) == (width, height, 8, 3, 0, 0, 0)
rows = zlib.decompress(chunks[b"IDAT"])
assert len(rows) == (width + 1) * height, "the number of pixels"
above, seen = bytes(width), set()
for y in range(height):
    row = rows[y * (width + 1) : (y + 1) * (width + 1)]
    assert row[0] == 2, "the filter"
    above = bytes((a + b) % 256 for a, b in zip(row[1:], above))
    seen |= set(above)
assert {0, 239} <= seen and len(seen) > 100, f"only the shades {sorted(seen)}"
PYTHON
}

for ranks in 1 3 4; do
    demo $ranks --size 331x207 --steps 600 --check --png $ranks.png || fail "$ranks ranks: it failed"
    grep -qE '^check +equal to a run on one rank, bit for bit$' output || fail "it did not check"
    grep -qE '^communication +[0-9.]+ us moving edges \([0-9.]+ %\), [0-9.]+ us waiting' output ||
        fail "$ranks ranks: no line on communication"
    if grep -q $'\033' output; then fail "escape sequences without a terminal"; fi
    decodes $ranks.png 331 207 || fail "$ranks.png is no picture"
done

# Edges of one to eight points fit into the cache line of their signal; tiles of one point too.
demo 4 --size 13x7 --steps 300 --check || fail "a small plate failed"
demo 5 --size 5x1 --steps 300 --check || fail "a plate of one point per rank failed"
[ -s heat.png ] || fail "heat.png is not the default"

# refused SENTENCE RANKS OPTION...
refused() {
    if demo "${@:2}"; then fail "not refused: ${*:2}"; fi
    grep -qF -- "$1" errors || fail "another sentence than \"$1\""
}
refused 'too few for 4 ranks' 4 --size 1x3
refused '--size does not take "7"' 2 --size 7
refused 'no/such/folder.png' 2 --size 20x20 --steps 2 --png no/such/folder.png

# The command `script` gives it a terminal.
if command -v script >/dev/null; then
    TERM=xterm-256color COLORTERM=truecolor LC_ALL=C.UTF-8 script -qec \
        "'$HEM' run -n 4 --timeout 60 '$heat' --size 160x90 --steps 40 --check" typescript \
        >output 2>errors </dev/null || fail "it failed on a terminal"
    grep -q $'\033\[38;2;[0-9;]*m' output || fail "no colours on a terminal"
    grep -q '100 %' output || fail "no progress bar on a terminal"
    [ "$(grep -oE $'\033\\[\\?25[hl]' output | tail -n 1)" = $'\033[?25h' ] || fail "no cursor"
fi
