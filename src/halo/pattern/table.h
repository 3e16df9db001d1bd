/* A hash table of global ids, with as much memory as it has entries. */
#ifndef HEMI_HALO_PATTERN_TABLE_H
#define HEMI_HALO_PATTERN_TABLE_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct hemi_entry {
    int64_t id; /**< -1: free */
    uint64_t value;
} hemi_entry;

/** Zeroed has no room at all. */
typedef struct hemi_table {
    hemi_entry *entries;
    uint64_t mask; /**< room - 1; the room is a power of two */
} hemi_table;

/** Mix the bits of an id, so that ids in any pattern are spread evenly. */
static inline uint64_t hemi_id_hash(int64_t id) {
    uint64_t z = (uint64_t)id + 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/** The rank of `ranks` at which what is known of an id comes together. From bits that a table does
 *  not use first. */
static inline uint32_t hemi_id_home(int64_t id, uint32_t ranks) {
    return (uint32_t)((hemi_id_hash(id) >> 32) * ranks >> 32);
}

/** Make room for `most` ids. @return HEM_OK, HEM_ERR_MEMORY. */
hem_status hemi_table_make(hemi_table *table, size_t most);

/** Bytes that it takes. */
static inline uint64_t hemi_table_bytes(const hemi_table *table) {
    return table->entries == NULL ? 0 : (table->mask + 1) * sizeof *table->entries;
}

/**
 * Enter an id, which is not negative. There must be room. @return false if it is there already; what
 * it has is not changed. Either way `value_p`, unless NULL, gets the address of its value.
 */
bool hemi_table_add(hemi_table *table, int64_t id, uint64_t value, uint64_t **value_p);

/** Ask for the memory that a search for the id will look at. The table has room. */
static inline void hemi_table_prefetch(const hemi_table *table, int64_t id) {
    __builtin_prefetch(&table->entries[hemi_id_hash(id) & table->mask], 1);
}

/** What an id has, or NULL. */
uint64_t *hemi_table_find(const hemi_table *table, int64_t id);

void hemi_table_free(hemi_table *table);

#endif
