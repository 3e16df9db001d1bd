/*
 * Calls that the host carries out refuse device memory, with a sentence that says what to use instead, and
 * nothing is harmed by that: messages, sparse exchanges. Host memory stays good beside it.
 *
 * hem-test: ranks=1,2 modes=processes,threads timeout=60
 */
#include "device.h"

#define WORDS 1024

typedef struct scene {
    hem_world *world;
    int me;
    int right;
    int left;
    uint64_t *device;
    uint64_t *host;
} scene;

static void refused(hem_status status) {
    CHECK_STATUS(status, HEM_ERR_UNSUPPORTED);
    CHECK_SENTENCE("hem_pipe_sendrecv");
}

static hem_message message(int peer, void *data, size_t bytes) {
    hem_message m;
    m.peer = peer;
    m.data = data;
    m.bytes = bytes;
    return m;
}

static void messages(const scene *s, size_t bytes) {
    hem_op *op = NULL;
    refused(hem_send(s->world, s->right, 1, s->device, bytes, LIMIT));
    refused(hem_recv(s->world, s->left, 1, s->device, bytes, NULL, LIMIT));
    refused(hem_send_start(s->world, s->right, 1, s->device, bytes, &op));
    refused(hem_recv_start(s->world, s->left, 1, s->device, bytes, &op));
    refused(hem_send_plan(s->world, s->right, 1, s->device, bytes, &op));
    refused(hem_recv_plan(s->world, s->left, 1, s->device, bytes, &op));
    CHECK(op == NULL);
    hem_message out = message(s->right, s->device, bytes);
    hem_message in = message(s->left, s->host, bytes);
    refused(hem_sendrecv(s->world, 1, &out, &in, LIMIT));
    out.data = s->host;
    in.data = s->device + 1;
    refused(hem_sendrecv(s->world, 1, &out, &in, LIMIT));
    refused(hem_sendrecv(s->world, 1, NULL, &in, LIMIT));
}

/* Nothing of the above was sent. */
static void good_messages(const scene *s, size_t bytes, uint64_t value) {
    uint64_t *got = (uint64_t *)calloc(WORDS, sizeof *got);
    hem_message out = message(s->right, s->host, bytes);
    hem_message in = message(s->left, got, WORDS * sizeof *got);
    s->host[0] = value + (uint64_t)s->me;
    CHECK_OK(hem_sendrecv(s->world, 1, &out, &in, LIMIT));
    CHECK_EQ(in.bytes, bytes);
    CHECK_EQ(got[0], value + (uint64_t)s->left);
    CHECK_OK(hem_send(s->world, s->right, 1, s->device, 0, LIMIT)); /* of nothing */
    CHECK_OK(hem_recv(s->world, s->left, 1, got, WORDS * sizeof *got, NULL, LIMIT));
    free(got);
}

static void sparse(const scene *s) {
    hem_sparse_result result;
    hem_parcel parcels[2];
    hem_op *op = NULL;
    for (int i = 0; i < 2; i++) {
        parcels[i].peer = s->right;
        parcels[i].bytes = 64;
        parcels[i].data = i == 0 ? s->host : s->device;
    }
    refused(hem_sparse(s->world, parcels, 2, &result, LIMIT));
    refused(hem_sparse_start(s->world, parcels, 2, &result, &op));
    CHECK(op == NULL);
    CHECK_OK(hem_sparse(s->world, parcels, 1, &result, LIMIT));
    CHECK_EQ(result.count, 1);
    hem_sparse_free(&result);
}

int rank_main(hem_world *world) {
    scene s;
    int size = hem_world_size(world);
    memset(&s, 0, sizeof s);
    s.world = world;
    s.me = hem_world_rank(world);
    s.right = (s.me + 1) % size;
    s.left = (s.me + size - 1) % size;
    s.host = (uint64_t *)calloc(WORDS, sizeof *s.host);
    good_messages(&s, 8, 1); /* before there is a device */
    CHECK_OK(hem_device_open(world, NULL));
    s.device = (uint64_t *)device_alloc(WORDS * sizeof *s.device);
    for (int i = 0; i < 3; i++) {
        messages(&s, 8);
        messages(&s, WORDS * sizeof *s.device - 8);
        good_messages(&s, 8, 10 * (uint64_t)i);
        good_messages(&s, WORDS * sizeof *s.host, 10 * (uint64_t)i);
        sparse(&s);
    }
    device_free(s.device);
    free(s.host);
    harness_close(world, HEM_OK);
    return 0;
}
