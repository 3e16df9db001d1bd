/*
 * Collective set-up: everybody says something, everybody hears it, and all agree on how it ended.
 *
 * Step e of a team. Each member writes what it has to say into blob e % 2 of its cell, then
 * releases seq = e; then it waits until every member's seq has reached e. Two blobs are enough: a
 * member that writes step e + 2 has seen everybody publish e + 1, and nobody publishes e + 1 before
 * it has read all of e. Unless e + 1 failed: then it has not heard from everybody, and so a member
 * that writes e + 2 first waits until whoever is still in step e says that it is done with it.
 *
 * How a step ended is settled by one compare-and-swap on the team's settle word, by whoever knows
 * first: a member that heard everybody proposes success, one that saw a death or ran out of time
 * proposes that. All take the word's answer. A success stands although a member has died since:
 * all blobs are there to be read.
 */
#ifndef HEMI_CORE_TEAM_H
#define HEMI_CORE_TEAM_H

#include "core/wait.h"

/** Room for a call's own data in one step. */
#define HEMI_SAY_MAX 80

/** What one member says. */
typedef struct hemi_say {
    uint32_t call; /**< enum hemi_call: must be the same on all */
    int32_t status;
    uint64_t fingerprint; /**< must be the same on all */
    uint8_t data[HEMI_SAY_MAX];
    char text[HEMI_BLOB - 16 - HEMI_SAY_MAX]; /**< the sentence behind a bad status */
} hemi_say;

/**
 * One step: say `status` and `bytes` of `data`, hear everybody, agree.
 *
 * With a bad `status`, this rank's last error sentence travels along. Returns HEM_OK if all said
 * HEM_OK, the same call and the same fingerprint; otherwise the same error on all members, naming
 * the rank at fault: the lowest one whose status was bad, or HEM_ERR_MISMATCH, HEM_ERR_PEER,
 * HEM_ERR_TIMEOUT, HEM_ERR_REVOKED.
 *
 * With `bytes` not 0, what the others said is there to be read after HEM_OK, until hemi_team_done.
 *
 * Collective over the team, from one thread at a time.
 */
hem_status hemi_team_agree(hem_world *world, uint32_t call, hem_status status, uint64_t fingerprint,
                           const void *data, size_t bytes, int64_t timeout_ns);

/**
 * Wait until every member has come or is dead. For giving things up together.
 *
 * Counted apart from the steps, whose numbers may differ between ranks once one of them has failed.
 * `tag` says what is given up, and must be the same on all.
 * @return HEM_OK, HEM_ERR_PEER if all that are alive came but some are dead, HEM_ERR_MISMATCH if one
 *         came for something else, HEM_ERR_REVOKED, HEM_ERR_TIMEOUT.
 */
hem_status hemi_team_meet(hem_world *world, uint32_t call, uint64_t tag, int64_t timeout_ns);

/** Done with what the others said: they may say something else. */
void hemi_team_done(hem_world *world);

/** What `rank` said in the last step that succeeded. Copies. */
void hemi_team_heard(const hem_world *world, uint32_t rank, void *data_p, size_t bytes);

/** Wake every member of the team that sleeps. */
void hemi_team_wake(const hem_world *world);

/**
 * Wait until every member has set `flag` (closed or left) or died; `which` is the offset of the
 * uint32_t in hemi_cell. Goes on although the world is revoked.
 *
 * @return HEM_OK, HEM_ERR_PEER if all that are alive did but some died, HEM_ERR_TIMEOUT.
 */
hem_status hemi_team_await_flag(hem_world *world, uint32_t call, size_t which, int64_t timeout_ns);

#endif
