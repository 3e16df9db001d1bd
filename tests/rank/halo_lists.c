/* Explicit lists between random domains; see halo_kit.h. */
#include "halo_kit.h"

enum {
    DOMAINS = 3
};

static int64_t key_of(int rank, size_t domain, int64_t point) {
    return ((int64_t)rank * DOMAINS + (int64_t)domain) << 30 | point;
}

/* The first half of each domain is owned, the other half waits to be received. */
static halo_case make_domains(int ranks, size_t points, harness_rng *rng) {
    halo_case c = {.ranks = ranks};

    for (int rank = 0; rank < ranks; rank++) {
        size_t domains = harness_below(rng, DOMAINS + 1);

        for (size_t k = 0; k < domains; k++) {
            int64_t half = 1 + (int64_t)harness_below(rng, points);
            int64_t all = 2 * half;
            halo_domain *d = halo_case_add(&c, rank, 1, &all);

            for (int64_t i = 0; i < half; i++)
                d->cells[i] = (halo_cell){.key = key_of(rank, k, i), .kind = HALO_OWN, .owner = -1};
        }
    }
    return c;
}

/* Fill the next free cells of a domain from random points of another. */
static halo_list make_list(const halo_domain *from, halo_domain *to, harness_rng *rng) {
    halo_list l = {.from = from->rank, .to = to->rank, .there = from->index, .here = to->index};
    size_t half = to->count / 2;
    size_t at = half;
    size_t stride = 1 + harness_below(rng, 3);

    l.sent = malloc((half + 1) * sizeof *l.sent);
    l.received = malloc((half + 1) * sizeof *l.received);
    CHECK(l.sent && l.received);
    for (size_t wanted = harness_below(rng, half + 1); wanted && at < to->count; at += stride) {
        int64_t point = (int64_t)harness_below(rng, from->count / 2);

        if (to->cells[at].kind != HALO_NONE)
            continue;
        to->cells[at] =
            (halo_cell){.key = from->cells[point].key, .owner = from->rank, .kind = HALO_COPY};
        l.sent[l.count] = point;
        l.received[l.count++] = (int64_t)at;
        wanted--;
    }
    return l;
}

halo_lists halo_lists_random(size_t points, size_t most, int ranks, halo_case *c_p,
                             harness_rng *rng) {
    halo_case c = make_domains(ranks, points, rng);
    halo_lists lists = {.count = c.count ? harness_below(rng, most) : 0};

    lists.all = calloc(lists.count + 1, sizeof *lists.all);
    CHECK(lists.all != NULL);
    for (size_t i = 0; i < lists.count; i++)
        lists.all[i] = make_list(&c.domains[harness_below(rng, c.count)],
                                 &c.domains[harness_below(rng, c.count)], rng);
    *c_p = c;
    return lists;
}

void halo_lists_free(halo_lists *lists) {
    for (size_t i = 0; i < lists->count; i++) {
        free(lists->all[i].sent);
        free(lists->all[i].received);
    }
    free(lists->all);
    *lists = (halo_lists){0};
}

/* The lists of one side, in the order of all, which is the same for both. */
static hem_point_list *side_of(const halo_lists *all, int me, bool sends, size_t *count_p) {
    hem_point_list *lists = calloc(all->count + 1, sizeof *lists);
    size_t n = 0;

    CHECK(lists != NULL);
    for (size_t i = 0; i < all->count; i++) {
        const halo_list *l = &all->all[i];

        if ((sends ? l->from : l->to) != me)
            continue;
        lists[n].peer = sends ? l->to : l->from;
        lists[n].domain = sends ? l->there : l->here;
        lists[n].points = sends ? l->sent : l->received;
        lists[n++].count = l->count;
    }
    *count_p = n;
    return lists;
}

hem_pattern *halo_lists_pattern(hem_world *world, const halo_lists *lists, const halo_case *c) {
    int me = hem_world_rank(world);
    size_t points[DOMAINS] = {0};
    hem_explicit_options o = {.struct_size = sizeof o, .domain_points = points};
    hem_pattern *pattern = NULL;
    halo_domain *mine;
    hem_point_list *sends = side_of(lists, me, true, &o.send_count);
    hem_point_list *receives = side_of(lists, me, false, &o.receive_count);

    o.domain_count = halo_case_of(c, me, &mine);
    for (size_t i = 0; i < o.domain_count; i++)
        points[i] = mine[i].count;
    o.sends = sends;
    o.receives = receives;
    CHECK_OK(hem_pattern_explicit(world, &o, &pattern));
    free(sends);
    free(receives);
    CHECK(pattern != NULL);
    halo_check_facts(c, world, pattern);
    return pattern;
}
