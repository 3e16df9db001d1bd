#include "halo/pattern/tiling.h"

#include "halo/pattern/box.h"

int64_t hemi_tile_length(const hemi_tiling *tiling, int level, int dim) {
    int64_t unit = tiling->unit[dim];
    int shift = 2 * (level - HEMI_LEVEL_MIDDLE);
    if (shift < 0)
        return shift <= -62 ? 1 : ((unit - 1) >> -shift) + 1;
    return unit > HEMI_POINTS_MAX >> shift ? HEMI_POINTS_MAX : unit << shift;
}

static bool fits(const hemi_tiling *tiling, int level, const hem_box *box) {
    for (int d = 0; d < tiling->dims; d++)
        if (box->count[d] > hemi_tile_length(tiling, level, d))
            return false;
    return true;
}

int hemi_tiling_level(const hemi_tiling *tiling, const hem_box *box) {
    int level = HEMI_LEVEL_MIDDLE;
    while (level < HEMI_LEVELS - 1 && !fits(tiling, level, box))
        level++;
    while (level > 0 && fits(tiling, level - 1, box))
        level--;
    return level;
}

int hemi_tiling_lift(const hemi_tiling *tiling, int level) {
    while (level < HEMI_LEVELS - 1 && (tiling->crowded >> level & 1) != 0)
        level++;
    return level;
}

uint64_t hemi_tiling_touch(const hemi_tiling *tiling, int level, const hem_box *box,
                           int64_t first[HEM_DIMS], int64_t last[HEM_DIMS]) {
    uint64_t tiles = 1;
    for (int d = 0; d < tiling->dims; d++) {
        int64_t length = hemi_tile_length(tiling, level, d);
        first[d] = box->start[d] / length;
        last[d] = (box->start[d] + box->count[d] - 1) / length;
        if (__builtin_mul_overflow(tiles, (uint64_t)(last[d] - first[d] + 1), &tiles))
            tiles = UINT64_MAX;
    }
    return tiles;
}

bool hemi_tiling_next(const hemi_tiling *tiling, const int64_t *first, const int64_t *last,
                      int64_t *tile) {
    for (int d = tiling->dims - 1; d >= 0; d--) {
        if (tile[d] < last[d]) {
            tile[d]++;
            return true;
        }
        tile[d] = first[d];
    }
    return false;
}

uint32_t hemi_tile_home(const hemi_tiling *tiling, uint32_t space, int level, const int64_t *tile,
                        uint32_t ranks) {
    uint64_t hash = hemi_mix((uint64_t)level, space);
    for (int d = 0; d < tiling->dims; d++)
        hash = hemi_mix(hash, (uint64_t)tile[d]);
    return (uint32_t)(hash % ranks);
}
