/*
 * What cannot be done is refused with a sentence, on all ranks alike where it is found while a plan is
 * made, and the next one works.
 *
 * hem-test: ranks=2,3 modes=processes,threads timeout=60
 */
#include "coll_kit.h"

static void sum_all(void *into, const void *from, size_t count, void *arg) {
    (void)into;
    (void)from;
    (void)count;
    (void)arg;
}

static hem_coll describe(hem_coll_kind kind, void *send, void *recv, size_t count) {
    hem_coll c;
    memset(&c, 0, sizeof c);
    c.struct_size = sizeof c;
    c.kind = kind;
    c.dtype = HEM_I32;
    c.op = kind == HEM_ALLREDUCE ? HEM_SUM : (hem_reduction)0;
    c.send = send;
    c.recv = recv;
    c.count = count;
    return c;
}

static void refuse(coll_kit *kit, const hem_coll *c, hem_status want) {
    hem_op *op = NULL;
    CHECK_STATUS(hem_coll_plan(kit->world, c, &op), want);
    CHECK(op == NULL);
}

/* Buffers of the host where those of the device are expected, and the other way round. */
static void check_places(coll_kit *kit, int *device, int *host) {
    bool first = kit->rank == 0;
    hem_coll c = describe(HEM_ALLREDUCE, device, first ? host : device + 100, 100);
    refuse(kit, &c, HEM_ERR_MISMATCH);
    CHECK_SENTENCE("recv of rank 0 is in host memory");
    c = describe(HEM_ALLREDUCE, first ? host : device, device + 100, 100);
    refuse(kit, &c, HEM_ERR_MISMATCH);
    CHECK_SENTENCE("send of rank 0 is in host memory");
    /* It says itself that the others have device buffers. */
    c = describe(HEM_ALLREDUCE, first ? host : device, first ? host : device + 100, 100);
    c.memory = HEM_MEMORY_DEVICE;
    refuse(kit, &c, HEM_ERR_MISMATCH);
    CHECK_NAMES_RANK(0);
    CHECK_STATUS(hem_coll_run(kit->world, &c, LIMIT), HEM_ERR_MISMATCH);
}

/* Ranks that do not call the same. */
static void check_calls(coll_kit *kit, int *device) {
    bool last = kit->rank == kit->size - 1;
    hem_coll c = describe(last ? HEM_ALLGATHER : HEM_ALLREDUCE, device, device + 100, 10);
    refuse(kit, &c, HEM_ERR_MISMATCH);
    c = describe(HEM_ALLREDUCE, device, device + 100, last ? 11 : 10);
    refuse(kit, &c, HEM_ERR_MISMATCH);
    size_t counts[3] = {1, 1, 1}, wrong[3] = {1, 1, 1};
    wrong[0] = last ? 2 : 1;
    c = describe(HEM_ALLTOALLV, device, device + 100, 0);
    c.counts = counts;
    c.send_counts = wrong;
    refuse(kit, &c, HEM_ERR_MISMATCH);
    c = describe(HEM_ALLREDUCE, device, device + 100, 10);
    c.op = last ? (hem_reduction)77 : HEM_SUM;
    refuse(kit, &c, HEM_ERR_ARG);
}

static void check_unsupported(coll_kit *kit, int *device) {
    hem_coll c = describe(HEM_ALLREDUCE, device, device + 100, 10);
    c.op = HEM_USER;
    c.user = sum_all;
    c.element = 4;
    refuse(kit, &c, HEM_ERR_UNSUPPORTED);
    CHECK_SENTENCE("user");
    c.op = HEM_MINLOC;
    c.dtype = HEM_C64;
    refuse(kit, &c, HEM_ERR_UNSUPPORTED);
    CHECK_SENTENCE("minloc");
}

static void check_starts(coll_kit *kit, int *device, int *host) {
    hem_coll c = describe(HEM_ALLREDUCE, host, host, 10);
    hem_op *op = NULL;
    hem_stream *stream = NULL;
    CHECK_OK(hem_coll_plan(kit->world, &c, &op));
    CHECK_STATUS(hem_op_start_on(op, kit->stream), HEM_ERR_UNSUPPORTED);
    CHECK_OK(hem_op_status(op));
    CHECK_OK(hem_op_free(op));
    c = describe(HEM_ALLREDUCE, device, device, 10);
    CHECK_OK(hem_coll_start(kit->world, &c, &op));
    CHECK_OK(hem_op_wait(op, LIMIT));
    CHECK_STATUS(hem_op_start_on(op, kit->stream), HEM_ERR_UNSUPPORTED);
    CHECK_OK(hem_op_free(op));
    CHECK_OK(hem_coll_plan(kit->world, &c, &op));
    CHECK_OK(hem_stream_create(kit->world, &stream));
    CHECK_STATUS(hem_op_start_on(op, NULL), HEM_ERR_ARG);
    CHECK_STATUS(hem_op_start_on(op, stream), HEM_ERR_ARG);
    CHECK_STATUS(hem_op_start_on(NULL, kit->stream), HEM_ERR_ARG);
    CHECK_STATUS(hem_op_status(NULL), HEM_ERR_ARG);
    CHECK_OK(hem_stream_destroy(stream));
    CHECK_OK(hem_op_start_on(op, kit->stream));
    device_stream_sync(kit->native);
    CHECK_OK(hem_op_status(op));
    CHECK_OK(hem_op_free(op));
}

/* A barrier has no buffers: it says where it is to be. Nobody leaves before the last has come. */
static void check_barrier(coll_kit *kit) {
    hem_coll c = describe(HEM_BARRIER, NULL, NULL, 0);
    hem_op *op = NULL;
    c.memory = HEM_MEMORY_DEVICE;
    CHECK_OK(hem_coll_plan(kit->world, &c, &op));
    int64_t begun = harness_now(); /* before rank 0 gets through this: */
    CHECK_OK(hem_sync(kit->world, LIMIT));
    if (kit->rank == 0)
        harness_sleep_ms(50);
    CHECK_OK(hem_op_start_on(op, kit->stream));
    device_stream_sync(kit->native);
    CHECK(harness_now() - begun >= HEM_MS(50));
    CHECK_OK(hem_op_status(op));
    CHECK_OK(hem_op_free(op));
}

int rank_main(hem_world *world) {
    coll_kit kit = coll_kit_open(world);
    int *device = (int *)device_alloc(1000 * sizeof *device);
    int host[200] = {0};
    check_places(&kit, device, host);
    check_calls(&kit, device);
    check_unsupported(&kit, device);
    check_starts(&kit, device, host);
    check_barrier(&kit);
    coll_kit_close(&kit);
    device_free(device);
    harness_close(world, HEM_OK);
    return 0;
}
