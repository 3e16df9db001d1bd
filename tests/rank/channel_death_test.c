/*
 * A rank dies while the others wait for it on a channel, in every call, and in the middle of a
 * large send and a large receive. Each survivor gets HEM_ERR_PEER within 50 ms of the death; what
 * the dead rank had sent whole before is still received; the survivors' channels work on, and so do
 * those of a shrunk world.
 *
 * As threads, a rank that returns without closing is dead. As processes, `prog KIND VICTIM MANNER`
 * runs one case under the launcher; tests/script/channel-death.sh does that and checks the exit
 * code. HEM_TEST_DEATH_MS (50) is the limit.
 *
 * hem-test: ranks=2,3,5 modes=threads timeout=60
 */
#include "channel_waits.h"
#include "death_clock.h"

#include <signal.h>
#include <unistd.h>

static struct plan {
    enum chan_wait kind;
    int victim;
    const char *manner;
    bool early;
} plan;

struct rank {
    hem_world *world;
    hem_world *twin; /* for the clock, so that the first world's channels stay unused */
    hem_window *clock;
    int me;
    int size;
};

static const size_t last_words[] = {0, 8, 40, 41, 3000};

static void say_last_words(const struct rank *r) {
    uint8_t data[4096];

    for (int peer = 0; peer < r->size && plan.kind != CHAN_PREPARE; peer++) {
        for (uint32_t i = 0; i < 5 && peer != r->me; i++) {
            chan_fill(data, last_words[i], i);
            CHECK_OK(hem_send(r->world, peer, 1 + i / 2, data, last_words[i], LIMIT));
        }
    }
}

/* Only now, long after, does anybody look for them. */
static void hear_last_words(const struct rank *r) {
    uint8_t data[4096];
    size_t got = 0;

    for (uint32_t i = 0; i < 5; i++) {
        CHECK_OK(hem_recv(r->world, plan.victim, 1 + i / 2, data, sizeof data, &got, LIMIT));
        CHECK_EQ(got, last_words[i]);
        CHECK_BYTES(data, got, i);
    }
    for (uint32_t channel = 0; channel < 5; channel++) {
        CHECK_STATUS(hem_recv(r->world, plan.victim, channel, data, sizeof data, &got, LIMIT),
                     HEM_ERR_PEER);
        CHECK_NAMES_RANK(plan.victim);
    }
}

static int die(const struct rank *r) {
    chan_wait_begin(plan.kind, r->world);
    if (!plan.early)
        harness_sleep_ms(12);
    death_clock_stamp(r->twin, r->clock);
    if (strcmp(plan.manner, "kill") == 0)
        raise(SIGKILL);
    if (strcmp(plan.manner, "exit") == 0)
        _exit(3);
    return atoi(plan.manner);
}

static void wait_until_dead(struct rank *r) {
    hem_status status;

    if (plan.early)
        harness_sleep_ms(60);
    status = chan_wait_for(plan.kind, r->world, plan.victim);
    if (status != HEM_ERR_PEER)
        harness_fail(__FILE__, __LINE__, "%s gave %s, not HEM_ERR_PEER: %s",
                     chan_wait_name(plan.kind), hem_status_name(status), hem_last_error());
    CHECK_NAMES_RANK(plan.victim);
    if (!plan.early)
        death_clock_check(r->twin, r->clock, chan_wait_name(plan.kind), plan.victim, 0, false);
}

static void sends_fail(const struct rank *r) {
    uint8_t data[100] = {0};
    hem_op *op = NULL;

    CHECK_STATUS(hem_send(r->world, plan.victim, 0, data, 8, LIMIT), HEM_ERR_PEER);
    CHECK_STATUS(hem_send(r->world, plan.victim, 7, data, 100, LIMIT), HEM_ERR_PEER);
    CHECK_NAMES_RANK(plan.victim);
    if (plan.kind == CHAN_PREPARE)
        CHECK_STATUS(hem_channel_prepare(r->world, plan.victim, 9, LIMIT), HEM_ERR_PEER);
    if (hem_send_start(r->world, plan.victim, 0, data, 8, &op) == HEM_OK)
        CHECK_STATUS(hem_op_wait(op, LIMIT), HEM_ERR_PEER);
    FREE_OP(op);
}

/* Around the ring of those who are left. */
static void living_go_on(const struct rank *r) {
    int right = harness_right(r->world);
    int left = harness_left(r->world);
    chan_buffer out = chan_make(100000);
    chan_buffer in = chan_make(100000);

    if (right == plan.victim)
        right = (right + 1) % r->size;
    if (left == plan.victim)
        left = (left + r->size - 1) % r->size;
    for (uint64_t i = 0; i < 20; i++) {
        size_t bytes = i * i * 250;
        hem_message send = {.peer = right, .bytes = bytes};
        hem_message recv = {.peer = left, .bytes = bytes};

        chan_load(&out, bytes, 1, chan_tag(r->me, right, 0, i));
        chan_place(&in, bytes, 3);
        send.data = out.at;
        recv.data = in.at;
        CHECK_OK(hem_sendrecv(r->world, 0, &send, &recv, LIMIT));
        CHECK_LOAD(&in, chan_tag(left, r->me, 0, i));
    }
    chan_free(&in);
    chan_free(&out);
}

static void shrink(const struct rank *r) {
    hem_world *rest = NULL;

    CHECK_OK(hem_world_shrink(r->world, &rest));
    CHECK_EQ(hem_world_size(rest), r->size - 1);
    chan_works(rest, chan_partner(rest), 0, 0);
    chan_crossing(rest, 1, harness_rounds(20), 100000);
    CHECK_OK(hem_world_close(rest));
}

int rank_main(hem_world *world) {
    struct rank r = {.world = world, .me = hem_world_rank(world), .size = hem_world_size(world)};

    CHECK_OK(hem_world_split(world, 0, 0, &r.twin));
    r.clock = harness_window(r.twin, 64);
    harness_step(chan_wait_name(plan.kind), (uint64_t)plan.victim);
    chan_wait_ready(plan.kind, world);
    if (r.me == plan.victim)
        say_last_words(&r);
    harness_barrier(r.clock);
    if (r.me == plan.victim)
        return die(&r);
    wait_until_dead(&r);
    sends_fail(&r);
    if (plan.kind != CHAN_PREPARE)
        hear_last_words(&r);
    living_go_on(&r);
    shrink(&r);
    harness_close(world, HEM_ERR_PEER);
    CHECK_STATUS(hem_window_destroy(r.clock), HEM_ERR_PEER);
    CHECK_STATUS(hem_world_close(r.twin), HEM_ERR_PEER);
    if (!harness_threads()) {
        printf("survived %d\n", r.me);
        fflush(stdout);
    }
    return 0;
}

/* The victim does not fail by dying. */
static int thread_rank(hem_world *world, void *unused) {
    (void)unused;
    return harness_run(world, rank_main);
}

static int all_cases(int ranks) {
    int failed = 0;

    harness_set_threads();
    for (int kind = 0; kind < CHAN_WAITS; kind++) {
        for (int i = 0; i < 3; i++) {
            plan = (struct plan){(enum chan_wait)kind, i == 1 ? ranks - 1 : 0, "0", i == 2};
            if (hem_world_threads(ranks, thread_rank, NULL, NULL) != HEM_OK) {
                fprintf(stderr, "%s, victim %d%s: %s\n", chan_wait_name(plan.kind), plan.victim,
                        plan.early ? ", early" : "", hem_last_error());
                failed = 1;
            }
            chan_wait_forget(true);
        }
    }
    return failed;
}

int main(int argc, char **argv) {
    hem_world *world = NULL;

    if (argc == 3 && strcmp(argv[1], "--threads") == 0)
        return all_cases(atoi(argv[2]));
    if (argc != 4 || chan_wait_of_name(argv[1]) == CHAN_WAITS) {
        fprintf(stderr, "usage: %s KIND VICTIM kill|exit|NUMBER\n", argv[0]);
        return 2;
    }
    plan = (struct plan){chan_wait_of_name(argv[1]), atoi(argv[2]), argv[3], false};
    CHECK_OK(hem_world_open(NULL, &world));
    return harness_run(world, rank_main);
}
