/* Which algorithm does a job. */
#ifndef HEMI_COLL_SELECT_H
#define HEMI_COLL_SELECT_H

#include "coll/collective.h"
#include "coll/plans.h"

/** The name of everything that goes over the board. The others are in coll/plans.h. */
#define HEMI_DIRECT "direct"

/** A row of the table: up to so many ranks and bytes, this algorithm. See coll/table.h. */
typedef struct hemi_choice {
    hem_coll_kind kind;
    uint32_t ranks;
    uint64_t bytes; /**< that one rank contributes, or gets if that is more */
    const char *name;
} hemi_choice;

/** The name of a kind, as HEM_ALGORITHM has it, or NULL. */
const char *hemi_kind_name(hem_coll_kind kind);

/** The bytes by which the table is searched: the same on all ranks. */
uint64_t hemi_select_bytes(const hemi_job *job);

/**
 * Choose. HEM_ALGORITHM comes first, if what it names can do the job, then the table, then what can.
 *
 * `plan_p` gets the algorithm to plan by, if the method is hemi_planned.
 * @return HEM_OK; HEM_ERR_ARG for a HEM_ALGORITHM that names what does not exist;
 *         HEM_ERR_UNSUPPORTED if nothing can.
 */
hem_status hemi_select(const hem_world *world, const hemi_job *job, uint64_t stage_bytes,
                       const hemi_method **method_p, const hemi_algorithm **plan_p);

#endif
