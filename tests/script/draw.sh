#!/usr/bin/env bash
# hem-test: timeout=120
# hem draw: pictures of grids and meshes say what the patterns are, in SVG that is well formed, and
# what cannot be drawn is refused.
# shellcheck disable=SC1091,SC2016,SC2154
source "$(dirname "$0")/common.bash"

# draw ARGS...: leaves $code, $dir/out, $dir/err and $dir/picture.svg.
draw() {
    code=0
    rm -f "$dir/picture.svg"
    env "$mark" timeout -s KILL 40 "$HEM" draw pattern -o "$dir/picture.svg" "$@" </dev/null \
        >"$dir/out" 2>"$dir/err" || code=$?
}

# drawn ARGS...: it must work, and silently.
drawn() {
    draw "$@"
    code_is 0 "draw $*"
    err_lines 0 "draw $*"
    if command -v python3 >/dev/null; then
        check "draw $*: no XML" python3 -c \
            'import sys, xml.dom.minidom; xml.dom.minidom.parse(sys.argv[1])' "$dir/picture.svg"
    fi
}

# shows COUNT PATTERN WHAT: so many lines of the picture.
shows() {
    check "$3: not $1 lines with $2" [ "$(grep -cE -- "$2" "$dir/picture.svg")" -eq "$1" ]
}

# refused CODE PATTERN ARGS...
refused() {
    local want=$1 pattern=$2
    shift 2
    draw "$@"
    code_is "$want" "draw $*"
    err_says "$pattern" "draw $*"
    check "draw $*: wrote a file" [ ! -e "$dir/picture.svg" ]
}

# Two boxes side by side: each reads one column of 6 points of the other.
drawn --grid 8x6 --ranks 2
shows 1 '<text class="title".*>8 x 6 points on 2 ranks<' 'two boxes'
shows 1 'rank 0 to rank 1: 6 points' 'two boxes'
shows 1 'rank 1 to rank 0: 6 points' 'two boxes'
shows 2 '>4 x 6<' 'two boxes'
shows 2 'owns 24, sends 6, receives 6' 'two boxes'
shows 0 'rank . to rank .: 1 points' 'two boxes'

# Four boxes have corners, which read one point each; not so without.
drawn --grid 8x6 -n 4
shows 4 'rank . to rank .: 1 points' 'four boxes'
drawn --grid 8x6 -n 4 --faces
shows 0 'rank . to rank .: 1 points' 'four boxes, faces only'

# Halos of different widths: 2 columns from below, none from above.
drawn --grid 8x6 -n 2 --halo 2,0
shows 1 'rank 0 to rank 1: 12 points' 'two below'
shows 0 'rank 1 to rank 0' 'two below'

# Around the grid: the one box reads itself on both sides.
drawn --grid 8x6 -n 1 --periodic x
shows 2 'rank 0 to rank 0: 6 points' 'around'
shows 1 'owns 48, sends 0, receives 0' 'around'

# A title is text, whatever is in it.
drawn --grid 33x17 -n 6 --periodic xy --halo 3 --title 'a < b & "c" >'
shows 1 '<text class="title".*>a &lt; b &amp; "c" &gt;: 33 x 17 points' 'title'

# More ranks than send directly.
drawn --grid 40x40 -n 20
shows 20 '>rank [0-9]+<' 'twenty ranks'

# What ranks print.
drawn --grid 8x6 -n 2 --print
out_says '^pattern 1, rank 1: grid of 8 \(halo 1 below, 1 above\) x 6 ' 'print'
check 'print: not two neighbours' [ "$(grep -c '^  rank .: sends 6 points in 1 link, ' "$dir/out")" -eq 2 ]

# The same mesh in both formats is the same picture.
for ranks in 1 2 5; do
    drawn --mesh "$HEM_SOURCE/examples/data/plate.msh" -n $ranks
    shows 1 "<text.*>229 points on $ranks ranks<" 'mesh'
    cp "$dir/picture.svg" "$dir/before.svg"
    drawn --mesh "$HEM_SOURCE/examples/data/plate-2.msh" -n $ranks
    check "mesh, $ranks ranks: formats 2 and 4 differ" cmp "$dir/before.svg" "$dir/picture.svg"
done
check 'mesh: nobody sends' grep -qE 'rank 0 to rank 1: [0-9]+ points' "$dir/picture.svg"

# Format 4.0, with tags that have gaps, parametric nodes and elements that do not matter.
cat >"$dir/four.msh" <<'MESH'
$MeshFormat
4 0 8
$EndMeshFormat
$Comments
nothing
$EndComments
$Nodes
2 4
1 0 0 2
10 0 0 0
70 1 0 0
1 1 1 2
30 1 1 0 0.5
20 0 1 0 0.7
$EndNodes
$Elements
2 3
1 1 1 1
1 10 70
1 2 2 2
2 10 70 30
3 10 30 20
$EndElements
MESH
drawn --mesh "$dir/four.msh" -n 2
shows 1 '<text.*>4 points on 2 ranks<' 'format 4.0'

# spoil SED PATTERN: a file that is wrong is refused.
spoil() {
    sed "$1" "$dir/four.msh" >"$dir/bad.msh"
    refused 1 "bad.msh: $2" --mesh "$dir/bad.msh" -n 2
}
spoil 's/^4 0 8/4 1 8/' 'the file is binary'
spoil 's/^4 0 8/3 0 8/' 'format 3.0 is not known'
spoil 's/^2 10 70 30/2 10 70 31/' 'there is no node 31'
spoil 's/^70 1 0 0/10 1 0 0/' 'there are two nodes 10'
spoil '/^20 0 1/,$d' 'a whole number is missing'
spoil 's/^1 2 2 2/1 2 99 2/' 'elements of kind 99 are not known'
spoil 's/^1 2 2 2/1 2 2 99999999999/' 'a whole number is missing'
spoil '/MeshFormat/d' 'it does not begin with'
refused 1 'No such file' --mesh "$dir/nowhere.msh"
refused 1 'no file of Gmsh' --mesh /dev/null

refused 2 'either --grid or --mesh'
refused 2 'either --grid or --mesh' --grid 4x4 --mesh x.msh
refused 2 'only grids' --mesh x.msh --halo 2
for value in 0x4 4 4x 4x4x4 -4x4 99999999999999999999x4; do refused 2 "$value cannot be" --grid=$value; done
for value in a 1,a 1,2,3 -1; do refused 2 "$value cannot be" --grid 4x4 --halo=$value; done
refused 2 'z cannot be' --grid 4x4 --periodic z
refused 2 '0 cannot be' --grid 4x4 -n 0
refused 2 'what can be drawn' --grid 4x4 more
refused 2 'no option' --wrong
refused 1 'hem_grid_balance' --grid 2x2 -n 9
draw --grid 4x4 -o /dev/full
code_is 1 'a full disk'
err_says 'No space left' 'a full disk'
summary
