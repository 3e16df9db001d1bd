/* The public calls, but for those on streams and the destroying one. */
#include "base/options.h"
#include "core/team.h"
#include "halo/exchange/device.h"

#include <stdlib.h>

static hem_status check(const hem_exchange *x, const char *call) {
    if (x == NULL)
        return hemi_fail(HEM_ERR_ARG, "%s: the exchange is NULL", call);
    if (x->op.world == NULL)
        return hemi_fail(HEM_ERR_CLOSED, "%s: the world of this exchange was closed", call);
    return HEM_OK;
}

static hem_status read_options(hem_world *world, const hem_exchange_options *given,
                               hem_exchange_options *options) {
    hem_status status = hemi_options_read(options, sizeof *options, given, "hem_exchange_options");
    if (status == HEM_OK)
        status = hemi_check_timeout(options->setup_timeout_ns, "hem_exchange_create");
    if (status == HEM_OK)
        status = hemi_check_timeout(options->run_timeout_ns, "hem_exchange_create");
    if (status == HEM_OK && (unsigned)options->way > HEM_EXCHANGE_ENGINES)
        status = hemi_fail(HEM_ERR_ARG, "hem_exchange_create: %d is no way of an exchange",
                           (int)options->way);
    if (options->setup_timeout_ns == 0)
        options->setup_timeout_ns = world->timeout_ns;
    return status;
}

hem_status hem_exchange_create(hem_world *world, const hem_exchange_options *given,
                               hem_exchange **exchange_p) {
    hem_status status = hemi_engine_check(world, "hem_exchange_create");
    if (status == HEM_OK && exchange_p == NULL)
        status = hemi_fail(HEM_ERR_ARG, "hem_exchange_create: exchange_p is NULL");
    if (status != HEM_OK)
        return status;
    hem_exchange_options options;
    status = read_options(world, given, &options);
    hem_exchange *x = calloc(1, sizeof *x);
    if (x == NULL) {
        status = hemi_fail(HEM_ERR_MEMORY, "hem_exchange_create: no memory for an exchange");
        return hemi_team_agree(world, HEMI_CALL_EXCHANGE_CREATE, status, 0, NULL, 0,
                               world->timeout_ns);
    }
    x->setup_timeout_ns = status == HEM_OK ? options.setup_timeout_ns : world->timeout_ns;
    x->run_timeout_ns = options.run_timeout_ns;
    x->way = status == HEM_OK ? options.way : HEM_EXCHANGE_STAGED;
    if (status == HEM_OK)
        status = hemi_fields_check(x, world, &options);
    status = hemi_exchange_connect(x, world, status);
    hemi_engine_lock(world);
    hemi_exchange_sweep(world);
    hemi_engine_unlock(world);
    if (status == HEM_OK) {
        hemi_exchange_init(x, world);
        *exchange_p = x;
        return HEM_OK;
    }
    if (x->memory != 0) {
        hemi_world_abandon(world, &x->child);
        hemi_exchange_release(x);
    }
    hemi_exchange_free(x);
    return status;
}

static hem_status check_combine(const hem_exchange *x, const hem_exchange_how *how,
                                const char *call) {
    if ((unsigned)how->combine > HEM_COMBINE_REPLACE)
        return hemi_fail(HEM_ERR_ARG, "%s: %d is no way to combine", call, how->combine);
    if (how->combine != 0 && x->way == HEM_EXCHANGE_ENGINES)
        return hemi_fail(HEM_ERR_UNSUPPORTED,
                         "%s: copy engines combine nothing: reverse runs need another way", call);
    if (how->combine == 0 || how->combine == HEM_COMBINE_REPLACE)
        return HEM_OK;
    for (size_t b = 0; b < x->binding_count; b++) {
        const hem_binding *binding = &x->bindings[b];
        if ((how->fields == 0 || (how->fields >> (binding->number - 1) & 1) != 0) &&
            !hemi_shape_can_combine(binding->field.dtype, hemi_combine_reduction(how->combine)))
            return hemi_fail(HEM_ERR_UNSUPPORTED, "%s: the type of field %u cannot be combined so",
                             call, binding->number);
    }
    return HEM_OK;
}

hem_status hemi_exchange_read_how(const hem_exchange *x, const hem_exchange_how *given,
                                  const char *call, hem_exchange_how *how) {
    if (given == NULL) {
        *how = (hem_exchange_how){0};
        return HEM_OK;
    }
    hem_status status = hemi_options_read(how, sizeof *how, given, "hem_exchange_how");
    how->struct_size = 0;
    if (status == HEM_OK && how->sides >= HEM_SIDE_LOW(HEM_DIMS))
        status = hemi_fail(HEM_ERR_ARG, "%s: there are no such sides: %#x", call, how->sides);
    return status == HEM_OK ? check_combine(x, how, call) : status;
}

hem_status hemi_exchange_fail_broken(const hem_exchange *x, const char *call) {
    return hemi_fail(HEM_ERR_REVOKED, "%s: the exchange is broken: %.200s", call, x->text);
}

/* What comes before everything about a run. */
static hem_status check_run(const hem_exchange *x, const hem_exchange_how *given, const char *call,
                            hem_exchange_how *how) {
    hem_status status = check(x, call);
    if (status == HEM_OK)
        status = hemi_engine_check(x->world, call);
    return status == HEM_OK ? hemi_exchange_read_how(x, given, call, how) : status;
}

hem_status hem_exchange_prepare(hem_exchange *x, const hem_exchange_how *given) {
    hem_exchange_how how;
    hem_status status = check_run(x, given, "hem_exchange_prepare", &how);
    if (status != HEM_OK)
        return status;
    hemi_engine_lock(x->world);
    if (hemi_halo_device_is_broken(x))
        status = hemi_exchange_fail_broken(x, "hem_exchange_prepare");
    else if (x->device != NULL)
        status = hemi_halo_device_prepare(x, &how);
    hemi_engine_unlock(x->world);
    return status;
}

static hem_status start(hem_exchange *x, const hem_exchange_how *given, const char *call) {
    hem_exchange_how how;
    hem_status status = check_run(x, given, call, &how);
    if (status != HEM_OK)
        return status;
    hem_world *world = x->world;
    hemi_engine_lock(world);
    if (x->asked != x->ended || x->items != x->items_done || hemi_halo_device_is_busy(x))
        status = hemi_fail(HEM_ERR_ARG, "%s: the exchange is still under way", call);
    else if (hemi_halo_device_is_broken(x))
        status = hemi_exchange_fail_broken(x, call);
    if (status == HEM_OK) {
        x->asked++;
        x->last_stream = 0;
        hemi_exchange_allow(x, x->asked);
        hemi_exchange_begin(x, &how);
    }
    hemi_engine_unlock(world);
    hemi_engine_settle(world);
    return status;
}

hem_status hem_exchange_start(hem_exchange *x, const hem_exchange_how *how) {
    return start(x, how, "hem_exchange_start");
}

typedef struct waiting {
    hem_exchange *x;
    uint64_t run;
    bool items;
} waiting;

static bool is_over(const waiting *w) {
    /* Pairs with the releases in hemi_exchange_end and on.c. */
    return hemi_load64_acquire(&w->x->ended) >= w->run &&
           (!w->items || (hemi_load64_acquire(&w->x->items_done) >= w->x->items &&
                          !hemi_halo_device_is_busy(w->x)));
}

static hem_status poll(void *arg) {
    const waiting *w = arg;
    if (is_over(w))
        return HEM_OK;
    hemi_engine_progress(w->x->world);
    return is_over(w) ? HEM_OK : HEMI_AGAIN;
}

static hem_status doomed(void *arg) {
    const waiting *w = arg;
    hemi_engine_inspect(w->x->world);
    return is_over(w) ? HEM_ERR_PEER : HEM_OK; /* not a verdict: the wait looks once more */
}

static void where(void *arg, hemi_flight_note *note) {
    const waiting *w = arg;
    hemi_engine_lock(w->x->world);
    if (!hemi_op_is_done(&w->x->op))
        w->x->op.type->where(&w->x->op, note);
    hemi_engine_unlock(w->x->world);
}

static hem_status late(uint64_t run) {
    return hemi_fail(HEM_ERR_TIMEOUT, "hem_exchange_finish: run %llu was not done in time",
                     (unsigned long long)run);
}

hem_status hemi_exchange_await(hem_exchange *x, uint64_t run, bool items, int64_t timeout_ns) {
    waiting w = {x, run, items};
    hemi_wait_for wait = {
        .poll = poll,
        .doomed = doomed,
        .where = where,
        .arg = &w,
        .also_revoked = true, /* a revoke ends the run, and that ends the wait */
        .note = {.call = HEMI_CALL_EXCHANGE, .peer = -1, .world = x->world->id},
    };
    hem_status status = hemi_engine_wait_until(x->world, &wait, timeout_ns);
    if (status == HEM_ERR_TIMEOUT)
        return late(run);
    if (status != HEM_OK || run <= hemi_load64_acquire(&x->good))
        return status;
    return hemi_op_result(&x->op);
}

/* Nothing was ever put on a stream: the operation itself tells. */
static hem_status finish_plain(hem_exchange *x, int64_t timeout_ns) {
    hem_status status = hemi_engine_wait(x->world, &x->op, timeout_ns);
    if (status != HEM_ERR_TIMEOUT)
        return status;
    return hemi_op_is_done(&x->op) ? hemi_op_result(&x->op) : late(x->asked);
}

hem_status hem_exchange_finish(hem_exchange *x, int64_t timeout_ns) {
    hem_status status = check(x, "hem_exchange_finish");
    if (status == HEM_OK)
        status = hemi_check_timeout(timeout_ns, "hem_exchange_finish");
    if (status == HEM_OK && x->device != NULL)
        return hemi_halo_device_await(x, timeout_ns);
    if (status != HEM_OK || (x->asked == 0 && x->items == 0))
        return status;
    if (x->items == 0)
        return finish_plain(x, timeout_ns);
    hemi_engine_lock(x->world);
    uint64_t run = x->asked;
    hemi_exchange_allow(x, run);
    hemi_engine_unlock(x->world);
    return hemi_exchange_await(x, run, true, timeout_ns);
}

hem_status hem_exchange_test(hem_exchange *x, bool *done_p) {
    hem_status status = check(x, "hem_exchange_test");
    if (status == HEM_OK && done_p == NULL)
        status = hemi_fail(HEM_ERR_ARG, "hem_exchange_test: done_p is NULL");
    if (status == HEM_OK && x->device != NULL)
        status = hemi_halo_device_finish(x);
    if (status == HEM_OK && x->asked > 0)
        status = hem_progress(x->world);
    if (status != HEM_OK)
        return status;
    waiting w = {x, x->asked, true};
    *done_p = is_over(&w);
    if (*done_p && x->device != NULL)
        hemi_halo_device_rest(x);
    if (*done_p && x->asked > hemi_load64_acquire(&x->good))
        return hemi_op_result(&x->op);
    return *done_p && x->device != NULL ? hem_exchange_status(x) : HEM_OK;
}

hem_status hem_exchange_status(const hem_exchange *x) {
    hem_status status = check(x, "hem_exchange_status");
    if (status != HEM_OK)
        return status;
    hemi_engine_lock(x->world);
    if (x->broken)
        status = hemi_fail(x->ending, "%s", x->text);
    else if (x->device != NULL)
        status = hemi_halo_device_status(x);
    hemi_engine_unlock(x->world);
    return status;
}

hem_status hem_exchange_run(hem_exchange *x, const hem_exchange_how *how, int64_t timeout_ns) {
    hem_status status = hemi_check_timeout(timeout_ns, "hem_exchange_run");
    if (status == HEM_OK)
        status = start(x, how, "hem_exchange_run");
    return status == HEM_OK ? hem_exchange_finish(x, timeout_ns) : status;
}

hem_op *hem_exchange_op(hem_exchange *x) {
    return x != NULL ? &x->op : NULL;
}

/* Of a forward run. */
static uint64_t bytes_of(const hemi_part *part) {
    return part->unwanted ? 0 : part->bytes;
}

hem_status hem_exchange_info(const hem_exchange *x, hem_exchange_facts *facts_p) {
    hem_status status = check(x, "hem_exchange_info");
    if (status == HEM_OK && (facts_p == NULL || facts_p->struct_size < sizeof *facts_p))
        status = hemi_fail(HEM_ERR_ARG, "hem_exchange_info: facts_p is NULL or of another size");
    if (status != HEM_OK)
        return status;
    hem_exchange_facts facts = {.struct_size = sizeof facts, .landing_bytes = x->memory_bytes};
    if (x->device != NULL)
        facts.landing_bytes += x->device->areas.bytes;
    for (size_t l = 0; l < x->lane_count; l++) {
        const hemi_halo_lane *lane = &x->lanes[l];
        bool own = lane->way.peer == x->world->rank;
        facts.neighbours += !own;
        for (size_t i = 0; i < lane->recvs.count; i++)
            *(own ? &facts.local_bytes : &facts.recv_bytes) += bytes_of(&lane->recvs.parts[i]);
        for (size_t i = 0; i < lane->sends.count && !own; i++)
            facts.send_bytes += bytes_of(&lane->sends.parts[i]);
        facts.direct_bytes += lane->recvs.direct;
    }
    *facts_p = facts;
    return HEM_OK;
}
