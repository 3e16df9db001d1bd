#include "halo/shape_inside.h"

uint64_t hemi_shape_piece(const hemi_shape *shape) {
    uint64_t pieces = 1;
    for (uint32_t a = 0; a < shape->axis_count; a++)
        pieces *= shape->axes[a].count;
    return pieces == 0 ? 0 : shape->bytes / pieces;
}
