/*
 * A wait for what does not come ends at its limit, even if the wait itself always finds something else
 * to do: a message to oneself, whose end starts the next one.
 *
 * hem-test: ranks=1,2 modes=processes,threads timeout=60
 */
#include "harness.h"

#define BYTES ((size_t)4096)
#define SHORT HEM_MS(200)
/* What a machine with more to do may take longer. */
#define SLACK HEM_SEC(8)

enum {
    TRAFFIC = 1,
    QUIET
};

typedef struct traffic {
    hem_op *send;
    hem_op *recv;
    uint64_t count;
    bool end;
    unsigned char out[BYTES];
    unsigned char in[BYTES];
} traffic;

static void start_both(traffic *t) {
    CHECK_OK(hem_op_start(t->recv));
    CHECK_OK(hem_op_start(t->send));
}

static void start_next(hem_op *op, hem_status status, void *arg) {
    traffic *t = arg;
    (void)op;
    CHECK_OK(status);
    t->count++;
    if (!t->end)
        start_both(t);
}

static void check_limits(hem_world *world) {
    int me = hem_world_rank(world);
    char byte;
    hem_op *op = NULL;
    size_t which = 0;
    int64_t start = harness_now();
    CHECK_STATUS(hem_recv(world, me, QUIET, &byte, 1, NULL, SHORT), HEM_ERR_TIMEOUT);
    CHECK_OK(hem_recv_start(world, me, QUIET, &byte, 1, &op));
    CHECK_STATUS(hem_op_wait(op, SHORT), HEM_ERR_TIMEOUT);
    CHECK_STATUS(hem_op_wait_any(&op, 1, &which, SHORT), HEM_ERR_TIMEOUT);
    CHECK_STATUS(hem_op_wait_all(&op, 1, SHORT), HEM_ERR_TIMEOUT);
    CHECK_STATUS(hem_op_wait(op, 0), HEM_ERR_TIMEOUT);
    CHECK(harness_now() - start < 4 * SHORT + SLACK);
    CHECK_OK(hem_op_free(op));
}

int rank_main(hem_world *world) {
    static _Thread_local traffic t;
    int me = hem_world_rank(world);
    CHECK_OK(hem_send_plan(world, me, TRAFFIC, t.out, BYTES, &t.send));
    CHECK_OK(hem_recv_plan(world, me, TRAFFIC, t.in, BYTES, &t.recv));
    CHECK_OK(hem_op_on_done(t.recv, start_next, &t));
    start_both(&t);
    check_limits(world);
    CHECK(t.count > 100); /* it did have something else to do */
    t.end = true;
    CHECK_OK(hem_op_wait(t.recv, LIMIT));
    CHECK_OK(hem_op_wait(t.send, LIMIT));
    CHECK_OK(hem_op_free(t.recv));
    CHECK_OK(hem_op_free(t.send));
    harness_close(world, HEM_OK);
    return 0;
}
