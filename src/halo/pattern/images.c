#include "halo/pattern/images.h"

uint64_t hemi_axis_room(const hemi_axis *axis, hemi_stretch own) {
    hemi_stretch reach = hemi_axis_reach(axis, own);
    if (!axis->periodic)
        return 3;
    return (uint64_t)(hemi_floor_div(reach.start + reach.count - 1, axis->extent) -
                      hemi_floor_div(reach.start, axis->extent) + 3);
}

int64_t hemi_axis_inside(const hemi_axis *axis, hemi_stretch own) {
    hemi_stretch reach = hemi_axis_reach(axis, own);
    return axis->periodic ? reach.count
                          : hemi_stretch_meet(reach, (hemi_stretch){0, axis->extent}).count;
}

/* Cut one of the three regions; `piece` says which. */
static size_t cut(const hemi_axis *axis, hemi_stretch region, hemi_stretch own, hemi_stretch owner,
                  hemi_cover piece, hemi_cover *pieces) {
    int64_t first = 0;
    int64_t last = 0;
    size_t count = 0;
    if (region.count == 0)
        return 0;
    if (axis->periodic) {
        first = hemi_floor_div(region.start, axis->extent);
        last = hemi_floor_div(region.start + region.count - 1, axis->extent);
    }
    for (int64_t image = first; image <= last; image++) {
        int64_t shift = image * axis->extent;
        hemi_stretch there =
            hemi_stretch_meet((hemi_stretch){region.start - shift, region.count}, owner);
        if (there.count == 0)
            continue;
        piece.mine = there.start + shift - own.start;
        piece.theirs = there.start - owner.start;
        piece.count = there.count;
        pieces[count++] = piece;
    }
    return count;
}

size_t hemi_axis_pieces(const hemi_axis *axis, hemi_stretch own, hemi_stretch owner,
                        hemi_cover *pieces) {
    hemi_stretch low = {own.start - axis->low, axis->low};
    hemi_stretch high = {own.start + own.count, axis->high};
    size_t count = cut(axis, low, own, owner, (hemi_cover){.low = 1}, pieces);
    count += cut(axis, own, own, owner, (hemi_cover){0}, pieces + count);
    return count + cut(axis, high, own, owner, (hemi_cover){.high = 1}, pieces + count);
}
