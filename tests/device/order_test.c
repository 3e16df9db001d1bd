/*
 * Random programs of puts, signals, flushes and gets, by kernels of several blocks and by CPUs, to kernels
 * and CPUs, with peers that are mapped and with peers that are reached through their hosts. Later puts to
 * a place win over earlier ones; gets, of mapped peers, see the puts before them; each strong signal
 * implies all that was put before it, also by puts that had no signal or a weak one, while the sender goes
 * on. In the end memory is as a shadow copy of it, and so is what nobody has put to.
 *
 * hem-test: ranks=2,3 modes=processes,threads timeout=90 delayed=2
 */
#include "proxy_kit.h"

#define BLOCKS 2
#define OPS    28
#define AREA   4096u /* bytes of a block in the window of its right neighbour */
#define GUARD  64u   /* at both ends of it nobody puts anything */
#define MOST   3000u /* bytes of an operation: more than one order through a host takes */
#define SOURCE 32768u
#define IDS    2              /* of a block, for kernels and as many for CPUs */
#define DEVICE (BLOCKS * IDS) /* ids below are for kernels to wait for */

enum {
    PUT,
    PUT_SIGNAL,
    SIGNAL,
    WEAK,
    FLUSH,
    GET
};

typedef struct action {
    uint32_t kind;
    uint32_t id;
    uint64_t strong; /* it is a signal that implies what was put before */
    uint64_t offset; /* in the window */
    uint64_t n;
    uint64_t from;  /* in the source: what is put, or what a get must give */
    uint64_t count; /* of the signal, when this has happened */
} action;

/* What one rank does in a round to its right neighbour, by a block or in its place. Both ranks know it. */
typedef struct program {
    action actions[OPS];
    unsigned char source[SOURCE];
    unsigned char shadow[AREA];  /* the end of it */
    unsigned char touched[AREA]; /* 1 + which action is the last one to put there; 0: none */
    unsigned char got[MOST];
    uint64_t counts[2 * DEVICE]; /* signals so far */
} program;

/* All programs of a round, and where kernels have them. */
typedef struct road {
    program programs[BLOCKS];
    program *device;
    bool kernel_sends;
    bool kernel_receives;
} road;

typedef struct test {
    hem_world *world;
    hem_window *window;
    device_stream streams[2];
    uint64_t *wrong;
    road *out; /* to the right */
    road *in;  /* from the left */
    int rank;
    int left;
    int right;
    proxy_kit_who who;
} test;

typedef struct run_args {
    hem_dev_window w;
    program *programs;
    uint64_t *wrong;
    int32_t peer;
} run_args;

/* Kernels. */

HEM_DEV hem_status get_and_look(const run_args *args, program *p, const action *a) {
    hem_group block = hem_block();
    hem_status status = hem_dev_get(args->w, block, args->peer, a->offset, p->got, a->n);
    for (uint64_t i = block.rank; i < a->n && status == HEM_OK; i += block.size)
        if (p->got[i] != p->source[a->from + i])
            hemd_add64_relaxed(args->wrong, 1);
    hem_group_sync(block);
    return status;
}

HEM_DEV hem_status act(const run_args *args, program *p, const action *a) {
    hem_group block = hem_block();
    const unsigned char *from = p->source + a->from;
    switch (a->kind) {
    case PUT:
        return hem_dev_put(args->w, block, args->peer, a->offset, from, a->n);
    case PUT_SIGNAL:
        return hem_dev_put_signal(args->w, block, args->peer, a->offset, from, a->n, a->id, 1);
    case SIGNAL:
        return hem_dev_signal(args->w, block, args->peer, a->id, HEM_SIGNAL_ADD, 1);
    case WEAK:
        return hem_dev_signal(args->w, block, args->peer, a->id, HEM_SIGNAL_ADD | HEM_SIGNAL_WEAK,
                              1);
    case FLUSH:
        return hem_dev_flush(args->w, block, args->peer);
    default:
        return get_and_look(args, p, a);
    }
}

DEVICE_KERNEL(send_all, run_args) {
    program *p = args->programs + hem_block_index();
    hem_status status = HEM_OK;
    for (uint32_t i = 0; i < OPS && status == HEM_OK; i++)
        status = act(args, p, p->actions + i);
    if (hem_block().rank == 0 && status != HEM_OK)
        hemd_add64_relaxed(args->wrong, 1000000);
}

/* All that was put up to action `i` and not again behind it is there. */
HEM_DEV uint64_t count_missing(const run_args *args, const program *p, uint32_t i) {
    hem_group block = hem_block();
    const unsigned char *mine = (const unsigned char *)hem_dev_address(
        args->w, args->w.rank, (uint64_t)hem_block_index() * AREA);
    uint64_t missing = 0;
    for (uint32_t at = block.rank; at < AREA; at += block.size)
        if (p->touched[at] <= i + 1u)
            missing += mine[at] != p->shadow[at];
    return missing;
}

DEVICE_KERNEL(receive_all, run_args) {
    hem_group block = hem_block();
    const program *p = args->programs + hem_block_index();
    for (uint32_t i = 0; i < OPS; i++) {
        const action *a = p->actions + i;
        if (!a->strong)
            continue;
        hem_status status = hem_dev_wait_signal_from(args->w, block, args->peer, a->id, HEM_GE,
                                                     a->count, HEM_FOREVER);
        uint64_t missing = status == HEM_OK ? count_missing(args, p, i) : 1000000;
        if (missing != 0)
            hemd_add64_relaxed(args->wrong, missing);
        if (status != HEM_OK)
            return;
    }
}

/* CPUs do the same. */

static void act_by_cpu(test *t, program *p, const action *a, uint64_t *started) {
    const unsigned char *from = p->source + a->from;
    size_t offset = (size_t)a->offset, n = (size_t)a->n;
    if (a->kind == PUT && a->n % 2 != 0) {
        CHECK_OK(hem_put_start(t->window, t->right, offset, from, n, 0));
        ++*started;
    } else if (a->kind == PUT) {
        CHECK_OK(hem_put(t->window, t->right, offset, from, n));
    } else if (a->kind == PUT_SIGNAL) {
        CHECK_OK(hem_put_signal(t->window, t->right, offset, from, n, a->id, 1));
    } else if (a->kind == SIGNAL) {
        CHECK_OK(hem_signal(t->window, t->right, a->id, HEM_SIGNAL_ADD, 1));
    } else if (a->kind == WEAK) {
        CHECK_OK(hem_signal(t->window, t->right, a->id, HEM_SIGNAL_ADD | HEM_SIGNAL_WEAK, 1));
    } else if (a->kind == FLUSH) {
        CHECK_OK(hem_flush(t->window, t->right));
    } else {
        CHECK_OK(hem_get(t->window, t->right, offset, p->got, n));
        CHECK_EQ(memcmp(p->got, from, n), 0);
    }
}

/* The blocks' programs in turns. */
static void send_by_cpu(test *t, uint64_t *started) {
    for (int i = 0; i < OPS; i++)
        for (int b = 0; b < BLOCKS; b++)
            act_by_cpu(t, &t->out->programs[b], &t->out->programs[b].actions[i], started);
    CHECK_OK(hem_wait_counter(t->window, 0, *started, LIMIT));
}

/* Only what is not going to be put to is got. */
static void look_by_cpu(test *t, int b, const program *p, int i) {
    unsigned char got[AREA];
    for (size_t at = 0; at < AREA;) {
        size_t end = at;
        while (end < AREA && p->touched[end] <= i + 1)
            end++;
        if (end > at) {
            CHECK_OK(hem_get(t->window, t->rank, (size_t)b * AREA + at, got, end - at));
            CHECK_EQ(memcmp(got, p->shadow + at, end - at), 0);
        }
        at = end + 1;
    }
}

static void receive_by_cpu(test *t, harness_rng *own) {
    for (int b = 0; b < BLOCKS; b++) {
        const program *p = &t->in->programs[b];
        for (int i = 0; i < OPS; i++) {
            const action *a = &p->actions[i];
            if (!a->strong)
                continue;
            harness_see(t->window, (int)harness_below(own, HARNESS_SEE_ONE_PEER), t->left, a->id,
                        a->count);
            look_by_cpu(t, b, p, i);
        }
    }
}

/* Making programs. */

static uint32_t pick_kind(bool gets, bool last, harness_rng *rng) {
    static const uint32_t kinds[16] = {PUT,        PUT,        PUT,    PUT,    PUT,  PUT,
                                       PUT_SIGNAL, PUT_SIGNAL, SIGNAL, SIGNAL, WEAK, FLUSH,
                                       PUT_SIGNAL, PUT,        GET,    GET};
    uint32_t kind = kinds[harness_below(rng, 16)];
    if (last)
        return SIGNAL;
    if (kind == GET && !gets)
        return PUT;
    return kind;
}

static size_t pick_length(harness_rng *rng) {
    size_t dice = harness_below(rng, 8);
    return harness_below(rng, dice == 0 ? MOST + 1 : dice < 4 ? 300 : 40);
}

static void make_action(program *p, int i, uint64_t *used, harness_rng *rng) {
    action *a = &p->actions[i];
    uint64_t most = SOURCE - *used;
    size_t n = pick_length(rng);
    a->n = n < most ? n : most;
    size_t at = GUARD + harness_below(rng, AREA - 2 * GUARD - (size_t)a->n + 1);
    a->offset += at;
    a->from = *used;
    *used += a->n;
    if (a->kind == GET) {
        memcpy(p->source + a->from, p->shadow + at, (size_t)a->n);
    } else if (a->kind == PUT || a->kind == PUT_SIGNAL) {
        harness_fill(p->source + a->from, (size_t)a->n, harness_random(rng));
        memcpy(p->shadow + at, p->source + a->from, (size_t)a->n);
        memset(p->touched + at, i + 1, (size_t)a->n);
    }
}

static void make_program(program *p, int b, bool gets, bool kernel_receives, harness_rng *rng) {
    uint64_t used = 0;
    memset(p->touched, 0, sizeof p->touched);
    for (int i = 0; i < OPS; i++) {
        action *a = &p->actions[i];
        a->kind = pick_kind(gets, i == OPS - 1, rng);
        a->strong = a->kind == PUT_SIGNAL || a->kind == SIGNAL;
        a->id = (uint32_t)(b * IDS) + (uint32_t)harness_below(rng, IDS);
        a->id += kernel_receives ? 0 : DEVICE;
        if (a->strong || a->kind == WEAK)
            p->counts[a->id]++;
        a->count = p->counts[a->id];
        a->offset = (uint64_t)b * AREA;
        make_action(p, i, &used, rng);
    }
}

/* What `sender` does in a round. */
static void make_road(const test *t, road *l, int sender, uint64_t seed) {
    harness_rng rng = harness_rng_of(seed, 1, (uint64_t)sender);
    int receiver = (sender + 1) % hem_world_size(t->world);
    bool through_host = proxy_kit_proxied(t->who, sender, receiver);
    l->kernel_sends = harness_below(&rng, 3) != 0;
    l->kernel_receives = harness_below(&rng, 3) != 0;
    for (int b = 0; b < BLOCKS; b++)
        make_program(&l->programs[b], b, !through_host, l->kernel_receives, &rng);
    device_copy(l->device, l->programs, sizeof l->programs);
}

static void launch(test *t, const road *l, bool sends) {
    run_args args;
    args.w = window_kit_dev(t->window);
    args.programs = l->device;
    args.wrong = t->wrong;
    args.peer = sends ? t->right : t->left;
    if (sends)
        device_launch(send_all, t->streams[0], BLOCKS, 2, &args);
    else
        device_launch(receive_all, t->streams[1], BLOCKS, 2, &args);
}

static void one_round(test *t, uint64_t seed, uint64_t *started, harness_rng *own) {
    uint64_t wrong = 1;
    make_road(t, t->out, t->rank, seed);
    make_road(t, t->in, t->left, seed);
    harness_dither(harness_random(own));
    if (t->in->kernel_receives)
        launch(t, t->in, false);
    if (t->out->kernel_sends)
        launch(t, t->out, true);
    else
        send_by_cpu(t, started);
    if (!t->in->kernel_receives)
        receive_by_cpu(t, own);
    device_stream_sync(t->streams[0]);
    device_stream_sync(t->streams[1]);
    device_copy(&wrong, t->wrong, sizeof wrong);
    CHECK_EQ(wrong, 0);
    /* Kernels have ended, and the receiver has seen everything. */
    harness_barrier(t->window);
}

static road *make_side(void) {
    road *l = (road *)calloc(1, sizeof *l);
    CHECK(l != NULL);
    l->device = (program *)device_alloc(sizeof l->programs);
    return l;
}

static void free_side(road *l) {
    device_free(l->device);
    free(l);
}

static void all_rounds(test *t, uint64_t seed, int rounds) {
    harness_rng own = harness_rng_of(seed, 2, (uint64_t)t->rank);
    hem_window_options o = window_kit_options((size_t)BLOCKS * AREA);
    uint64_t started = 0;
    o.signals = 2 * DEVICE;
    o.device_signals = DEVICE;
    t->window = proxy_kit_create_with(t->world, o, t->who);
    t->out = make_side();
    t->in = make_side();
    for (int round = 0; round < rounds; round++) {
        harness_step(t->who == PROXY_KIT_NONE ? "mapped" : "through hosts", (uint64_t)round);
        one_round(t, seed + (uint64_t)round, &started, &own);
    }
    CHECK_OK(hem_window_destroy(t->window));
    free_side(t->out);
    free_side(t->in);
}

int rank_main(hem_world *world) {
    test t;
    uint64_t seed = harness_seed(world);
    memset(&t, 0, sizeof t);
    t.world = world;
    t.rank = hem_world_rank(world);
    t.left = harness_left(world);
    t.right = harness_right(world);
    t.who = PROXY_KIT_NONE;
    t.wrong = (uint64_t *)device_alloc(8);
    t.streams[0] = device_stream_create();
    t.streams[1] = device_stream_create();
    all_rounds(&t, seed, harness_rounds(150));
    t.who = PROXY_KIT_ODD;
    all_rounds(&t, seed + 1000, harness_rounds(150));
    device_stream_destroy(t.streams[0]);
    device_stream_destroy(t.streams[1]);
    device_free(t.wrong);
    harness_close(world, HEM_OK);
    return 0;
}
