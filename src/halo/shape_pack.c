/* Field to packed and back. */
#include "halo/shape_inside.h"

#include <string.h>

void hemi_shape_pack(const hemi_shape *shape, const void *field, void *out) {
    const unsigned char *from = field;

    if (shape->axis_count > 0)
        hemi_moves_run(&shape->pack, out, from + shape->base);
    else if (shape->bytes > 0)
        memcpy(out, from + shape->base, shape->bytes);
}

void hemi_shape_unpack(const hemi_shape *shape, void *field, const void *in) {
    unsigned char *to = field;

    if (shape->axis_count > 0)
        hemi_moves_run(&shape->unpack, to + shape->base, in);
    else if (shape->bytes > 0)
        memcpy(to + shape->base, in, shape->bytes);
}
