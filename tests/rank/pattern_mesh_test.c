/*
 * A pattern of a mesh names, for every halo point, the point that owns its id: on any rank, in any
 * domain, also of the same rank or the domain itself, with ids in any order and of any size, ranks
 * without domains, halos as positions or as ids, owners searched for or given.
 *
 * hem-test: ranks=1,2,3,4,5,8,17,40 modes=processes,threads timeout=60
 */
#include "harness.h"

#include "halo/pattern/pattern.h"

enum {
    DOMAINS = 4,
    POINTS = 400
};

/* The mesh of a round: point i has an id, and belongs to one domain of one rank. */
struct mesh {
    int64_t ids[POINTS];
    int rank[POINTS];
    size_t domain[POINTS];
};

/* One rank's part of it. */
struct part {
    hem_mesh_domain domains[DOMAINS];
    size_t count;
    int64_t *points[DOMAINS];
    size_t *halo[DOMAINS];
    int64_t *halo_ids[DOMAINS];
    int *owners[DOMAINS];
};

/* Rank r has r % 5 domains in even rounds, at most 4; at least one rank has one. */
static size_t domains_of(int rank, uint64_t round) {
    size_t count = ((size_t)rank + round) % 5 % (DOMAINS + 1);
    return rank == 0 && count == 0 ? 1 : count;
}

static void make_mesh(struct mesh *mesh, int size, uint64_t seed, uint64_t round) {
    harness_rng rng = harness_rng_of(seed, round, 0);
    uint64_t stride = harness_random(&rng) | 1;

    for (size_t i = 0; i < POINTS; i++) {
        mesh->ids[i] = round % 2 ? (int64_t)((i + 1) * stride >> 1) : (int64_t)i;
        do
            mesh->rank[i] = (int)harness_below(&rng, (size_t)size);
        while (domains_of(mesh->rank[i], round) == 0);
        mesh->domain[i] = harness_below(&rng, domains_of(mesh->rank[i], round));
    }
    if (round % 2)
        mesh->ids[0] = INT64_MAX;
}

static size_t index_of(const struct mesh *mesh, int64_t id) {
    for (size_t i = 0; i < POINTS; i++)
        if (mesh->ids[i] == id)
            return i;
    harness_fail(__FILE__, __LINE__, "no id %lld", (long long)id);
}

/* The points of a domain: its own and halo, shuffled. By ids, a halo id must not be owned, too. */
static void make_domain(struct part *part, size_t d, const struct mesh *mesh, int me, bool by_ids,
                        bool owners, harness_rng *rng) {
    hem_mesh_domain *domain = &part->domains[d];
    bool is_halo[2 * POINTS];
    size_t count = 0;

    part->points[d] = malloc(2 * POINTS * sizeof *part->points[d]);
    part->halo[d] = malloc(2 * POINTS * sizeof *part->halo[d]);
    part->halo_ids[d] = malloc(2 * POINTS * sizeof *part->halo_ids[d]);
    part->owners[d] = malloc(2 * POINTS * sizeof *part->owners[d]);
    for (size_t i = 0; i < POINTS; i++) {
        bool own = mesh->rank[i] == me && mesh->domain[i] == d;
        size_t copies = harness_below(rng, 6) == 0 ? 1 + harness_below(rng, 2) : 0;

        for (size_t k = own ? 0 : 1; k <= (own && by_ids ? 0 : copies); k++) {
            is_halo[count] = !(own && k == 0);
            part->points[d][count++] = mesh->ids[i];
        }
    }
    for (size_t i = count; i-- > 1;) {
        size_t k = harness_below(rng, i + 1);
        int64_t id = part->points[d][i];
        bool halo = is_halo[i];

        part->points[d][i] = part->points[d][k];
        part->points[d][k] = id;
        is_halo[i] = is_halo[k];
        is_halo[k] = halo;
    }
    *domain = (hem_mesh_domain){.id = (int64_t)d + 100 * me, .points = part->points[d]};
    domain->count = count;
    domain->halo = by_ids ? NULL : part->halo[d];
    domain->halo_ids = by_ids ? part->halo_ids[d] : NULL;
    domain->halo_owners = owners ? part->owners[d] : NULL;
    for (size_t i = count; i-- > 0;) {
        if (!is_halo[i])
            continue;
        part->halo[d][domain->halo_count] = i;
        part->halo_ids[d][domain->halo_count] = part->points[d][i];
        part->owners[d][domain->halo_count++] = mesh->rank[index_of(mesh, part->points[d][i])];
    }
}

static void make_part(struct part *part, const struct mesh *mesh, int me, uint64_t seed,
                      uint64_t round) {
    harness_rng rng = harness_rng_of(seed, round, 1 + (uint64_t)me);

    part->count = domains_of(me, round);
    for (size_t d = 0; d < part->count; d++)
        make_domain(part, d, mesh, me, (round / 2 + d) % 2, round % 3 == 2, &rng);
}

static void free_part(struct part *part) {
    for (size_t d = 0; d < part->count; d++) {
        free(part->points[d]);
        free(part->halo[d]);
        free(part->halo_ids[d]);
        free(part->owners[d]);
    }
}

static hem_status build(hem_world *world, const hem_mesh_domain *domains, size_t count,
                        hem_pattern **pattern_p) {
    hem_mesh_options options = {.struct_size = sizeof options,
                                .domains = domains,
                                .domain_count = count,
                                .timeout_ns = LIMIT};

    return hem_pattern_mesh(world, &options, pattern_p);
}

/* Send the ids of all points along the links of a pattern and compare where they arrive. */
static void carry(hem_world *world, const hem_pattern *pattern, const struct part *part,
                  unsigned char **written) {
    size_t count = pattern->sends.count;
    hem_parcel *parcels = calloc(count + 1, sizeof *parcels);
    hem_sparse_result got = {0};

    for (size_t i = 0; i < count; i++) {
        const hemi_link *link = &pattern->sends.links[i];
        int64_t *ids = malloc(link->points.total * sizeof *ids);

        CHECK(link->here < part->count && link->points.list != NULL);
        CHECK(i == 0 || pattern->sends.links[i - 1].peer <= link->peer);
        for (size_t k = 0; k < link->points.total; k++) {
            CHECK((uint64_t)link->points.list[k] < part->domains[link->here].count);
            ids[k] = part->points[link->here][link->points.list[k]];
        }
        parcels[i] = (hem_parcel){(int)link->peer, link->points.total * sizeof *ids, ids};
    }
    CHECK_OK(hem_sparse(world, parcels, count, &got, LIMIT));
    CHECK_EQ(got.count, pattern->recvs.count);
    for (size_t i = 0; i < got.count; i++) {
        const hemi_link *link = &pattern->recvs.links[i];
        const int64_t *ids = got.parcels[i].data;

        CHECK_EQ(got.parcels[i].peer, link->peer);
        CHECK_EQ(got.parcels[i].bytes, link->points.total * sizeof *ids);
        for (size_t k = 0; k < link->points.total; k++) {
            size_t at = (size_t)link->points.list[k];

            CHECK_EQ(part->points[link->here][at], ids[k]);
            CHECK_EQ(written[link->here][at], 0);
            written[link->here][at] = 1;
        }
    }
    for (size_t i = 0; i < count; i++)
        free((void *)(uintptr_t)parcels[i].data);
    free(parcels);
    hem_sparse_free(&got);
}

/* Every halo point is written by one link, and nothing else is. */
static void check_pattern(hem_world *world, const hem_pattern *pattern, const struct part *part,
                          const struct mesh *mesh) {
    unsigned char *written[DOMAINS] = {NULL};

    for (size_t d = 0; d < part->count; d++)
        written[d] = calloc(part->domains[d].count + 1, 1);
    carry(world, pattern, part, written);
    for (size_t d = 0; d < part->count; d++) {
        size_t halos = 0;

        for (size_t i = 0; i < part->domains[d].halo_count; i++)
            CHECK_EQ(written[d][part->halo[d][i]], 1);
        for (size_t i = 0; i < part->domains[d].count; i++)
            halos += written[d][i];
        CHECK_EQ(halos, part->domains[d].halo_count);
        CHECK_EQ(pattern->domains[d].halo_points, halos);
        CHECK_EQ(pattern->domains[d].points, part->domains[d].count);
        CHECK_EQ(pattern->domains[d].id, part->domains[d].id);
        free(written[d]);
    }
    for (size_t i = 0; i < pattern->recvs.count; i++) {
        const hemi_link *link = &pattern->recvs.links[i];

        for (size_t k = 0; k < link->points.total; k++) {
            size_t at = index_of(mesh, part->points[link->here][link->points.list[k]]);

            CHECK_EQ(link->peer, mesh->rank[at]);
            CHECK_EQ(link->there, mesh->domain[at]);
        }
    }
}

static void check_facts(hem_world *world, const hem_pattern *pattern) {
    hem_pattern_facts facts = {.struct_size = sizeof facts};
    uint64_t sums[4] = {0};
    uint64_t totals[4];
    uint64_t logarithm = 0;
    hem_neighbour last = {.rank = -1};

    CHECK_OK(hem_pattern_info(pattern, &facts));
    for (size_t i = 0; i < facts.neighbours; i++) {
        hem_neighbour n;

        CHECK_OK(hem_pattern_neighbour(pattern, i, &n));
        CHECK(n.rank > last.rank && n.rank != hem_world_rank(world));
        CHECK(n.send_points + n.recv_points > 0);
        sums[0] += n.send_points;
        sums[1] += n.recv_points;
        last = n;
    }
    CHECK_STATUS(hem_pattern_neighbour(pattern, facts.neighbours, &last), HEM_ERR_RANGE);
    CHECK_EQ(facts.send_points, sums[0]);
    CHECK_EQ(facts.recv_points, sums[1]);
    CHECK_EQ(facts.dims, 1);
    while (1 << logarithm < hem_world_size(world))
        logarithm++;
    if (hem_world_size(world) > 16)
        CHECK(facts.setup_messages <= 3 * 2 * logarithm);
    CHECK(facts.setup_peak_bytes > sizeof *pattern && facts.setup_peak_bytes < 1u << 20);
    CHECK(facts.setup_ns > 0);
    CHECK_OK(hem_allreduce(world, sums, totals, 4, HEM_U64, HEM_SUM, LIMIT));
    CHECK_EQ(totals[0], totals[1]);
}

static void random_meshes(hem_world *world, uint64_t seed) {
    int me = hem_world_rank(world);
    struct mesh *mesh = malloc(sizeof *mesh);
    uint64_t rounds = (uint64_t)harness_rounds(24);

    for (uint64_t round = 0; round < rounds; round++) {
        struct part part = {.count = 0};
        hem_pattern *pattern = NULL;

        harness_step("round", round);
        make_mesh(mesh, hem_world_size(world), seed, round);
        make_part(&part, mesh, me, seed, round);
        CHECK_OK(build(world, part.domains, part.count, &pattern));
        check_pattern(world, pattern, &part, mesh);
        check_facts(world, pattern);
        CHECK_OK(hem_pattern_destroy(pattern));
        free_part(&part);
    }
    free(mesh);
}

/* Duplicates do no harm where they mean the same. */
static void named_twice(hem_world *world) {
    int me = hem_world_rank(world);
    int next = harness_right(world);
    int64_t points[] = {me, 1000 + next, 1000 + me};
    size_t halo[] = {1, 1, 1};
    int64_t halo_ids[] = {1000 + next, 1000 + next};
    hem_mesh_domain domain = {0, points, 3, halo, NULL, 3, NULL};
    hem_pattern_facts facts = {.struct_size = sizeof facts};
    hem_pattern *pattern = NULL;

    CHECK_OK(build(world, &domain, 1, &pattern));
    CHECK_OK(hem_pattern_info(pattern, &facts));
    CHECK_EQ(facts.recv_points + facts.local_points, 1);
    CHECK_OK(hem_pattern_destroy(pattern));
    if (hem_world_size(world) == 1)
        return; /* by ids, a point would be halo and its own owner */
    domain = (hem_mesh_domain){0, points, 3, NULL, halo_ids, 2, NULL};
    CHECK_OK(build(world, &domain, 1, &pattern));
    CHECK_OK(hem_pattern_info(pattern, &facts));
    CHECK_EQ(facts.recv_points + facts.local_points, 1);
    CHECK_OK(hem_pattern_destroy(pattern));
}

int rank_main(hem_world *world) {
    int me = hem_world_rank(world);
    int64_t points[] = {me, harness_right(world)};
    size_t halo[] = {1};
    hem_mesh_domain domain = {0, points, 2, halo, NULL, 1, NULL};
    hem_pattern *pattern = NULL;

    named_twice(world);
    random_meshes(world, harness_seed(world));
    /* A pattern outlives its world. */
    CHECK_OK(build(world, &domain, 1, &pattern));
    harness_close(world, HEM_OK);
    CHECK(pattern->world == NULL);
    CHECK_OK(hem_pattern_destroy(pattern));
    return 0;
}
