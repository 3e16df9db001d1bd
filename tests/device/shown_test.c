/*
 * What a kernel waits for is shown to onlookers while it waits, whatever it waits in, and no longer: here read
 * as `hem ps` reads it. Rank 0 of the world in hand, which is the last of all ranks, is late. On a GPU, where
 * this is C++, nobody looks; there and here tests/script/device-shown.sh looks by the command, with HEM_TEST_HANG:
 * the number of a case in which rank 0 never comes.
 *
 * hem-test: ranks=2,3 modes=processes,threads timeout=60
 */
#include "pipe_kit.h"
#include "setup_kit.h"

#include <hem/device.cuh>
#include <hem/device/stamped.h>

#if !defined(__CUDACC__)
#include "core/world.h"
#include "device/notes.h"
#endif

enum shown_case {
    SHOWN_SIGNAL_FROM,
    SHOWN_SIGNAL,
    SHOWN_COUNTER,
    SHOWN_BARRIER,
    SHOWN_BARRIER_PEER,
    SHOWN_STAMPED,
    SHOWN_IN_KERNELS, /* the others are calls of the host */
    SHOWN_RECV_SHORT = SHOWN_IN_KERNELS,
    SHOWN_RECV_LONG,
    SHOWN_SEND,
    SHOWN_FINISH,
    SHOWN_START,
    SHOWN_ENGINES,
    SHOWN_COLL_UNITS,
    SHOWN_COLL_LONG,
    SHOWN_CASES
};

enum {
    STAMP = 77,
    SHORT = 1000,
    LONG = 200000,
    BYTES = LONG + 4096
};

/* What onlookers are to be told of rank 1. */
typedef struct shown_want {
    uint32_t what;
    bool all; /* no peer */
    uint32_t id;
    uint64_t wanted;
    uint64_t seen;
} shown_want;

static const shown_want wants[SHOWN_CASES] = {
    {HEMD_WHAT_SIGNAL_FROM, false, 3, 5, 4},  {HEMD_WHAT_SIGNAL, true, 2, 2, 0},
    {HEMD_WHAT_COUNTER, true, 1, 1, 0},       {HEMD_WHAT_BARRIER, false, 1, 1, 0},
    {HEMD_WHAT_BARRIER_PEER, false, 2, 1, 0}, {HEMD_WHAT_STAMPED, false, 0, STAMP, 0},
    {HEMD_WHAT_RECV, false, 0, SHORT, 0},     {HEMD_WHAT_RECV, false, 0, LONG, 0},
    {HEMD_WHAT_SEND, false, 0, LONG, 0},      {HEMD_WHAT_HALO_FINISH, false, 0, 1, 0},
    {HEMD_WHAT_HALO_START, false, 0, 1, 0},   {HEMD_WHAT_ENGINE_START, false, 0, 0, 0},
    {HEMD_WHAT_COLL, false, 0, 1, 0},         {HEMD_WHAT_COLL, false, 0, 1, 0},
};

typedef struct shown_args {
    hem_dev_window w;
    int32_t which;
    unsigned char *data; /* in device memory, to send from or take to */
    uint64_t *status;
} shown_args;

DEVICE_KERNEL(shown_wait, shown_args) {
    const hem_dev_window w = args->w;
    hem_group g = hem_block();
    hem_status status = HEM_ERR_ARG;
    if (args->which == SHOWN_SIGNAL_FROM)
        status = hem_dev_wait_signal_from(w, g, 0, 3, HEM_GE, 5, HEM_FOREVER);
    else if (args->which == SHOWN_SIGNAL)
        status = hem_dev_wait_signal(w, g, 2, HEM_GE, 2, LIMIT);
    else if (args->which == SHOWN_COUNTER)
        status = hem_dev_wait_counter(w, g, 1, 1, LIMIT);
    else if (args->which == SHOWN_BARRIER)
        status = hem_dev_barrier(w, g, 1, HEM_FOREVER);
    else if (args->which == SHOWN_BARRIER_PEER)
        status = hem_dev_barrier_peer(w, g, 0, 2, LIMIT);
    else if (args->which == SHOWN_STAMPED)
        status = hem_dev_take_stamped(w, g, 0, 0, args->data, 64, STAMP, LIMIT);
    if (g.rank == 0)
        *args->status = (uint64_t)-status;
}

/* What such a wait waits for: by rank 0, but for a counter. */
DEVICE_KERNEL(shown_come, shown_args) {
    const hem_dev_window w = args->w;
    hem_group g = hem_block();
    hem_status status = HEM_ERR_ARG;
    if (args->which == SHOWN_SIGNAL_FROM)
        status = hem_dev_signal(w, g, 1, 3, HEM_SIGNAL_ADD, 1);
    else if (args->which == SHOWN_SIGNAL)
        status = hem_dev_signal(w, g, 1, 2, HEM_SIGNAL_ADD, 2);
    else if (args->which == SHOWN_COUNTER)
        status = hem_dev_put_start(w, g, w.rank, 0, args->data, 64, 1);
    else if (args->which == SHOWN_BARRIER)
        status = hem_dev_barrier(w, g, 1, LIMIT);
    else if (args->which == SHOWN_BARRIER_PEER)
        status = hem_dev_barrier_peer(w, g, 1, 2, LIMIT);
    else if (args->which == SHOWN_STAMPED)
        status = hem_dev_put_stamped(w, g, 1, 0, args->data, 64, STAMP);
    if (g.rank == 0)
        *args->status = (uint64_t)-status;
}

/* A rank with one of each. */
typedef struct shown_kit {
    hem_world *world;
    hem_window *window;
    pipe_kit pipe;
    setup_site site;
    setup_object exchange;
    setup_object direct;
    setup_object engines;
    setup_object units;
    setup_object sums;
    uint64_t *memory;
    device_stream other;
    shown_args args;
} shown_kit;

static void open_all(shown_kit *k, hem_world *world) {
    hem_window_options options = window_kit_options(4096);
    hem_pipe_options pipe = pipe_kit_options(1, 1024, 2, 4096);
    memset(k, 0, sizeof *k);
    k->world = world;
    k->memory = (uint64_t *)device_alloc(BYTES);
    CHECK(BYTES >= SETUP_BYTES);
    k->site = setup_open(world, k->memory);
    k->window = window_kit_create(world, &options);
    k->pipe = pipe_kit_open(world, &pipe);
    CHECK_OK(setup_make(&k->site, SETUP_STAGED, &k->exchange));
    CHECK_OK(setup_make(&k->site, SETUP_DIRECT, &k->direct));
    CHECK_OK(setup_make_exchange(&k->site, HEM_EXCHANGE_ENGINES, &k->engines.exchange));
    CHECK_OK(setup_make(&k->site, SETUP_COLL_UNITS, &k->units));
    CHECK_OK(setup_make(&k->site, SETUP_COLL_LONG, &k->sums));
    k->other = device_stream_create();
    k->args.w = window_kit_dev(k->window);
    k->args.data = (unsigned char *)device_alloc(64);
    k->args.status = (uint64_t *)device_host_alloc(2 * sizeof(uint64_t));
}

static void close_all(shown_kit *k) {
    CHECK_OK(setup_drop(&k->sums));
    CHECK_OK(setup_drop(&k->units));
    CHECK_OK(setup_drop(&k->engines));
    CHECK_OK(setup_drop(&k->direct));
    CHECK_OK(setup_drop(&k->exchange));
    pipe_kit_close(&k->pipe, HEM_OK);
    CHECK_OK(hem_window_destroy(k->window));
    setup_close(&k->site);
    device_stream_destroy(k->other);
    device_host_free(k->args.status);
    device_free(k->args.data);
    device_free(k->memory);
}

static hem_exchange *exchange_of(const shown_kit *k, int which) {
    return which == SHOWN_FINISH  ? k->exchange.exchange
           : which == SHOWN_START ? k->direct.exchange
                                  : k->engines.exchange;
}

/* A rank's part of a case, on its streams. Rank 0's is the last. */
static void begin(shown_kit *k, int which) {
    pipe_kit *p = &k->pipe;
    bool first = p->rank == 0;
    size_t bytes = which == SHOWN_RECV_SHORT ? SHORT : LONG;
    if (which < SHOWN_IN_KERNELS) {
        k->args.which = which;
        if (p->rank == 1 || (which == SHOWN_BARRIER && !first))
            device_launch(shown_wait, k->site.ring.stream, 1, 2, &k->args);
        else if (first && which != SHOWN_COUNTER)
            device_launch(shown_come, k->site.ring.stream, 1, 2, &k->args);
    } else if (which <= SHOWN_SEND && p->rank <= 1) {
        bool sends = first != (which == SHOWN_SEND);
        pipe_kit_call(p, sends ? 1 - p->rank : -1, k->memory, bytes, sends ? -1 : 1 - p->rank,
                      k->memory, bytes, NULL);
    } else if (which >= SHOWN_FINISH && which <= SHOWN_ENGINES) {
        CHECK_OK(hem_exchange_start_on(exchange_of(k, which), NULL, k->site.ring.handle));
        CHECK_OK(hem_exchange_finish_on(exchange_of(k, which), k->site.ring.handle));
    } else if (which > SHOWN_ENGINES) {
        hem_op *op = which == SHOWN_COLL_UNITS ? k->units.op : k->sums.op;
        CHECK_OK(hem_op_start_on(op, k->site.ring.handle));
    }
}

static void end(shown_kit *k, int which) {
    device_stream_sync(k->site.ring.stream);
    device_stream_sync(k->other);
    device_stream_sync(k->pipe.native);
    if (which < SHOWN_IN_KERNELS && k->pipe.rank == 1)
        CHECK_EQ(*k->args.status, 0);
    CHECK_OK(hem_pipe_status(k->pipe.pipe));
    CHECK_OK(hem_exchange_status(k->exchange.exchange));
    CHECK_OK(hem_exchange_status(k->direct.exchange));
    CHECK_OK(hem_exchange_status(k->engines.exchange));
    CHECK_OK(hem_op_status(k->units.op));
    CHECK_OK(hem_op_status(k->sums.op));
}

#if defined(__CUDACC__)

static void look(const shown_kit *k, int which, int of_all, int64_t before) {
    (void)k;
    (void)which;
    (void)of_all;
    (void)before;
    harness_sleep_ms(20);
}

static void look_away(const shown_kit *k, int of_all) {
    (void)k;
    (void)of_all;
}

#else

static void take_seqs(const hemi_arena *arena, int of_all, uint32_t *seqs) {
    for (uint32_t slot = 0; slot < HEMI_NOTES; slot++)
        seqs[slot] = hemi_note_seq(arena, (uint32_t)of_all, slot);
}

/* Whether a record says what is to be said of a case. */
static bool says(const hemi_flight *flight, uint64_t seen, const shown_want *want,
                 int late_of_all) {
    if (flight->call != HEMI_CALL_KERNEL + want->what ||
        flight->peer != (want->all ? -1 : late_of_all) || flight->wanted != want->wanted)
        return false;
    return flight->window != 0 && flight->word == 0
               ? true
               : flight->id == want->id && seen == want->seen && flight->compare == HEM_GE;
}

static const char *which_waits(uint32_t call) {
    return call == HEMI_CALL_KERNEL + HEMD_WHAT_ENGINE_START ? "a stream in hem_"
                                                             : "a kernel in hem_";
}

/* How many of the rank's notes are written, and how many of these say what they are to say; nothing began to wait
 * before `before`. */
static int count_shown(const shown_kit *k, const uint32_t *seqs, int of_all, const shown_want *want,
                       int64_t before, int *right_p) {
    const hemi_arena *arena = &k->world->root->arena;
    const uint64_t now = 1000000000000u;
    int shown = 0;
    *right_p = 0;
    for (uint32_t slot = 0; slot < HEMI_NOTES; slot++) {
        hemi_flight flight;
        uint64_t seen = 0;
        char text[512];
        if (!hemi_note_read(arena, (uint32_t)of_all, slot, seqs[slot], now, &flight, &seen))
            continue;
        shown++;
        CHECK(flight.since_ns < now && now - flight.since_ns <= (uint64_t)(harness_now() - before));
        CHECK(flight.world == k->world->id);
        hemi_flight_describe(&flight, seen, now, text, sizeof text);
        CHECK(strncmp(text, which_waits(flight.call), 16) == 0);
        if (want != NULL && says(&flight, seen, want, hem_world_size(k->world) - 1))
            ++*right_p;
    }
    return shown;
}

/* By the late rank: it is shown what `of_all` waits for. */
static void look(const shown_kit *k, int which, int of_all, int64_t before) {
    uint32_t seqs[HEMI_NOTES];
    int right = 0;
    int64_t begun = harness_now();
    while (right == 0) {
        CHECK(harness_now() - begun < LIMIT);
        take_seqs(&k->world->root->arena, of_all, seqs);
        harness_sleep_ms(60);
        (void)count_shown(k, seqs, of_all, &wants[which], before, &right);
    }
}

/* Nothing waits any more, and nothing is shown; but the thread that looks after copy engines may have been
 * stopped while it wrote, once. */
static void look_away(const shown_kit *k, int of_all) {
    uint32_t seqs[HEMI_NOTES];
    int right = 0;
    int shown = 1;
    for (int i = 0; i < 2 && shown > 0; i++) {
        take_seqs(&k->world->root->arena, of_all, seqs);
        harness_sleep_ms(60);
        shown = count_shown(k, seqs, of_all, NULL, 0, &right);
    }
    CHECK_EQ(shown, 0);
}

#endif

static void try_case(shown_kit *k, int which, bool hangs) {
    const int me = k->pipe.rank;
    const int of_all = k->pipe.size - 2; /* rank 1 */
    const int64_t before = harness_now();
    harness_step("case", (uint64_t)which);
    if (me == 0 && which == SHOWN_SIGNAL_FROM)
        CHECK_OK(hem_signal(k->window, 1, 3, HEM_SIGNAL_ADD, 4));
    CHECK_OK(hem_sync(k->world, LIMIT));
    if (me != 0)
        begin(k, which);
    if (hangs) /* until who looks has seen it, and ends the job */
        harness_sleep_ms(600000);
    if (me == 0)
        look(k, which, of_all, before);
    CHECK_OK(hem_sync(k->world, LIMIT));
    if (me == 0)
        begin(k, which);
    if (me == 1 && which == SHOWN_COUNTER) {
        shown_args args = k->args;
        args.status++;
        device_launch(shown_come, k->other, 1, 2, &args);
    }
    end(k, which);
    CHECK_OK(hem_sync(k->world, LIMIT));
    if (me == 0)
        look_away(k, of_all);
}

int rank_main(hem_world *world) {
    const char *hang = getenv("HEM_TEST_HANG");
    hem_world *turned = NULL;
    shown_kit kit;
    CHECK_OK(hem_world_split(world, 0, -hem_world_rank(world), &turned));
    open_all(&kit, turned);
    for (int which = hang != NULL ? atoi(hang) : 0; which < SHOWN_CASES; which++)
        for (int times = which == SHOWN_ENGINES ? 2 : 1; times > 0; times--)
            try_case(&kit, which, hang != NULL); /* the next wait of a stream is another */
    close_all(&kit);
    CHECK_OK(hem_world_close(turned));
    harness_close(world, HEM_OK);
    return 0;
}
