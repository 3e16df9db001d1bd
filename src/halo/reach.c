/* Planning a reach, and giving it up. */
#include "halo/reach.h"
#include "base/options.h"
#include "core/team.h"

#include <hem/coll.h>
#include <inttypes.h>
#include <stdlib.h>

/* What a rank tells a partner. */
typedef struct partner_say {
    hemi_place place;
    uint64_t rows; /* that it sends there */
} partner_say;

/* What planning needs besides the reach. */
typedef struct planning {
    hem_reach_options o;
    hemi_extent *extents; /* of all ranks */
    uint32_t call;
    int64_t timeout_ns;
} planning;

_Static_assert(sizeof(hemi_extent) <= HEMI_SAY_MAX, "fits into a step");

static void free_handle(hem_reach *reach) {
    free(reach->partners);
    free(reach);
}

static void orphan(hemi_child *child, bool dead) {
    hem_reach *reach = (hem_reach *)(void *)child;
    reach->world = NULL;
    if (!dead)
        return;
    hemi_sides_abandon(reach->sides);
    free_handle(reach);
}

static hem_status check_keys(const hem_reach_options *o) {
    if (o->keys == NULL)
        return HEM_OK;
    if (o->back_key < 0 || o->ahead_key < 0)
        return hemi_fail(HEM_ERR_ARG, "hem_reach_plan: a distance of keys is negative");
    for (uint64_t i = 1; i < o->rows; i++)
        if (o->keys[i] < o->keys[i - 1])
            return hemi_fail(HEM_ERR_RANGE,
                             "hem_reach_plan: key %" PRIu64 " falls from %" PRId64 " to %" PRId64,
                             i, o->keys[i - 1], o->keys[i]);
    return HEM_OK;
}

static hem_status check_options(const hem_reach_options *o, hem_reach **reach_p) {
    static const char call[] = "hem_reach_plan";
    if (reach_p == NULL)
        return hemi_fail(HEM_ERR_ARG, "%s: reach_p is NULL", call);
    if (o->row_bytes == 0)
        return hemi_fail(HEM_ERR_ARG, "%s: row_bytes is 0", call);
    if (o->rows > PTRDIFF_MAX / o->row_bytes)
        return hemi_fail(HEM_ERR_RANGE, "%s: %" PRIu64 " rows of %zu bytes are too many", call,
                         o->rows, o->row_bytes);
    if (o->timeout_ns != 0) {
        hem_status status = hemi_check_timeout(o->timeout_ns, call);
        if (status != HEM_OK)
            return status;
    }
    return check_keys(o);
}

static hemi_extent extent_of(const hem_reach_options *o) {
    hemi_extent e = {.rows = o->rows, .back = o->back_rows, .ahead = o->ahead_rows};
    if (o->keys == NULL)
        return e;
    e.keyed = 1;
    e.back = (uint64_t)o->back_key;
    e.ahead = (uint64_t)o->ahead_key;
    if (o->rows > 0) {
        e.first = o->keys[0];
        e.last = o->keys[o->rows - 1];
    }
    return e;
}

/* Check what the ranks said against each other. All come to the same verdict. */
static hem_status check_extents(const hem_world *world, planning *p) {
    const hemi_extent *before = NULL; /* the last one that has rows */
    uint64_t rows = 0;
    for (uint32_t r = 0; r < world->size; r++) {
        hemi_extent *e = &p->extents[r];
        e->start = rows;
        if (e->rows > PTRDIFF_MAX / p->o.row_bytes - rows)
            return hemi_fail(HEM_ERR_RANGE, "hem_reach_plan: there are too many rows in all");
        rows += e->rows;
        if (e->rows == 0)
            continue;
        uint32_t other = before != NULL ? (uint32_t)(before - p->extents) : 0;
        if (before != NULL && before->keyed != e->keyed)
            return hemi_fail(HEM_ERR_MISMATCH,
                             "hem_reach_plan: of rank %u and rank %u one has keys and one has not",
                             other, r);
        if (before != NULL && e->keyed && e->first < before->last)
            return hemi_fail(HEM_ERR_RANGE,
                             "hem_reach_plan: keys fall from %" PRId64 " on rank %u to %" PRId64
                             " on rank %u",
                             before->last, other, e->first, r);
        before = e;
    }
    return HEM_OK;
}

/* Everybody says what it has. */
static hem_status hear_extents(hem_world *world, planning *p, hem_status status) {
    hemi_extent mine = status == HEM_OK ? extent_of(&p->o) : (hemi_extent){0};
    if (status == HEM_OK) {
        p->extents = malloc(world->size * sizeof *p->extents);
        if (p->extents == NULL)
            status =
                hemi_fail(HEM_ERR_MEMORY, "hem_reach_plan: no memory for %u ranks", world->size);
    }
    status =
        hemi_team_agree(world, p->call, status, p->o.row_bytes, &mine, sizeof mine, p->timeout_ns);
    if (status == HEM_OK) {
        for (uint32_t r = 0; r < world->size; r++)
            hemi_team_heard(world, r, &p->extents[r], sizeof *p->extents);
        status = check_extents(world, p);
    }
    hemi_team_done(world);
    return status;
}

/* What goes between this rank and `r`. @return whether anything does. */
static bool find_partner(const hem_world *world, const planning *p, uint32_t r,
                         hemi_partner *partner) {
    uint32_t me = world->rank;
    if (r == me)
        return false;
    partner->peer = r;
    partner->after = r > me;
    partner->send = hemi_reach_span(&p->extents[r], &p->extents[me], me < r, p->o.keys);
    partner->recv = hemi_reach_span(&p->extents[me], &p->extents[r], r < me, NULL);
    return partner->send.rows > 0 || partner->recv.rows > 0;
}

static hem_status find_partners(hem_reach *reach, const planning *p) {
    hem_world *world = reach->world;
    hemi_partner one;
    for (uint32_t r = 0; r < world->size; r++)
        reach->count += find_partner(world, p, r, &one);
    reach->partners = calloc(reach->count + 1, sizeof *reach->partners);
    if (reach->partners == NULL)
        return hemi_fail(HEM_ERR_MEMORY, "hem_reach_plan: no memory for %u partners", reach->count);
    uint32_t next = 0;
    for (uint32_t r = 0; r < world->size && next < reach->count; r++)
        next += find_partner(world, p, r, &reach->partners[next]);
    return hemi_sides_make(world, reach->count, &reach->sides);
}

/* What a partner has said about the rows that it sends. */
static hem_status take_rows(hemi_partner *partner, const planning *p, uint64_t rows) {
    hemi_span *recv = &partner->recv;
    if (recv->vague ? rows == 0 || rows >= p->extents[partner->peer].rows : rows != recv->rows)
        return hemi_fail(HEM_ERR_MISMATCH, "hem_reach_plan: rank %u would send %" PRIu64 " rows",
                         partner->peer, rows);
    recv->rows = rows;
    recv->vague = false;
    return HEM_OK;
}

static hem_status take_answers(hem_reach *reach, const planning *p,
                               const hem_sparse_result *answers) {
    hem_status status = HEM_OK;
    if (answers->count != reach->count)
        return hemi_fail(HEM_ERR_MISMATCH, "hem_reach_plan: %zu ranks answered, not %u",
                         answers->count, reach->count);
    for (uint32_t i = 0; i < reach->count && status == HEM_OK; i++) {
        const hem_parcel *parcel = &answers->parcels[i];
        hemi_partner *partner = &reach->partners[i];
        partner_say say;
        if ((uint32_t)parcel->peer != partner->peer || parcel->bytes != sizeof say)
            return hemi_fail(HEM_ERR_MISMATCH, "hem_reach_plan: rank %d answered, not rank %u",
                             parcel->peer, partner->peer);
        memcpy(&say, parcel->data, sizeof say);
        status = take_rows(partner, p, say.rows);
        if (status == HEM_OK)
            status = hemi_sides_join(reach->sides, i, partner->peer, &say.place);
    }
    return status;
}

/* Partners tell each other where their lanes are, and how many rows will come. */
static hem_status meet_partners(hem_reach *reach, const planning *p) {
    partner_say *says = calloc(reach->count + 1, sizeof *says);
    hem_parcel *parcels = calloc(reach->count + 1, sizeof *parcels);
    hem_sparse_result answers = {0};
    uint32_t count = says != NULL && parcels != NULL ? reach->count : 0;
    for (uint32_t i = 0; i < count; i++) {
        says[i] = (partner_say){hemi_sides_place(reach->sides, i), reach->partners[i].send.rows};
        parcels[i] = (hem_parcel){(int)reach->partners[i].peer, sizeof *says, &says[i]};
    }
    hem_status status = hem_sparse(reach->world, parcels, count, &answers, p->timeout_ns);
    if (status == HEM_OK && count != reach->count)
        status =
            hemi_fail(HEM_ERR_MEMORY, "hem_reach_plan: no memory for %u partners", reach->count);
    if (status == HEM_OK)
        status = take_answers(reach, p, &answers);
    hem_sparse_free(&answers);
    free(parcels);
    free(says);
    return status;
}

/* Where in `before` and `after` the partners' rows go. */
static void place_rows(hem_reach *reach) {
    for (uint32_t i = 0; i < reach->count; i++) {
        hemi_partner *partner = &reach->partners[i];
        uint64_t *sum = partner->after ? &reach->after : &reach->before;
        partner->recv.from = *sum;
        *sum += partner->recv.rows;
    }
}

static hem_status plan(hem_reach *reach, planning *p) {
    hem_world *world = reach->world;
    hem_status status = find_partners(reach, p);
    status = hemi_team_agree(world, p->call, status, p->o.row_bytes, NULL, 0, p->timeout_ns);
    if (status != HEM_OK)
        return status;
    status = meet_partners(reach, p);
    place_rows(reach);
    return hemi_team_agree(world, p->call, status, p->o.row_bytes, NULL, 0, p->timeout_ns);
}

/* Of a reach that nobody has used. */
static void unmake(hem_reach *reach) {
    char sentence[HEMI_ERROR_MAX];
    hemi_error_save(sentence);
    for (uint32_t i = 0; reach->sides != NULL && i < reach->sides->count; i++)
        reach->sides->side[i].told = NULL;
    hemi_sides_leave(reach->sides);
    free_handle(reach);
    hemi_error_restore(sentence);
}

hem_status hem_reach_plan(hem_world *world, const hem_reach_options *options, hem_reach **reach_p) {
    if (world == NULL)
        return hemi_fail(HEM_ERR_ARG, "hem_reach_plan: world is NULL");
    planning p = {.call = HEMI_CALL_REACH_PLAN, .timeout_ns = world->timeout_ns};
    hem_reach *reach = calloc(1, sizeof *reach);
    hem_status status = hemi_options_read(&p.o, sizeof p.o, options, "hem_reach_plan");
    if (status == HEM_OK)
        status = check_options(&p.o, reach_p);
    if (status == HEM_OK && p.o.timeout_ns != 0)
        p.timeout_ns = p.o.timeout_ns;
    if (status == HEM_OK && reach == NULL)
        status = hemi_fail(HEM_ERR_MEMORY, "hem_reach_plan: no memory for a plan");
    status = hear_extents(world, &p, status);
    if (status == HEM_OK) {
        reach->world = world;
        reach->rows = p.o.rows;
        reach->row_bytes = p.o.row_bytes;
        reach->task = (hemi_task){.advance = hemi_reach_advance,
                                  .trouble = hemi_reach_trouble,
                                  .deadline_ns = UINT64_MAX};
        status = plan(reach, &p);
    }
    free(p.extents);
    if (status != HEM_OK) {
        if (reach != NULL)
            unmake(reach);
        return status;
    }
    reach->child.orphan = orphan;
    hemi_world_adopt(world, &reach->child);
    *reach_p = reach;
    return HEM_OK;
}

hem_status hem_reach_rows(const hem_reach *reach, uint64_t *before_p, uint64_t *after_p) {
    if (reach == NULL || before_p == NULL || after_p == NULL)
        return hemi_fail(HEM_ERR_ARG, "hem_reach_rows: reach, before_p or after_p is NULL");
    *before_p = reach->before;
    *after_p = reach->after;
    return HEM_OK;
}

hem_status hem_reach_destroy(hem_reach *reach) {
    if (reach == NULL)
        return HEM_OK;
    hem_world *world = reach->world;
    char sentence[HEMI_ERROR_MAX];
    hemi_error_save(sentence);
    if (world != NULL) {
        hemi_engine_lock(world);
        hemi_reach_stop(reach, hemi_fail(HEM_ERR_REVOKED,
                                         "hem_reach_destroy: the reach was given up under way"));
        hemi_engine_unlist(world, &reach->task);
        hemi_engine_unlock(world);
        hemi_world_abandon(world, &reach->child);
    }
    hemi_sides_leave(reach->sides);
    free_handle(reach);
    hemi_error_restore(sentence);
    if (world != NULL)
        hemi_engine_settle(world);
    return HEM_OK;
}
