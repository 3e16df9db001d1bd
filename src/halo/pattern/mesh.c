/*
 * How this works. Each id has a home, a rank that its hash chooses. Owners tell the homes which of their
 * ids they own and where they store them; whoever has an id in its halo asks its home; homes answer.
 * All of that takes two routes. Then every rank knows what it wants from whom, and the rest is the same
 * for all patterns: see making.h. Where the caller knows the owners, those are the homes of their own
 * ids: nothing is told, and questions go straight to them.
 */
#include "halo/pattern/mesh.h"

#include "base/options.h"
#include "core/flight.h"
#include "halo/pattern/order.h"
#include "halo/pattern/table.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define FINGERPRINT 0x6d657368u

static hem_status no_memory(size_t points) {
    return hemi_fail(HEM_ERR_MEMORY, "hem_pattern_mesh: no memory for %zu points", points);
}

/* Points of one domain with the same home, as one record. */
static hem_status tell(const hemi_mesh *mesh, uint32_t which, const hemi_keyed *items, size_t count,
                       hemi_bag *bag) {
    const hem_mesh_domain *domain = &mesh->domains[which];
    hemi_mesh_owned head = {HEMI_MESH_OWNED, domain->count > UINT32_MAX, which, domain->id};
    size_t each = sizeof(int64_t) + (head.wide != 0 ? sizeof(uint64_t) : sizeof(uint32_t));
    void *data = NULL;
    hem_status status = hemi_bag_make(bag, mesh->world->rank, (uint32_t)items[0].key,
                                      sizeof head + count * each, &data);
    if (status != HEM_OK)
        return status;
    memcpy(data, &head, sizeof head);
    int64_t *ids = (int64_t *)(void *)((unsigned char *)data + sizeof head);
    for (size_t i = 0; i < count; i++) {
        uint64_t position = items[i].value;
        ids[i] = domain->points[position];
        if (head.wide != 0)
            ((uint64_t *)(void *)(ids + count))[i] = position;
        else
            ((uint32_t *)(void *)(ids + count))[i] = (uint32_t)position;
    }
    return HEM_OK;
}

/* The number of items from the first on that have its key. */
static size_t run_of(const hemi_keyed *items, size_t count) {
    size_t many = 1;
    while (many < count && items[many].key == items[0].key)
        many++;
    return many;
}

/* Tell the homes of all points that a domain owns; if owners are known, this rank is the home. */
static hem_status tell_domain(hemi_making *making, const hemi_mesh *mesh, uint32_t which,
                              bool known, hemi_bag *bag) {
    const hem_mesh_domain *domain = &mesh->domains[which];
    hemi_keyed *items = malloc((2 * domain->count + 1) * sizeof *items);
    if (items == NULL)
        return no_memory(domain->count);
    uint64_t bytes = (2 * domain->count + 1) * sizeof *items;
    size_t count = 0;
    for (size_t i = 0; i < domain->count; i++) {
        if (mesh->is_halo[which][i] != 0)
            continue;
        uint32_t home =
            known ? mesh->world->rank : hemi_id_home(domain->points[i], mesh->world->size);
        items[count++] = (hemi_keyed){home, i};
    }
    hemi_order(items, items + count, count);
    hem_status status = HEM_OK;
    for (size_t at = 0; at < count && status == HEM_OK;) {
        size_t many = run_of(items + at, count - at);
        status = tell(mesh, which, items + at, many, bag);
        at += many;
    }
    hemi_router_hold(&making->router, bytes + bag->room);
    hemi_router_drop(&making->router, bytes + bag->room);
    free(items);
    return status;
}

static void tell_all(hemi_making *making, const hemi_mesh *mesh, bool known, hemi_bag *bag) {
    for (size_t d = 0; d < mesh->domain_count && making->status == HEM_OK; d++)
        hemi_making_fail(making, tell_domain(making, mesh, (uint32_t)d, known, bag));
}

enum order_key {
    BY_HOME,
    BY_POSITION,
    BY_DOMAIN,
    BY_ABROAD,
    BY_OWNER
};

static uint64_t key_of(const hemi_halo *halo, enum order_key key) {
    switch (key) {
    case BY_HOME:
        return halo->home;
    case BY_POSITION:
        return halo->position;
    case BY_DOMAIN:
        return halo->domain;
    case BY_ABROAD:
        return halo->abroad;
    default:
        return halo->owner;
    }
}

/* Put the halo into another order; equal ones stay as they are. */
static hem_status sort_halos(hemi_making *making, hemi_mesh *mesh, const enum order_key *keys,
                             int key_count) {
    size_t count = mesh->halo_count;
    if (count < 2)
        return HEM_OK;
    hemi_keyed *items = malloc(2 * count * sizeof *items);
    hemi_halo *sorted = malloc(count * sizeof *sorted);
    if (items == NULL || sorted == NULL) {
        free(items);
        free(sorted);
        return no_memory(count);
    }
    uint64_t bytes = 2 * count * sizeof *items + count * sizeof *sorted;
    hemi_router_hold(&making->router, bytes);
    for (size_t i = 0; i < count; i++)
        items[i].value = i;
    for (int k = 0; k < key_count; k++) {
        for (size_t i = 0; i < count; i++)
            items[i].key = key_of(&mesh->halos[items[i].value], keys[k]);
        hemi_order(items, items + count, count);
    }
    for (size_t i = 0; i < count; i++)
        sorted[i] = mesh->halos[items[i].value];
    memcpy(mesh->halos, sorted, count * sizeof *sorted);
    hemi_router_drop(&making->router, bytes);
    free(items);
    free(sorted);
    return HEM_OK;
}

static int64_t id_of(const hemi_mesh *mesh, const hemi_halo *halo) {
    return mesh->domains[halo->domain].points[halo->position];
}

/* The number of halos from the first on that have its home. */
static size_t same_home(const hemi_halo *halos, size_t count) {
    size_t many = 1;
    while (many < count && halos[many].home == halos->home)
        many++;
    return many;
}

/* One record of questions per home, in the order of the halos. */
static hem_status ask(const hemi_mesh *mesh, hemi_bag *bag) {
    for (size_t at = 0; at < mesh->halo_count;) {
        const hemi_halo *first = &mesh->halos[at];
        size_t count = same_home(first, mesh->halo_count - at);
        hemi_mesh_ask head = {.kind = HEMI_MESH_ASKED};
        void *data = NULL;
        hem_status status = hemi_bag_make(bag, mesh->world->rank, first->home,
                                          sizeof head + count * sizeof(int64_t), &data);
        if (status != HEM_OK)
            return status;
        memcpy(data, &head, sizeof head);
        int64_t *ids = (int64_t *)(void *)((unsigned char *)data + sizeof head);
        for (size_t i = 0; i < count; i++)
            ids[i] = id_of(mesh, &first[i]);
        at += count;
    }
    return HEM_OK;
}

static hem_status fail_nobody(const hemi_mesh *mesh, const hemi_halo *halo, bool known) {
    int64_t id = id_of(mesh, halo);
    int64_t domain = mesh->domains[halo->domain].id;
    if (known)
        return hemi_fail(HEM_ERR_MISMATCH,
                         "hem_pattern_mesh: rank %u does not own point %" PRId64
                         ", although domain %" PRId64 " of rank %u says so",
                         halo->home, id, domain, mesh->world->rank);
    return hemi_fail(HEM_ERR_MISMATCH,
                     "hem_pattern_mesh: nobody owns point %" PRId64
                     ", which is in the halo of domain %" PRId64 " of rank %u",
                     id, domain, mesh->world->rank);
}

/* Write what a home answered into the halos it was asked for. */
static hem_status take_answers(const hemi_mesh *mesh, const hemi_record *record, bool known,
                               hemi_halo *halos, size_t count) {
    const unsigned char *data = hemi_record_data(record);
    hemi_mesh_answer head = {0};
    if (record->bytes >= sizeof head)
        memcpy(&head, data, sizeof head);
    if (head.status != HEM_OK)
        return hemi_fail(HEM_ERR_MEMORY, "hem_pattern_mesh: rank %u had no memory to answer",
                         record->from);
    if (record->bytes != sizeof head + count * sizeof(hemi_mesh_found))
        return hemi_fail(HEM_ERR_MISMATCH, "hem_pattern_mesh: rank %u sent nonsense", record->from);
    for (size_t i = 0; i < count; i++) {
        hemi_mesh_found found;
        memcpy(&found, data + sizeof head + i * sizeof found, sizeof found);
        if (found.rank == HEMI_MESH_NOBODY)
            return fail_nobody(mesh, &halos[i], known);
        if (found.rank >= mesh->world->size || found.position > INT64_MAX)
            return hemi_fail(HEM_ERR_MISMATCH, "hem_pattern_mesh: rank %u sent nonsense",
                             record->from);
        halos[i].owner = found.rank;
        halos[i].abroad = found.domain;
        halos[i].there = found.position;
    }
    return HEM_OK;
}

/*
 * Halos are ordered by home, and so are the answers. If one is missing, or says that nobody owns a
 * point, some other rank may have failed, and will say why.
 */
static void match_answers(hemi_making *making, const hemi_mesh *mesh, bool known,
                          const hemi_bag *answers) {
    const hemi_record *record = hemi_bag_next(answers, NULL);
    for (size_t at = 0; at < mesh->halo_count && hemi_making_is_well(making);) {
        hemi_halo *first = &mesh->halos[at];
        size_t count = same_home(first, mesh->halo_count - at);
        if (record == NULL || record->from != first->home) {
            hemi_making_doubt(making,
                              hemi_fail(HEM_ERR_MISMATCH,
                                        "hem_pattern_mesh: rank %u has not answered", first->home));
            return;
        }
        hemi_making_doubt(making, take_answers(mesh, record, known, first, count));
        record = hemi_bag_next(answers, record);
        at += count;
    }
}

/* Who owns the halo? */
static void search(hemi_making *making, hemi_mesh *mesh, bool known) {
    hemi_bag bag = {0};
    hemi_bag owned = {0};
    hemi_bag answers = {0};
    const enum order_key by_home[] = {BY_HOME};
    hemi_making_fail(making, sort_halos(making, mesh, by_home, 1));
    tell_all(making, mesh, known, known ? &owned : &bag);
    if (making->status == HEM_OK)
        hemi_making_fail(making, ask(mesh, &bag));
    hemi_router_hold(&making->router, owned.room);
    hemi_making_route(making, &bag);
    hemi_router_hold(&making->router, bag.room);
    hemi_mesh_answer_all(making, known ? &owned : &bag, &bag, &answers);
    hemi_router_drop(&making->router, bag.room + owned.room);
    hemi_bag_free(&bag);
    hemi_bag_free(&owned);
    hemi_making_route(making, &answers);
    if (making->status == HEM_OK)
        match_answers(making, mesh, known, &answers);
    hemi_bag_free(&answers);
}

/* All points between two domains become one link. */
static void want(hemi_making *making, const hemi_halo *halos, size_t count) {
    hemi_want w = {.owner = halos->owner,
                   .there = halos->abroad,
                   .here = halos->domain,
                   .turn = {{0, 1}, {1, 1}},
                   .mine = {.total = count},
                   .theirs = {.total = count}};
    w.mine.list = malloc(count * sizeof *w.mine.list);
    w.theirs.list = malloc(count * sizeof *w.theirs.list);
    if (w.mine.list == NULL || w.theirs.list == NULL) {
        free(w.mine.list);
        free(w.theirs.list);
        hemi_making_fail(making, no_memory(count));
        return;
    }
    for (size_t i = 0; i < count; i++) {
        w.mine.list[i] = (int64_t)halos[i].position;
        w.theirs.list[i] = (int64_t)halos[i].there;
    }
    hemi_making_want(making, &w);
}

static bool same_link(const hemi_halo *a, const hemi_halo *b) {
    return a->owner == b->owner && a->abroad == b->abroad && a->domain == b->domain;
}

static void want_all(hemi_making *making, hemi_mesh *mesh) {
    const enum order_key keys[] = {BY_POSITION, BY_DOMAIN, BY_ABROAD, BY_OWNER};
    hemi_making_fail(making, sort_halos(making, mesh, keys, 4));
    for (size_t at = 0; at < mesh->halo_count && making->status == HEM_OK;) {
        size_t count = 1;
        while (at + count < mesh->halo_count &&
               same_link(&mesh->halos[at], &mesh->halos[at + count]))
            count++;
        want(making, &mesh->halos[at], count);
        at += count;
    }
}

static void describe(hem_pattern *pattern, const hemi_mesh *mesh) {
    for (size_t d = 0; d < mesh->domain_count; d++) {
        pattern->domains[d].id = mesh->domains[d].id;
        pattern->domains[d].points = mesh->domains[d].count;
    }
    for (size_t i = 0; i < mesh->halo_count; i++)
        pattern->domains[mesh->halos[i].domain].halo_points++;
}

/* Some know the owners and some do not: all have heard it, and all fail. */
static void fail_mixed(hemi_making *making) {
    hemi_making_fail(making, hemi_fail(HEM_ERR_MISMATCH,
                                       "hem_pattern_mesh: rank %u names the owners of its halo, "
                                       "rank %u does not: all must, or none",
                                       making->voters[1], making->voters[0]));
}

static void build(hemi_making *making, hemi_mesh *mesh) {
    bool known = making->votes == HEMI_MESH_KNOWS;
    hemi_router_hold(&making->router, mesh->bytes);
    describe(making->pattern, mesh);
    search(making, mesh, known);
    if (hemi_making_is_well(making))
        want_all(making, mesh);
    hemi_router_drop(&making->router, mesh->bytes);
}

hem_status hem_pattern_mesh(hem_world *world, const hem_mesh_options *options,
                            hem_pattern **pattern_p) {
    if (world == NULL)
        return hemi_fail(HEM_ERR_ARG, "hem_pattern_mesh: world is NULL");
    hem_mesh_options o = {0};
    hemi_mesh mesh = {.world = world};
    hemi_making making;
    hem_status status = hemi_options_read(&o, sizeof o, options, "hem_pattern_mesh");
    if (status == HEM_OK && pattern_p == NULL)
        status = hemi_fail(HEM_ERR_ARG, "hem_pattern_mesh: pattern_p is NULL");
    if (status == HEM_OK) {
        mesh.domains = o.domains;
        mesh.domain_count = o.domain_count;
        status = hemi_mesh_read(&mesh);
    }
    status = hemi_making_poll(&making, world, HEMI_CALL_PATTERN_MESH, HEMI_PATTERN_MESH,
                              mesh.domain_count, FINGERPRINT, mesh.votes, status, o.timeout_ns);
    if (status == HEM_OK && making.votes == (HEMI_MESH_KNOWS | HEMI_MESH_SEARCHES)) {
        fail_mixed(&making);
        status = hemi_making_conclude(&making, pattern_p);
    } else if (status == HEM_OK) {
        build(&making, &mesh);
        hemi_mesh_free(&mesh);
        status = hemi_making_finish(&making, pattern_p);
    }
    hemi_mesh_free(&mesh);
    return status;
}
