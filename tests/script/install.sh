#!/usr/bin/env bash
# hem-test: timeout=180 labels=source
# A project outside the tree builds and runs against an installed copy, by way of pkg-config and by
# way of find_package, in C and in C++, with the shared library and with the static one.
set -euo pipefail
: "${HEM_SOURCE:?}" "${HEM_BUILD:?}"
project=$HEM_SOURCE/tests/install
cc=${HEM_TEST_CC:-cc}
unset DESTDIR MAKEFLAGS

if [ -n "${HEM_TEST_SANITIZE:-}" ]; then
    echo "skipped: an outside project does not know of the sanitizers"
    exit 77
fi

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
say() { echo "--- $*"; }

say "staged with DESTDIR"
DESTDIR=$dir/stage cmake --install "$HEM_BUILD" --prefix /opt/hem >/dev/null
mv "$dir/stage/opt/hem" "$dir/prefix"
prefix=$dir/prefix
for file in bin/hem include/hem/hem.h lib/libhem.a lib/libhem.so lib/libhem.so.0 \
    lib/pkgconfig/hem.pc lib/cmake/hem/hemConfig.cmake; do
    [ -e "$prefix/$file" ] || { echo "$file was not installed"; exit 1; }
done
"$prefix/bin/hem" info >/dev/null
if grep -rIl -e "$HEM_SOURCE" -e "$HEM_BUILD" "$prefix"; then
    echo "installed files name the source or build folder"
    exit 1
fi

have_cxx=0
if command -v c++ >/dev/null; then have_cxx=1; fi

# runs PROGRAM: alone, and as a job of two ranks.
runs() {
    LD_LIBRARY_PATH=$prefix/lib "$1"
    LD_LIBRARY_PATH=$prefix/lib "$prefix/bin/hem" run -n 2 --timeout 30 "$1"
}

say "pkg-config"
export PKG_CONFIG_PATH=$prefix/lib/pkgconfig
read -ra flags < <(pkg-config --cflags --libs hem)
read -ra static_flags < <(pkg-config --cflags --libs hem hwloc)
"$cc" -std=c11 -o "$dir/pc_c" "$project/main.c" "${flags[@]}"
runs "$dir/pc_c"
cp "$prefix/lib/libhem.a" "$dir/libhem.a"
"$cc" -std=c11 -o "$dir/pc_static" "$project/main.c" -L"$dir" "${static_flags[@]}" -pthread
if readelf -d "$dir/pc_static" | grep -q 'libhem\.so'; then
    echo "the static program still needs libhem.so"
    exit 1
fi
"$dir/pc_static"
if [ $have_cxx = 1 ]; then
    c++ -std=c++17 -o "$dir/pc_cxx" "$project/main.cpp" "${flags[@]}"
    runs "$dir/pc_cxx"
fi

say "find_package"
cmake -S "$project" -B "$dir/build" -G "Unix Makefiles" --log-level=NOTICE \
    -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_C_COMPILER="$cc" -DWITH_CXX=$have_cxx
cmake --build "$dir/build"
runs "$dir/build/main_c"
"$dir/build/main_static"
if [ $have_cxx = 1 ]; then
    runs "$dir/build/main_cxx"
else
    echo "skipped: no C++ compiler, only C was tried"
    exit 77
fi
