/*
 * From runs to cells and stretches. Sorted by address, the runs are swept: between two places at which any begins
 * or ends, the same ones come back to all units. A long piece of that is a stretch, a short one is cells.
 *
 * It takes no longer than what it makes has entries, but for sorting: a run that many others overlap is looked
 * at once for each piece of it, and there is an entry for that.
 */
#include "halo/exchange/device.h"

#include <stdlib.h>

/* So many units that the same comes back to are a stretch: one round of a warp. */
#define UNITS_STRETCH 128u

static int compare(const void *left, const void *right) {
    const hemi_halo_run *a = left;
    const hemi_halo_run *b = right;
    if (a->odd != b->odd)
        return a->odd < b->odd ? -1 : 1;
    if (a->at != b->at)
        return a->at < b->at ? -1 : 1;
    return a->number < b->number ? -1 : a->number > b->number;
}

/* What comes back, one behind the other. The pointer is NULL while they are counted. */
typedef struct froms {
    uint64_t *list;
    uint64_t count;
} froms;

/* Cells and stretches of a kind, and what comes to them: a cell's ends where the next cell's begins. */
typedef struct tables {
    hemd_halo_cell *cells;
    hemd_halo_stretch *stretches;
    froms to_cells;
    froms to_stretches;
    uint64_t cell_count;
    uint64_t stretch_count;
    uint64_t stretch_units;
} tables;

/* Runs that have units in common, in the order in which they are combined. */
typedef struct together {
    const hemi_halo_run **list;
    uint64_t count;
} together;

static void add_froms(froms *f, const together *now, const unsigned char *at) {
    for (uint64_t i = 0; i < now->count && f->list != NULL; i++)
        f->list[f->count + i] = now->list[i]->from + (uint64_t)(at - now->list[i]->at);
    f->count += now->count;
}

/* `units` from `at` on, to all of which the same runs come back. */
static void add_units(tables *t, together now, unsigned char *at, uint64_t units,
                      const hemd_halo_group *group) {
    if (group->op == HEMD_HALO_REPLACE) { /* only the last counts */
        now.list += now.count - 1;
        now.count = 1;
    }
    if (units >= UNITS_STRETCH) {
        if (t->stretches != NULL)
            t->stretches[t->stretch_count] =
                (hemd_halo_stretch){at, units, t->to_stretches.count, now.count};
        t->stretch_count++;
        t->stretch_units += units;
        add_froms(&t->to_stretches, &now, at);
        return;
    }
    for (uint64_t u = 0; u < units; u++, at += group->unit) {
        if (t->cells != NULL)
            t->cells[t->cell_count] = (hemd_halo_cell){at, t->to_cells.count};
        t->cell_count++;
        add_froms(&t->to_cells, &now, at);
    }
}

static unsigned char *end_of(const hemi_halo_run *r, uint32_t unit) {
    return r->at + (uint64_t)r->units * unit;
}

static void join(together *now, const hemi_halo_run *r) {
    uint64_t i = now->count++;
    for (; i > 0 && now->list[i - 1]->number > r->number; i--)
        now->list[i] = now->list[i - 1];
    now->list[i] = r;
}

static void leave(together *now, const unsigned char *at, uint32_t unit) {
    uint64_t stay = 0;
    for (uint64_t i = 0; i < now->count; i++)
        if (end_of(now->list[i], unit) != at)
            now->list[stay++] = now->list[i];
    now->count = stay;
}

/* From each place where a sorted run begins or ends to the next one. */
static void sweep(const hemi_halo_run *runs, uint64_t count, const hemd_halo_group *group,
                  together now, tables *t) {
    unsigned char *at = NULL;
    uint32_t odd = 0;
    for (uint64_t next = 0; next < count || now.count > 0;) {
        if (now.count == 0) {
            at = runs[next].at;
            odd = runs[next].odd;
        }
        while (next < count && runs[next].odd == odd && runs[next].at == at)
            join(&now, &runs[next++]);
        unsigned char *end = end_of(now.list[0], group->unit);
        for (uint64_t i = 1; i < now.count; i++) {
            unsigned char *other = end_of(now.list[i], group->unit);
            end = other < end ? other : end;
        }
        if (next < count && runs[next].odd == odd && runs[next].at < end)
            end = runs[next].at;
        add_units(t, now, at, (uint64_t)(end - at) / group->unit, group);
        at = end;
        leave(&now, at, group->unit);
    }
}

/* Room for what was counted. Groups have places in the heap, until it is known where that will be. */
static hem_status place_tables(hemi_halo_heap *heap, tables *t, hemd_halo_group groups[2]) {
    uint64_t at[4] = {0};
    const uint64_t bytes[4] = {
        (t->cell_count + 1) * sizeof *t->cells, t->stretch_count * sizeof *t->stretches,
        t->to_cells.count * sizeof(uint64_t), t->to_stretches.count * sizeof(uint64_t)};
    for (int i = 0; i < 4; i++) {
        hem_status status = hemi_halo_heap_add(heap, bytes[i], &at[i]);
        if (status != HEM_OK)
            return status;
    }
    groups[0].total = t->cell_count;
    groups[0].cells = (const hemd_halo_cell *)(uintptr_t)at[0];
    groups[0].froms = (const uint64_t *)(uintptr_t)at[2];
    groups[1].total = t->stretch_count;
    groups[1].units = t->stretch_units;
    groups[1].stretches = (const hemd_halo_stretch *)(uintptr_t)at[1];
    groups[1].froms = (const uint64_t *)(uintptr_t)at[3];
    *t = (tables){.cells = hemi_halo_heap_at(heap, at[0]),
                  .stretches = hemi_halo_heap_at(heap, at[1]),
                  .to_cells = {hemi_halo_heap_at(heap, at[2]), 0},
                  .to_stretches = {hemi_halo_heap_at(heap, at[3]), 0}};
    return HEM_OK;
}

hem_status hemi_halo_runs_place(hemi_halo_run *runs, uint64_t count, hemi_halo_heap *heap,
                                hemd_halo_group groups[2]) {
    tables t = {0};
    together now = {malloc((count + 1) * sizeof(void *)), 0};
    if (now.list == NULL)
        return hemi_fail(HEM_ERR_MEMORY, "no memory for the tables of a reverse run");
    qsort(runs, count, sizeof *runs, compare);
    sweep(runs, count, &groups[0], now, &t);
    hem_status status = place_tables(heap, &t, groups);
    if (status == HEM_OK) {
        sweep(runs, count, &groups[0], now, &t);
        t.cells[t.cell_count] = (hemd_halo_cell){NULL, t.to_cells.count};
    }
    free(now.list);
    return status;
}
