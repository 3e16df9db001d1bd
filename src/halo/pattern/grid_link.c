#include "halo/pattern/grid_link.h"

#include <hem/exchange.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* The most pieces of any domain in one dimension. */
static uint64_t most_pieces(const hemi_linker *linker, int dim) {
    const hem_pattern *pattern = linker->making->pattern;
    uint64_t most = 1;
    for (size_t i = 0; i < pattern->domain_count; i++) {
        uint64_t room =
            hemi_axis_room(&linker->axes[dim], hemi_box_stretch(&pattern->domains[i].box, dim));
        most = room > most ? room : most;
    }
    return most;
}

hem_status hemi_linker_begin(hemi_linker *linker) {
    for (int d = 0; d < linker->making->pattern->dims; d++) {
        uint64_t most = most_pieces(linker, d);
        linker->pieces[d] = calloc(most, sizeof *linker->pieces[d]);
        if (linker->pieces[d] == NULL)
            return hemi_fail(HEM_ERR_MEMORY, "no memory for %" PRIu64 " images", most);
        linker->bytes += most * sizeof *linker->pieces[d];
    }
    hemi_router_hold(&linker->making->router, linker->bytes);
    return HEM_OK;
}

static hem_status fail_overlap(const hemi_linker *linker, const hemi_owner *owner,
                               const size_t *which) {
    const hem_pattern *pattern = linker->making->pattern;
    const hemi_domain *domain = &pattern->domains[owner->here];
    char point[HEM_DIMS * 24] = "";
    int length = 0;
    for (int d = 0; d < pattern->dims; d++)
        length +=
            snprintf(point + length, sizeof point - (size_t)length, "%s%" PRId64, d > 0 ? ", " : "",
                     domain->box.start[d] + linker->pieces[d][which[d]].mine);
    return hemi_fail(HEM_ERR_MISMATCH,
                     "domain %" PRId64 " of rank %u and domain %" PRId64
                     " of rank %u overlap: both own point (%s)",
                     domain->id, pattern->rank, owner->id, owner->rank, point);
}

/* The link of one piece per dimension. */
static hemi_want combine(const hemi_linker *linker, const hemi_owner *owner, const size_t *which) {
    hemi_want want = {.owner = owner->rank,
                      .there = owner->there,
                      .here = owner->here,
                      .turn = {{0, 1}, {1, 1}},
                      .mine = {.total = 1}};
    for (int d = 0; d < linker->making->pattern->dims; d++) {
        const hemi_cover *piece = &linker->pieces[d][which[d]];
        want.sides |= piece->low * HEM_SIDE_LOW(d) | piece->high * HEM_SIDE_HIGH(d);
        want.mine.total *= (uint64_t)piece->count;
        want.mine.start[d] = piece->mine;
        want.mine.count[d] = piece->count;
        want.mine.axis[d] = (uint8_t)d;
        want.mine.step[d] = 1;
    }
    want.theirs = want.mine;
    for (int d = 0; d < linker->making->pattern->dims; d++)
        want.theirs.start[d] = linker->pieces[d][which[d]].theirs;
    return want;
}

/* The next combination of pieces. @return false after the last one. */
static bool next(const hemi_linker *linker, size_t *which) {
    for (int d = linker->making->pattern->dims - 1; d >= 0; d--) {
        if (++which[d] < linker->count[d])
            return true;
        which[d] = 0;
    }
    return false;
}

hem_status hemi_linker_add(hemi_linker *linker, const hemi_owner *owner, uint64_t *points_p) {
    const hem_pattern *pattern = linker->making->pattern;
    const hem_box *box = &pattern->domains[owner->here].box;
    bool itself = owner->rank == pattern->rank && owner->there == owner->here;
    size_t which[HEM_DIMS] = {0};
    *points_p = 0;
    for (int d = 0; d < pattern->dims; d++) {
        linker->count[d] = hemi_axis_pieces(&linker->axes[d], hemi_box_stretch(box, d),
                                            hemi_box_stretch(&owner->box, d), linker->pieces[d]);
        if (linker->count[d] == 0)
            return HEM_OK;
    }
    do {
        hemi_want want = combine(linker, owner, which);
        if (want.sides == 0 && !itself)
            return fail_overlap(linker, owner, which);
        if (want.sides == 0 || (linker->faces_only && __builtin_popcount(want.sides) > 1))
            continue;
        hemi_making_want(linker->making, &want);
        *points_p += want.mine.total;
    } while (next(linker, which));
    return HEM_OK;
}

void hemi_linker_free(hemi_linker *linker) {
    hemi_router_drop(&linker->making->router, linker->bytes);
    for (int d = 0; d < HEM_DIMS; d++)
        free(linker->pieces[d]);
}
