/*
 * hem-bench-ucx: two forked ranks over UCX, as it chooses its transports on this machine.
 *
 * signal   ucp_put of the data, ucp_worker_fence, ucp_put of a flag that the receiver polls; and an
 *          active message whose handler checks the payload. The faster one counts.
 * put, get ucp_put or ucp_get into memory that UCX allocated, then ucp_ep_flush
 * barrier  UCX has none
 */
#include "bench.h"
#include "pair.h"
#include "ucx_link.h"

#include <sys/socket.h>
#include <unistd.h>

enum {
    SIGNAL_FLAG = 0,
    POST_FLAG = 128,
    DATA_OFFSET = 4096,
    SPINS_PER_PROGRESS = 256,
    MESSAGE_ID = 1,
};

struct ucx {
    struct bench_world world;
    struct bench_pair pair;
    struct ucx_link link;
    unsigned char *inbox; /* where large active messages go */
    uint64_t incoming;    /* the number of the next active message */
    uint64_t arrived;     /* the last one that is complete and checked */
    uint64_t posted;
    uint64_t awaited;
};

/* Rank 0 waits for the answer, so that both leave at about the same time. */
static uint64_t agree(void *ctx, uint64_t value) {
    struct ucx *ucx = ctx;
    int socket = ucx->link.socket;

    if (ucx->pair.rank == 0) {
        ucx_socket_write(socket, &value, sizeof(value));
        ucx_socket_read(socket, &value, sizeof(value));
    } else {
        ucx_socket_read(socket, &value, sizeof(value));
        ucx_socket_write(socket, &value, sizeof(value));
    }
    return value;
}

BENCH_EXPAND void put_start(struct ucx *ucx, const void *from, size_t bytes, size_t offset,
                            ucs_status_ptr_t *request_p) {
    static const ucp_request_param_t param = {0};

    *request_p =
        ucp_put_nbx(ucx->link.ep, from, bytes, ucx->link.remote + offset, ucx->link.rkey, &param);
}

BENCH_EXPAND void put(struct ucx *ucx, const void *from, size_t bytes, size_t offset) {
    ucs_status_ptr_t request;

    put_start(ucx, from, bytes, offset, &request);
    if (request != NULL)
        ucx_wait(&ucx->link, request, "ucp_put_nbx");
}

/* A put may need the target's help, so now and then the library is let in. */
BENCH_EXPAND void wait_flag(struct ucx *ucx, size_t offset, uint64_t value) {
    uint64_t *flag = (uint64_t *)(void *)(ucx->link.base + offset);

    for (int spins = 1; __atomic_load_n(flag, __ATOMIC_ACQUIRE) < value; spins++) {
        if (spins % SPINS_PER_PROGRESS == 0)
            ucp_worker_progress(ucx->link.worker);
    }
}

/* Signal by two puts. */

BENCH_EXPAND void put_send(void *ctx, uint64_t seq) {
    struct ucx *ucx = ctx;

    put(ucx, ucx->pair.local, ucx->pair.bytes, DATA_OFFSET);
    ucp_worker_fence(ucx->link.worker);
    put(ucx, &seq, sizeof(seq), SIGNAL_FLAG);
}

BENCH_EXPAND const void *put_recv(void *ctx, uint64_t seq) {
    struct ucx *ucx = ctx;

    wait_flag(ucx, SIGNAL_FLAG, seq);
    return ucx->pair.window;
}

static double put_signal_batch(void *ctx, uint64_t iters) {
    struct ucx *ucx = ctx;

    return bench_pingpong(&ucx->pair, iters, put_send, put_recv, ucx);
}

/* Signal by active message. */

static void check_message(struct ucx *ucx, const void *data) {
    if (!bench_check(data, ucx->pair.bytes, ucx->incoming))
        bench_die("rank %d: active message %llu of %zu bytes is not what was sent", ucx->pair.rank,
                  (unsigned long long)ucx->incoming, ucx->pair.bytes);
    ucx->arrived = ucx->incoming;
}

static void large_message_done(void *request, ucs_status_t status, size_t length, void *user) {
    struct ucx *ucx = user;

    (void)length;
    ucx_check(status, "ucp_am_recv_data_nbx");
    check_message(ucx, ucx->inbox);
    ucp_request_free(request);
}

static ucs_status_t on_message(void *arg, const void *header, size_t header_length, void *data,
                               size_t length, const ucp_am_recv_param_t *info) {
    struct ucx *ucx = arg;
    ucp_request_param_t param = {
        .op_attr_mask =
            UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FLAG_NO_IMM_CMPL,
        .cb.recv_am = large_message_done,
        .user_data = ucx,
    };

    (void)header;
    (void)header_length;
    if ((info->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) == 0) {
        check_message(ucx, data);
        return UCS_OK;
    }
    ucs_status_ptr_t request =
        ucp_am_recv_data_nbx(ucx->link.worker, data, ucx->inbox, length, &param);
    if (UCS_PTR_IS_ERR(request))
        ucx_check(UCS_PTR_STATUS(request), "ucp_am_recv_data_nbx");
    return UCS_INPROGRESS;
}

BENCH_EXPAND void message_send(void *ctx, uint64_t seq) {
    static const ucp_request_param_t param = {0};
    struct ucx *ucx = ctx;

    /* The answer may come while UCX still works on the sending. */
    ucx->incoming = seq + 1;
    ucs_status_ptr_t request = ucp_am_send_nbx(ucx->link.ep, MESSAGE_ID, NULL, 0, ucx->pair.local,
                                               ucx->pair.bytes, &param);
    if (request != NULL)
        ucx_wait(&ucx->link, request, "ucp_am_send_nbx");
}

BENCH_EXPAND const void *message_recv(void *ctx, uint64_t seq) {
    struct ucx *ucx = ctx;

    while (ucx->arrived != seq)
        ucp_worker_progress(ucx->link.worker);
    return NULL;
}

static double message_batch(void *ctx, uint64_t iters) {
    struct ucx *ucx = ctx;

    ucx->incoming = ucx->pair.seq + 1;
    return bench_pingpong(&ucx->pair, iters, message_send, message_recv, ucx);
}

/* Bandwidth. */

BENCH_EXPAND void move_put(void *ctx, size_t offset) {
    struct ucx *ucx = ctx;
    ucs_status_ptr_t request;

    put_start(ucx, ucx->pair.local + offset, ucx->pair.bytes, DATA_OFFSET + offset, &request);
    if (UCS_PTR_IS_ERR(request))
        ucx_check(UCS_PTR_STATUS(request), "ucp_put_nbx");
    if (request != NULL)
        ucp_request_free(request);
}

BENCH_EXPAND void move_get(void *ctx, size_t offset) {
    static const ucp_request_param_t param = {0};
    struct ucx *ucx = ctx;
    ucs_status_ptr_t request =
        ucp_get_nbx(ucx->link.ep, ucx->pair.local + offset, ucx->pair.bytes,
                    ucx->link.remote + DATA_OFFSET + offset, ucx->link.rkey, &param);

    if (UCS_PTR_IS_ERR(request))
        ucx_check(UCS_PTR_STATUS(request), "ucp_get_nbx");
    if (request != NULL)
        ucp_request_free(request);
}

BENCH_EXPAND void flush(void *ctx) {
    static const ucp_request_param_t param = {0};
    struct ucx *ucx = ctx;

    ucx_wait(&ucx->link, ucp_ep_flush_nbx(ucx->link.ep, &param), "ucp_ep_flush_nbx");
}

BENCH_EXPAND void post(void *ctx) {
    struct ucx *ucx = ctx;
    uint64_t value = ++ucx->posted;

    put(ucx, &value, sizeof(value), POST_FLAG);
}

BENCH_EXPAND void await(void *ctx) {
    struct ucx *ucx = ctx;

    wait_flag(ucx, POST_FLAG, ++ucx->awaited);
}

static double put_batch(void *ctx, uint64_t iters) {
    static const struct bench_window_ops ops = {move_put, flush, post, await};
    struct ucx *ucx = ctx;

    return bench_put_windows(&ucx->pair, iters, &ops, ucx);
}

static double get_batch(void *ctx, uint64_t iters) {
    static const struct bench_window_ops ops = {move_get, flush, post, await};
    struct ucx *ucx = ctx;

    return bench_get_windows(&ucx->pair, iters, &ops, ucx);
}

/* The benchmarks. */

static void run_size(struct ucx *ucx, enum bench_kind kind) {
    static const bench_batch signals[] = {put_signal_batch, message_batch};
    size_t bytes = ucx->pair.bytes;

    if (kind == BENCH_SIGNAL) {
        struct bench_result result = bench_fastest(&ucx->world, signals, 2, ucx);
        bench_print(&ucx->world, NULL, kind, bytes, result, 2);
        return;
    }
    bench_batch batch = kind == BENCH_GET ? get_batch : put_batch;
    struct bench_result result = bench_measure(&ucx->world, batch, ucx);
    bench_print(&ucx->world, NULL, kind, bytes, result, bench_window(bytes));
}

static void listen_for_messages(struct ucx *ucx) {
    ucp_am_handler_param_t param = {
        .field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
                      UCP_AM_HANDLER_PARAM_FIELD_ARG,
        .id = MESSAGE_ID,
        .cb = on_message,
        .arg = ucx,
    };

    ucx_check(ucp_worker_set_am_recv_handler(ucx->link.worker, &param),
              "ucp_worker_set_am_recv_handler");
}

struct job {
    struct bench_args args;
    int sockets[2];
};

static int rank_main(int rank, void *arg) {
    const struct job *job = arg;
    const struct hemt_sizes *sizes = &job->args.sizes;
    struct ucx ucx = {
        .world = {.impl = "ucx", .rank = rank, .ranks = 2, .agree = agree},
        .pair = {.rank = rank},
    };
    size_t region = bench_region(sizes);

    /* Without the other end of one's own socket a dead rank is seen as its end. */
    close(job->sockets[1 - rank]);
    ucx.world.ctx = &ucx;
    ucx_link_open(&ucx.link, job->sockets[rank], DATA_OFFSET + region);
    ucx.pair.window = ucx.link.base + DATA_OFFSET;
    ucx.pair.local = bench_alloc(region);
    ucx.inbox = bench_alloc(region);
    listen_for_messages(&ucx);
    bench_yard_open(&ucx.world);
    for (size_t i = 0; i < sizes->count; i++) {
        ucx.pair.bytes = sizes->bytes[i];
        run_size(&ucx, job->args.kind);
    }
    agree(&ucx, 0);
    ucx_link_close(&ucx.link);
    return 0;
}

int main(int argc, char **argv) {
    struct job job;

    bench_args_parse(argc, argv, &job.args);
    if (job.args.kind == BENCH_RAW || job.args.kind == BENCH_BARRIER || job.args.ranks != 2)
        bench_die("this benchmark does not run over UCX with %d ranks", job.args.ranks);
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, job.sockets) != 0)
        bench_die("no pair of sockets");
    return bench_fork(2, rank_main, &job);
}
