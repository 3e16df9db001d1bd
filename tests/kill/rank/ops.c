/* The operations in which a rank is killed. */
#include "task.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    DATA_ID = 2,
    REPLY_ID = 3,
    NEVER_ID = 9,
    PLACE = 256,
    MESSAGES = 5,
    STOP_MS = 500
};

static hem_status first_of(hem_status a, hem_status b) {
    return a != HEM_OK ? a : b;
}

static hem_status wait_for(kill_task *t, int peer, uint32_t id, uint64_t value) {
    return KILL_CALL(t, hem_wait_signal_from(t->window, peer, id, HEM_GE, value, KILL_LIMIT));
}

static size_t length_of(uint64_t message) {
    static const size_t lengths[MESSAGES] = {8, 32, 100, 16, 200};
    return lengths[message];
}

static bool has_message(const kill_task *t, uint64_t message) {
    const unsigned char *memory = hem_window_memory(t->window);
    return kill_filled(memory + message * PLACE, length_of(message), message);
}

/* Put, then tell. Who is told has the bytes. */
static hem_status put(kill_task *t) {
    if (!kill_is_victim(t)) {
        hem_status status = wait_for(t, t->victim, DATA_ID, 1);
        KILL_CHECK(t, status != HEM_OK || has_message(t, 4));
        return status;
    }
    unsigned char bytes[PLACE];
    hem_status status = HEM_OK;
    kill_fill(bytes, length_of(4), 4);
    for (int peer = 0; peer < t->size && status == HEM_OK; peer++) {
        status = hem_put(t->window, peer, 4 * PLACE, bytes, length_of(4));
        if (status == HEM_OK)
            status = hem_signal(t->window, peer, DATA_ID, HEM_SIGNAL_ADD, 1);
    }
    return status;
}

static hem_status send(kill_task *t, int to, uint64_t message) {
    unsigned char bytes[PLACE];
    kill_fill(bytes, length_of(message), message);
    return hem_put_signal(t->window, to, message * PLACE, bytes, length_of(message), DATA_ID, 1);
}

/* Short and long messages in a row. Each one that is announced is there, although its sender
 * died. */
static hem_status put_signal(kill_task *t) {
    hem_status status = HEM_OK;
    if (kill_is_victim(t)) {
        for (uint64_t i = 0; i < MESSAGES; i++)
            for (int peer = 0; peer < t->size; peer++)
                status = peer != t->me ? first_of(status, send(t, peer, i)) : status;
        return status;
    }
    uint64_t seen = 0;
    status = wait_for(t, t->victim, DATA_ID, MESSAGES);
    KILL_EXPECT(t, hem_read_signal_from(t->window, t->victim, DATA_ID, &seen), HEM_OK);
    KILL_CHECK(t, status == HEM_ERR_PEER ? seen <= MESSAGES : seen == MESSAGES);
    for (uint64_t i = 0; i < seen; i++)
        KILL_CHECK(t, has_message(t, i));
    return status;
}

/* A survivor's side of an operation in which the victim waits: send late, see it in place, hear. */
static hem_status answer(kill_task *t, bool sends) {
    hem_status status = HEM_OK;
    if (sends) {
        usleep(1000 * (useconds_t)(1 + t->me));
        status = KILL_CALL(t, send(t, t->victim, 3));
        if (status == HEM_OK)
            status = KILL_CALL(t, hem_flush(t->window, t->victim));
    }
    return first_of(status, wait_for(t, t->victim, REPLY_ID, 1));
}

static hem_status reply(kill_task *t) {
    KILL_CHECK(t, has_message(t, 3));
    return hem_signal_all(t->window, REPLY_ID, HEM_SIGNAL_ADD, 1);
}

static hem_status wait_from(kill_task *t) {
    int sender = (t->victim + 1) % t->size;
    if (!kill_is_victim(t))
        return answer(t, t->me == sender);
    hem_status status = wait_for(t, sender, DATA_ID, 1);
    return status == HEM_OK ? reply(t) : status;
}

static hem_status wait_sum(kill_task *t) {
    if (!kill_is_victim(t))
        return answer(t, true);
    uint64_t all = (uint64_t)t->size - 1;
    hem_status status = hem_wait_signal(t->window, DATA_ID, HEM_GE, all, KILL_LIMIT);
    return status == HEM_OK ? reply(t) : status;
}

/* The message was sent before the flush, so that the survivors have it whatever happens. */
static hem_status flush(kill_task *t) {
    hem_status status = HEM_OK;
    if (!kill_is_victim(t)) {
        status = wait_for(t, t->victim, DATA_ID, 1);
        KILL_CHECK(t, status != HEM_OK || has_message(t, 3));
        return status;
    }
    kill_disarm();
    for (int peer = 0; peer < t->size; peer++)
        status = peer != t->me ? first_of(status, send(t, peer, 3)) : status;
    kill_arm(t);
    for (int peer = 0; peer < t->size; peer++)
        status = first_of(status, hem_flush(t->window, peer));
    return status;
}

static hem_status barrier(kill_task *t) {
    hem_status status = HEM_OK;
    for (uint32_t i = 0; i < 3 && status == HEM_OK; i++)
        status = KILL_CALL(t, hem_barrier(t->window, 1 + i % 2, KILL_LIMIT));
    return status;
}

static hem_status create(kill_task *t) {
    const hem_window_options options = {
        .struct_size = sizeof options, .bytes = 10000, .timeout_ns = KILL_LIMIT};
    return KILL_CALL(t, hem_window_create(t->world, &options, &t->created));
}

static hem_status destroy(kill_task *t) {
    hem_window *window = t->spare;
    t->spare = NULL;
    return KILL_CALL(t, hem_window_destroy(window));
}

static hem_status split(kill_task *t) {
    return KILL_CALL(t, hem_world_split(t->world, 1, -t->me, &t->made));
}

static hem_status shrink(kill_task *t) {
    return KILL_CALL(t, hem_world_shrink(t->world, &t->made));
}

/* A shrink because of one death, in which another rank dies. */
static hem_status shrink_again(kill_task *t) {
    int first = (t->victim + 1) % t->size;
    kill_disarm();
    if (t->me == first && (t->point != 0 || t->after_us >= 0))
        kill(getpid(), SIGKILL);
    hem_status status = HEM_OK;
    if (t->point != 0)
        status = hem_wait_signal_from(t->window, first, NEVER_ID, HEM_GE, 1, KILL_LIMIT);
    KILL_CHECK(t, status == (t->point != 0 ? HEM_ERR_PEER : HEM_OK));
    if (kill_is_victim(t))
        kill_arm(t);
    return shrink(t);
}

static hem_status close_world(kill_task *t) {
    hem_world *world = t->twin;
    t->twin = NULL;
    return KILL_CALL(t, hem_world_close(world));
}

/* A second world while the first is open. */
static hem_status reopen(kill_task *t) {
    return KILL_CALL(t, hem_world_open(&t->options, &t->made));
}

/* Some of everything, for kills at random moments. Each call only if the one before went well. */
static hem_status mix_once(kill_task *t, uint64_t round) {
    int right = (t->me + 1) % t->size;
    int left = (t->me + t->size - 1) % t->size;
    hem_window *window = NULL;
    hem_world *world = NULL;
    const hem_window_options options = {
        .struct_size = sizeof options, .bytes = 256, .timeout_ns = KILL_LIMIT};
    hem_status status = KILL_CALL(t, send(t, right, round % MESSAGES));
    if (status == HEM_OK)
        status = wait_for(t, left, DATA_ID, round);
    if (status == HEM_OK)
        status = KILL_CALL(t, hem_flush(t->window, right));
    if (status == HEM_OK)
        status = KILL_CALL(t, hem_barrier(t->window, 0, KILL_LIMIT));
    if (status == HEM_OK && round % 4 == 0) {
        status = KILL_CALL(t, hem_window_create(t->world, &options, &window));
        if (status == HEM_OK)
            status = KILL_CALL(t, hem_barrier(window, 0, KILL_LIMIT));
        if (status == HEM_OK)
            status = KILL_CALL(t, hem_window_destroy(window));
    }
    if (status == HEM_OK && round % 8 == 0) {
        status = KILL_CALL(t, hem_world_split(t->world, 0, 0, &world));
        if (status == HEM_OK)
            status = KILL_CALL(t, hem_world_close(world));
    }
    return status;
}

static hem_status mix(kill_task *t) {
    hem_status status = HEM_OK;
    uint64_t rounds = t->after_us < 0 ? 20 : UINT64_MAX;
    if (kill_is_victim(t))
        kill_start_killer(t);
    for (uint64_t round = 1; round <= rounds && status == HEM_OK; round++)
        status = mix_once(t, round);
    return status;
}

/* A child of the victim stops it for a while. */
static void be_stopped(void) {
    pid_t victim = getpid();
    pid_t child = fork();
    if (child == 0) {
        usleep(STOP_MS * 1000);
        kill(victim, SIGCONT);
        _exit(0);
    }
    raise(SIGSTOP);
    waitpid(child, NULL, 0);
}

/* A stopped rank is slow, not dead. */
static hem_status stop(kill_task *t) {
    uint64_t start = kill_now();
    if (kill_is_victim(t)) {
        be_stopped();
        KILL_EXPECT(t, hem_signal_all(t->window, DATA_ID, HEM_SIGNAL_ADD, 1), HEM_OK);
        return hem_barrier(t->window, 0, KILL_LIMIT);
    }
    KILL_EXPECT(t,
                hem_wait_signal_from(t->window, t->victim, DATA_ID, HEM_GE, 1, HEM_MS(STOP_MS / 2)),
                HEM_ERR_TIMEOUT);
    KILL_CHECK(t, hem_world_alive(t->world, t->victim) == 1);
    KILL_EXPECT(t, send(t, t->victim, 1), HEM_OK);
    KILL_EXPECT(t, hem_flush(t->window, t->victim), HEM_OK);
    hem_status status = wait_for(t, t->victim, DATA_ID, 1);
    KILL_CHECK(t, kill_now() - start >= (uint64_t)HEM_MS(STOP_MS / 2));
    return first_of(status, hem_barrier(t->window, 0, KILL_LIMIT));
}

/* One rank is stopped, another dies: the third learns of it all the same, the first later. */
static hem_status stop_and_die(kill_task *t) {
    if (kill_is_victim(t)) {
        kill_disarm();
        usleep(STOP_MS * 1000 / 5);
        kill_arm(t);
        return hem_signal_all(t->window, DATA_ID, HEM_SIGNAL_ADD, 1);
    }
    if (t->me == (t->victim + 1) % t->size)
        be_stopped();
    return wait_for(t, t->victim, DATA_ID, 1);
}

/* Two die, one shortly after the other: perhaps while it was telling of the first one's death. */
static hem_status two_die(kill_task *t) {
    int second = (t->victim + 1) % t->size;
    if (kill_is_victim(t))
        return hem_signal_all(t->window, DATA_ID, HEM_SIGNAL_ADD, 1);
    if (t->me == second && t->point != 0) {
        while (__atomic_load_n(&t->score->death_ns, __ATOMIC_ACQUIRE) == 0)
            continue;
        usleep((useconds_t)(kill_now() % 300));
        kill(getpid(), SIGKILL);
    }
    hem_status status = wait_for(t, t->victim, DATA_ID, 1);
    if (t->point != 0)
        KILL_EXPECT(t, hem_wait_signal_from(t->window, second, NEVER_ID, HEM_GE, 1, KILL_LIMIT),
                    HEM_ERR_PEER);
    return status;
}

const kill_op *kill_op_find(const char *name) {
    static const kill_op ops[] = {
        {.name = "put", .act = put},
        {.name = "put_signal", .act = put_signal},
        {.name = "wait_signal_from", .act = wait_from},
        {.name = "wait_signal", .act = wait_sum},
        {.name = "flush", .act = flush, .ok_only = true},
        {.name = "barrier", .act = barrier},
        {.name = "window_create", .act = create},
        {.name = "window_destroy", .act = destroy},
        {.name = "split", .act = split},
        {.name = "shrink", .act = shrink, .ok_only = true},
        {.name = "shrink_again", .act = shrink_again, .ok_only = true, .deaths = 2},
        {.name = "two_die", .act = two_die, .deaths = 2},
        {.name = "open", .opens = true},
        {.name = "reopen", .act = reopen, .opens = true},
        {.name = "close", .act = close_world},
        {.name = "mix", .act = mix, .revokes = true},
        {.name = "stop", .act = stop, .ok_only = true},
        {.name = "stop_and_die", .act = stop_and_die},
    };
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
        if (strcmp(ops[i].name, name) == 0)
            return &ops[i];
    return NULL;
}
