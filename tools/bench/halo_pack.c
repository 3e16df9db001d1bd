#include "halo_pack.h"

#include "pair.h"

#include <string.h>

/* Points of fewer levels are copied by loops, others by memcpy. */
enum {
    SHORT = 8
};

size_t bench_packed_bytes(const struct bench_halo *halo, const struct bench_field *field,
                          size_t points) {
    return (points * halo->levels * field->element + 7) & ~(size_t)7;
}

#define T          uint64_t
#define LOOP(name) wide_##name
#include "halo_loops.h"
#undef T
#undef LOOP

#define T          uint32_t
#define LOOP(name) half_##name
#include "halo_loops.h"
#undef T
#undef LOOP

static void pack_piece(const struct bench_halo *halo, const struct bench_field *field,
                       const struct bench_piece *piece, void *to) {
    const void *from = field->memory;

    if (field->element == sizeof(uint64_t))
        wide_pack(from, piece, halo->levels, to);
    else
        half_pack(from, piece, halo->levels, to);
}

static void unpack_piece(const struct bench_halo *halo, const struct bench_field *field,
                         const struct bench_piece *piece, const void *from) {
    void *to = field->memory;

    if (field->element == sizeof(uint64_t))
        wide_unpack(to, piece, halo->levels, from);
    else
        half_unpack(to, piece, halo->levels, from);
}

void bench_pack(const struct bench_halo *halo, const struct bench_field *field,
                const struct bench_peer *peer, void *to) {
    unsigned char *at = to;

    for (size_t p = 0; p < peer->sends; p++) {
        const struct bench_piece *piece = &halo->sends.piece[peer->first_send + p];
        pack_piece(halo, field, piece, at);
        at += piece->points * halo->levels * field->element;
    }
}

void bench_unpack(const struct bench_halo *halo, const struct bench_field *field,
                  const struct bench_peer *peer, const void *from) {
    const unsigned char *at = from;

    for (size_t p = 0; p < peer->recvs; p++) {
        const struct bench_piece *piece = &halo->recvs.piece[peer->first_recv + p];
        unpack_piece(halo, field, piece, at);
        at += piece->points * halo->levels * field->element;
    }
}

/* Both boxes have the same counts and strides. */
static void copy_box(const struct bench_field *field, const struct bench_piece *from,
                     const struct bench_piece *to) {
    size_t width = from->count[2] * field->element;

    for (size_t i = 0; i < from->count[0]; i++) {
        for (size_t j = 0; j < from->count[1]; j++) {
            size_t row = i * from->stride[0] + j * from->stride[1];
            unsigned char *target = field->memory + (to->start + row) * field->element;
            const unsigned char *source = field->memory + (from->start + row) * field->element;

            if (width == sizeof(uint64_t))
                memcpy(target, source, sizeof(uint64_t));
            else if (width == sizeof(uint32_t))
                memcpy(target, source, sizeof(uint32_t));
            else
                memcpy(target, source, width);
        }
    }
}

void bench_copy_self(const struct bench_halo *halo) {
    for (size_t f = 0; f < halo->fields; f++) {
        for (size_t p = 0; p < halo->self.sends; p++)
            copy_box(&halo->field[f], &halo->sends.piece[halo->self.first_send + p],
                     &halo->recvs.piece[halo->self.first_recv + p]);
    }
}
