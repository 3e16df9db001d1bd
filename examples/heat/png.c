#include "png.h"

#include "deflate.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint32_t crc32(uint32_t crc, const uint8_t *data, size_t bytes) {
    crc = ~crc;
    for (size_t i = 0; i < bytes; i++) {
        crc ^= data[i];
        for (int bit = 0; bit < 8; bit++)
            crc = (crc >> 1) ^ (crc & 1 ? 0xedb88320u : 0);
    }
    return ~crc;
}

static void store32(uint8_t *to, uint32_t value) {
    for (int i = 0; i < 4; i++)
        to[i] = (uint8_t)(value >> (24 - 8 * i));
}

/* Errors stay in the stream and are asked for at the end. */
static void write_chunk(FILE *file, const char type[4], const uint8_t *data, size_t bytes) {
    uint8_t head[8], tail[4];

    store32(head, (uint32_t)bytes);
    memcpy(head + 4, type, 4);
    store32(tail, crc32(crc32(0, head + 4, 4), data, bytes));
    fwrite(head, 1, sizeof head, file);
    fwrite(data, 1, bytes, file);
    fwrite(tail, 1, sizeof tail, file);
}

/* Each row becomes its differences to the row above (filter 2): in a smooth picture mostly zeros,
 * which compress well. Returns bytes that the caller frees. */
static uint8_t *filter_rows(int width, int height, const uint8_t *pixels, size_t *bytes_p) {
    size_t row = (size_t)width;
    uint8_t *filtered = malloc((row + 1) * (size_t)height);

    if (!filtered)
        return NULL;
    for (size_t y = 0; y < (size_t)height; y++) {
        const uint8_t *from = pixels + y * row;
        uint8_t *to = filtered + y * (row + 1);
        *to++ = 2;
        for (size_t x = 0; x < row; x++)
            to[x] = (uint8_t)(from[x] - (y ? from[x - row] : 0));
    }
    *bytes_p = (row + 1) * (size_t)height;
    return filtered;
}

static uint8_t *compress_pixels(int width, int height, const uint8_t *pixels, size_t *bytes_p) {
    size_t raw = 0;
    uint8_t *filtered = filter_rows(width, height, pixels, &raw);
    uint8_t *packed = filtered ? malloc(deflate_bound(raw)) : NULL;

    if (packed)
        *bytes_p = deflate_zlib(filtered, raw, packed);
    free(filtered);
    return packed;
}

static bool write_file(FILE *file, int width, int height, const struct rgb palette[256],
                       const uint8_t *packed, size_t bytes) {
    static const uint8_t signature[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
    uint8_t header[13] = {[8] = 8, [9] = 3}; /* 8 bits per pixel, indices into a palette */
    uint8_t colours[256 * 3];

    store32(header, (uint32_t)width);
    store32(header + 4, (uint32_t)height);
    for (size_t i = 0; i < 256; i++) {
        colours[3 * i] = palette[i].red;
        colours[3 * i + 1] = palette[i].green;
        colours[3 * i + 2] = palette[i].blue;
    }
    fwrite(signature, 1, sizeof signature, file);
    write_chunk(file, "IHDR", header, sizeof header);
    write_chunk(file, "PLTE", colours, sizeof colours);
    write_chunk(file, "IDAT", packed, bytes);
    write_chunk(file, "IEND", header, 0);
    return !ferror(file);
}

bool png_write(const char *path, int width, int height, const uint8_t *pixels,
               const struct rgb palette[256]) {
    size_t bytes = 0;
    uint8_t *packed = compress_pixels(width, height, pixels, &bytes);
    FILE *file = packed ? fopen(path, "wb") : NULL;
    bool good = file && write_file(file, width, height, palette, packed, bytes);

    if (!packed)
        errno = ENOMEM;
    if (file && fclose(file) != 0)
        good = false;
    free(packed);
    return good;
}
