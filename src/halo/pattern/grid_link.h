/* Links of a structured grid: the combinations of what an owner covers in each dimension. */
#ifndef HEMI_HALO_PATTERN_GRID_LINK_H
#define HEMI_HALO_PATTERN_GRID_LINK_H

#include "halo/pattern/cells.h"
#include "halo/pattern/images.h"

typedef struct hemi_linker {
    hemi_making *making; /**< its pattern has dims and domains */
    bool faces_only;
    hemi_axis axes[HEM_DIMS];
    hemi_cover *pieces[HEM_DIMS]; /**< of one owner, per dimension */
    size_t count[HEM_DIMS];
    uint64_t bytes;
} hemi_linker;

/** Make room for the pieces of any domain of the pattern. @return HEM_OK, HEM_ERR_MEMORY. */
hem_status hemi_linker_begin(hemi_linker *linker);

/**
 * Want everything that a domain copies from an owner, which may be the domain itself.
 *
 * `points_p` gets how many points that is. @return HEM_OK, or HEM_ERR_MISMATCH if they overlap.
 */
hem_status hemi_linker_add(hemi_linker *linker, const hemi_owner *owner, uint64_t *points_p);

void hemi_linker_free(hemi_linker *linker);

#endif
