/*
 * Shapes that a peer describes: whatever comes, one that is accepted touches only the field that it
 * was accepted for, packs as many bytes as it says, and can be written and read again.
 */
#include "input.h"

#include "halo/shape.h"

#include <stdlib.h>

#define FIELD_MAX  4096
#define PACKED_MAX (64u << 10)

/* Exactly as long as they may be, so that a sanitizer sees every byte beyond. */
static void use(const hemi_shape *shape, uint64_t field_bytes) {
    uint64_t bytes = hemi_shape_bytes(shape);
    int64_t first = 0;
    int64_t end = 0;
    hemi_shape_bounds(shape, &first, &end);
    FUZZ_CHECK(bytes == 0 || (first >= 0 && end > first && (uint64_t)end <= field_bytes));
    if (bytes == 0 || bytes > PACKED_MAX)
        return;
    unsigned char *field = calloc(1, field_bytes);
    unsigned char *packed = malloc(bytes);
    FUZZ_CHECK(field != NULL && packed != NULL);
    for (uint64_t i = 0; i < field_bytes; i++)
        field[i] = (unsigned char)i;
    hemi_shape_pack(shape, field, packed);
    hemi_shape_unpack(shape, field, packed);
    for (uint64_t i = 0; i < field_bytes; i++)
        FUZZ_CHECK(field[i] == (unsigned char)i);
    free(field);
    free(packed);
}

static void again(const hemi_shape *shape, uint64_t field_bytes) {
    size_t count = hemi_shape_write(shape, NULL, 0);
    unsigned char *bytes = malloc(count);
    hemi_shape *copy = NULL;
    FUZZ_CHECK(bytes != NULL && hemi_shape_write(shape, bytes, count) == count);
    FUZZ_CHECK(hemi_shape_read(bytes, count, field_bytes, &copy) == HEM_OK);
    FUZZ_CHECK(hemi_shape_bytes(copy) == hemi_shape_bytes(shape));
    hemi_shape_free(copy);
    free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_input in = {data, size};
    uint64_t field_bytes = fuzz_u64(&in) % FIELD_MAX;
    /* What comes from a peer lies at a multiple of 8. */
    uint64_t *text = malloc(in.left + sizeof *text);
    hemi_shape *shape = NULL;
    FUZZ_CHECK(text != NULL);
    memcpy(text, in.data, in.left);
    if (hemi_shape_read(text, in.left, field_bytes, &shape) == HEM_OK) {
        use(shape, field_bytes);
        again(shape, field_bytes);
        hemi_shape_free(shape);
    }
    free(text);
    return 0;
}
