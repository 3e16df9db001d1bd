/*
 * Irregular exchanges: ranks send blocks of any length to some ranks, and only the sender knows how
 * long they are. What gatherv, scatterv, all-to-all-v and sparse share.
 *
 * In the first step everybody posts a table of how many bytes it has for each rank, and behind it the
 * bytes themselves, if they fit. What does not fit goes as one message per pair. If any rank's did not
 * fit, a second step says that everybody has everything.
 */
#ifndef HEMI_COLL_PARCELS_H
#define HEMI_COLL_PARCELS_H

#include "coll/mail.h"

typedef struct hemi_parcels {
    uint64_t *bytes; /**< that this rank has for each rank */
    uint64_t total;  /**< of all but oneself */
    bool fits;       /**< into the stage, behind the table */
    hemi_mail mail;
} hemi_parcels;

/** Whether the table fits. */
bool hemi_parcels_can(const hemi_job *job, uint64_t stage_bytes);

/** Make the table, of zeroes, and room for messages. */
hem_status hemi_parcels_make(const hemi_collective *c, hemi_parcels *p);
void hemi_parcels_free(hemi_parcels *p);

/** The table is filled in: see whether everything fits. */
void hemi_parcels_count(const hemi_collective *c, hemi_parcels *p);

/** Where the bytes for `rank` go in the post of the first step. Only if they fit. */
unsigned char *hemi_parcels_room(const hemi_collective *c, const hemi_parcels *p, uint32_t rank);

/** Copy the table and publish the first step. */
void hemi_parcels_post(const hemi_collective *c, const hemi_parcels *p);

/** How many bytes `rank` has for this one, and where they are; `data_p` gets NULL if they come as a
 *  message. @return HEM_OK, HEM_ERR_MISMATCH. */
hem_status hemi_parcels_look(const hemi_collective *c, uint32_t rank, uint64_t *bytes_p,
                             const unsigned char **data_p);

/** Whether all that any rank has to send has come with its post. */
bool hemi_parcels_all_fit(const hemi_collective *c, const hemi_parcels *p);

#endif
