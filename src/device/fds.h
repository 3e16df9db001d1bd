/*
 * Handing descriptors to other processes of the job.
 *
 * Each receiver has a datagram socket in the abstract name space, which leaves no file behind. Its
 * name is random, and so is a token that a message must show; both are told through the arena. The
 * kernel says whose process has sent a message: one of another user, without the token or with
 * anything else wrong is dropped, and its descriptors are closed. Nothing here waits.
 */
#ifndef HEMI_DEVICE_FDS_H
#define HEMI_DEVICE_FDS_H

#include "core/wait.h"

/** Where to send to. */
typedef struct hemi_fds_name {
    uint64_t name;
    uint64_t token;
} hemi_fds_name;

/** What goes with a descriptor. */
typedef struct hemi_fds_letter {
    uint64_t magic;
    uint64_t token; /**< the receiver's */
    uint32_t from;
    uint32_t zero;
} hemi_fds_letter;

typedef struct hemi_fds {
    int socket;
    hemi_fds_name where;
} hemi_fds;

/** A socket with a name of its own. @return HEM_OK, HEM_ERR_SYSTEM. */
hem_status hemi_fds_open(const hemi_platform *platform, hemi_fds *fds_p);

/** Safe with socket -1, and twice. */
void hemi_fds_close(hemi_fds *fds);

/**
 * Send a descriptor, in the name of rank `from`. It may be closed afterwards.
 *
 * @return HEM_OK; HEMI_AGAIN if the receiver has no room just now, or is gone; HEM_ERR_SYSTEM.
 */
hem_status hemi_fds_send(const hemi_fds *fds, const hemi_fds_name *to, uint32_t from, int fd);

/**
 * Take one that has come from one of `ranks` ranks. The descriptor is the caller's, close-on-exec.
 *
 * @return HEM_OK; HEMI_AGAIN if there is none; HEM_ERR_LIMIT if this process may not have another
 *         descriptor; HEM_ERR_SYSTEM.
 */
hem_status hemi_fds_take(const hemi_fds *fds, uint32_t ranks, uint32_t *from_p, int *fd_p);

/** Check a letter. @return NULL and who sent it, or what is wrong. */
const char *hemi_fds_parse(const void *letter, size_t bytes, uint64_t token, uint32_t ranks,
                           uint32_t *from_p);

#endif
