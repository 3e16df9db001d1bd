/*
 * What a reverse run combines: for each type everything that comes back, as runs of units that follow each other
 * on both sides, and tiles of the cells and stretches that these become (device_runs.c).
 *
 * The order is the host's: lanes by rank, this rank's own among them, and in a lane part by part,
 * unit by unit; so a sum has the same bits. Of what replaces, only the last counts.
 */
#include "halo/exchange/device.h"
#include "halo/shape_inside.h"

#include <stdlib.h>

/* Parts that come back to fields of one type. */
typedef struct kind_of {
    hem_dtype dtype;
    size_t element;
} kind_of;

/* One part that comes back, from a message or from a halo of this rank. */
typedef struct back {
    const hemi_part *owner;
    const hemi_part *halo; /* of this rank, or NULL */
    size_t source;
    uint64_t message;
} back;

typedef struct backs {
    back *list;
    size_t count;
} backs;

/* Longer runs are cut. */
#define UNITS_MOST (1u << 31)

static hem_status no_memory(void) {
    return hemi_fail(HEM_ERR_MEMORY, "no memory for the tables of a reverse run");
}

static size_t most_backs(const hem_exchange *x) {
    size_t count = 0;
    for (size_t l = 0; l < x->lane_count; l++)
        count += x->lanes[l].sends.count;
    return count;
}

/* Everything that comes back, in order. */
static hem_status list_backs(const hem_exchange *x, const hem_exchange_how *how, backs *all) {
    all->list = calloc(most_backs(x) + 1, sizeof *all->list);
    if (all->list == NULL)
        return no_memory();
    for (size_t l = 0; l < x->lane_count; l++) {
        const hemi_halo_lane *lane = &x->lanes[l];
        bool own = lane->way.peer == x->world->rank;
        uint64_t at = 0;
        for (size_t i = 0; i < lane->sends.count; i++) {
            const hemi_part *owner = &lane->sends.parts[i];
            const hemi_part *halo = own ? &lane->recvs.parts[i] : NULL;
            if (!hemi_part_is_in(own ? halo : owner, how))
                continue;
            if (!owner->frozen && owner->bytes > 0)
                all->list[all->count++] = (back){owner, halo, own ? x->lane_count + i : l, at};
            at += hemi_halo_room(owner);
        }
    }
    return HEM_OK;
}

/* Landing buffers of all lanes, then the halos of this rank. */
static hem_status place_sources(const hem_exchange *x, hemi_halo_heap *heap, uint64_t *at_p) {
    const hemi_halo_device *d = x->device;
    size_t count = x->lane_count;
    for (size_t l = 0; l < x->lane_count; l++)
        if (x->lanes[l].way.peer == d->rank)
            count += x->lanes[l].recvs.count;
    if (count > UINT16_MAX)
        return hemi_fail(HEM_ERR_LIMIT,
                         "a reverse run on a device takes %u neighbours and parts of this rank, "
                         "not %zu",
                         UINT16_MAX, count);
    hem_status status = hemi_halo_heap_add(heap, (count + 1) * sizeof(hemd_halo_source), at_p);
    if (status != HEM_OK)
        return status;
    hemd_halo_source *sources = hemi_halo_heap_at(heap, *at_p);
    for (size_t l = 0; l < x->lane_count; l++) {
        const hemi_parts *recvs = &x->lanes[l].recvs;
        if (x->lanes[l].way.peer != d->rank) {
            const unsigned char *areas = d->areas.address;
            sources[l].base = areas + d->reach[l].in_at + sizeof(hemd_halo_area);
            sources[l].turn = d->reach[l].in_bytes;
            continue;
        }
        for (size_t i = 0; i < recvs->count; i++)
            sources[x->lane_count + i].base = recvs->parts[i].memory + recvs->parts[i].shape->first;
    }
    return HEM_OK;
}

static uint32_t kind_of_dtype(hem_dtype dtype) {
    static const uint8_t kinds[HEM_BOOL + 1] = {
        [HEM_I8] = HEMD_HALO_I8,     [HEM_I16] = HEMD_HALO_I16,  [HEM_I32] = HEMD_HALO_I32,
        [HEM_I64] = HEMD_HALO_I64,   [HEM_U8] = HEMD_HALO_U8,    [HEM_U16] = HEMD_HALO_U16,
        [HEM_U32] = HEMD_HALO_U32,   [HEM_U64] = HEMD_HALO_U64,  [HEM_F16] = HEMD_HALO_F16,
        [HEM_BF16] = HEMD_HALO_BF16, [HEM_F32] = HEMD_HALO_F32,  [HEM_F64] = HEMD_HALO_F64,
        [HEM_C64] = HEMD_HALO_F32,   [HEM_C128] = HEMD_HALO_F64, [HEM_BOOL] = HEMD_HALO_BOOL};
    return dtype <= HEM_BOOL ? kinds[dtype] : HEMD_HALO_RAW;
}

static uint32_t op_of(hem_combine combine) {
    return combine == HEM_COMBINE_SUM   ? HEMD_HALO_SUM
           : combine == HEM_COMBINE_MIN ? HEMD_HALO_MIN
           : combine == HEM_COMBINE_MAX ? HEMD_HALO_MAX
                                        : HEMD_HALO_REPLACE;
}

static bool is_of(const back *b, const kind_of *kind) {
    return b->owner->field->dtype == kind->dtype && b->owner->field->element == kind->element;
}

/* Units are those of the type; what is only replaced has the widest that its places allow. */
static void choose_unit(const backs *all, const kind_of *kind, hemd_halo_group *group) {
    uint64_t bits = HEMD_HALO_ALIGN / 2 | kind->element;
    for (size_t i = 0; i < all->count; i++) {
        const back *b = &all->list[i];
        if (is_of(b, kind))
            bits |= hemi_halo_grain(b->owner) | (b->halo != NULL ? hemi_halo_grain(b->halo) : 0);
    }
    uint32_t grain = (uint32_t)(bits & (0 - bits));
    uint32_t unit = hemi_halo_change(kind->dtype, &group->change);
    if (unit == 0 && group->op != HEMD_HALO_REPLACE)
        unit = (uint32_t)kind->element;
    group->unit = unit != 0 ? unit : grain;
    group->width = grain < group->unit ? grain : group->unit;
}

/* How many units of a side follow each other, from each multiple of this on. */
static uint64_t units_in_step(const hemd_halo_side *side, uint32_t unit) {
    const hemd_halo_axis *axis = &side->axes[0];
    return side->list_at != 0 && axis->stride == (int64_t)unit ? axis->count : 1;
}

/* The two sides of what comes back, and how many units of it follow each other on both. */
typedef struct sides {
    hemd_halo_side owner;
    hemd_halo_side halo;
    uint64_t step;
} sides;

static void sides_make(const back *b, uint32_t unit, sides *s) {
    hemi_halo_side_make(b->owner, unit, NULL, &s->owner);
    s->step = units_in_step(&s->owner, unit);
    if (b->halo == NULL)
        return;
    hemi_halo_side_make(b->halo, unit, NULL, &s->halo);
    uint64_t other = units_in_step(&s->halo, unit);
    if (s->step % other == 0)
        s->step = other;
    else if (other % s->step != 0)
        s->step = 1;
}

static uint64_t count_runs(const backs *all, const kind_of *kind, uint32_t unit) {
    uint64_t count = 0;
    for (size_t i = 0; i < all->count; i++) {
        sides s;
        if (!is_of(&all->list[i], kind))
            continue;
        sides_make(&all->list[i], unit, &s);
        count += all->list[i].owner->bytes / unit / s.step * ((s.step - 1) / UNITS_MOST + 1);
    }
    return count;
}

static uint64_t list_runs(const back *b, uint32_t unit, hemi_halo_run *runs, uint64_t n) {
    sides s;
    uint64_t source = (uint64_t)b->source << HEMD_HALO_FROM_SHIFT;
    uint64_t sign = b->owner->negated ? HEMD_HALO_FROM_SIGN : 0;
    sides_make(b, unit, &s);
    for (uint64_t u = 0; u < b->owner->bytes / unit;) {
        uint64_t rest = s.step - u % s.step;
        uint32_t units = rest < UNITS_MOST ? (uint32_t)rest : UNITS_MOST;
        uint64_t place = b->message + u * unit;
        if (b->halo != NULL)
            place = (uint64_t)(b->halo->shape->base - b->halo->shape->first +
                               hemd_halo_offset(&s.halo, u));
        unsigned char *at = s.owner.base + hemd_halo_offset(&s.owner, u);
        uint32_t odd = (uint32_t)((uintptr_t)at % unit);
        runs[n] = (hemi_halo_run){at, source | sign | place, n, units, odd};
        n++;
        u += units;
    }
    return n;
}

static hem_status make_pair(const backs *all, const kind_of *kind, hemi_halo_heap *heap,
                            hemd_halo_group groups[2]) {
    choose_unit(all, kind, &groups[0]);
    groups[1] = groups[0];
    uint64_t count = count_runs(all, kind, groups[0].unit);
    hemi_halo_run *runs = malloc((count + 1) * sizeof *runs);
    if (runs == NULL)
        return no_memory();
    uint64_t n = 0;
    for (size_t i = 0; i < all->count; i++)
        if (is_of(&all->list[i], kind))
            n = list_runs(&all->list[i], groups[0].unit, runs, n);
    hem_status status = hemi_halo_runs_place(runs, n, heap, groups);
    free(runs);
    return status;
}

/* One or two groups for each type; at least one, if an empty one. */
static hem_status make_groups(const hem_exchange_how *how, const backs *all, hemi_halo_heap *heap,
                              hemi_halo_cells *cells) {
    hem_status status =
        hemi_halo_heap_add(heap, (2 * all->count + 1) * sizeof(hemd_halo_group), &cells->groups);
    for (size_t i = 0; i < all->count && status == HEM_OK; i++) {
        const hem_field *field = all->list[i].owner->field;
        kind_of kind = {field->dtype, field->element};
        bool seen = false;
        for (size_t j = 0; j < i && !seen; j++)
            seen = is_of(&all->list[j], &kind);
        if (seen)
            continue;
        hemd_halo_group pair[2] = {{.kind = kind_of_dtype(kind.dtype), .op = op_of(how->combine)}};
        status = make_pair(all, &kind, heap, pair);
        hemd_halo_group *groups = hemi_halo_heap_at(heap, cells->groups);
        for (int k = 0; k < 2 && status == HEM_OK; k++)
            if (pair[k].total > 0)
                groups[cells->group_count++] = pair[k];
    }
    if (cells->group_count == 0)
        cells->group_count = 1;
    return status;
}

static uint64_t tiles_of(uint64_t units, uint64_t tile) {
    return units == 0 ? 1 : (units + tile - 1) / tile;
}

/* Tiles of what has `units`; none are written while they are counted. */
static uint64_t set_tiles(hemd_halo_tile *tiles, uint64_t units, uint64_t tile, uint64_t group,
                          uint64_t stretch) {
    uint64_t count = tiles_of(units, tile);
    for (uint64_t i = 0; i < count && tiles != NULL; i++)
        tiles[i] = (hemd_halo_tile){i * tile, (uint32_t)group, (uint32_t)stretch};
    return count;
}

static uint64_t tile_group(const hemi_halo_heap *heap, const hemd_halo_group *group,
                           uint64_t number, hemd_halo_tile *tiles) {
    if (group->stretches == NULL)
        return set_tiles(tiles, group->total, group->tile, number, 0);
    const hemd_halo_stretch *stretches = hemi_halo_heap_at(heap, (uintptr_t)group->stretches);
    uint64_t count = 0;
    for (uint64_t i = 0; i < group->total; i++)
        count += set_tiles(tiles != NULL ? tiles + count : NULL, stretches[i].units, group->tile,
                           number, i);
    return count;
}

static hem_status place_tiles(const hemi_halo_device *d, hemi_halo_heap *heap,
                              hemi_halo_cells *cells) {
    hemd_halo_group *groups = hemi_halo_heap_at(heap, cells->groups);
    uint64_t bytes = 0;
    for (uint64_t g = 0; g < cells->group_count; g++)
        bytes += (groups[g].stretches == NULL ? groups[g].total : groups[g].units) * groups[g].unit;
    uint64_t tile = hemi_halo_tile_bytes(d->finish_blocks, bytes);
    for (uint64_t g = 0; g < cells->group_count; g++) {
        groups[g].tile = tile / (groups[g].unit != 0 ? groups[g].unit : 1);
        cells->tile_count += tile_group(heap, &groups[g], g, NULL);
    }
    hem_status status =
        hemi_halo_heap_add(heap, cells->tile_count * sizeof(hemd_halo_tile), &cells->tiles);
    if (status != HEM_OK)
        return status;
    groups = hemi_halo_heap_at(heap, cells->groups);
    hemd_halo_tile *tiles = hemi_halo_heap_at(heap, cells->tiles);
    for (uint64_t g = 0; g < cells->group_count; g++)
        tiles += tile_group(heap, &groups[g], g, tiles);
    return HEM_OK;
}

hem_status hemi_halo_cells_make(const hem_exchange *x, const hem_exchange_how *how,
                                hemi_halo_heap *heap, hemi_halo_cells *cells) {
    backs all = {0};
    hem_status status = list_backs(x, how, &all);
    if (status == HEM_OK)
        status = place_sources(x, heap, &cells->sources);
    if (status == HEM_OK)
        status = make_groups(how, &all, heap, cells);
    if (status == HEM_OK)
        status = place_tiles(x->device, heap, cells);
    free(all.list);
    return status;
}

void hemi_halo_cells_place(const hemi_halo_heap *heap, const hemi_halo_cells *cells,
                           const unsigned char *base) {
    hemd_halo_group *groups = hemi_halo_heap_at(heap, cells->groups);
    for (uint64_t g = 0; g < cells->group_count; g++) {
        if (groups[g].stretches != NULL)
            groups[g].stretches =
                (const hemd_halo_stretch *)(const void *)(base + (uintptr_t)groups[g].stretches);
        else
            groups[g].cells =
                (const hemd_halo_cell *)(const void *)(base + (uintptr_t)groups[g].cells);
        groups[g].froms = (const uint64_t *)(const void *)(base + (uintptr_t)groups[g].froms);
    }
}
