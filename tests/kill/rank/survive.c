/* The life of a rank around the operation: set up, act, and then die or go on without the dead. */
#include "task.h"

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

enum {
    WINDOW_BYTES = 2048,
    NEVER_ID = 9,
    SHRINKS_MAX = 4
};

static bool nobody_dies(const kill_task *t) {
    return t->point == 0 && t->after_us < 0;
}

static int expected_size(const kill_task *t) {
    return t->size - (t->op->deaths > 1 ? t->op->deaths : 1);
}

/* Everything works in a world of the living. */
static void live_on(kill_task *t, hem_world *rest) {
    uint64_t word = 11;
    int size = hem_world_size(rest);
    int right = (hem_world_rank(rest) + 1) % size;
    int left = (hem_world_rank(rest) + size - 1) % size;
    hem_window *window = kill_window(t, rest, 64);
    for (uint64_t i = 1; i <= 3; i++) {
        KILL_EXPECT(t, hem_barrier(window, 0, KILL_LIMIT), HEM_OK);
        KILL_EXPECT(t, hem_put_signal(window, right, 8, &word, sizeof word, 0, 1), HEM_OK);
        KILL_EXPECT(t, hem_wait_signal_from(window, left, 0, HEM_GE, i, KILL_LIMIT), HEM_OK);
    }
    KILL_EXPECT(t, hem_window_destroy(window), HEM_OK);
    KILL_EXPECT(t, hem_world_close(rest), HEM_OK);
}

/* Whoever died after it had come is in the new world, too; then that is shrunk again. */
static void shrink_and_live(kill_task *t, hem_world *world, bool keep) {
    hem_world *rest = NULL;
    for (int i = 0; hem_world_size(world) > expected_size(t); i++) {
        KILL_CHECK(t, i < SHRINKS_MAX);
        KILL_EXPECT(t, hem_world_shrink(world, &rest), HEM_OK);
        if (!keep)
            KILL_EXPECT(t, hem_world_close(world), HEM_ERR_PEER);
        keep = false;
        world = rest;
    }
    KILL_CHECK(t, hem_world_size(world) == expected_size(t));
    live_on(t, world);
}

/* The call that cannot succeed without the victim. */
static void learn(kill_task *t) {
    if (t->op->revokes) {
        KILL_EXPECT(t, hem_world_revoke(t->world), HEM_OK);
    } else if (t->window != NULL) {
        KILL_EXPECT(t, hem_wait_signal_from(t->window, t->victim, NEVER_ID, HEM_GE, 1, KILL_LIMIT),
                    HEM_ERR_PEER);
    } else {
        const hem_window_options options = {
            .struct_size = sizeof options, .bytes = 64, .timeout_ns = KILL_LIMIT};
        KILL_EXPECT(t, hem_window_create(t->world, &options, &t->window), HEM_ERR_PEER);
    }
    KILL_CHECK(t, hem_world_alive(t->world, t->victim) == 0);
    kill_stage_reached(t, KILL_STAGE_LEARNT);
}

/* Nothing that the dead had part in can end well, and everything ends. */
static void give_up(kill_task *t) {
    hem_window *windows[] = {t->created, t->spare, t->window};
    for (int i = 0; i < 3; i++) {
        hem_status status = windows[i] != NULL ? hem_window_destroy(windows[i]) : HEM_ERR_PEER;
        if (status != HEM_ERR_REVOKED || !t->op->revokes)
            kill_expect(t, __LINE__, "hem_window_destroy", status, HEM_ERR_PEER);
    }
    if (t->twin != NULL)
        KILL_EXPECT(t, hem_world_close(t->twin), HEM_ERR_PEER);
    KILL_EXPECT(t, hem_world_close(t->world), HEM_ERR_PEER);
}

/* Whether the operation may end like this when a rank dies in it. */
static bool is_good(const kill_task *t, hem_status status) {
    switch (status) {
    case HEM_OK:
        return true;
    case HEM_ERR_PEER:
        return !t->op->ok_only;
    case HEM_ERR_REVOKED:
        return t->op->revokes;
    case HEM_ERR_SYSTEM:
        return t->op->opens && t->forked;
    default:
        return false;
    }
}

void kill_survive(kill_task *t, hem_status status) {
    if (!is_good(t, status))
        kill_fail(t, __LINE__, "%s gave %s: %s", t->op->name, hem_status_name(status),
                  hem_last_error());
    learn(t);
    if (t->made != NULL)
        shrink_and_live(t, t->made, false);
    shrink_and_live(t, t->world, true);
    kill_stage_reached(t, KILL_STAGE_SHRUNK);
    give_up(t);
}

/* Nobody has died: everything ends well. */
static void part(kill_task *t) {
    KILL_EXPECT(t, hem_barrier(t->window, 3, KILL_LIMIT), HEM_OK);
    if (t->made != NULL)
        KILL_EXPECT(t, hem_world_close(t->made), HEM_OK);
    if (t->created != NULL)
        KILL_EXPECT(t, hem_window_destroy(t->created), HEM_OK);
    if (t->spare != NULL)
        KILL_EXPECT(t, hem_window_destroy(t->spare), HEM_OK);
    if (t->window != NULL)
        KILL_EXPECT(t, hem_window_destroy(t->window), HEM_OK);
    if (t->twin != NULL)
        KILL_EXPECT(t, hem_world_close(t->twin), HEM_OK);
    KILL_EXPECT(t, hem_world_close(t->world), HEM_OK);
}

/* A world that could not be opened because a rank died: it cannot be opened later either. */
static void not_opened(kill_task *t, hem_status status) {
    if (t->op->act != NULL || nobody_dies(t) || !is_good(t, status))
        kill_fail(t, __LINE__, "hem_world_open gave %s: %s", hem_status_name(status),
                  hem_last_error());
    if (!t->forked)
        KILL_EXPECT(t, hem_world_open(&t->options, &t->world), HEM_ERR_PEER);
    kill_stage_reached(t, KILL_STAGE_FINISHED);
}

static void set_up(kill_task *t) {
    t->window = kill_window(t, t->world, WINDOW_BYTES);
    t->spare = kill_window(t, t->world, 64);
    KILL_EXPECT(t, hem_world_split(t->world, 0, 0, &t->twin), HEM_OK);
    KILL_EXPECT(t, hem_barrier(t->window, 0, KILL_LIMIT), HEM_OK);
}

/* Where the launcher is killed, a rank and its children would live for ever if they were let. */
static void stay_for_ever(void) {
    if (fork() == 0)
        prctl(PR_SET_NAME, "orphan", 0, 0, 0);
    for (;;)
        pause();
}

static hem_status act(kill_task *t) {
    if (t->manner != KILL_SELF && fork() == 0)
        stay_for_ever();
    if (kill_is_victim(t))
        kill_arm(t);
    hem_status status = t->op->act(t);
    kill_disarm();
    return status;
}

static void after(kill_task *t, hem_status status) {
    kill_record *record = &t->score->ranks[t->me];
    record->status = status;
    record->size = t->made != NULL ? hem_world_size(t->made) : 0;
    kill_stage_reached(t, KILL_STAGE_ACTED);
    if (nobody_dies(t)) {
        KILL_CHECK(t, status == HEM_OK);
        part(t);
        return;
    }
    /* The operation had fewer points than that: then the victim dies behind it. */
    if (kill_is_victim(t) && t->after_us < 0)
        kill_die(t);
    if (t->manner != KILL_SELF || kill_is_victim(t))
        stay_for_ever();
    kill_survive(t, status);
}

int kill_rank(kill_task *t) {
    bool dies_in_open = t->op->act == NULL;
    kill_stage_reached(t, KILL_STAGE_STARTED);
    if (dies_in_open && kill_is_victim(t))
        kill_arm(t);
    hem_status status = KILL_CALL(t, hem_world_open(&t->options, &t->world));
    kill_disarm();
    if (status != HEM_OK) {
        t->score->ranks[t->me].status = status;
        not_opened(t, status);
        return 0;
    }
    if (!dies_in_open || nobody_dies(t))
        set_up(t);
    kill_stage_reached(t, KILL_STAGE_READY);
    after(t, dies_in_open ? HEM_OK : act(t));
    kill_stage_reached(t, KILL_STAGE_FINISHED);
    return 0;
}
