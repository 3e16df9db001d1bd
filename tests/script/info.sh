#!/usr/bin/env bash
# hem-test: timeout=60
# hem info, hem help, hem --version and words that are no command.
# shellcheck disable=SC1091,SC2016,SC2154
source "$(dirname "$0")/common.bash"

version=$(sed -n 's/#define HEM_VERSION_[A-Z]* //p' "$HEM_SOURCE/include/hem/hem.h" | paste -sd .)
# hem ARGS...: leaves $code, $dir/out and $dir/err.
hem() {
    code=0
    timeout 30 "$HEM" "$@" >"$dir/out" 2>"$dir/err" || code=$?
}

hem info
code_is 0 "info"
check "info: version" [ "$(head -n 1 "$dir/out")" = "hem $version" ]
for pattern in 'compiler +(gcc|clang) [0-9]' 'assertions +(on|off)' 'cores +[1-9]' 'processors +[1-9]' \
    'L1d +[0-9]+ x [0-9]+ KiB' 'NUMA node 0 +[0-9.]+ [GMT]iB' 'self +usable' 'shm +usable' 'memfd +works' \
    'membarrier +' 'process_vm_readv +' 'cuda +not usable: libhem_cuda.so is not there' \
    'ucx +not usable: libhem_ucx.so is not there' 'HEM_SPIN +not set \('; do
    case $pattern in
    # What the machine may lack, or the test does not control.
    L1d* | NUMA*) grep -qE "^ +${pattern%% *}" "$dir/out" || continue ;;
    cuda*) [ ! -e "$HEM_BUILD/libhem_cuda.so" ] || continue ;;
    ucx*) [ ! -e "$HEM_BUILD/libhem_ucx.so" ] || continue ;;
    esac
    out_says "^ +$pattern" "info"
done
# Every variable that the library reads is explained.
for name in $(grep -rhoE '"HEM_[A-Z_]+"' "$HEM_SOURCE/src" --include='*.c' --exclude='*_test.c' | tr -d '"' | sort -u); do
    case $name in HEM_ERR_* | HEM_OK | HEM_MEMORY_*) continue ;; esac
    out_says "^ +$name +" "info"
done
HEM_SPIN=123 hem info
out_says '^ +HEM_SPIN +123$' "info shows values"

hem info --json
code_is 0 "info --json"
if command -v python3 >/dev/null; then
    check "info --json: no JSON" python3 -m json.tool "$dir/out" /dev/null
    check "info --json: wrong" python3 - "$dir/out" "$version" "$(nproc)" <<'PYTHON'
import json, sys
info = json.load(open(sys.argv[1]))
assert info["version"] == sys.argv[2], info["version"]
assert info["machine"]["processors"] == int(sys.argv[3]), info["machine"]
assert info["transports"]["self"]["usable"] is True
assert info["transports"]["shm"] == {"usable": True, "why_not": None}
for what in list(info["kernel"].values()) + list(info["modules"].values()):
    assert what["usable"] == (what["why_not"] is None), what
names = [e["name"] for e in info["environment"]]
assert "HEM_ARENA_SIZE" in names and len(names) == len(set(names)), names
assert all(e["meaning"] and e["default"] for e in info["environment"])
PYTHON
    HEM_SPIN=$(printf '"\\\n\377\303\251') hem info --json
    check "info --json: odd values" python3 -m json.tool "$dir/out" /dev/null
else
    echo "left out: JSON, there is no python3"
fi
hem info extra
code_is 2 "info extra"
hem info --what
code_is 2 "info --what"

for word in --version version -V; do
    hem $word
    code_is 0 "hem $word"
    check "hem $word" [ "$(cat "$dir/out")" = "hem $version" ]
done
for word in help --help -h; do
    hem $word
    code_is 0 "hem $word"
    for command in run ps info draw bench; do out_says "^  $command +[a-z]" "hem $word"; done
done
for command in run ps info draw bench; do
    hem help $command
    code_is 0 "hem help $command"
    out_says "^[Uu]sage: hem $command" "hem help $command"
    cp "$dir/out" "$dir/want"
    hem $command --help
    check "hem $command --help differs" cmp "$dir/want" "$dir/out"
done
hem
code_is 2 "hem alone"
err_says '^Usage: hem COMMAND' "hem alone"
hem rnu
code_is 2 "hem rnu"
check "hem rnu" [ "$(cat "$dir/err")" = 'hem: there is no command "rnu". Did you mean "hem run"?' ]
hem inof
err_says 'Did you mean "hem info"' "hem inof"
hem xyzzyxyzzyxyzzyxyzzyxyzzyxyzzyxyzzy
code_is 2 "a word that is nothing"
err_says 'hem help lists them' "a word that is nothing"
hem help nothing
code_is 2 "help for nothing"
code=0
"$HEM" info >/dev/full 2>"$dir/err" || code=$?
code_is 1 "a full disk"
summary
