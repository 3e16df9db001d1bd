/* Cases and patterns of meshes; see halo_kit.h. */
#include "halo_kit.h"

/* Numbers of points are spread over 62 bits, each once. */
static int64_t id_of(const halo_mesh *m, int64_t point) {
    return (int64_t)(((uint64_t)point * m->salt + (m->salt >> 3)) & 0x3fffffffffffffff);
}

/* Mark what lies within `rings` of domain `part`: 1 owned, 2 and more: halo. */
static size_t mark(const halo_mesh *m, int part, uint8_t *marks) {
    size_t count = 0;

    for (int64_t p = 0; p < m->points; p++)
        marks[p] = m->part[p] == part;
    for (int ring = 1; ring <= m->rings; ring++)
        for (int64_t p = 0; p < m->points; p++)
            for (size_t k = m->start[p]; marks[p] == ring && k < m->start[p + 1]; k++)
                if (!marks[m->next[k]])
                    marks[m->next[k]] = (uint8_t)(ring + 1);
    for (int64_t p = 0; p < m->points; p++)
        count += marks[p] != 0;
    return count;
}

static void add_part(halo_case *c, const halo_mesh *m, int part, uint8_t *marks, harness_rng *rng) {
    int64_t count = (int64_t)mark(m, part, marks);
    halo_domain *d = halo_case_add(c, m->rank[part], 1, &count);
    size_t k = 0;

    d->id = part;
    for (int64_t p = 0; p < m->points; p++) {
        if (!marks[p])
            continue;
        d->cells[k++] = (halo_cell){
            .key = id_of(m, p),
            .owner = marks[p] > 1 ? m->rank[m->part[p]] : -1,
            .kind = marks[p] > 1 ? HALO_COPY : HALO_OWN,
            .turn = {1, 0, 0, 1},
        };
    }
    for (size_t i = d->count; i > 1; i--) {
        size_t j = harness_below(rng, i);
        halo_cell kept = d->cells[i - 1];

        d->cells[i - 1] = d->cells[j];
        d->cells[j] = kept;
    }
}

halo_case halo_mesh_case(const halo_mesh *m, int ranks, harness_rng rng) {
    halo_case c = {.ranks = ranks};
    uint8_t *marks = malloc((size_t)m->points + 1);

    CHECK(marks != NULL);
    for (int rank = 0; rank < ranks; rank++)
        for (int part = 0; part < m->parts; part++)
            if (m->rank[part] == rank)
                add_part(&c, m, part, marks, &rng);
    free(marks);
    return c;
}

/* Patterns. */

static void tell(hem_mesh_domain *to, const halo_domain *d, int way) {
    int64_t *points = malloc((d->count + 1) * sizeof *points);
    size_t *positions = malloc((d->count + 1) * sizeof *positions);
    int64_t *ids = malloc((d->count + 1) * sizeof *ids);
    int *owners = malloc((d->count + 1) * sizeof *owners);
    bool by_id = way == HALO_BY_ID || way == HALO_IDS_AND_OWNERS;

    CHECK(points && positions && ids && owners);
    *to = (hem_mesh_domain){.id = d->id, .points = points, .count = d->count};
    for (size_t k = 0; k < d->count; k++) {
        points[k] = d->cells[k].key;
        if (d->cells[k].kind != HALO_COPY)
            continue;
        positions[to->halo_count] = k;
        ids[to->halo_count] = d->cells[k].key;
        owners[to->halo_count++] = d->cells[k].owner;
    }
    to->halo = by_id ? NULL : positions;
    to->halo_ids = by_id ? ids : NULL;
    to->halo_owners = way >= HALO_WITH_OWNERS ? owners : NULL;
    free(by_id ? (void *)positions : (void *)ids);
    if (!to->halo_owners)
        free(owners);
}

hem_mesh_domain *halo_mesh_domains(const halo_case *c, int rank, int way, size_t *count_p) {
    halo_domain *mine;
    size_t n = halo_case_of(c, rank, &mine);
    hem_mesh_domain *domains = calloc(n + 1, sizeof *domains);

    CHECK(domains != NULL);
    for (size_t i = 0; i < n; i++)
        tell(&domains[i], &mine[i], way);
    *count_p = n;
    return domains;
}

void halo_mesh_undomains(hem_mesh_domain *domains, size_t count) {
    for (size_t i = 0; i < count; i++) {
        free((void *)(uintptr_t)domains[i].points);
        free((void *)(uintptr_t)domains[i].halo);
        free((void *)(uintptr_t)domains[i].halo_ids);
        free((void *)(uintptr_t)domains[i].halo_owners);
    }
    free(domains);
}

hem_pattern *halo_mesh_pattern(hem_world *world, const halo_case *c, int way) {
    hem_mesh_options options = {.struct_size = sizeof options};
    hem_pattern *pattern = NULL;
    hem_mesh_domain *domains =
        halo_mesh_domains(c, hem_world_rank(world), way, &options.domain_count);

    options.domains = domains;
    CHECK_OK(hem_pattern_mesh(world, &options, &pattern));
    halo_mesh_undomains(domains, options.domain_count);
    CHECK(pattern != NULL);
    halo_check_facts(c, world, pattern);
    return pattern;
}
