/*
 * Tilings of a grid, so that boxes that are near each other can meet without knowing of each other.
 *
 * There are HEMI_LEVELS of them. The tiles of the middle level are as large as an average box, those
 * of the next one four times as long in each dimension, and so on, and smaller ones below. A box
 * belongs to the lowest level whose tiles are as long as the box in every dimension: so it touches at
 * most 2 tiles per dimension, and a tile is not much larger than its boxes, however unequal they are.
 * Who looks for boxes looks at every level that has some.
 *
 * Who has a long thin halo among small boxes would have to look into many small tiles. Levels where
 * somebody would are not used (`crowded`): their boxes belong to the next level that is not.
 */
#ifndef HEMI_HALO_PATTERN_TILING_H
#define HEMI_HALO_PATTERN_TILING_H

#include <hem/pattern.h>

#define HEMI_LEVELS       64
#define HEMI_LEVEL_MIDDLE 32

typedef struct hemi_tiling {
    int dims;
    int64_t extent[HEM_DIMS]; /**< of the grid */
    int64_t unit[HEM_DIMS];   /**< of a tile of the middle level */
    uint64_t used;            /**< bit per level: it has boxes */
    uint64_t crowded;         /**< bit per level: it is not used. Never the highest one */
} hemi_tiling;

/** A hash of one more word. */
static inline uint64_t hemi_mix(uint64_t hash, uint64_t word) {
    uint64_t z = (hash ^ word) + 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/** The length of a tile, at most 2^62, which is all of any grid. */
int64_t hemi_tile_length(const hemi_tiling *tiling, int level, int dim);

/** The level that a box belongs to, as if none were crowded. */
int hemi_tiling_level(const hemi_tiling *tiling, const hem_box *box);

/** The level instead of `level`: itself, or the next one that is not crowded. */
int hemi_tiling_lift(const hemi_tiling *tiling, int level);

/** First and last tile that a box touches, per dimension. @return how many; UINT64_MAX: too many. */
uint64_t hemi_tiling_touch(const hemi_tiling *tiling, int level, const hem_box *box,
                           int64_t first[HEM_DIMS], int64_t last[HEM_DIMS]);

/** Go on to the next tile between first and last. @return false after the last one. */
bool hemi_tiling_next(const hemi_tiling *tiling, const int64_t *first, const int64_t *last,
                      int64_t *tile);

/** The rank where whatever touches a tile meets. `space` tells grids with the same tiling apart. */
uint32_t hemi_tile_home(const hemi_tiling *tiling, uint32_t space, int level, const int64_t *tile,
                        uint32_t ranks);

#endif
