#include "halo/pattern/table.h"

#include <stdlib.h>

#define FREE (-1)

hem_status hemi_table_make(hemi_table *table, size_t most) {
    uint64_t room = 8;
    /* Two thirds full at most: a search looks at few entries, and always comes to a free one. */
    while (room / 3 * 2 < most && room <= PTRDIFF_MAX / sizeof(hemi_entry) / 2)
        room *= 2;
    table->entries = room / 3 * 2 < most ? NULL : malloc(room * sizeof *table->entries);
    if (table->entries == NULL)
        return hemi_fail(HEM_ERR_MEMORY, "no memory for a table of %zu ids", most);
    table->mask = room - 1;
    for (uint64_t i = 0; i < room; i++)
        table->entries[i] = (hemi_entry){FREE, 0};
    return HEM_OK;
}

/* Where the id is, or the free entry where it would be. */
static hemi_entry *place_of(const hemi_table *table, int64_t id) {
    uint64_t at = hemi_id_hash(id) & table->mask;
    while (table->entries[at].id != FREE && table->entries[at].id != id)
        at = (at + 1) & table->mask;
    return &table->entries[at];
}

bool hemi_table_add(hemi_table *table, int64_t id, uint64_t value, uint64_t **value_p) {
    hemi_entry *entry = place_of(table, id);
    bool added = entry->id == FREE;
    if (added)
        *entry = (hemi_entry){id, value};
    if (value_p != NULL)
        *value_p = &entry->value;
    return added;
}

uint64_t *hemi_table_find(const hemi_table *table, int64_t id) {
    if (table->entries == NULL || id < 0)
        return NULL;
    hemi_entry *entry = place_of(table, id);
    return entry->id == FREE ? NULL : &entry->value;
}

void hemi_table_free(hemi_table *table) {
    free(table->entries);
    *table = (hemi_table){NULL, 0};
}
