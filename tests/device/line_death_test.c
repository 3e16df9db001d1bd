/*
 * A rank dies between two rounds of a line whose payloads are in device memory, or in the middle of one
 * that it has started, with its stream held back or not. Its neighbours get HEM_ERR_PEER, others hear of
 * it with HEM_ERR_REVOKED, what came before stays, and the survivors go on with a new line.
 *
 * As threads, a rank that returns without closing is dead. As processes, HEM_TEST_DIE=kill makes it die
 * by a signal: tests/script/device-line-death.sh does that. HEM_TEST_VICTIM=n chooses it, and
 * HEM_TEST_CASE=n runs one case: a process dies once.
 *
 * hem-test: ranks=2,3,5 modes=threads timeout=120
 */
#include "line_gate.h"
#include "window_kit.h"

#include <signal.h>

enum {
    BETWEEN = 0, /* it has started nothing */
    STARTED,     /* a round is under way */
    HELD,        /* its payload is not ready */
    CASES
};

static int number_of(const char *name, int otherwise) {
    const char *text = getenv(name);
    return text != NULL && *text != '\0' ? atoi(text) : otherwise;
}

static hem_line *make_ring(hem_world *world) {
    hem_line_options options;
    hem_line *line = NULL;
    memset(&options, 0, sizeof options);
    options.struct_size = sizeof options;
    options.ring = true;
    CHECK_OK(hem_line_create(world, &options, &line));
    return line;
}

/* What everybody gives, of device memory that a dead rank leaves behind: the library's, which its neighbours
 * may go on reading. CUDA does not promise that of the caller's own. */
typedef struct gift {
    hem_payload payload;
    hem_line_round round;
    hem_window *home;
    void *data;
    size_t bytes;
} gift;

static void make_gift(gift *g, hem_world *world, size_t bytes) {
    hem_window_options options = window_kit_options(bytes);
    unsigned char *plain = (unsigned char *)malloc(bytes);
    memset(g, 0, sizeof *g);
    CHECK(plain != NULL);
    for (size_t i = 0; i < bytes; i++)
        plain[i] = GATE_BYTE(bytes, i);
    g->bytes = bytes;
    g->home = window_kit_create(world, &options);
    g->data = hem_window_memory(g->home);
    device_copy(g->data, plain, bytes);
    free(plain);
    g->payload.data = g->data;
    g->payload.data_bytes = bytes;
    g->round.struct_size = sizeof g->round;
    g->round.to_left = &g->payload;
    g->round.to_right = &g->payload;
}

static void check_gift(const gift *g, const hem_delivery *delivery) {
    CHECK(delivery->present);
    CHECK_EQ(delivery->data_bytes, g->bytes);
    CHECK_EQ(delivery->buffer.kind, HEM_MEMORY_DEVICE);
    gate_check(delivery->buffer.data, HEM_MEMORY_DEVICE, g->bytes, g->bytes);
}

static hem_status pass(hem_line *line, const gift *g) {
    hem_line_result result;
    hem_status status = hem_line_exchange(line, &g->round, &result, LIMIT);
    if (status != HEM_OK)
        return status;
    check_gift(g, &result.from_left);
    check_gift(g, &result.from_right);
    hem_line_release(&result);
    return HEM_OK;
}

static int the_case;

/* What the dead leave: words that stay where the kernels of a held stream look at them. */
static gate *left[4 * CASES];

static void open_left(void) {
    gate *word = __atomic_load_n(&left[the_case], __ATOMIC_ACQUIRE);
    if (word != NULL)
        gate_set(&word->open, 1);
}

static int die(hem_world *world, hem_line *line, gift *g, int way) {
    device_stream native = device_stream_create();
    hem_op *op = NULL;
    if (way == HELD) {
        gate *word = gate_make();
        gate_args args = gate_args_of(word, g->data, g->bytes, 3);
        __atomic_store_n(&left[the_case], word, __ATOMIC_RELEASE);
        CHECK_OK(hem_stream_cuda(world, native, &g->round.stream));
        device_launch(gate_fill, native, 1, 1, &args);
    }
    if (way != BETWEEN) {
        CHECK_OK(hem_line_start(line, &g->round, &op));
        harness_sleep_ms(2);
        CHECK_OK(hem_progress(world));
    }
    const char *manner = getenv("HEM_TEST_DIE");
    if (manner != NULL && strcmp(manner, "kill") == 0)
        raise(SIGKILL);
    harness_forget();
    return 0;
}

static void go_on(hem_world *world) {
    hem_world *rest = NULL;
    gift g;
    CHECK_OK(hem_world_shrink(world, &rest));
    hem_line *line = make_ring(rest);
    make_gift(&g, rest, 600000);
    for (int i = 0; i < 3 && hem_world_size(rest) > 1; i++)
        CHECK_OK(pass(line, &g));
    CHECK_OK(hem_line_destroy(line));
    CHECK_OK(hem_window_destroy(g.home));
    CHECK_OK(hem_world_close(rest));
}

static void survive(hem_world *world, hem_line *line, const gift *g, int victim) {
    hem_line_result kept;
    int me = hem_world_rank(world);
    int size = hem_world_size(world);
    bool near = (me + 1) % size == victim || (victim + 1) % size == me;
    hem_status status = hem_line_exchange(line, &g->round, &kept, LIMIT);
    bool has = status == HEM_OK;
    while (status == HEM_OK)
        status = pass(line, g);
    if (near && status == HEM_ERR_PEER)
        CHECK_NAMES_RANK(victim);
    else
        CHECK_EQ(status, HEM_ERR_REVOKED);
    CHECK_STATUS(pass(line, g), HEM_ERR_REVOKED);
    open_left(); /* what comes now may wait for kernels on a GPU */
    if (has) {   /* what came before stays */
        check_gift(g, &kept.from_left);
        check_gift(g, &kept.from_right);
        hem_line_release(&kept);
    }
    CHECK_OK(hem_line_destroy(line));
}

static int one_case(hem_world *world) {
    static const size_t sizes[] = {1, 5000, 300000, 1200000};
    int way = the_case % CASES;
    int me = hem_world_rank(world);
    int victim = number_of("HEM_TEST_VICTIM", (the_case + 1) % hem_world_size(world));
    gift g;
    CHECK_OK(hem_device_open(world, NULL));
    make_gift(&g, world, sizes[the_case / CASES % 4]);
    hem_line *line = make_ring(world);
    for (int i = 0; i < 3; i++)
        CHECK_OK(pass(line, &g));
    if (me == victim)
        return die(world, line, &g, way);
    survive(world, line, &g, victim);
    go_on(world);
    CHECK_STATUS(hem_window_destroy(g.home), HEM_ERR_PEER);
    harness_close(world, HEM_ERR_PEER);
    if (!harness_threads()) {
        printf("survived %d\n", me);
        fflush(stdout);
    }
    return 0;
}

int rank_main(hem_world *world) {
    return one_case(world);
}

/* The harness chooses the device first. */
#undef rank_main

/* The victim does not fail by dying. */
static int thread_rank(hem_world *world, void *unused) {
    (void)unused;
    return harness_run(world, rank_main);
}

static int all_cases(int ranks) {
    int failed = 0;
    harness_set_threads();
    for (the_case = 0; the_case < 4 * CASES; the_case++) {
        if (hem_world_threads(ranks, thread_rank, NULL, NULL) != HEM_OK) {
            fprintf(stderr, "case %d: %s\n", the_case, hem_last_error());
            failed = 1;
        }
        open_left();
    }
    return failed;
}

int main(int argc, char **argv) {
    hem_world *world = NULL;
    if (argc == 3 && strcmp(argv[1], "--threads") == 0)
        return all_cases(atoi(argv[2]));
    the_case = number_of("HEM_TEST_CASE", STARTED) % (4 * CASES);
    CHECK_OK(hem_world_open(NULL, &world));
    return harness_run(world, rank_main);
}
