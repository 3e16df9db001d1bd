/* The messages of one collective: a few letters that are begun together. */
#ifndef HEMI_COLL_MAIL_H
#define HEMI_COLL_MAIL_H

#include "channel/letter.h"
#include "coll/collective.h"

typedef struct hemi_mail {
    hemi_letter *letters;
    uint32_t room;
    uint32_t count;
} hemi_mail;

/** Room for `room` letters. @return HEM_OK, HEM_ERR_MEMORY. */
hem_status hemi_mail_make(hemi_mail *mail, uint32_t room);

/** Begin one more. There is room. Under the lock. */
void hemi_mail_begin(hemi_mail *mail, hem_world *world, bool sends, uint32_t peer, void *data,
                     size_t bytes);

/** HEM_OK: all are done. HEMI_AGAIN, or how one failed. */
hem_status hemi_mail_state(const hemi_mail *mail);

/** Cancel what is under way and forget all. Under the lock. */
void hemi_mail_stop(hemi_mail *mail);

void hemi_mail_free(hemi_mail *mail);

#endif
