/* One rank of a round: what it is to do, where it stands, and how it dies. */
#ifndef HEM_TESTS_KILL_TASK_H
#define HEM_TESTS_KILL_TASK_H

#include "../score.h"

#include <hem/hem.h>
#include <stdbool.h>

/** Long enough for anything that ends, short enough to fail before the launcher ends the job. */
#define KILL_LIMIT HEM_SEC(6)

/** What the victim does at its point. */
typedef enum kill_manner {
    KILL_SELF,
    KILL_KEEPER, /**< the launcher's inner process */
    KILL_FRONT   /**< the launcher's outer process */
} kill_manner;

typedef struct kill_op kill_op;

typedef struct kill_task {
    const kill_op *op;
    int victim;
    uint64_t point;   /**< at which schedule point of the operation it dies; 0: it does not */
    int64_t after_us; /**< or how long after its start another process kills it; -1: none does */
    kill_manner manner;
    bool forked; /**< no launcher: the world is opened over an all-gather */
    kill_score *score;
    hem_world_options options; /**< how a world is opened */

    int me;
    int size;
    hem_world *world;
    hem_world *twin; /**< the same ranks, for operations that end a world */
    hem_world *made; /**< by the operation */
    hem_window *window;
    hem_window *spare;   /**< for operations that end a window */
    hem_window *created; /**< by the operation */
    uint64_t entered_ns;
} kill_task;

/** An operation, and what may be expected of it. */
struct kill_op {
    const char *name;
    /** What each rank does; the victim dies in it. */
    hem_status (*act)(kill_task *t);
    bool opens;   /**< it opens a world, which the caller's all-gather may fail to do */
    bool ok_only; /**< survivors succeed whatever happens */
    bool revokes; /**< survivors leave it at different places, so whoever learns revokes */
    int deaths;   /**< 0 means 1 */
};

/** Find an operation by name, or NULL. */
const kill_op *kill_op_find(const char *name);

static inline bool kill_is_victim(const kill_task *t) {
    return t->me == t->victim;
}

uint64_t kill_now(void);

/** Start counting schedule points; the thread dies at the one that the task names. */
void kill_arm(kill_task *t);
void kill_disarm(void);

/** Die now, in the task's manner. Returns only if the manner kills somebody else. */
void kill_die(kill_task *t);

/** Have another process kill this one after a while. */
void kill_start_killer(kill_task *t);

/** Note what is wrong and end this rank. */
_Noreturn void kill_fail(const kill_task *t, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/** A call whose time counts: how long after the death does it tell of it? */
#define KILL_CALL(t, call) (kill_enter(t), kill_left((t), (call)))
void kill_enter(kill_task *t);
hem_status kill_left(kill_task *t, hem_status status);

/** A call that must end in one way. */
#define KILL_EXPECT(t, call, want) kill_expect((t), __LINE__, #call, KILL_CALL((t), call), (want))
void kill_expect(const kill_task *t, int line, const char *what, hem_status got, hem_status want);
#define KILL_CHECK(t, cond) ((cond) ? (void)0 : kill_fail((t), __LINE__, "%s does not hold", #cond))

void kill_stage_reached(const kill_task *t, kill_stage stage);

hem_window *kill_window(kill_task *t, hem_world *world, size_t bytes);

/** After the operation: learn of the death, shrink, go on without the dead, close. */
void kill_survive(kill_task *t, hem_status status);

/** A pattern that says which message it is, and its check. */
void kill_fill(void *bytes, size_t n, uint64_t tag);
bool kill_filled(const void *bytes, size_t n, uint64_t tag);

/** The whole life of a rank. @return the exit code. */
int kill_rank(kill_task *t);

/** Start `t->size` ranks without a launcher and wait for them. @return the exit code. */
int kill_fork_ranks(kill_task *t);

#endif
