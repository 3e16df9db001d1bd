/* What the caller says of a mesh: is it good, and which points are halo? */
#include "halo/pattern/mesh.h"
#include "halo/pattern/order.h"
#include "halo/pattern/table.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char call[] = "hem_pattern_mesh";

static hem_status no_memory(size_t points) {
    return hemi_fail(HEM_ERR_MEMORY, "%s: no memory for %zu points", call, points);
}

static hem_status check_domain(const hem_mesh_domain *domain, uint32_t ranks) {
    if (domain->count > PTRDIFF_MAX / sizeof(int64_t) ||
        domain->halo_count > PTRDIFF_MAX / sizeof(hemi_halo))
        return hemi_fail(HEM_ERR_RANGE,
                         "%s: domain %" PRId64 " cannot have %zu points, %zu of halo", call,
                         domain->id, domain->count, domain->halo_count);
    if (domain->points == NULL && domain->count > 0)
        return hemi_fail(HEM_ERR_ARG, "%s: the points of domain %" PRId64 " are NULL", call,
                         domain->id);
    if (domain->halo == NULL && domain->halo_ids == NULL && domain->halo_count > 0)
        return hemi_fail(HEM_ERR_ARG, "%s: the halo of domain %" PRId64 " is NULL", call,
                         domain->id);
    for (size_t i = 0; i < domain->count; i++)
        if (domain->points[i] < 0)
            return hemi_fail(HEM_ERR_RANGE,
                             "%s: point %zu of domain %" PRId64 " has the negative id %" PRId64,
                             call, i, domain->id, domain->points[i]);
    for (size_t i = 0; i < domain->halo_count && domain->halo_owners != NULL; i++)
        if (domain->halo_owners[i] < 0 || (uint32_t)domain->halo_owners[i] >= ranks)
            return hemi_fail(HEM_ERR_RANGE,
                             "%s: domain %" PRId64 " says that rank %d owns a point: there is none",
                             call, domain->id, domain->halo_owners[i]);
    return HEM_OK;
}

static hem_status push(hemi_mesh *mesh, uint32_t domain, uint64_t position, uint32_t home) {
    if (mesh->halo_count == mesh->halo_room) {
        size_t room = mesh->halo_room == 0 ? 64 : 2 * mesh->halo_room;
        hemi_halo *grown = realloc(mesh->halos, room * sizeof *grown);
        if (grown == NULL)
            return no_memory(room);
        mesh->bytes += (room - mesh->halo_room) * sizeof *grown;
        mesh->halos = grown;
        mesh->halo_room = room;
    }
    mesh->halos[mesh->halo_count++] =
        (hemi_halo){.position = position, .domain = domain, .home = home};
    mesh->is_halo[domain][position] = 1;
    return HEM_OK;
}

static hem_status two_owners(const hem_mesh_domain *domain, int64_t id, int one, int other) {
    return hemi_fail(HEM_ERR_ARG,
                     "%s: domain %" PRId64 " says of point %" PRId64
                     " that rank %d owns it, and that rank %d does",
                     call, domain->id, id, one, other);
}

/* The rank to ask for halo point `index` of the caller's list. */
static uint32_t home_of(const hemi_mesh *mesh, const hem_mesh_domain *domain, size_t index,
                        int64_t id) {
    if (domain->halo_owners != NULL)
        return (uint32_t)domain->halo_owners[index];
    return hemi_id_home(id, mesh->world->size);
}

/* The halo as positions, ordered; one that is named twice counts once. */
static hem_status list_ordered(hemi_mesh *mesh, uint32_t which, const hemi_keyed *items) {
    const hem_mesh_domain *domain = &mesh->domains[which];
    hem_status status = HEM_OK;
    for (size_t i = 0; i < domain->halo_count && status == HEM_OK; i++) {
        size_t position = items[i].key;
        int64_t id = domain->points[position];
        uint32_t home = home_of(mesh, domain, items[i].value, id);
        if (i == 0 || items[i - 1].key != position)
            status = push(mesh, which, position, home);
        else if (mesh->halos[mesh->halo_count - 1].home != home)
            status = two_owners(domain, id, (int)mesh->halos[mesh->halo_count - 1].home, (int)home);
    }
    return status;
}

static hem_status list_positions(hemi_mesh *mesh, uint32_t which) {
    const hem_mesh_domain *domain = &mesh->domains[which];
    size_t count = domain->halo_count;
    for (size_t i = 0; i < count; i++)
        if (domain->halo[i] >= domain->count)
            return hemi_fail(HEM_ERR_RANGE,
                             "%s: domain %" PRId64 " has %zu points, and no position %zu", call,
                             domain->id, domain->count, domain->halo[i]);
    hemi_keyed *items = malloc((2 * count + 1) * sizeof *items);
    if (items == NULL)
        return no_memory(count);
    for (size_t i = 0; i < count; i++)
        items[i] = (hemi_keyed){domain->halo[i], i};
    hemi_order(items, items + count, count);
    hem_status status = list_ordered(mesh, which, items);
    free(items);
    return status;
}

/* Enter the ids that are halo; one that is named twice counts once. */
static hem_status enter_ids(const hem_mesh_domain *domain, hemi_table *table) {
    for (size_t i = 0; i < domain->halo_count; i++) {
        uint64_t *first = NULL;
        if (domain->halo_ids[i] < 0)
            return hemi_fail(HEM_ERR_RANGE,
                             "%s: the halo of domain %" PRId64 " has the negative id %" PRId64,
                             call, domain->id, domain->halo_ids[i]);
        if (!hemi_table_add(table, domain->halo_ids[i], i, &first) && domain->halo_owners != NULL &&
            domain->halo_owners[*first] != domain->halo_owners[i])
            return two_owners(domain, domain->halo_ids[i], domain->halo_owners[*first],
                              domain->halo_owners[i]);
    }
    return HEM_OK;
}

/* Every point whose id is among them is halo, and every one of them must be a point. */
static hem_status match_ids(hemi_mesh *mesh, uint32_t which, const hemi_table *table,
                            unsigned char *seen) {
    const hem_mesh_domain *domain = &mesh->domains[which];
    hem_status status = HEM_OK;
    for (size_t i = 0; i < domain->count && status == HEM_OK; i++) {
        const uint64_t *index = hemi_table_find(table, domain->points[i]);
        if (index == NULL)
            continue;
        seen[*index] = 1;
        status = push(mesh, which, i, home_of(mesh, domain, *index, domain->points[i]));
    }
    for (size_t i = 0; i < domain->halo_count && status == HEM_OK; i++)
        if (seen[*hemi_table_find(table, domain->halo_ids[i])] == 0)
            return hemi_fail(HEM_ERR_RANGE,
                             "%s: the halo of domain %" PRId64 " names point %" PRId64
                             ", which is not among its points",
                             call, domain->id, domain->halo_ids[i]);
    return status;
}

static hem_status list_ids(hemi_mesh *mesh, uint32_t which) {
    const hem_mesh_domain *domain = &mesh->domains[which];
    hemi_table table = {0};
    hem_status status = hemi_table_make(&table, domain->halo_count);
    if (status == HEM_OK)
        status = enter_ids(domain, &table);
    if (status == HEM_OK) {
        unsigned char *seen = calloc(domain->halo_count + 1, 1);
        status =
            seen == NULL ? no_memory(domain->halo_count) : match_ids(mesh, which, &table, seen);
        free(seen);
    }
    hemi_table_free(&table);
    return status;
}

static hem_status read_domain(hemi_mesh *mesh, uint32_t which) {
    const hem_mesh_domain *domain = &mesh->domains[which];
    hem_status status = check_domain(domain, mesh->world->size);
    if (status != HEM_OK)
        return status;
    mesh->is_halo[which] = calloc(domain->count + 1, 1);
    if (mesh->is_halo[which] == NULL)
        return no_memory(domain->count);
    mesh->bytes += domain->count + 1;
    if (domain->halo_count == 0)
        return HEM_OK;
    mesh->votes |= domain->halo_owners != NULL ? HEMI_MESH_KNOWS : HEMI_MESH_SEARCHES;
    return domain->halo != NULL ? list_positions(mesh, which) : list_ids(mesh, which);
}

hem_status hemi_mesh_read(hemi_mesh *mesh) {
    if (mesh->domains == NULL && mesh->domain_count > 0)
        return hemi_fail(HEM_ERR_ARG, "%s: the list of domains is NULL", call);
    if (mesh->domain_count > UINT32_MAX)
        return hemi_fail(HEM_ERR_RANGE, "%s: %zu domains are too many", call, mesh->domain_count);
    mesh->is_halo = calloc(mesh->domain_count + 1, sizeof *mesh->is_halo);
    if (mesh->is_halo == NULL)
        return no_memory(mesh->domain_count);
    mesh->bytes += (mesh->domain_count + 1) * sizeof *mesh->is_halo;
    hem_status status = HEM_OK;
    for (size_t d = 0; d < mesh->domain_count && status == HEM_OK; d++)
        status = read_domain(mesh, (uint32_t)d);
    return status;
}

void hemi_mesh_free(hemi_mesh *mesh) {
    for (size_t d = 0; mesh->is_halo != NULL && d < mesh->domain_count; d++)
        free(mesh->is_halo[d]);
    free(mesh->is_halo);
    free(mesh->halos);
    memset(mesh, 0, sizeof *mesh);
}
