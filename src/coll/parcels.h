/*
 * Irregular exchanges: ranks send blocks of any length to some ranks, and only the sender knows how
 * long they are. What gatherv, scatterv, all-to-all-v and sparse share.
 *
 * In the first step everybody posts a table of how many bytes it has for each rank, and behind it the
 * bytes themselves, if they fit. If they do not, the table says where they are in the sender's buffer,
 * if the others can read that in place; otherwise they go as one message per pair. If any rank's did
 * not fit, a second step says that everybody has everything.
 */
#ifndef HEMI_COLL_PARCELS_H
#define HEMI_COLL_PARCELS_H

#include "coll/mail.h"

/** How what a rank has to send reaches the others. */
typedef enum hemi_parcels_way {
    HEMI_PARCELS_POSTED = 0, /**< behind the table */
    HEMI_PARCELS_LIBRARY,    /**< in library memory, from an offset in the arena on */
    HEMI_PARCELS_PRIVATE,    /**< in the sender's process, from an address on */
    HEMI_PARCELS_MAILED
} hemi_parcels_way;

typedef struct hemi_parcels {
    uint64_t *bytes;  /**< that this rank has for each rank */
    uint64_t *starts; /**< where they are in its buffer */
    uint64_t total;   /**< of all but oneself */
    hemi_parcels_way way;
    uint64_t base; /**< of the buffer, where others read it */
    hemi_mail mail;
    uint64_t few[2 * HEMI_SOURCES_FEW];
} hemi_parcels;

/** Whether the table fits. */
bool hemi_parcels_can(const hemi_job *job, uint64_t stage_bytes);

/** Make the tables, of zeroes. */
hem_status hemi_parcels_make(const hemi_collective *c, hemi_parcels *p);
void hemi_parcels_free(hemi_parcels *p);

/** `bytes` is filled in: add up, and see whether everything fits behind the table. */
bool hemi_parcels_fit(const hemi_collective *c, hemi_parcels *p);

/** It does not fit, and `starts` are in this buffer: choose a way. The peers are known. */
void hemi_parcels_choose(const hemi_collective *c, hemi_parcels *p, const void *buffer,
                         size_t bytes);

/** Where the bytes for `rank` go in the post of the first step. Only if they are posted. */
unsigned char *hemi_parcels_room(const hemi_collective *c, const hemi_parcels *p, uint32_t rank);

/** Copy the table and publish the first step. */
void hemi_parcels_post(const hemi_collective *c, const hemi_parcels *p);

/** How many bytes `rank` has for this one. @return HEM_OK, HEM_ERR_MISMATCH. */
hem_status hemi_parcels_look(const hemi_collective *c, uint32_t rank, uint64_t *bytes_p);

/** Get them: copied, or read in place, or a message is begun. As hemi_collective_copy. */
hem_status hemi_parcels_get(hemi_collective *c, hemi_parcels *p, uint32_t rank, void *to,
                            uint64_t bytes);

/** Whether all that any rank has to send has come with its post. */
bool hemi_parcels_all_posted(const hemi_collective *c, const hemi_parcels *p);

#endif
