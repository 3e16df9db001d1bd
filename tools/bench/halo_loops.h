/*
 * The loops of packing by hand for one size of element. This is included once for each, with T as the
 * type and LOOP(name) as the name of each function.
 *
 * Rows of one to three values, as faces across the last dimension have them, get loops of their own,
 * in which the width is a constant.
 */

BENCH_EXPAND void LOOP(pack_narrow)(const T *from, const struct bench_piece *piece, T *to,
                                    size_t width) {
    for (size_t i = 0; i < piece->count[0]; i++) {
        const T *row = from + piece->start + i * piece->stride[0];
        for (size_t j = 0; j < piece->count[1]; j++, row += piece->stride[1], to += width) {
            for (size_t k = 0; k < width; k++)
                to[k] = row[k];
        }
    }
}

BENCH_EXPAND void LOOP(unpack_narrow)(T *to, const struct bench_piece *piece, const T *from,
                                      size_t width) {
    for (size_t i = 0; i < piece->count[0]; i++) {
        T *row = to + piece->start + i * piece->stride[0];
        for (size_t j = 0; j < piece->count[1]; j++, row += piece->stride[1], from += width) {
            for (size_t k = 0; k < width; k++)
                row[k] = from[k];
        }
    }
}

static void LOOP(pack_index)(const T *restrict from, const struct bench_piece *piece, size_t levels,
                             T *restrict to) {
    const int32_t *index = piece->index;
    if (levels == 1) {
        for (size_t i = 0; i < piece->points; i++)
            to[i] = from[index[i]];
    } else if (levels < SHORT) {
        for (size_t i = 0; i < piece->points; i++) {
            for (size_t l = 0; l < levels; l++)
                to[i * levels + l] = from[(size_t)index[i] * levels + l];
        }
    } else {
        for (size_t i = 0; i < piece->points; i++)
            memcpy(to + i * levels, from + (size_t)index[i] * levels, levels * sizeof(T));
    }
}

static void LOOP(unpack_index)(T *restrict to, const struct bench_piece *piece, size_t levels,
                               const T *restrict from) {
    const int32_t *index = piece->index;
    for (size_t i = 0; i < piece->points; i++) {
        for (size_t l = 0; l < levels; l++)
            to[(size_t)index[i] * levels + l] = from[i * levels + l];
    }
}

static void LOOP(pack)(const T *from, const struct bench_piece *piece, size_t levels, T *to) {
    size_t width = piece->count[2] * levels;
    if (piece->index != NULL) {
        LOOP(pack_index)(from, piece, levels, to);
    } else if (levels == 1 && width == 1) {
        LOOP(pack_narrow)(from, piece, to, 1);
    } else if (levels == 1 && width == 2) {
        LOOP(pack_narrow)(from, piece, to, 2);
    } else if (levels == 1 && width == 3) {
        LOOP(pack_narrow)(from, piece, to, 3);
    } else {
        for (size_t i = 0; i < piece->count[0]; i++) {
            const T *row = from + (piece->start + i * piece->stride[0]) * levels;
            for (size_t j = 0; j < piece->count[1]; j++, to += width)
                memcpy(to, row + j * piece->stride[1] * levels, width * sizeof(T));
        }
    }
}

static void LOOP(unpack)(T *to, const struct bench_piece *piece, size_t levels, const T *from) {
    size_t width = piece->count[2] * levels;
    if (piece->index != NULL) {
        LOOP(unpack_index)(to, piece, levels, from);
    } else if (levels == 1 && width == 1) {
        LOOP(unpack_narrow)(to, piece, from, 1);
    } else if (levels == 1 && width == 2) {
        LOOP(unpack_narrow)(to, piece, from, 2);
    } else if (levels == 1 && width == 3) {
        LOOP(unpack_narrow)(to, piece, from, 3);
    } else {
        for (size_t i = 0; i < piece->count[0]; i++) {
            T *row = to + (piece->start + i * piece->stride[0]) * levels;
            for (size_t j = 0; j < piece->count[1]; j++, from += width)
                memcpy(row + j * piece->stride[1] * levels, from, width * sizeof(T));
        }
    }
}
