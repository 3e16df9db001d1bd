/*
 * Making and giving up a line. Creation has two steps in which all agree (core/team.h): everybody says
 * what it wants, whether it has the memory for it and where that is; then whether what the neighbours
 * said makes sense. Nobody writes into a neighbour's memory before.
 */
#include "base/options.h"
#include "core/team.h"
#include "halo/line/line.h"

#include <stdlib.h>

#define NAP_NS 20000

/* In the flags of a place: the rank has an allocator. */
#define ASKS 1u

/* What a rank says in the first step. */
typedef struct line_say {
    hemi_place places[2];
} line_say;

_Static_assert(sizeof(line_say) <= HEMI_SAY_MAX, "fits into a step");

static void chore_destroy(struct hem_op *op) {
    free(op);
}

static const hemi_op_type chore_type = {.call = HEMI_CALL_LINE, .destroy = chore_destroy};

/* Give back what the line has of a device. Nothing is under way, or the rank has ended. */
static void unequip(hem_line *line) {
    hemi_root *root = line->world->root;
    for (int s = HEMI_LEFT; s <= HEMI_RIGHT; s++) {
        hemi_line_mark_drop(&line->in[s].mark);
        free(line->in[s].bounce);
        line->in[s].bounce = NULL;
        hemi_line_stage_free(root, &line->out[s].stage);
        hemi_line_stage_free(root, &line->in[s].stage);
    }
    hemi_line_device_drop(line->device);
    line->device = NULL;
}

static void orphan(hemi_child *child, bool dead) {
    hem_line *line = (hem_line *)(void *)child;
    unequip(line);
    line->world = NULL;
    if (!dead)
        return;
    hemi_sides_abandon(line->sides);
    free(line); /* the chore goes as the world's child that it is */
}

static hem_status read_options(hem_line *line, const hem_line_options *options, hem_line_options *o,
                               hem_line **line_p) {
    static const char call[] = "hem_line_create";
    hem_status status = hemi_options_read(o, sizeof *o, options, call);
    if (status == HEM_OK && line_p == NULL)
        status = hemi_fail(HEM_ERR_ARG, "%s: line_p is NULL", call);
    if (status == HEM_OK && (o->alloc == NULL) != (o->release == NULL))
        status = hemi_fail(HEM_ERR_ARG, "%s: alloc and release come both or not at all", call);
    if (status == HEM_OK && o->timeout_ns != 0)
        status = hemi_check_timeout(o->timeout_ns, call);
    if (status != HEM_OK)
        return status;
    line->ring = o->ring;
    line->alloc = o->alloc;
    line->release = o->release;
    line->alloc_arg = o->alloc_arg;
    return HEM_OK;
}

static hem_status make_chore(hem_line *line) {
    struct hem_op *op = calloc(1, sizeof *op);
    if (op == NULL)
        return hemi_fail(HEM_ERR_MEMORY, "no memory for a line");
    hemi_op_init(op, line->world, &chore_type, true, true);
    op->fn = hemi_line_allocate;
    op->arg = line;
    line->chore = op;
    return HEM_OK;
}

/* The rank at a side. False: there is none. */
static bool find_neighbour(const hem_line *line, int s, uint32_t *peer_p) {
    uint32_t size = line->world->size;
    if (size == 1 || (!line->ring && hemi_line_ends(line, s)))
        return false;
    *peer_p = (line->world->rank + (s == HEMI_LEFT ? size - 1 : 1)) % size;
    return true;
}

/* What lies to my left has me to its right. */
static hem_status hear_places(hem_line *line) {
    hem_status status = HEM_OK;
    for (int s = HEMI_LEFT; s <= HEMI_RIGHT && status == HEM_OK; s++) {
        uint32_t peer = 0;
        if (!find_neighbour(line, s, &peer))
            continue;
        line_say say;
        hemi_team_heard(line->world, peer, &say, sizeof say);
        const hemi_place *place = &say.places[1 - s];
        line->asks[s] = (place->flags & ASKS) != 0;
        status = hemi_sides_join(line->sides, (uint32_t)s, peer, place);
    }
    return status;
}

static hem_status agree(hem_line *line, hem_status status, int64_t timeout_ns) {
    hem_world *world = line->world;
    line_say mine = {0};
    for (uint32_t s = 0; status == HEM_OK && s < 2; s++) {
        mine.places[s] = hemi_sides_place(line->sides, s);
        mine.places[s].flags = line->alloc != NULL ? ASKS : 0;
    }
    uint64_t fingerprint = line->ring ? 2 : 1;
    status = hemi_team_agree(world, HEMI_CALL_LINE_CREATE, status, fingerprint, &mine, sizeof mine,
                             timeout_ns);
    bool agreed = status == HEM_OK;
    if (agreed)
        status = hear_places(line);
    hemi_team_done(world);
    if (!agreed)
        return status;
    return hemi_team_agree(world, HEMI_CALL_LINE_CREATE, status, fingerprint, NULL, 0, timeout_ns);
}

/* Of a line that was never used. */
static void unmake(hem_line *line) {
    (void)hem_op_free(line->chore);
    if (line->sides != NULL)
        for (uint32_t s = 0; s < 2; s++)
            line->sides->side[s].told = NULL; /* nobody has used it, so nobody has to leave */
    hemi_sides_leave(line->sides);
    free(line);
}

/* Where the device is open, staging memory is pinned now: later that might wait for a kernel that waits
 * for this rank. What fails is tried again, and told, when it is needed. */
static void equip_all(hem_line *line) {
    hem_status status = HEM_OK;
    char sentence[HEMI_ERROR_MAX];
    if (hemi_line_device_peek(line->world->root) == NULL)
        return;
    hemi_error_save(sentence);
    for (int s = HEMI_LEFT; s <= HEMI_RIGHT && status == HEM_OK; s++) {
        if (!hemi_line_has(line, s))
            continue;
        status = hemi_line_equip(line, &line->out[s].stage);
        if (status == HEM_OK)
            status = hemi_line_equip(line, &line->in[s].stage);
    }
    hemi_error_restore(sentence);
}

hem_status hem_line_create(hem_world *world, const hem_line_options *options, hem_line **line_p) {
    if (world == NULL)
        return hemi_fail(HEM_ERR_ARG, "hem_line_create: world is NULL");
    hem_line_options o = {0};
    hem_line *line = calloc(1, sizeof *line);
    hem_status status = HEM_OK;
    if (line == NULL) {
        status = hemi_fail(HEM_ERR_MEMORY, "no memory for a line");
        return hemi_team_agree(world, HEMI_CALL_LINE_CREATE, status, 0, NULL, 0, world->timeout_ns);
    }
    line->world = world;
    line->task = (hemi_task){
        .advance = hemi_line_advance, .trouble = hemi_line_trouble, .deadline_ns = UINT64_MAX};
    line->nap = (hemi_task){.advance = hemi_line_nap, .trouble = hemi_line_wake_up};
    status = read_options(line, options, &o, line_p);
    if (status == HEM_OK)
        status = hemi_sides_make(world, 2, &line->sides);
    if (status == HEM_OK)
        status = make_chore(line);
    status = agree(line, status, o.timeout_ns != 0 ? o.timeout_ns : world->timeout_ns);
    if (status != HEM_OK) {
        char sentence[HEMI_ERROR_MAX];
        hemi_error_save(sentence);
        unmake(line);
        hemi_error_restore(sentence);
        return status;
    }
    line->child.orphan = orphan;
    hemi_world_adopt(world, &line->child);
    equip_all(line);
    *line_p = line;
    return HEM_OK;
}

/* End all rounds, and wait for an allocator that is being called. */
static void stop(hem_line *line) {
    hem_world *world = line->world;
    const hemi_platform *platform = world->root->platform;
    hemi_engine_lock(world);
    if (line->head != NULL) {
        hem_status status =
            hemi_fail(HEM_ERR_REVOKED, "hem_line_destroy: the line was given up under way");
        hemi_line_break(line, status, line->head->number);
        hemi_line_await_end(line);
    }
    line->broken = true;
    while (line->chore != NULL && line->chore->calls > 0) {
        hemi_engine_unlock(world);
        platform->nap(platform->ctx, NAP_NS);
        hemi_engine_lock(world);
    }
    hemi_engine_unlist(world, &line->task);
    hemi_engine_unlist(world, &line->nap);
    if (line->chore != NULL)
        line->chore->fn = NULL;
    hemi_engine_unlock(world);
}

hem_status hem_line_destroy(hem_line *line) {
    if (line == NULL)
        return HEM_OK;
    hem_world *world = line->world;
    char sentence[HEMI_ERROR_MAX];
    hemi_error_save(sentence);
    if (world != NULL) {
        stop(line);
        unequip(line);
        hemi_world_abandon(world, &line->child);
    }
    (void)hem_op_free(line->chore);
    hemi_sides_leave(line->sides);
    free(line);
    hemi_error_restore(sentence);
    if (world != NULL)
        hemi_engine_settle(world);
    return HEM_OK;
}
