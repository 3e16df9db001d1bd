/*
 * Every kind of collective on device buffers, in units and between barriers, and some in units of which a
 * thread has several: a rank dies before it starts its run, all others have theirs on a stream. All of these
 * end soon and say HEM_ERR_PEER, what is behind them on the stream is done, a second run is refused at once,
 * and the kinds work in a world of the survivors. There the next rank dies, until one is left; each death is
 * that of as many plans as it takes to have had all by then. Of kinds with a root, it dies in one form, and
 * another rank in the other.
 *
 * As threads, a rank that returns without closing is dead. As processes, HEM_TEST_DIE=kill makes one die
 * by a signal, HEM_TEST_VICTIM, once, with all plans under way: tests/script/device-coll-death.sh.
 *
 * hem-test: ranks=2,3,5,8 modes=threads timeout=60
 */
#include "coll_kit.h"

#include <signal.h>

#define FEW    40    /* elements: units */
#define MANY   17000 /* more than units take, of two ranks already */
#define PAIRS  (2 * (HEM_ALLTOALLV - HEM_BARRIER + 1)) /* plans of all kinds in two forms */
#define DEEP   4
#define PLANS  (PAIRS + DEEP)
#define BLOCKS 2 /* many run at a time */

/* Several words of a rank for each thread: the same to all or not, combined or not. */
static const hem_coll_kind deep_kinds[DEEP] = {HEM_ALLREDUCE, HEM_REDUCE_SCATTER, HEM_ALLGATHER,
                                               HEM_ALLTOALL};

typedef struct mark_args {
    uint64_t *word;
} mark_args;

DEVICE_KERNEL(mark, mark_args) {
    if (hem_block().rank == 0)
        *args->word += 1;
}

/* One plan of a turn. */
typedef struct plan {
    coll_kit kit;
    hem_op *op;
} plan;

typedef struct fate {
    hem_world *world;
    int victim;
    int first; /* plan of this turn */
    int end;
    size_t bytes;        /* of the longest buffer */
    unsigned char *send; /* all send the same */
    unsigned char *recv; /* one for each plan of a turn: some write into it before they fail */
    uint64_t *marks;     /* one for each plan */
} fate;

static bool has_counts(hem_coll_kind kind) {
    return kind == HEM_ALLGATHERV || kind == HEM_REDUCE_SCATTERV || kind == HEM_GATHERV ||
           kind == HEM_SCATTERV || kind == HEM_ALLTOALLV;
}

static hem_coll_kind kind_of(int number) {
    return number < PAIRS ? (hem_coll_kind)(HEM_BARRIER + number / 2) : deep_kinds[number - PAIRS];
}

static size_t count_of(int number, int size, bool combines) {
    if (number >= PAIRS)
        return coll_form_deep_words(size, BLOCKS, combines);
    return number % 2 != 0 ? MANY : FEW;
}

static void deal(coll_kit *kit, size_t least) {
    hem_coll *c = &kit->coll;
    size_t at = 0;
    for (int r = 0; r < kit->size; r++) {
        kit->counts[r] = least + (size_t)(c->kind == HEM_ALLTOALLV ? kit->rank + r : r) % 3;
        kit->displs[r] = at;
        at += kit->counts[r];
    }
    c->counts = kit->counts;
    c->displs = c->kind == HEM_REDUCE_SCATTERV ? NULL : kit->displs;
    c->send_counts = c->kind == HEM_ALLTOALLV ? kit->counts : NULL;
    c->send_displs = c->kind == HEM_ALLTOALLV ? kit->displs : NULL;
    c->count = c->kind == HEM_GATHERV || c->kind == HEM_SCATTERV ? kit->counts[kit->rank] : 0;
}

static hem_op *make(coll_kit *kit, const fate *f, int number, int root) {
    hem_coll *c = &kit->coll;
    hem_op *op = NULL;
    memset(c, 0, sizeof *c);
    c->struct_size = sizeof *c;
    c->kind = kind_of(number);
    c->dtype = HEM_U64;
    bool combines = c->kind == HEM_REDUCE || c->kind == HEM_ALLREDUCE ||
                    c->kind == HEM_REDUCE_SCATTER || c->kind == HEM_REDUCE_SCATTERV;
    c->op = combines ? HEM_SUM : (hem_reduction)0;
    c->root = root;
    c->memory = HEM_MEMORY_DEVICE;
    c->blocks = BLOCKS;
    if (c->kind != HEM_BARRIER) {
        c->count = count_of(number, kit->size, combines);
        c->send = c->kind == HEM_BROADCAST ? NULL : f->send;
        c->recv = f->recv + (size_t)(number - f->first) * f->bytes;
    }
    if (has_counts(c->kind))
        deal(kit, c->count);
    CHECK_OK(hem_coll_plan(kit->world, c, &op));
    if (number >= PAIRS && kit->size > 1)
        coll_form_check_deep(op, kit->size, combines);
    return op;
}

static int die(const fate *f, plan *plans) {
    CHECK_OK(hem_sync(f->world, LIMIT));
    harness_sleep_ms(20);
    const char *manner = getenv("HEM_TEST_DIE");
    if (manner != NULL && strcmp(manner, "kill") == 0)
        (void)raise(SIGKILL);
    for (int i = f->first; i < f->end; i++)
        device_stream_destroy(plans[i].kit.native);
    device_free(f->send);
    device_free(f->recv);
    device_free(f->marks);
    harness_forget();
    return 0;
}

/* How often the stream has come to what is behind a plan's runs. */
static uint64_t marked(const fate *f, int number) {
    uint64_t count = 0;
    device_copy(&count, f->marks + number, sizeof count);
    return count;
}

static void launch_mark(const fate *f, plan *p, int number) {
    mark_args args = {f->marks + number};
    device_launch(mark, p->kit.native, 1, 1, &args);
}

static void survive(const fate *f, plan *plans) {
    for (int i = f->first; i < f->end; i++) {
        CHECK_OK(hem_op_start_on(plans[i].op, plans[i].kit.stream));
        launch_mark(f, &plans[i], i);
    }
    CHECK_OK(hem_sync(f->world, LIMIT)); /* the victim dies only now */
    int64_t begun = harness_now();
    for (int i = f->first; i < f->end; i++) {
        harness_step("plan", (uint64_t)i);
        device_stream_sync(plans[i].kit.native);
        CHECK_STATUS(hem_op_status(plans[i].op), HEM_ERR_PEER);
        CHECK_EQ(marked(f, i), 1);
    }
    CHECK(harness_now() - begun < HEM_SEC(15));
    for (int i = f->first; i < f->end; i++) {
        harness_step("second run of plan", (uint64_t)i);
        CHECK_STATUS(hem_op_start_on(plans[i].op, plans[i].kit.stream), HEM_ERR_PEER);
        launch_mark(f, &plans[i], i);
        device_stream_sync(plans[i].kit.native);
        CHECK_STATUS(hem_op_status(plans[i].op), HEM_ERR_PEER);
        CHECK_EQ(marked(f, i), 2);
        CHECK_OK(hem_op_free(plans[i].op));
    }
}

/* The same kinds without the dead, one after the other. Others than this look at the results. */
static void go_on(const fate *f, hem_world *rest) {
    coll_kit kit = coll_kit_open(rest);
    for (int i = f->first; i < f->end; i++) {
        harness_step("among survivors, plan", (uint64_t)i);
        hem_op *op = make(&kit, f, i, 0);
        CHECK_OK(hem_op_start_on(op, kit.stream));
        device_stream_sync(kit.native);
        CHECK_OK(hem_op_status(op));
        CHECK_OK(hem_op_free(op));
    }
    coll_kit_close(&kit);
}

/* @return Whether this rank lives on. */
static bool one_death(fate *f) {
    plan plans[PLANS];
    int size = hem_world_size(f->world);
    for (int i = f->first; i < f->end; i++) {
        bool roots = (i / 2 + i + size) % 2 == 0;
        harness_step("making plan", (uint64_t)i);
        plans[i].kit = coll_kit_open(f->world);
        plans[i].op = make(&plans[i].kit, f, i, roots ? f->victim : (f->victim + 1) % size);
    }
    if (hem_world_rank(f->world) == f->victim) {
        (void)die(f, plans);
        return false;
    }
    survive(f, plans);
    for (int i = f->first; i < f->end; i++)
        coll_kit_close(&plans[i].kit);
    return true;
}

static void begin(fate *f, hem_world *world, int deaths) {
    size_t most = (size_t)(PLANS - 1 + deaths - 1) / (size_t)deaths;
    memset(f, 0, sizeof *f);
    f->world = world;
    f->bytes = (size_t)hem_world_size(world) * (MANY + 2) * 8;
    f->send = (unsigned char *)device_alloc(f->bytes);
    f->recv = (unsigned char *)device_alloc(most * f->bytes);
    f->marks = (uint64_t *)device_alloc(PLANS * sizeof *f->marks);
}

static void finish(fate *f, hem_world *world) {
    device_free(f->send);
    device_free(f->recv);
    device_free(f->marks);
    int rank = hem_world_rank(world);
    CHECK_OK(hem_world_close(f->world));
    harness_close(world, HEM_ERR_PEER);
    if (!harness_threads())
        printf("survived %d\n", rank);
}

int rank_main(hem_world *world) {
    const char *chosen = getenv("HEM_TEST_VICTIM");
    int deaths = chosen != NULL ? 1 : hem_world_size(world) - 1;
    fate f;
    begin(&f, world, deaths);
    for (int turn = 0; turn < deaths; turn++) {
        hem_world *rest = NULL;
        /* Of a barrier there is one form. */
        f.first = 1 + turn * (PLANS - 1) / deaths;
        f.end = 1 + (turn + 1) * (PLANS - 1) / deaths;
        f.victim = turn % 2 == 0 ? hem_world_size(f.world) - 1 : 0;
        f.victim = chosen != NULL ? atoi(chosen) : f.victim;
        if (!one_death(&f))
            return 0;
        CHECK_OK(hem_world_shrink(f.world, &rest));
        if (f.world != world)
            CHECK_STATUS(hem_world_close(f.world), HEM_ERR_PEER);
        f.world = rest;
        go_on(&f, rest);
    }
    finish(&f, world);
    return 0;
}
