/*
 * The score of a round: what each rank writes down for the campaign to judge. It lies in a file
 * that all map, because a rank that is killed says nothing more.
 */
#ifndef HEM_TESTS_KILL_SCORE_H
#define HEM_TESTS_KILL_SCORE_H

#include <stdint.h>

#define KILL_RANKS_MAX 8

typedef enum kill_stage {
    KILL_STAGE_NONE = 0,
    KILL_STAGE_STARTED,
    KILL_STAGE_READY, /**< everything is set up, the operation begins */
    KILL_STAGE_ACTED, /**< the operation has returned */
    KILL_STAGE_LEARNT,
    KILL_STAGE_SHRUNK,
    KILL_STAGE_FINISHED
} kill_stage;

/** Written by its rank alone. */
typedef struct kill_record {
    uint32_t stage;     /**< kill_stage */
    int32_t status;     /**< what the operation returned */
    int32_t size;       /**< of the world that a shrink or split made in the operation */
    uint32_t learnt;    /**< whether the next two are set */
    uint64_t enter_ns;  /**< when the call was entered that first told of the death */
    uint64_t learnt_ns; /**< when it returned */
    char trouble[300];  /**< what was wrong, empty if nothing was */
} kill_record;

typedef struct kill_score {
    uint64_t death_ns; /**< written right before the victim is killed, by whoever does it */
    uint64_t points;   /**< schedule points of the victim in the operation, so far */
    kill_record ranks[KILL_RANKS_MAX];
} kill_score;

#endif
