/*
 * Plans: what a run does, as tables of parts and tiles in device memory.
 *
 * Both kernels have parts of their own. A start packs what goes out, and then copies what goes straight
 * into halos; a finish unpacks what comes in and copies between domains of this rank, or, in a reverse
 * run, combines cells (device_cells.c).
 * Messages are laid out as those of the host, but for the alignment: the parts that take part, in
 * the order that both sides share.
 */
#include "halo/exchange/engine.h"
#include "halo/shape_inside.h"

#include <stdlib.h>
#include <string.h>

/* Bytes of a tile: enough for a few loads of each thread, few enough that small messages spread. */
#define TILE_LEAST 512u
#define TILE_MOST  16384u
/* Tiles of a table at most, unless there are more parts. */
#define TILES_MOST 65536u
/* Units of a part that kernels walk in registers. */
#define UNITS_MOST (1ull << 30)

hem_status hemi_halo_heap_add(hemi_halo_heap *heap, uint64_t bytes, uint64_t *at_p) {
    uint64_t at = (heap->used + HEMD_HALO_ALIGN - 1) / HEMD_HALO_ALIGN * HEMD_HALO_ALIGN;
    if (at + bytes > heap->room) {
        uint64_t room = 2 * heap->room + bytes + 4096;
        unsigned char *more = realloc(heap->bytes, room);
        if (more == NULL)
            return hemi_fail(HEM_ERR_MEMORY, "no memory for the tables of an exchange");
        heap->bytes = more;
        heap->room = room;
    }
    memset(heap->bytes + heap->used, 0, at + bytes - heap->used);
    heap->used = at + bytes;
    *at_p = at;
    return HEM_OK;
}

uint64_t hemi_halo_tile_bytes(uint32_t blocks, uint64_t total) {
    uint64_t bytes = total / (2ull * blocks * HEMI_HALO_WARPS);
    bytes = bytes < TILE_LEAST ? TILE_LEAST : (bytes > TILE_MOST ? TILE_MOST : bytes);
    return bytes < total / TILES_MOST ? total / TILES_MOST : bytes;
}

/* Parts of one kernel, in a heap of their own until all are known. */
typedef struct pile {
    hemd_halo_part *parts;
    uint32_t *lanes;
    size_t count;
    size_t room;
    size_t direct_first; /* the first that goes straight into a halo, if that is asked for */
    uint64_t bytes;
} pile;

static hem_status pile_add(pile *p, const hemd_halo_part *part, size_t lane) {
    if (p->count == p->room) {
        size_t room = p->room == 0 ? 64 : 2 * p->room;
        hemd_halo_part *parts = realloc(p->parts, room * sizeof *parts);
        if (parts != NULL)
            p->parts = parts;
        uint32_t *lanes = realloc(p->lanes, room * sizeof *lanes);
        if (lanes != NULL)
            p->lanes = lanes;
        if (parts == NULL || lanes == NULL)
            return hemi_fail(HEM_ERR_MEMORY, "no memory for %zu parts of an exchange", room);
        p->room = room;
    }
    p->parts[p->count] = *part;
    p->lanes[p->count++] = (uint32_t)lane;
    p->bytes += part->total * part->unit;
    return HEM_OK;
}

static void pile_free(pile *p) {
    free(p->parts);
    free(p->lanes);
}

/* Unit and width of a copy whose sides allow `grain`. */
static void choose_unit(const hemi_part *part, uint32_t grain, bool changes, hemd_halo_part *to) {
    uint32_t unit = 0;
    if (changes)
        unit = hemi_halo_change(part->field->dtype, &to->change);
    to->unit = unit != 0 ? unit : grain;
    to->width = grain < to->unit ? grain : to->unit;
    to->total = part->bytes / to->unit;
}

/* Few registers count few units: a longer part goes in several, by steps of its outermost axis. */
static hem_status add_cut(pile *p, const hemd_halo_part *part, size_t lane) {
    const hemd_halo_side *field = part->from.is_message ? &part->to : &part->from;
    uint64_t steps = field->axes[field->axis_count - 1].count;
    uint64_t inside = part->total / steps;
    uint64_t most = inside < UNITS_MOST ? UNITS_MOST / inside : 1;
    hem_status status = HEM_OK;
    for (uint64_t step = 0; step < steps && status == HEM_OK; step += most) {
        hemd_halo_part cut = *part;
        cut.total = (steps - step < most ? steps - step : most) * inside;
        cut.message += step * inside * part->unit;
        hemd_halo_side *side = part->from.is_message ? &cut.to : &cut.from;
        hemi_halo_side_cut(side, step * inside, cut.total);
        hemi_halo_side_message(cut.total, cut.unit, part->from.is_message ? &cut.from : &cut.to);
        hemi_halo_part_settle(&cut);
        status = pile_add(p, &cut, lane);
    }
    return status;
}

/* A part of a message, packed or unpacked. */
static hem_status add_message(const hem_exchange *x, pile *p, const hemi_part *part, size_t lane,
                              uint64_t at, bool unpacks) {
    hemd_halo_part to = {.message = at};
    const unsigned char *tables = x->device->tables.address;
    if (part->bytes == 0)
        return HEM_OK;
    choose_unit(part, hemi_halo_grain(part), unpacks && part->negated, &to);
    hemi_halo_side_make(part, to.unit, tables, unpacks ? &to.to : &to.from);
    hemi_halo_side_message(to.total, to.unit, unpacks ? &to.from : &to.to);
    if (to.total > UNITS_MOST)
        return add_cut(p, &to, lane);
    hemi_halo_part_settle(&to);
    return pile_add(p, &to, lane);
}

/* From a field to a halo: of another domain of this rank, or of a neighbour. */
static hem_status add_pair(const hem_exchange *x, pile *p, size_t lane, const hemi_part *owner,
                           const hemi_part *halo) {
    const unsigned char *tables = x->device->tables.address;
    hemd_halo_part to = {0};
    if (halo->bytes == 0)
        return HEM_OK;
    uint32_t grain = hemi_halo_grain(halo) | hemi_halo_grain(owner);
    choose_unit(halo, grain & (0 - grain), halo->negated, &to);
    hemi_halo_side_make(owner, to.unit, tables, &to.from);
    hemi_halo_side_make(halo, to.unit, tables, &to.to);
    hemi_halo_part_settle(&to);
    return pile_add(p, &to, lane);
}

/* What goes straight into the halos of a neighbour. */
static hem_status add_direct(const hem_exchange *x, const hem_exchange_how *how, pile *p,
                             size_t lane) {
    const hemi_parts *sends = &x->lanes[lane].sends;
    hem_status status = HEM_OK;
    for (size_t i = 0; i < sends->count && status == HEM_OK; i++) {
        const hemi_part *part = &sends->parts[i];
        if (part->there != NULL && hemi_part_is_in(part, how))
            status = add_pair(x, p, lane, part, part->there);
    }
    return status;
}

/* All parts of a lane that are in the run; `*bytes_p`: of the message, with what is not in it. */
static hem_status add_lane(const hem_exchange *x, const hem_exchange_how *how, pile *p, size_t lane,
                           bool unpacks, uint64_t *bytes_p) {
    const hemi_halo_lane *l = &x->lanes[lane];
    const hemi_parts *parts = (how->combine == 0) == unpacks ? &l->recvs : &l->sends;
    bool own = l->way.peer == x->world->rank;
    size_t before = p->count;
    uint64_t at = 0;
    hem_status status = HEM_OK;
    *bytes_p = 0;
    for (size_t i = 0; i < parts->count && status == HEM_OK; i++) {
        const hemi_part *part = &parts->parts[i];
        if (!hemi_part_is_in(part, how) || (own && !unpacks))
            continue;
        *bytes_p += hemi_halo_room(part);
        if (how->combine == 0 && part->direct)
            continue;
        status = own ? add_pair(x, p, lane, &l->sends.parts[i], &l->recvs.parts[i])
                     : add_message(x, p, part, lane, at, unpacks);
        at += hemi_halo_room(part);
    }
    /* A lane without parts has a tile of nothing: somebody must wait for its word. */
    hemd_halo_part nothing = {.unit = 1, .width = 1, .tile = 1, .few = 1};
    if (status == HEM_OK && !own && p->count == before)
        status = pile_add(p, &nothing, lane);
    return status;
}

/* Where the tables of a kernel are in the heap. */
typedef struct placed {
    uint64_t parts;
    uint64_t tiles;
    uint64_t tile_count;
    uint64_t direct_first;
    uint64_t checks;
} placed;

static void set_tiles(uint32_t blocks, pile *p, uint64_t *count_p) {
    uint64_t bytes = hemi_halo_tile_bytes(blocks, p->bytes);
    *count_p = 0;
    for (size_t i = 0; i < p->count; i++) {
        hemd_halo_part *part = &p->parts[i];
        part->tile = bytes / part->unit;
        *count_p += part->total == 0 ? 1 : (part->total + part->tile - 1) / part->tile;
    }
}

static hem_status place_pile(uint32_t blocks, pile *p, hemi_halo_heap *heap, placed *where) {
    uint64_t n = 0;
    set_tiles(blocks, p, &where->tile_count);
    hem_status status = hemi_halo_heap_add(heap, p->count * sizeof *p->parts + 1, &where->parts);
    if (status == HEM_OK)
        status =
            hemi_halo_heap_add(heap, where->tile_count * sizeof(hemd_halo_tile) + 1, &where->tiles);
    if (status != HEM_OK)
        return status;
    hemd_halo_tile *tiles = hemi_halo_heap_at(heap, where->tiles);
    where->direct_first = where->tile_count;
    if (p->count > 0)
        memcpy(hemi_halo_heap_at(heap, where->parts), p->parts, p->count * sizeof *p->parts);
    for (size_t i = 0; i < p->count; i++) {
        uint64_t first = 0;
        if (i == p->direct_first)
            where->direct_first = n;
        do {
            tiles[n++] = (hemd_halo_tile){first, (uint32_t)i, p->lanes[i]};
            first += p->parts[i].tile;
        } while (first < p->parts[i].total);
    }
    return HEM_OK;
}

/* Who writes into halos waits. */
static uint32_t most_of_start(const hemi_halo_device *d, bool direct) {
    return direct ? d->direct_blocks : d->start_blocks;
}

/* One kernel: parts, tiles, checks. A reverse run's finish has cells instead of parts. */
static hem_status place_kernel(const hem_exchange *x, const hem_exchange_how *how, bool unpacks,
                               hemi_halo_heap *heap, placed *where) {
    pile p = {0};
    uint64_t *checks = calloc(x->lane_count + 1, sizeof *checks);
    hem_status status =
        checks != NULL ? HEM_OK : hemi_fail(HEM_ERR_MEMORY, "no memory for an exchange");
    for (size_t l = 0; l < x->lane_count && status == HEM_OK; l++) {
        uint64_t bytes = 0;
        status = add_lane(x, how, &p, l, unpacks, &bytes);
        checks[l] = hemi_exchange_hash(how) ^ bytes;
    }
    p.direct_first = p.count;
    for (size_t l = 0; l < x->lane_count && status == HEM_OK && !unpacks && how->combine == 0; l++)
        status = add_direct(x, how, &p, l);
    if (status == HEM_OK)
        status = hemi_halo_heap_add(heap, (x->lane_count + 1) * sizeof *checks, &where->checks);
    if (status == HEM_OK)
        memcpy(hemi_halo_heap_at(heap, where->checks), checks, x->lane_count * sizeof *checks);
    uint32_t most =
        unpacks ? x->device->finish_blocks : most_of_start(x->device, p.direct_first < p.count);
    if (status == HEM_OK && !(unpacks && how->combine != 0))
        status = place_pile(most, &p, heap, where);
    free(checks);
    pile_free(&p);
    return status;
}

static uint32_t count_blocks(uint32_t most, uint64_t tiles) {
    uint64_t blocks = (tiles + HEMI_HALO_WARPS - 1) / HEMI_HALO_WARPS;
    if (blocks == 0)
        return 1;
    return blocks < most ? (uint32_t)blocks : most;
}

static hemd_halo_args fill_args(const hem_exchange *x, const unsigned char *base,
                                const placed *where) {
    const hemi_halo_device *d = x->device;
    return (hemd_halo_args){
        .state = hemi_halo_state(d),
        .host = d->words_device,
        .trouble = d->trouble_words,
        .lanes = d->tables.address,
        .checks = (const uint64_t *)(const void *)(base + where->checks),
        .tiles = (const hemd_halo_tile *)(const void *)(base + where->tiles),
        .parts = (const hemd_halo_part *)(const void *)(base + where->parts),
        .tile_count = where->tile_count,
        .direct_first = where->direct_first,
        .direct = d->some_direct,
        .timeout_ns = x->run_timeout_ns > 0 ? (uint64_t)x->run_timeout_ns : 0,
        .lane_count = (uint32_t)x->lane_count,
        .near = d->all_near,
    };
}

static hem_status upload(const hem_exchange *x, hemi_halo_plan *plan, const hemi_halo_heap *heap,
                         const placed where[2], const hemi_halo_cells *cells) {
    const hemi_halo_device *d = x->device;
    const hemi_device_memory_ops *ops = d->device->module->memory;
    hem_status status = ops->alloc(d->device->context, heap->used, &plan->memory);
    if (status != HEM_OK)
        return status;
    const unsigned char *base = plan->memory.address;
    plan->start = fill_args(x, base, &where[0]);
    plan->finish = fill_args(x, base, &where[1]);
    plan->start.expects = plan->finish.checks;
    if (plan->how.combine != 0) {
        hemi_halo_cells_place(heap, cells, base);
        plan->finish.parts = NULL;
        plan->finish.groups = (const hemd_halo_group *)(const void *)(base + cells->groups);
        plan->finish.sources = (const hemd_halo_source *)(const void *)(base + cells->sources);
        plan->finish.tiles = (const hemd_halo_tile *)(const void *)(base + cells->tiles);
        plan->finish.tile_count = cells->tile_count;
    }
    bool direct = plan->start.direct_first < plan->start.tile_count;
    plan->start_blocks = count_blocks(most_of_start(d, direct), plan->start.tile_count);
    plan->finish_blocks = count_blocks(d->finish_blocks, plan->finish.tile_count);
    return ops->copy(d->device->context, plan->memory.address, heap->bytes, heap->used);
}

hemi_halo_plan *hemi_halo_plan_find(const hemi_halo_device *d, const hem_exchange_how *how) {
    hemi_halo_plan *plan = d->plans;
    while (plan != NULL && (plan->how.combine != how->combine || plan->how.fields != how->fields ||
                            plan->how.sides != how->sides))
        plan = plan->next;
    return plan;
}

/* The tables of both kernels. */
static hem_status plan_kernels(const hem_exchange *x, const hem_exchange_how *how,
                               hemi_halo_plan *plan) {
    const hemi_halo_device *d = x->device;
    hemi_halo_heap heap = {0};
    placed where[2] = {{0}};
    hemi_halo_cells cells = {0};
    hem_status status = place_kernel(x, how, false, &heap, &where[0]);
    if (status == HEM_OK)
        status = place_kernel(x, how, true, &heap, &where[1]);
    if (status == HEM_OK && how->combine != 0)
        status = hemi_halo_cells_make(x, how, &heap, &cells);
    if (status == HEM_OK)
        status = upload(x, plan, &heap, where, &cells);
    free(heap.bytes);
    if (status != HEM_OK && plan->memory.address != NULL)
        d->device->module->memory->release(d->device->context, &plan->memory);
    return status;
}

hem_status hemi_halo_plan_make(hem_exchange *x, const hem_exchange_how *how,
                               hemi_halo_plan **plan_p) {
    hemi_halo_device *d = x->device;
    hemi_halo_plan *plan = calloc(1, sizeof *plan);
    if (plan == NULL)
        return hemi_fail(HEM_ERR_MEMORY, "no memory for a plan of an exchange");
    plan->how = *how;
    hem_status status = x->way == HEM_EXCHANGE_ENGINES ? hemi_halo_engine_rows(x, how, plan)
                                                       : plan_kernels(x, how, plan);
    if (status != HEM_OK) {
        free(plan);
        return status;
    }
    plan->next = d->plans;
    d->plans = plan;
    *plan_p = plan;
    return HEM_OK;
}
