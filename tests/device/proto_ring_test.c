/*
 * Kernels with a peer behind a ring that is full, and whose host does nothing for a while: barriers end at
 * their time limit, and puts, signals, flushes and entries into barriers at the window's. Nothing is ordered
 * by those that gave up. An entry into a barrier of all is told to nobody before all that was ordered has been
 * carried out; it stands, the wait that takes it up again tells it to everybody once it may, and slots are
 * taken once each. The test plays the peer's host.
 *
 * hem-test: ranks=1 timeout=60
 */
#include "proto.h"

#define FAR      2u /* the rank behind the ring; rank 1 is mapped */
#define SHORT_MS 20
#define ID       3u
#define MIXED_ID 1u

enum {
    ENTER,
    TAKE_UP,
    PAIR,
    ENTER_PAIR,
    TAKE_UP_PAIR,
    FILL, /* all that is free but `rounds` slots */
    PUT,  /* what takes `rounds` slots, with a signal */
    SIGNAL,
    SIGNAL_ALL,
    FLUSH,
    ARRIVE
};

typedef struct kit {
    proto p;
    hemd_ring *ring;
    hemd_claims *claims; /* of the device */
    uint64_t taken;
} kit;

/* As the host sees it, too: proto_byte is the kernels'. */
static unsigned char source_byte(uint64_t i) {
    return (unsigned char)(i * 7u + i / 256u);
}

HEM_DEV hem_status fill(hem_dev_window w, hem_group g, uint32_t rounds) {
    hem_status status = HEM_OK;
    for (uint32_t i = rounds; i < HEMD_RING_SLOTS && status == HEM_OK; i++)
        status = hem_dev_signal(w, g, (int)FAR, 1, HEM_SIGNAL_ADD, 1);
    return status;
}

HEM_DEV hem_status act_on(hem_dev_window w, hem_group g, const proto_args *args) {
    const uint32_t id = args->mixed == 0 ? ID : MIXED_ID;
    switch (args->what) {
    case ENTER:
        return hem_dev_barrier(w, g, id, args->timeout_ns);
    case TAKE_UP:
        return hem_dev_barrier_wait(w, g, id, args->timeout_ns);
    case PAIR:
        return hem_dev_barrier_peer(w, g, (int)FAR, id, args->timeout_ns);
    case ENTER_PAIR:
        return hem_dev_barrier_peer_arrive(w, g, (int)FAR, id);
    case TAKE_UP_PAIR:
        return hem_dev_barrier_peer_wait(w, g, (int)FAR, id, args->timeout_ns);
    case PUT:
        return hem_dev_put_signal(w, g, (int)FAR, 16, args->ranks[0].data,
                                  (uint64_t)args->rounds * HEMD_RING_CHUNK - 8u, 2, 1);
    case SIGNAL:
        return hem_dev_signal(w, g, (int)FAR, 1, HEM_SIGNAL_ADD, 1);
    case SIGNAL_ALL:
        return hem_dev_signal_all(w, g, 1, HEM_SIGNAL_ADD, 1);
    case FLUSH:
        return hem_dev_flush(w, g, (int)FAR);
    case ARRIVE:
        return hem_dev_barrier_arrive(w, g, id);
    default:
        return fill(w, g, args->rounds);
    }
}

/* Rank 0 of all that is launched does what is asked for; its status is in word 0. */
DEVICE_KERNEL(act, proto_args) {
    hem_group g = proto_group(args->scope);
    if (!proto_plays(args->scope))
        return;
    hem_status status = act_on(proto_window(args, 0), g, args);
    if (g.rank == 0)
        args->ranks[0].words[0] = (uint64_t)(uint32_t)-status;
}

static void expect(kit *k, uint32_t what, uint32_t rounds, uint32_t scope, int64_t timeout_ns,
                   hem_status want) {
    proto_args args = proto_begin(&k->p, rounds);
    args.what = what;
    args.scope = scope;
    args.timeout_ns = timeout_ns;
    device_launch(act, k->p.stream, 1, 2, &args);
    proto_end(&k->p);
    CHECK_EQ(proto_word(&k->p, 0, 0), (uint64_t)(uint32_t)-want);
}

static uint64_t claimed(const kit *k) {
    uint64_t value = 0;
    device_copy(&value, &k->claims->claimed, sizeof value);
    return value;
}

static uint64_t entered(const kit *k) {
    uint64_t value = 0;
    device_copy(&value, &k->p.ranks[0].epochs[ID], sizeof value);
    return value;
}

/* The other ranks' side of a barrier. */
static void arrive(const kit *k, int rank, uint32_t id, uint64_t epoch) {
    device_copy(&k->p.ranks[0].rows[rank].arrivals[id], &epoch, sizeof epoch);
}

/* What kernels' calls without a limit of their own have. */
static void set_limit(const kit *k, int64_t limit_ns) {
    device_copy(&k->p.ranks[0].home.proxy_limit_ns, &limit_ns, sizeof limit_ns);
}

/* The peer's host carries out all orders, of which the last one is to say that `epoch` was entered. */
static void carry_out(kit *k, uint32_t id, uint64_t epoch) {
    uint64_t end = claimed(k);
    const hemd_order *last = &k->ring->orders[(end - 1) % HEMD_RING_SLOTS];
    CHECK(end - k->taken <= HEMD_RING_SLOTS);
    for (; k->taken < end; k->taken++)
        CHECK_EQ(
            __atomic_load_n(&k->ring->orders[k->taken % HEMD_RING_SLOTS].turn, __ATOMIC_ACQUIRE),
            k->taken + 1);
    CHECK_EQ(last->what, epoch == 0 ? HEMD_ORDER_ADD : HEMD_ORDER_ARRIVE);
    if (epoch != 0) {
        CHECK_EQ(last->id, id);
        CHECK_EQ(last->value, epoch);
    }
    __atomic_store_n(&k->ring->taken, k->taken, __ATOMIC_RELEASE);
}

static void open_kit(kit *k) {
    memset(k, 0, sizeof *k);
    proto_open(&k->p, (int)FAR + 1);
    k->ring = (hemd_ring *)device_host_alloc(sizeof *k->ring);
    k->claims = (hemd_claims *)device_alloc(sizeof *k->claims);
    proto_rank *shadow = proto_shadow(&k->p);
    for (uint64_t i = 0; i < PROTO_BYTES; i++)
        shadow[0].data[i] = source_byte(i);
    hemd_peer *peer = &shadow[0].peers[FAR];
    peer->route = HEMD_ROUTE_PROXY;
    peer->near = 0;
    peer->out = NULL;
    peer->out_host = NULL;
    peer->out_arrivals = NULL;
    peer->data = NULL;
    peer->ring = k->ring;
    peer->claims = k->claims;
    shadow[0].home.proxied = 1;
    proto_send(&k->p, shadow);
    free(shadow);
}

static uint64_t told(const kit *k) {
    uint64_t epoch = 0;
    device_copy(&epoch, &k->p.ranks[1].rows[0].arrivals[ID], sizeof epoch);
    return epoch;
}

/* Of so many orders that are under way, the host has carried out all but one, then the last, too. */
static void check_barrier(kit *k, uint32_t scope, uint32_t orders) {
    uint64_t epoch = entered(k) + 1;
    expect(k, FILL, HEMD_RING_SLOTS - orders + (uint32_t)(claimed(k) - k->taken), scope, 0, HEM_OK);
    uint64_t full = claimed(k);
    CHECK_EQ(full, k->taken + orders);
    int64_t start = harness_now();
    expect(k, ENTER, 0, scope, HEM_MS(SHORT_MS), HEM_ERR_TIMEOUT);
    expect(k, TAKE_UP, 0, scope, HEM_MS(SHORT_MS), HEM_ERR_TIMEOUT);
    CHECK(harness_now() - start >= 2 * HEM_MS(SHORT_MS));
    expect(k, TAKE_UP, 0, scope, 0, HEM_ERR_TIMEOUT);
    /* It counts; nobody has been told, and nothing was ordered. */
    CHECK_EQ(entered(k), epoch);
    CHECK_EQ(claimed(k), full);
    CHECK_EQ(told(k), epoch - 1);
    /* Though all others have come: they would wait for this one for ever. */
    arrive(k, 1, ID, epoch);
    arrive(k, (int)FAR, ID, epoch);
    expect(k, TAKE_UP, 0, scope, HEM_MS(SHORT_MS), HEM_ERR_TIMEOUT);
    __atomic_store_n(&k->ring->taken, full - 1, __ATOMIC_RELEASE);
    expect(k, TAKE_UP, 0, scope, 0, HEM_ERR_TIMEOUT);
    CHECK_EQ(told(k), epoch - 1);
    CHECK_EQ(claimed(k), full);
    carry_out(k, ID, 0);
    expect(k, TAKE_UP, 0, scope, LIMIT, HEM_OK);
    CHECK_EQ(told(k), epoch);
    CHECK_EQ(claimed(k), full + 1);
    /* It is told once. */
    expect(k, TAKE_UP, 0, scope, LIMIT, HEM_OK);
    CHECK_EQ(claimed(k), full + 1);
    carry_out(k, ID, epoch);
    CHECK_EQ(entered(k), epoch);
    /* Without a limit it is as ever. */
    arrive(k, 1, ID, epoch + 1);
    arrive(k, (int)FAR, ID, epoch + 1);
    expect(k, ENTER, 0, scope, HEM_FOREVER, HEM_OK);
    carry_out(k, ID, epoch + 1);
}

static uint64_t entered_pair(const kit *k) {
    uint64_t epoch = 0;
    device_copy(&epoch, &k->p.ranks[0].pair_epochs[FAR][ID], sizeof epoch);
    return epoch;
}

/* Between two nobody else is concerned: the order waits for room only, behind the others. */
static void check_pair(kit *k, uint32_t scope) {
    const uint32_t at = PROTO_BARRIERS + ID;
    const uint64_t epoch = entered_pair(k) + 1;
    expect(k, FILL, (uint32_t)(claimed(k) - k->taken), scope, 0, HEM_OK);
    uint64_t full = claimed(k);
    expect(k, PAIR, 0, scope, HEM_MS(SHORT_MS), HEM_ERR_TIMEOUT);
    expect(k, TAKE_UP_PAIR, 0, scope, 0, HEM_ERR_TIMEOUT);
    CHECK_EQ(claimed(k), full);
    CHECK_EQ(entered_pair(k), epoch);
    carry_out(k, at, 0);
    /* It stands, and now the peer is told. */
    expect(k, TAKE_UP_PAIR, 0, scope, HEM_MS(SHORT_MS), HEM_ERR_TIMEOUT);
    CHECK_EQ(claimed(k), full + 1);
    carry_out(k, at, epoch);
    arrive(k, (int)FAR, at, epoch);
    expect(k, TAKE_UP_PAIR, 0, scope, 0, HEM_OK);
    carry_out(k, at, epoch);
    CHECK_EQ(entered_pair(k), epoch);
    /* The last slot is taken by one with a limit, too; and in halves. */
    expect(k, FILL, 1 + (uint32_t)(claimed(k) - k->taken), scope, 0, HEM_OK);
    expect(k, PAIR, 0, scope, HEM_MS(SHORT_MS), HEM_ERR_TIMEOUT); /* in vain for the far one */
    CHECK_EQ(claimed(k), k->taken + HEMD_RING_SLOTS);
    carry_out(k, at, epoch + 1);
    expect(k, ENTER_PAIR, 0, scope, 0, HEM_OK);
    carry_out(k, at, epoch + 2);
    expect(k, TAKE_UP_PAIR, 0, scope, 0, HEM_ERR_TIMEOUT);
    arrive(k, (int)FAR, at, epoch + 2);
    expect(k, TAKE_UP_PAIR, 0, scope, 0, HEM_OK);
    carry_out(k, at, epoch + 2);
}

/* The last order, of so many slots, is the put, and its bytes are there. */
static void check_put_order(const kit *k, uint64_t slots) {
    uint64_t first = claimed(k) - slots;
    const hemd_order *order = &k->ring->orders[first % HEMD_RING_SLOTS];
    CHECK_EQ(order->turn, first + 1);
    CHECK_EQ(order->slots, slots);
    CHECK_EQ(order->offset, 16);
    CHECK_EQ(order->bytes, slots * HEMD_RING_CHUNK - 8);
    CHECK_EQ(order->what, HEMD_ORDER_ADD);
    CHECK_EQ(order->id, 2);
    for (uint64_t i = 0; i < order->bytes; i++) {
        uint64_t slot = (first + i / HEMD_RING_CHUNK) % HEMD_RING_SLOTS;
        CHECK_EQ(k->ring->data[slot][i % HEMD_RING_CHUNK], source_byte(i));
    }
}

/* The word of a rank's kernels, or of its CPU, for mixed barriers of a kind. */
static uint32_t mixed_at(uint32_t kind) {
    return kind * PROTO_MIXED + MIXED_ID;
}

static void arrive_mixed(const kit *k, int rank, uint32_t kind, bool cpu, uint64_t epoch) {
    hemd_slot *slot = &k->p.ranks[0].rows[rank].slots[PROTO_DEVICE_SIGNALS + mixed_at(kind)];
    device_copy(cpu ? &slot->cpu : &slot->kernel, &epoch, sizeof epoch);
}

/* What rank `there` has heard of rank 0's entries, where kernels look and where its CPU does. */
static void expect_told(kit *k, int there, int row, uint32_t kind, uint64_t epoch) {
    const uint32_t at = mixed_at(kind);
    const uint32_t host_at = PROTO_SIGNALS - PROTO_DEVICE_SIGNALS + at;
    hemd_slot slot;
    device_copy(&slot, &k->p.ranks[there].rows[row].slots[PROTO_DEVICE_SIGNALS + at], sizeof slot);
    CHECK_EQ(slot.kernel, epoch);
    CHECK_EQ(__atomic_load_n(&k->p.host->slots[there][row][host_at].kernel, __ATOMIC_ACQUIRE),
             epoch);
}

static uint64_t told_mixed(kit *k) {
    return __atomic_load_n(
        &k->p.host->slots[1][0][PROTO_SIGNALS - PROTO_DEVICE_SIGNALS + mixed_at(HEMD_MIXED_ALL)]
             .kernel,
        __ATOMIC_ACQUIRE);
}

static void launch_mixed(kit *k, uint32_t what, uint32_t scope, int64_t timeout_ns) {
    const uint64_t none = 999;
    proto_args args = proto_begin(&k->p, 0);
    device_copy(&k->p.ranks[0].words[0], &none, sizeof none);
    args.what = what;
    args.mixed = PROTO_MIXED;
    args.scope = scope;
    args.timeout_ns = timeout_ns;
    device_launch(act, k->p.stream, 1, 2, &args);
}

static void expect_mixed(kit *k, hem_status want) {
    proto_end(&k->p);
    CHECK_EQ(proto_word(&k->p, 0, 0), (uint64_t)(uint32_t)-want);
}

static void arrive_all(const kit *k, uint64_t epoch) {
    arrive_mixed(k, 1, HEMD_MIXED_ALL, false, epoch);
    arrive_mixed(k, (int)FAR, HEMD_MIXED_ALL, true, epoch);
}

/*
 * Into a mixed barrier: the far rank's host must have carried out all that was ordered before anybody is told of the
 * entry, though everybody has come, since the next one may be by the CPU, whose orders wait in another ring.
 */
static void check_mixed(kit *k, uint32_t what, uint32_t kind, uint32_t scope, uint64_t epoch) {
    expect(k, SIGNAL, 0, scope, 0, HEM_OK);
    const uint64_t before = claimed(k), heard = told_mixed(k);
    arrive_mixed(k, 1, kind, true, epoch);
    arrive_mixed(k, (int)FAR, kind, false, epoch);
    launch_mixed(k, what, scope, LIMIT);
    harness_sleep_ms(SHORT_MS);
    CHECK_EQ(proto_word(&k->p, 0, 0), 999);
    CHECK_EQ(claimed(k), before);
    CHECK_EQ(told_mixed(k), heard);
    carry_out(k, 0, 0);
    expect_mixed(k, HEM_OK);
    /* The order that tells it need not have been carried out. */
    CHECK_EQ(claimed(k), before + 1);
    carry_out(k, 2 * PROTO_BARRIERS + mixed_at(kind), epoch);
    if (kind == HEMD_MIXED_ALL) {
        expect_told(k, 1, 0, kind, epoch);
        expect_told(k, 0, 0, kind, epoch);
    } else {
        expect_told(k, 0, (int)FAR, HEMD_MIXED_OWN, epoch);
    }
}

static void take_up_mixed(kit *k, uint32_t what, uint32_t scope, int64_t timeout_ns,
                          hem_status want, uint64_t orders) {
    const uint64_t before = claimed(k);
    launch_mixed(k, what, scope, timeout_ns);
    expect_mixed(k, want);
    CHECK_EQ(claimed(k), before + orders);
}

/* An entry that could not be told in time stands, and is told by who takes it up, once. */
static void check_mixed_late(kit *k, uint32_t scope, uint64_t epoch) {
    arrive_all(k, epoch);
    expect(k, FILL, (uint32_t)(claimed(k) - k->taken), scope, 0, HEM_OK);
    const uint64_t heard = told_mixed(k);
    take_up_mixed(k, ENTER, scope, HEM_MS(SHORT_MS), HEM_ERR_TIMEOUT, 0);
    take_up_mixed(k, TAKE_UP, scope, HEM_MS(SHORT_MS), HEM_ERR_TIMEOUT, 0);
    expect_told(k, 0, 0, HEMD_MIXED_ALL, epoch);
    CHECK_EQ(told_mixed(k), heard);
    carry_out(k, 0, 0);
    take_up_mixed(k, TAKE_UP, scope, LIMIT, HEM_OK, 1);
    expect_told(k, 1, 0, HEMD_MIXED_ALL, epoch);
    carry_out(k, 2 * PROTO_BARRIERS + MIXED_ID, epoch);
    /* Later orders are not its concern. */
    expect(k, SIGNAL, 0, scope, 0, HEM_OK);
    take_up_mixed(k, TAKE_UP, scope, 0, HEM_OK, 0);
    carry_out(k, 0, 0);
    /* The CPU has entered since, which has told all: nothing is to be ordered, and kernels count on from there. */
    arrive_mixed(k, 0, HEMD_MIXED_ALL, true, epoch + 2);
    arrive_all(k, epoch + 2);
    take_up_mixed(k, TAKE_UP, scope, 0, HEM_OK, 0);
    check_mixed(k, ENTER, HEMD_MIXED_ALL, scope, epoch + 3);
}

/* The same between two. */
static void check_mixed_pair_late(kit *k, uint32_t scope, uint64_t epoch) {
    const uint32_t at = 2 * PROTO_BARRIERS + mixed_at(HEMD_MIXED_PAIR);
    expect(k, FILL, (uint32_t)(claimed(k) - k->taken), scope, 0, HEM_OK);
    take_up_mixed(k, PAIR, scope, HEM_MS(SHORT_MS), HEM_ERR_TIMEOUT, 0);
    expect_told(k, 0, (int)FAR, HEMD_MIXED_OWN, epoch);
    take_up_mixed(k, TAKE_UP_PAIR, scope, 0, HEM_ERR_TIMEOUT, 0);
    carry_out(k, 0, 0);
    take_up_mixed(k, TAKE_UP_PAIR, scope, HEM_MS(SHORT_MS), HEM_ERR_TIMEOUT, 1);
    carry_out(k, at, epoch);
    arrive_mixed(k, (int)FAR, HEMD_MIXED_PAIR, true, epoch);
    take_up_mixed(k, TAKE_UP_PAIR, scope, 0, HEM_OK, 1);
    carry_out(k, at, epoch);
    /* The CPU has entered since. */
    arrive_mixed(k, (int)FAR, HEMD_MIXED_OWN, true, epoch + 1);
    arrive_mixed(k, (int)FAR, HEMD_MIXED_PAIR, false, epoch + 1);
    take_up_mixed(k, TAKE_UP_PAIR, scope, 0, HEM_OK, 0);
    arrive_mixed(k, (int)FAR, HEMD_MIXED_PAIR, false, epoch + 2);
    take_up_mixed(k, ENTER_PAIR, scope, 0, HEM_OK, 1);
    carry_out(k, at, epoch + 2);
    take_up_mixed(k, TAKE_UP_PAIR, scope, 0, HEM_OK, 1);
    carry_out(k, at, epoch + 2);
}

/* Who is gone need not be told; that it had come holds, and that it had not ends the wait. */
static void check_mixed_gone(kit *k, uint64_t epoch) {
    expect(k, FILL, (uint32_t)(claimed(k) - k->taken), HEM_SCOPE_BLOCK, 0, HEM_OK);
    proto_raise(&k->p, HEMD_TROUBLE_RANKS + FAR, HEM_ERR_PEER);
    proto_raise(&k->p, HEMD_TROUBLE_SOME, HEM_ERR_PEER);
    arrive_all(k, epoch);
    launch_mixed(k, ENTER, HEM_SCOPE_BLOCK, LIMIT);
    expect_mixed(k, HEM_OK);
    launch_mixed(k, ENTER, HEM_SCOPE_BLOCK, LIMIT);
    expect_mixed(k, HEM_ERR_PEER);
    proto_raise(&k->p, HEMD_TROUBLE_SOME, HEM_OK);
    proto_raise(&k->p, HEMD_TROUBLE_RANKS + FAR, HEM_OK);
    carry_out(k, 0, 0);
}

/* With a limit of the window all else gives up, too; what has room does not wait for what has none. */
static void check_limit(kit *k, uint32_t scope) {
    static const uint32_t calls[] = {PUT, SIGNAL, SIGNAL_ALL, FLUSH, ARRIVE};
    uint64_t epoch = entered(k) + 1;
    set_limit(k, HEM_MS(SHORT_MS));
    expect(k, FILL, (uint32_t)(claimed(k) - k->taken), scope, 0, HEM_OK);
    uint64_t full = claimed(k);
    CHECK_EQ(full, k->taken + HEMD_RING_SLOTS);
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        int64_t start = harness_now();
        expect(k, calls[i], 3, scope, 0, HEM_ERR_TIMEOUT);
        CHECK(harness_now() - start >= HEM_MS(SHORT_MS));
        CHECK_EQ(claimed(k), full);
    }
    k->taken += 2;
    __atomic_store_n(&k->ring->taken, k->taken, __ATOMIC_RELEASE);
    expect(k, PUT, 3, scope, 0, HEM_ERR_TIMEOUT);
    CHECK_EQ(claimed(k), full);
    expect(k, PUT, 2, scope, 0, HEM_OK);
    CHECK_EQ(claimed(k), full + 2);
    check_put_order(k, 2);
    expect(k, FLUSH, 0, scope, 0, HEM_ERR_TIMEOUT);
    k->taken = claimed(k);
    __atomic_store_n(&k->ring->taken, k->taken, __ATOMIC_RELEASE);
    expect(k, FLUSH, 0, scope, 0, HEM_OK);
    /* The entry is made up for. */
    arrive(k, 1, ID, epoch);
    arrive(k, (int)FAR, ID, epoch);
    expect(k, TAKE_UP, 0, scope, LIMIT, HEM_OK);
    carry_out(k, ID, epoch);
    CHECK_EQ(entered(k), epoch);
    set_limit(k, HEM_FOREVER);
}

/* Somebody else looks at the ring, and takes his time: who does not want to wait counts what there is. */
static void check_looking(kit *k, uint32_t scope) {
    uint64_t looking = 1;
    expect(k, FILL, (uint32_t)(claimed(k) - k->taken), scope, 0, HEM_OK);
    device_copy(&k->claims->looking, &looking, sizeof looking);
    set_limit(k, 0);
    expect(k, SIGNAL, 0, scope, 0, HEM_ERR_TIMEOUT);
    carry_out(k, 0, 0);
    expect(k, SIGNAL, 0, scope, 0, HEM_OK);
    set_limit(k, HEM_FOREVER);
    looking = 0;
    device_copy(&k->claims->looking, &looking, sizeof looking);
    carry_out(k, 0, 0);
    expect(k, FLUSH, 0, scope, 0, HEM_OK);
}

/* That a peer is gone counts more than that the time is over. */
static void check_gone(kit *k) {
    expect(k, FILL, (uint32_t)(claimed(k) - k->taken), HEM_SCOPE_BLOCK, 0, HEM_OK);
    proto_raise(&k->p, HEMD_TROUBLE_RANKS + FAR, HEM_ERR_PEER);
    proto_raise(&k->p, HEMD_TROUBLE_SOME, HEM_ERR_PEER);
    expect(k, ENTER, 0, HEM_SCOPE_BLOCK, 0, HEM_ERR_PEER);
    proto_raise(&k->p, HEMD_TROUBLE_SOME, HEM_OK);
    proto_raise(&k->p, HEMD_TROUBLE_RANKS + FAR, HEM_OK);
    expect(k, TAKE_UP, 0, HEM_SCOPE_BLOCK, 0, HEM_ERR_TIMEOUT);
}

/* A host that has failed says so at once. */
static void check_failed(kit *k) {
    expect(k, FILL, (uint32_t)(claimed(k) - k->taken), HEM_SCOPE_BLOCK, 0, HEM_OK);
    __atomic_store_n(&k->ring->failed, (uint32_t)-HEM_ERR_RANGE, __ATOMIC_RELEASE);
    expect(k, ENTER, 0, HEM_SCOPE_BLOCK, LIMIT, HEM_ERR_RANGE);
}

int rank_main(hem_world *world) {
    kit k;
    open_kit(&k);
    for (uint32_t scope = HEM_SCOPE_THREAD; scope <= HEM_SCOPE_BLOCK; scope++) {
        harness_step("scope", scope);
        check_barrier(&k, scope, HEMD_RING_SLOTS);
        check_barrier(&k, scope, 2);
        check_pair(&k, scope);
        check_limit(&k, scope);
        check_looking(&k, scope);
        check_mixed(&k, ENTER, HEMD_MIXED_ALL, scope, 1 + 10 * scope);
        check_mixed(&k, ENTER, HEMD_MIXED_ALL, scope, 2 + 10 * scope);
        check_mixed_late(&k, scope, 3 + 10 * scope);
        check_mixed(&k, PAIR, HEMD_MIXED_PAIR, scope, 1 + 4 * scope);
        check_mixed_pair_late(&k, scope, 2 + 4 * scope);
        arrive_mixed(&k, 0, HEMD_MIXED_ALL, true, 10 * (scope + 1));
    }
    check_mixed_gone(&k, 1 + 10 * (HEM_SCOPE_BLOCK + 1));
    check_gone(&k);
    check_failed(&k);
    proto_close(&k.p);
    device_free(k.claims);
    device_host_free(k.ring);
    harness_close(world, HEM_OK);
    return 0;
}
