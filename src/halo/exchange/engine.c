/* Runs by copy engines: what is put on a stream. See engine.h. */
#include "halo/exchange/engine.h"

#include <stdlib.h>

/* How long no graph must have been seen, at most how long one waits for that, and naps. */
#define CALM_NS      20000000u
#define CALM_MOST_NS 1000000000u
#define NAP_NS       20000u
/* How long a world that is closed waits for a start that is on a stream of this rank. */
#define QUIET_MOST_NS 1000000000u

static hem_status check_signs(const hem_exchange *x, const hemi_parts *recvs) {
    for (size_t i = 0; i < recvs->count; i++)
        if (recvs->parts[i].negated && !recvs->parts[i].unwanted && recvs->parts[i].bytes > 0)
            return hemi_fail(
                HEM_ERR_UNSUPPORTED,
                "hem_exchange_create: field %u of rank %u changes its sign on the way, "
                "and copy engines change nothing",
                recvs->parts[i].key.number, x->world->rank);
    return HEM_OK;
}

hem_status hemi_halo_engine_allowed(const hem_exchange *x) {
    hem_status status = HEM_OK;
    if (x->device->device->facts.words == 0)
        return hemi_fail(
            HEM_ERR_UNSUPPORTED,
            "hem_exchange_create: the GPU of rank %u has no memory operations of 64 bits "
            "for its streams: copy engines need those",
            x->world->rank);
    for (size_t b = 0; b < x->binding_count; b++) {
        const hem_field *field = &x->bindings[b].field;
        if (field->memory != NULL && !hemi_halo_is_on_device(x->device, field))
            return hemi_fail(HEM_ERR_UNSUPPORTED,
                             "hem_exchange_create: field %u of rank %u is in host memory: copy "
                             "engines are for exchanges in device memory alone",
                             x->bindings[b].number, x->world->rank);
    }
    for (size_t l = 0; l < x->lane_count && status == HEM_OK; l++)
        status = check_signs(x, &x->lanes[l].recvs);
    return status;
}

/* Where things are put on a stream, until one fails. */
typedef struct pen {
    const hemi_halo_device *d;
    void *stream;
    hem_status status;
} pen;

static void store(pen *p, uint64_t *word, uint64_t value) {
    const hemi_device *device = p->d->device;
    if (p->status == HEM_OK)
        p->status = device->module->stream->store(device->context, p->stream, word, value);
}

static void await(pen *p, const uint64_t *word) {
    const hemi_device *device = p->d->device;
    if (p->status == HEM_OK)
        p->status = device->module->stream->await(device->context, p->stream, word, 1);
}

static void copy(pen *p, const hemi_halo_plan *plan) {
    const hemi_device *device = p->d->device;
    if (p->status == HEM_OK && plan->row_count > 0)
        p->status = device->module->stream->copy_rows(device->context, p->stream, plan->row_count,
                                                      plan->rows);
}

/* The words of all lanes but one's own. */
static void set_there(pen *p, bool filled) {
    const hem_exchange *x = p->d->engine->x;
    for (size_t l = 0; l < x->lane_count; l++) {
        if (x->lanes[l].way.peer == p->d->rank)
            continue;
        hemd_halo_area *out = hemi_halo_engine_out(p->d, l, x->lanes[l].way.peer);
        store(p, filled ? &out->filled : &out->ready, 1);
    }
}

/* Wait for all, then say where the stream is, then take them back: in that order. */
static void await_here(pen *p, bool filled, enum hemi_halo_engine_at now) {
    const hem_exchange *x = p->d->engine->x;
    for (size_t l = 0; l < x->lane_count; l++)
        if (x->lanes[l].way.peer != p->d->rank) {
            const hemd_halo_area *in = hemi_halo_engine_in(p->d, l);
            await(p, filled ? &in->filled : &in->ready);
        }
    store(p, &p->d->words_device->at, now);
    for (size_t l = 0; l < x->lane_count; l++)
        if (x->lanes[l].way.peer != p->d->rank) {
            hemd_halo_area *in = hemi_halo_engine_in(p->d, l);
            store(p, filled ? &in->filled : &in->ready, 0);
        }
}

static void put_start(pen *p, const hemi_halo_plan *plan, bool tells) {
    if (p->d->engine->x->run_timeout_ns > 0 || !tells)
        store(p, &p->d->words_device->since, 0);
    store(p, &p->d->words_device->at, HEMI_HALO_ENGINE_STARTS);
    set_there(p, false);
    await_here(p, false, HEMI_HALO_ENGINE_STARTED);
    copy(p, plan);
    set_there(p, true);
}

static void put_finish(pen *p) {
    store(p, &p->d->words_device->at, HEMI_HALO_ENGINE_FINISHES);
    await_here(p, true, HEMI_HALO_ENGINE_IDLE);
}

/* Say that a start comes, then look whether it may; who refuses does it the other way round. With a full
 * fence between, at least one sees the other. */
static hem_status announce(hemi_halo_device *d, bool tells) {
    hemi_halo_engine *engine = d->engine;
    uint64_t before = hemi_load64_relaxed(&engine->last_start);
    if (tells)
        hemi_store64_relaxed(&engine->last_start, d->launched + 1);
    else
        hemi_store32_relaxed(&engine->captured, 1);
    hemi_fence_seq_cst(); /* pairs with that in hemi_halo_engine_look */
    if (hemi_load32_acquire(&engine->refuses) == 0)
        return HEM_OK;
    if (tells)
        hemi_store64_relaxed(&engine->last_start, before);
    hemi_halo_engine_raise(d, HEM_ERR_REVOKED, 0);
    return hemi_halo_device_status(engine->x);
}

hem_status hemi_halo_engine_put(hemi_halo_device *d, const hemi_halo_plan *plan, bool finishes,
                                void *stream, bool tells) {
    pen p = {.d = d, .stream = stream, .status = HEM_OK};
    if (!finishes)
        p.status = announce(d, tells);
    if (p.status != HEM_OK)
        return p.status;
    if (finishes)
        put_finish(&p);
    else
        put_start(&p, plan, tells);
    if (tells)
        store(&p, &d->words_device->counted, d->launched + 1);
    if (p.status == HEM_OK)
        d->launched += tells;
    else /* a part of it is on the stream, and its end will not be told */
        hemi_halo_engine_raise(d, HEM_ERR_SYSTEM, 0);
    return p.status;
}

static bool work(hemi_chore *chore) {
    return hemi_halo_engine_look((hemi_halo_engine *)(void *)chore);
}

hem_status hemi_halo_engine_make(hem_exchange *x) {
    hemi_halo_device *d = x->device;
    hemi_halo_engine *engine = calloc(1, sizeof *engine);
    if (engine == NULL)
        return hemi_fail(HEM_ERR_MEMORY, "hem_exchange_create: no memory for an exchange");
    engine->x = x;
    engine->chore.work = work;
    engine->trouble = hemi_trouble_words(d->trouble);
    d->engine = engine;
    return hemi_chore_begin(d->root, &engine->chore);
}

void hemi_halo_engine_open(const hemi_halo_device *d) {
    if (d->engine != NULL)
        hemi_store32_release(&d->engine->open, 1);
}

void hemi_halo_engine_leave(const hemi_halo_device *d) {
    hemi_halo_engine *engine = d->engine;
    const hem_exchange *x = engine->x;
    if (hemi_load32_acquire(&engine->leaves) != 0 || hemi_load32_acquire(&engine->open) == 0)
        return;
    hemi_store32_release(&engine->leaves, 1);
    for (size_t l = 0; l < x->lane_count; l++) {
        const hemi_halo_way *way = &x->lanes[l].way;
        if (way->peer != d->rank)
            hemi_halo_engine_tell(engine, way, &way->out->credit.leaving);
    }
}

bool hemi_halo_engine_may_tell(const hem_exchange *x, const hemi_halo_way *way) {
    return (hemi_way_gone(way) & HEMI_GONE_DESTROYED) == 0 &&
           hemi_load64_acquire(&way->in->credit.parted) == 0 &&
           (x->world->root->threads ||
            hemi_liveness_may_come(&x->world->root->arena, x->world->members[way->peer]));
}

/* A start that waits on a stream is released by looking, and only then the neighbours, which wait for
 * that, hear that this rank is quiet. It may be behind work that waits for something else. */
static void become_quiet(hemi_halo_engine *engine) {
    const hemi_platform *platform = engine->x->device->root->platform;
    uint64_t end = platform->now(platform->ctx) + QUIET_MOST_NS;
    while (hemi_load32_acquire(&engine->open) != 0 && hemi_load32_acquire(&engine->quiet) == 0 &&
           platform->now(platform->ctx) < end) {
        hemi_halo_engine_look(engine);
        platform->nap(platform->ctx, NAP_NS);
    }
}

/* The last thing that the neighbours hear; nobody looks any more. Also those that have given it up: they
 * keep their areas until they have heard it. */
static void say_parted(const hemi_halo_device *d) {
    hemi_halo_engine *engine = d->engine;
    for (size_t l = 0; l < engine->x->lane_count && !engine->parted; l++) {
        const hemi_halo_way *way = &engine->x->lanes[l].way;
        if (way->peer != d->rank)
            hemi_store64_release(&way->out->credit.parted, 1);
    }
    engine->parted = true;
}

bool hemi_halo_engine_part(const hem_exchange *x) {
    const hemi_halo_device *d = x->device;
    bool alone = true;
    if (d == NULL || d->engine == NULL || x->world->keep_memory)
        return true;
    const hemi_platform *platform = d->root->platform;
    uint64_t end = x->setup_timeout_ns < 0
                       ? UINT64_MAX
                       : platform->now(platform->ctx) + (uint64_t)x->setup_timeout_ns;
    if (!x->told) {
        become_quiet(d->engine);
        hemi_halo_engine_end(d);
        say_parted(d);
    }
    for (size_t l = 0; l < x->lane_count; l++) {
        const hemi_halo_way *way = &x->lanes[l].way;
        if (way->peer == d->rank)
            continue;
        while (hemi_halo_engine_may_tell(x, way) && platform->now(platform->ctx) < end)
            platform->nap(platform->ctx, NAP_NS);
        alone = alone && !hemi_halo_engine_may_tell(x, way);
    }
    return alone;
}

bool hemi_halo_engine_may_write(const hemi_halo_device *d, size_t lane) {
    return hemi_load64_acquire(&d->engine->x->lanes[lane].way.in->credit.quiet) == 0;
}

void hemi_halo_engine_end(const hemi_halo_device *d) {
    if (d->engine == NULL)
        return;
    hemi_chore_end(d->root, &d->engine->chore);
    hemi_halo_engine_look(d->engine); /* so that this rank has said that it is quiet */
}

/* A rank that is dead may have graphs under way, whose ends are not counted: they are released until
 * none has been seen for a while. */
static void calm_down(hemi_halo_engine *engine) {
    const hemi_halo_device *d = engine->x->device;
    const hemi_platform *platform = d->root->platform;
    uint64_t now = platform->now(platform->ctx);
    uint64_t end = now + CALM_MOST_NS;
    uint64_t busy = now;
    hemi_halo_engine_look(engine); /* which hears that the rank has ended */
    if (hemi_load32_acquire(&engine->captured) == 0 || hemi_load64_acquire(&d->words->failed) == 0)
        return;
    while (now < end && now - busy < CALM_NS) {
        hemi_halo_engine_look(engine);
        platform->nap(platform->ctx, NAP_NS);
        now = platform->now(platform->ctx);
        if (hemi_load64_acquire(&d->words->at) != HEMI_HALO_ENGINE_IDLE)
            busy = now;
    }
}

void hemi_halo_engine_free(hemi_halo_device *d) {
    if (d->engine == NULL)
        return;
    calm_down(d->engine);
    hemi_halo_engine_leave(d);
    hemi_halo_engine_end(d);
    /* Of a thread that is dead, and of one that did not wait for others to close, they hear it here. */
    if (hemi_load32_acquire(&d->engine->open) != 0 && !d->engine->x->told)
        say_parted(d);
    free(d->engine);
    d->engine = NULL;
}
