/*
 * An exchange over explicit lists moves the k-th point of each list that a rank sends to the k-th
 * point of the list that its peer receives it with, and changes nothing else. Lists may be empty,
 * name a point of the sender twice, go to the rank itself, and there may be many per pair.
 *
 * hem-test: ranks=1,2,3,4,5,8 modes=processes,threads timeout=60
 */
#include "halo_kit.h"

enum {
    MOST_LISTS = 200,
    DOMAINS = 3
};

/* One list: from a domain of one rank to a domain of another. */
struct list {
    int from;
    int to;
    size_t there;
    size_t here;
    size_t count;
    int64_t *sent;
    int64_t *received;
};

struct plan {
    halo_case c;
    struct list lists[MOST_LISTS];
    size_t count;
    size_t points[DOMAINS]; /**< of this rank's domains */
};

static int64_t key_of(int rank, size_t domain, int64_t point) {
    return ((int64_t)rank * DOMAINS + (int64_t)domain) << 30 | point;
}

/* The first half of each domain is owned, the other half waits to be received. */
static void make_domains(struct plan *p, int ranks, int me, harness_rng *rng) {
    p->c.ranks = ranks;
    for (int rank = 0; rank < ranks; rank++) {
        size_t domains = harness_below(rng, DOMAINS + 1);

        for (size_t k = 0; k < domains; k++) {
            int64_t half = 1 + (int64_t)harness_below(rng, 200);
            int64_t all = 2 * half;
            halo_domain *d = halo_case_add(&p->c, rank, 1, &all);

            if (rank == me)
                p->points[k] = (size_t)all;
            for (int64_t i = 0; i < half; i++)
                d->cells[i] = (halo_cell){.key = key_of(rank, k, i), .kind = HALO_OWN, .owner = -1};
        }
    }
}

/* Fill the next free cells of a domain from random points of another. */
static void add_list(struct plan *p, halo_domain *from, halo_domain *to, harness_rng *rng) {
    struct list *l = &p->lists[p->count++];
    size_t half = to->count / 2;
    size_t at = half;
    size_t stride = 1 + harness_below(rng, 3);

    *l = (struct list){from->rank, to->rank, from->index, to->index, 0, NULL, NULL};
    l->sent = malloc((half + 1) * sizeof *l->sent);
    l->received = malloc((half + 1) * sizeof *l->received);
    CHECK(l->sent && l->received);
    for (size_t wanted = harness_below(rng, half + 1); wanted && at < to->count; at += stride) {
        int64_t point = (int64_t)harness_below(rng, from->count / 2);

        if (to->cells[at].kind != HALO_NONE)
            continue;
        to->cells[at] =
            (halo_cell){.key = from->cells[point].key, .owner = from->rank, .kind = HALO_COPY};
        l->sent[l->count] = point;
        l->received[l->count++] = (int64_t)at;
        wanted--;
    }
}

/* The lists of one side, in the order of the plan, which is the same for both. */
static hem_point_list *side_of(const struct plan *p, int me, bool sends, size_t *count_p) {
    hem_point_list *lists = calloc(p->count + 1, sizeof *lists);
    size_t n = 0;

    CHECK(lists != NULL);
    for (size_t i = 0; i < p->count; i++) {
        const struct list *l = &p->lists[i];

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

static hem_pattern *make_pattern(hem_world *world, const struct plan *p) {
    int me = hem_world_rank(world);
    hem_explicit_options o = {.struct_size = sizeof o, .domain_points = p->points};
    hem_pattern *pattern = NULL;
    halo_domain *mine;
    hem_point_list *sends = side_of(p, me, true, &o.send_count);
    hem_point_list *receives = side_of(p, me, false, &o.receive_count);

    o.domain_count = halo_case_of(&p->c, me, &mine);
    o.sends = sends;
    o.receives = receives;
    CHECK_OK(hem_pattern_explicit(world, &o, &pattern));
    free(sends);
    free(receives);
    CHECK(pattern != NULL);
    halo_check_facts(&p->c, world, pattern);
    return pattern;
}

static void make_lists(struct plan *p, harness_rng *rng) {
    size_t wanted = p->c.count ? harness_below(rng, MOST_LISTS) : 0;

    for (size_t i = 0; i < wanted; i++)
        add_list(p, &p->c.domains[harness_below(rng, p->c.count)],
                 &p->c.domains[harness_below(rng, p->c.count)], rng);
}

static void one(hem_world *world, uint64_t seed, uint64_t number) {
    harness_rng rng = harness_rng_of(seed, number, 0);
    harness_rng own = harness_rng_of(seed, number, 1 + (uint64_t)hem_world_rank(world));
    struct plan *p = calloc(1, sizeof *p);
    halo_set s = {.world = world};
    halo_spec spec = halo_spec_random(&rng, 5);
    hem_pattern *pattern;
    hem_exchange *exchange;

    CHECK(p != NULL);
    make_domains(p, hem_world_size(world), hem_world_rank(world), &rng);
    make_lists(p, &rng);
    pattern = make_pattern(world, p);
    halo_set_add(&s, pattern, &p->c, &spec, (int)harness_below(&own, HALO_LAYOUTS),
                 (int)harness_below(&own, HALO_MEMORIES), &own);
    exchange = halo_set_exchange(&s);
    CHECK_OK(hem_pattern_validate(pattern, LIMIT));
    hem_pattern_destroy(pattern);
    for (uint64_t round = 0; round < 3; round++)
        halo_set_run(&s, exchange, NULL, round);
    CHECK_OK(hem_exchange_destroy(exchange));
    halo_set_free(&s);
    halo_case_free(&p->c);
    for (size_t i = 0; i < p->count; i++) {
        free(p->lists[i].sent);
        free(p->lists[i].received);
    }
    free(p);
}

int rank_main(hem_world *world) {
    uint64_t seed = harness_seed(world);

    for (int i = 0; i < harness_rounds(100); i++) {
        harness_step("lists", (uint64_t)i);
        one(world, seed, (uint64_t)i);
    }
    harness_close(world, HEM_OK);
    return 0;
}
