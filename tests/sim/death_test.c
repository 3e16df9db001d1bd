/*
 * Death under a deterministic scheduler: a rank ends at any schedule point of any call, in the
 * middle of the library, under any interleaving with the others. Whatever the survivors are in
 * ends; what was agreed is agreed by all of them; a shrink gives them a world without the dead, in
 * which everything works. A survivor that is left waiting is a deadlock, which the scheduler finds.
 *
 * hem-test: timeout=60 labels=soak
 */
#include "campaign.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

/* The dead leave behind what they had allocated, as a killed process does. */
const char *__lsan_default_options(void);
const char *__lsan_default_options(void) {
    return "detect_leaks=0";
}

enum op {
    OP_PUT,
    OP_PUT_SIGNAL,
    OP_FLUSH,
    OP_SUM,
    OP_ANY,
    OP_BARRIER,
    OP_PAIR,
    OP_CREATE,
    OP_DESTROY,
    OP_SPLIT,
    OP_SHRINK,
    OP_CLOSE,
    OPS
};

static const char *const names[OPS] = {
    "death in put",     "death in put_signal", "death in flush",  "death in wait_signal",
    "death in any",     "death in barrier",    "death in a pair", "death in create",
    "death in destroy", "death in split",      "death in shrink", "death in close",
};

/* After how many points the victim is dead at the latest, if the call has so many. */
static const uint64_t points[OPS] = {60, 60, 40, 80, 80, 100, 80, 400, 120, 300, 120, 120};

typedef struct rank {
    enum op op;
    int me;
    int victim;
    hem_world *world;
    hem_world *twin; /* the same ranks, for calls that end a world */
    hem_world *made;
    hem_window *window;
    hem_window *spare;
    hem_window *created;
} rank;

/* What the survivors of this run got, to be compared. One process, one run at a time. */
static hem_status results[SIM_RANKS_MAX];

enum {
    BYTES = 512,
    PLACE = 64,
    ID = 2
};

static hem_status put(rank *r, size_t n) {
    unsigned char bytes[BYTES];
    sim_fill(bytes, n, (uint64_t)r->me);
    hem_status status = hem_put(r->window, sim_right(r->world), PLACE, bytes, n);
    if (status == HEM_OK)
        status = hem_signal(r->window, sim_right(r->world), ID, HEM_SIGNAL_ADD, 1);
    return status;
}

static hem_status put_signal(rank *r, int to, size_t n) {
    unsigned char bytes[BYTES];
    sim_fill(bytes, n, (uint64_t)r->me);
    return hem_put_signal(r->window, to, PLACE, bytes, n, ID, 1);
}

/* Who sees the signal sees the bytes, although the sender may be dead. */
static hem_status receive(rank *r, size_t n) {
    int left = sim_left(r->world);
    const unsigned char *memory = hem_window_memory(r->window);
    hem_status status = hem_wait_signal_from(r->window, left, ID, HEM_GE, 1, HEM_FOREVER);
    if (status == HEM_OK)
        SIM_CHECK(sim_filled(memory + PLACE, n, (uint64_t)left));
    return status;
}

static hem_status first_of(hem_status a, hem_status b) {
    return a != HEM_OK ? a : b;
}

/* The victim dies after it has sent, so that its message is there whatever happens. */
static hem_status flush(rank *r) {
    int right = sim_right(r->world);
    if (r->me == r->victim)
        sim_stay_alive();
    hem_status sent = put_signal(r, right, 16);
    if (r->me == r->victim)
        sim_die_after(1 + sim_below(points[OP_FLUSH]));
    if (sent == HEM_OK)
        sent = hem_flush(r->window, right);
    hem_status received = receive(r, 16);
    if (sim_left(r->world) == r->victim)
        SIM_EQ(received, HEM_OK);
    return first_of(sent, received);
}

static hem_status signals(rank *r) {
    int right = sim_right(r->world);
    const hem_signal_want want = {sim_left(r->world), ID, HEM_GE, 1};
    size_t which = 0;
    hem_status sent = HEM_OK;
    switch (r->op) {
    case OP_PUT:
        sent = put(r, 300);
        return first_of(sent, receive(r, 300));
    case OP_PUT_SIGNAL:
        sent = put_signal(r, right, sim_seed() % 2 == 0 ? 24 : 100);
        return first_of(sent, receive(r, sim_seed() % 2 == 0 ? 24 : 100));
    case OP_FLUSH:
        return flush(r);
    case OP_SUM:
        sent = hem_signal_all(r->window, ID, HEM_SIGNAL_ADD, 1);
        return first_of(sent, hem_wait_signal(r->window, ID, HEM_GE,
                                              (uint64_t)hem_world_size(r->world) - 1, HEM_FOREVER));
    default:
        sent = hem_signal(r->window, right, ID, HEM_SIGNAL_ADD, 1);
        return first_of(sent, hem_wait_signal_any(r->window, &want, 1, &which, HEM_FOREVER));
    }
}

static hem_status pair(rank *r) {
    hem_status status = hem_barrier_peer_arrive(r->window, sim_right(r->world), 0);
    if (hem_world_size(r->world) > 2)
        status = first_of(status, hem_barrier_peer(r->window, sim_left(r->world), 0, HEM_FOREVER));
    return first_of(status, hem_barrier_peer_wait(r->window, sim_right(r->world), 0, HEM_FOREVER));
}

static hem_status act(rank *r) {
    const hem_window_options options = {.struct_size = sizeof options, .bytes = 64};
    switch (r->op) {
    case OP_BARRIER:
        return hem_barrier(r->window, 1, HEM_FOREVER);
    case OP_PAIR:
        return pair(r);
    case OP_CREATE:
        return hem_window_create(r->world, &options, &r->created);
    case OP_DESTROY:
        return hem_window_destroy(r->spare);
    case OP_SPLIT:
        return hem_world_split(r->world, 3, 0, &r->made);
    case OP_SHRINK:
        return hem_world_shrink(r->world, &r->made);
    case OP_CLOSE:
        return hem_world_close(r->twin);
    default:
        return signals(r);
    }
}

/* Calls that must end the same way for all. */
static bool is_agreed(enum op op) {
    return op == OP_CREATE || op == OP_SPLIT || op == OP_SHRINK;
}

/* The victim is dead or will be at once: nobody waits for it in vain. */
static void learn(rank *r, hem_status status) {
    sim_note((uint64_t)(int64_t)status);
    if (status != HEM_OK && status != HEM_ERR_PEER)
        sim_fail(__FILE__, __LINE__, "%s: %s: %.200s", names[r->op], hem_status_name(status),
                 hem_last_error());
    if (r->op == OP_SHRINK)
        SIM_EQ(status, HEM_OK);
    results[r->me] = status;
    SIM_STATUS(hem_wait_signal_from(r->window, r->victim, 9, HEM_GE, 1, HEM_FOREVER), HEM_ERR_PEER);
    SIM_EQ(hem_world_alive(r->world, r->victim), 0);
    SIM_STATUS(hem_signal(r->window, r->victim, 9, HEM_SIGNAL_ADD, 1), HEM_ERR_PEER);
    /* Trying again is no use, but it does no harm to those who have not come so far yet. */
    hem_world *made = NULL;
    for (int i = 0; i < 3; i++)
        SIM_STATUS(hem_world_split(r->world, 0, 0, &made), HEM_ERR_PEER);
}

/* In a world without the dead everything works. */
static void live_on(rank *r, hem_world *rest) {
    SIM_EQ(hem_world_size(rest), hem_world_size(r->world) - 1);
    SIM_EQ(hem_world_rank(rest), r->me - (r->me > r->victim));
    hem_window *window = sim_window(rest, 64);
    uint64_t word = 5;
    for (uint64_t i = 1; i <= 3; i++) {
        SIM_OK(hem_put_signal(window, sim_right(rest), 8, &word, sizeof word, 0, 1));
        SIM_OK(hem_wait_signal_from(window, sim_left(rest), 0, HEM_GE, i, HEM_FOREVER));
        SIM_OK(hem_barrier(window, 0, HEM_FOREVER));
    }
    for (int peer = 0; is_agreed(r->op) && peer < hem_world_size(r->world); peer++)
        if (peer != r->victim)
            SIM_EQ(results[peer], results[r->me]);
    SIM_OK(hem_window_destroy(window));
    SIM_OK(hem_world_close(rest));
}

/* The victim may be in a world that was made while it died: then that is shrunk, too. */
static void shrink_made(rank *r) {
    hem_world *rest = NULL;
    if (hem_world_size(r->made) < hem_world_size(r->world)) {
        live_on(r, r->made);
        return;
    }
    SIM_OK(hem_world_shrink(r->made, &rest));
    live_on(r, rest);
    SIM_STATUS(hem_world_close(r->made), HEM_ERR_PEER);
}

static void go_on(rank *r) {
    hem_world *rest = NULL;
    if (r->made != NULL)
        shrink_made(r);
    SIM_OK(hem_world_shrink(r->world, &rest));
    live_on(r, rest);
    if (r->created != NULL)
        SIM_STATUS(hem_window_destroy(r->created), HEM_ERR_PEER);
    if (r->op != OP_DESTROY && sim_seed() % 3 == 0)
        SIM_STATUS(hem_window_destroy(r->spare), HEM_ERR_PEER);
    if (r->op != OP_CLOSE)
        SIM_STATUS(hem_world_close(r->twin), HEM_ERR_PEER);
    SIM_STATUS(hem_window_destroy(r->window), HEM_ERR_PEER);
    SIM_STATUS(hem_world_close(r->world), HEM_ERR_PEER);
    if (r->op != OP_DESTROY && sim_seed() % 3 != 0)
        SIM_OK(hem_window_destroy(r->spare));
}

static int run_rank(hem_world *world, void *arg) {
    rank r = {.op = *(const enum op *)arg, .me = hem_world_rank(world), .world = world};
    r.victim = (int)(sim_seed() / 2 % (uint64_t)hem_world_size(world));
    r.window = sim_window(world, BYTES);
    r.spare = sim_window(world, 64);
    SIM_OK(hem_world_split(world, 0, 0, &r.twin));
    SIM_OK(hem_barrier(r.window, 0, HEM_FOREVER));
    if (r.me == r.victim)
        sim_die_after(1 + sim_below(points[r.op]));
    hem_status status = act(&r);
    if (r.me == r.victim)
        return 0; /* too late: it dies of not closing */
    learn(&r, status);
    go_on(&r);
    return 0;
}

static void die_in(enum op op) {
    const sim_program program = {.name = names[op], .fn = run_rank, .arg = &op};
    sim_many(&program, 2, 40);
    sim_many(&program, 3, 160);
    sim_many(&program, 4, 20);
}

static void test_data(void **unused) {
    (void)unused;
    for (enum op op = OP_PUT; op < OP_BARRIER; op++)
        die_in(op);
}

static void test_barriers(void **unused) {
    (void)unused;
    die_in(OP_BARRIER);
    die_in(OP_PAIR);
}

static void test_setup(void **unused) {
    (void)unused;
    for (enum op op = OP_CREATE; op < OPS; op++)
        die_in(op);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_data),
        cmocka_unit_test(test_barriers),
        cmocka_unit_test(test_setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
