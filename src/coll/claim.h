/* With HEM_CHECK: what everybody says that it calls, in a step before all others. */
#ifndef HEMI_COLL_CLAIM_H
#define HEMI_COLL_CLAIM_H

#include "coll/collective.h"

/** Post what this rank calls, or that its arguments were refused. The line is free. */
void hemi_claim_post(const hemi_collective *c);

/**
 * Compare what all have posted; everybody comes to the same result.
 *
 * @return HEM_OK, or HEM_ERR_MISMATCH with a sentence that says who called what.
 */
hem_status hemi_claim_compare(const hemi_collective *c);

#endif
