/* The messages of one collective: a few letters that are begun together. */
#ifndef HEMI_COLL_MAIL_H
#define HEMI_COLL_MAIL_H

#include "channel/letter.h"
#include "coll/collective.h"

/** Letters of collective k carry this. */
static inline uint32_t hemi_mail_tag(uint64_t k) {
    return (uint32_t)(k & 0xffff);
}

typedef struct hemi_mail {
    hemi_letter *letters;
    uint32_t room;
    uint32_t count;
    bool failed; /**< there was no memory for letters */
} hemi_mail;

/** Begin one more, of at most two per rank; the first one makes room. Under the lock. */
void hemi_mail_begin(hemi_mail *mail, const hemi_collective *c, bool sends, uint32_t peer,
                     void *data, size_t bytes);

/** HEM_OK: all are done. HEMI_AGAIN, or how one failed. */
hem_status hemi_mail_state(const hemi_mail *mail);

/** Cancel what is under way and forget all. Under the lock. */
void hemi_mail_stop(hemi_mail *mail);

void hemi_mail_free(hemi_mail *mail);

#endif
