/*
 * How this works. What is owned lies in a bag: records of ids and positions. A table has for every id
 * where in the bag it stands; which record that is in, and so which rank and domain, is found by
 * bisection among the starts of the records. So an owned point takes little more than what was sent.
 */
#include "core/flight.h"
#include "halo/pattern/mesh.h"
#include "halo/pattern/table.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Ids whose entries are asked for before they are needed: they lie all over the table, and waiting for
 * each took half of the time with 10^6 points. */
#define AHEAD 16

/* What this rank knows of owners. */
typedef struct home {
    hemi_making *making;
    const hemi_bag *bag;
    uint64_t *starts; /* of the records of owned points, in the bag */
    size_t record_count;
    uint64_t point_count;
    hemi_table table;
    hem_status status; /* it cannot answer */
} home;

static uint16_t kind_of(const hemi_record *record) {
    uint16_t kind = 0;
    if (record->bytes >= sizeof kind)
        memcpy(&kind, hemi_record_data(record), sizeof kind);
    return kind;
}

static void blame(hemi_making *making, uint32_t rank) {
    hemi_making_fail(making, hemi_fail(HEM_ERR_MISMATCH, "%s: rank %u sent nonsense",
                                       hemi_call_name(making->router.call), rank));
}

/* The head of a record of owned points, if it is one whose length fits, and how many they are. */
static bool read_owned(const hemi_record *record, hemi_mesh_owned *owned, uint64_t *count_p) {
    if (record->bytes < sizeof *owned)
        return false;
    memcpy(owned, hemi_record_data(record), sizeof *owned);
    uint64_t each = sizeof(int64_t) + (owned->wide == 0 ? sizeof(uint32_t) : sizeof(uint64_t));
    *count_p = (record->bytes - sizeof *owned) / each;
    return owned->kind == HEMI_MESH_OWNED && owned->wide <= 1 &&
           *count_p * each == record->bytes - sizeof *owned;
}

static const int64_t *owned_ids(const hemi_record *record) {
    const unsigned char *data = hemi_record_data(record);
    return (const int64_t *)(const void *)(data + sizeof(hemi_mesh_owned));
}

static uint64_t owned_position(const hemi_record *record, uint64_t count, bool wide,
                               uint64_t index) {
    const int64_t *end = owned_ids(record) + count;
    if (!wide)
        return ((const uint32_t *)(const void *)end)[index];
    return ((const uint64_t *)(const void *)end)[index];
}

/* Whose an id is that stands at `place` of the bag. */
static hemi_mesh_found resolve(const home *h, uint64_t place, int64_t *domain_p) {
    size_t low = 0;
    size_t high = h->record_count;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (h->starts[middle] <= place)
            low = middle;
        else
            high = middle;
    }
    const hemi_record *record = (const hemi_record *)(const void *)(h->bag->bytes + h->starts[low]);
    hemi_mesh_owned owned = {0};
    uint64_t count = 0;
    (void)read_owned(record, &owned, &count); /* it was checked in survey() */
    uint64_t first = (uint64_t)((const unsigned char *)owned_ids(record) - h->bag->bytes);
    uint64_t index = (place - first) / sizeof(int64_t);
    *domain_p = owned.id;
    return (hemi_mesh_found){record->from, owned.domain,
                             owned_position(record, count, owned.wide != 0, index)};
}

static void fail_two(const home *h, int64_t id, uint64_t one, uint64_t other) {
    int64_t domains[2];
    hemi_mesh_found a = resolve(h, one, &domains[0]);
    hemi_mesh_found b = resolve(h, other, &domains[1]);
    hemi_making_fail(h->making, hemi_fail(HEM_ERR_MISMATCH,
                                          "%s: point %" PRId64 " has two owners: domain %" PRId64
                                          " of rank %u and domain %" PRId64 " of rank %u",
                                          hemi_call_name(h->making->router.call), id, domains[0],
                                          a.rank, domains[1], b.rank));
}

static void enter_record(home *h, const hemi_record *record) {
    const int64_t *ids = owned_ids(record);
    hemi_mesh_owned owned = {0};
    uint64_t count = 0;
    (void)read_owned(record, &owned, &count);
    for (uint64_t i = 0; i < count; i++) {
        if (i + AHEAD < count)
            hemi_table_prefetch(&h->table, ids[i + AHEAD]);
        uint64_t place = (uint64_t)((const unsigned char *)&ids[i] - h->bag->bytes);
        uint64_t *first = NULL;
        if (ids[i] < 0)
            blame(h->making, record->from);
        else if (!hemi_table_add(&h->table, ids[i], place, &first))
            fail_two(h, ids[i], *first, place);
    }
}

/* Count what is owned, and find nonsense. */
static void survey(home *h) {
    for (const hemi_record *r = hemi_bag_next(h->bag, NULL); r != NULL;
         r = hemi_bag_next(h->bag, r)) {
        hemi_mesh_owned owned = {0};
        uint64_t count = 0;
        if (kind_of(r) != HEMI_MESH_OWNED)
            continue;
        if (read_owned(r, &owned, &count)) {
            h->record_count++;
            h->point_count += count;
        } else {
            blame(h->making, r->from);
        }
    }
}

static hem_status open_home(home *h) {
    survey(h);
    h->starts = malloc((h->record_count + 1) * sizeof *h->starts);
    hem_status status =
        h->starts == NULL ? hemi_fail(HEM_ERR_MEMORY, "no memory for %zu records", h->record_count)
                          : hemi_table_make(&h->table, h->point_count);
    if (status != HEM_OK)
        return status;
    hemi_router_hold(&h->making->router,
                     hemi_table_bytes(&h->table) + (h->record_count + 1) * sizeof *h->starts);
    size_t next = 0;
    for (const hemi_record *r = hemi_bag_next(h->bag, NULL); r != NULL;
         r = hemi_bag_next(h->bag, r)) {
        hemi_mesh_owned owned = {0};
        uint64_t count = 0;
        if (read_owned(r, &owned, &count))
            h->starts[next++] = (uint64_t)((const unsigned char *)r - h->bag->bytes);
    }
    for (size_t i = 0; i < next; i++)
        enter_record(h, (const hemi_record *)(const void *)(h->bag->bytes + h->starts[i]));
    return HEM_OK;
}

static void close_home(home *h) {
    if (h->status == HEM_OK)
        hemi_router_drop(&h->making->router,
                         hemi_table_bytes(&h->table) + (h->record_count + 1) * sizeof *h->starts);
    hemi_table_free(&h->table);
    free(h->starts);
}

/* One record of answers. Without memory for it, the asker notices that it is missing. */
static hem_status answer(const home *h, const hemi_record *record, hemi_bag *answers) {
    uint32_t me = h->making->router.world->rank;
    const unsigned char *question = hemi_record_data(record);
    const int64_t *ids = (const int64_t *)(const void *)(question + sizeof(hemi_mesh_ask));
    size_t count = (record->bytes - sizeof(hemi_mesh_ask)) / sizeof *ids;
    hemi_mesh_answer head = {h->status};
    if (h->status != HEM_OK)
        count = 0;
    void *data = NULL;
    hem_status status = hemi_bag_make(answers, me, record->from,
                                      sizeof head + count * sizeof(hemi_mesh_found), &data);
    if (status != HEM_OK)
        return status;
    memcpy(data, &head, sizeof head);
    hemi_mesh_found *found = (hemi_mesh_found *)(void *)((unsigned char *)data + sizeof head);
    for (size_t i = 0; i < count; i++) {
        int64_t domain = 0;
        if (i + AHEAD < count)
            hemi_table_prefetch(&h->table, ids[i + AHEAD]);
        const uint64_t *place = hemi_table_find(&h->table, ids[i]);
        found[i] =
            place != NULL ? resolve(h, *place, &domain) : (hemi_mesh_found){HEMI_MESH_NOBODY, 0, 0};
    }
    return HEM_OK;
}

static bool is_ask(const hemi_record *record) {
    return kind_of(record) == HEMI_MESH_ASKED && record->bytes >= sizeof(hemi_mesh_ask) &&
           record->bytes % sizeof(int64_t) == 0;
}

void hemi_mesh_answer_all(hemi_making *making, const hemi_bag *owned, const hemi_bag *bag,
                          hemi_bag *answers) {
    home h = {.making = making, .bag = owned};
    h.status = open_home(&h);
    hemi_making_fail(making, h.status);
    for (const hemi_record *r = hemi_bag_next(bag, NULL); r != NULL; r = hemi_bag_next(bag, r)) {
        if (is_ask(r))
            hemi_making_fail(making, answer(&h, r, answers));
        else if (kind_of(r) != HEMI_MESH_OWNED)
            blame(making, r->from);
    }
    close_home(&h);
}
