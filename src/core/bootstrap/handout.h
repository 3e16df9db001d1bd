/*
 * Handing the arena's descriptor to the other processes of a machine.
 *
 * One process listens on a Unix socket in the abstract name space, which leaves no file behind. The
 * name is random, a secret token must be shown, and the kernel says that both sides are of the
 * same user.
 */
#ifndef HEMI_CORE_BOOTSTRAP_HANDOUT_H
#define HEMI_CORE_BOOTSTRAP_HANDOUT_H

#include "core/arena.h"

typedef struct hemi_handout hemi_handout;

/** What a fetcher must know. */
typedef struct hemi_handout_name {
    uint64_t name;
    uint64_t token;
} hemi_handout_name;

/** What a fetcher says first. */
typedef struct hemi_handout_ask {
    uint64_t magic;
    uint64_t token;
    uint32_t version;
    uint32_t rank;
} hemi_handout_ask;

/** Check what a fetcher said. @return NULL and its rank, or what is wrong. */
const char *hemi_handout_parse(const void *message, size_t bytes, uint64_t token, uint32_t ranks,
                               uint32_t *rank_p);

hem_status hemi_handout_open(const hemi_platform *platform, hemi_handout **handout_p);
const hemi_handout_name *hemi_handout_where(const hemi_handout *handout);

/**
 * Hand the descriptor to every rank but 0.
 *
 * A rank whose process ends first, or that does not come within the limit, is declared ended in the
 * arena, where the others will see it. Strangers are ignored.
 */
void hemi_handout_serve(hemi_handout *handout, const hemi_arena *arena, int64_t timeout_ns);

/** NULL is allowed. */
void hemi_handout_close(hemi_handout *handout);

/** Fetch it. @return HEM_OK, HEM_ERR_TIMEOUT or HEM_ERR_PEER naming rank 0, HEM_ERR_SYSTEM. */
hem_status hemi_handout_fetch(const hemi_handout_name *name, uint32_t rank, int64_t timeout_ns,
                              int *fd_p);

#endif
