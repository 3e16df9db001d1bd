/*
 * A pattern of explicit lists has a link for each list, with the peer's domain, in the order of the
 * caller, on both sides the same. Lists that do not fit together are an error on all ranks that names
 * the two ranks, and the world works on.
 *
 * hem-test: ranks=1,2,3,5,8,17,40 modes=processes,threads timeout=60
 */
#include "harness.h"

#include "halo/pattern/pattern.h"

enum {
    DOMAINS = 3
};

/* The lists from one rank to another in a round: both can work them out. */
struct pair {
    size_t count;
    struct {
        size_t from;
        size_t to;
        size_t length;
    } lists[3];
};

static void make_pair(struct pair *pair, uint64_t seed, uint64_t round, int from, int to,
                      int size) {
    harness_rng rng = harness_rng_of(seed, round, (uint64_t)from * 1000 + (uint64_t)to);
    bool talks = from == to || (to - from + size) % size <= 2 || harness_below(&rng, 20) == 0;

    pair->count = talks ? harness_below(&rng, 4) : 0;
    for (size_t i = 0; i < pair->count; i++) {
        pair->lists[i].from = harness_below(&rng, DOMAINS);
        pair->lists[i].to = harness_below(&rng, DOMAINS);
        pair->lists[i].length = harness_below(&rng, 4);
    }
}

struct side {
    hem_point_list lists[4096];
    size_t count;
    int64_t points[4096][4];
};

static void add(struct side *side, int peer, size_t domain, size_t length) {
    hem_point_list *list = &side->lists[side->count];

    CHECK(side->count < 4096);
    *list = (hem_point_list){peer, domain, side->points[side->count], length};
    side->count++;
}

/* Sends of a rank, peers mixed; points may repeat. Receives take the next free point each. */
static void make_sides(struct side *sends, struct side *receives, const size_t *room, uint64_t seed,
                       uint64_t round, int me, int size) {
    harness_rng rng = harness_rng_of(seed, round, 77 + (uint64_t)me);
    size_t used[DOMAINS] = {0};
    struct pair pair;

    sends->count = receives->count = 0;
    for (size_t k = 0; k < 3; k++)
        for (int peer = size - 1; peer >= 0; peer--) {
            make_pair(&pair, seed, round, me, peer, size);
            if (k < pair.count) {
                add(sends, peer, pair.lists[k].from, pair.lists[k].length);
                for (size_t i = 0; i < pair.lists[k].length; i++)
                    sends->points[sends->count - 1][i] =
                        (int64_t)harness_below(&rng, room[pair.lists[k].from]);
            }
            make_pair(&pair, seed, round, peer, me, size);
            if (k < pair.count) {
                add(receives, peer, pair.lists[k].to, pair.lists[k].length);
                for (size_t i = 0; i < pair.lists[k].length; i++)
                    receives->points[receives->count - 1][i] =
                        (int64_t)(room[pair.lists[k].to] - 1 - used[pair.lists[k].to]++);
            }
        }
}

static hem_status build(hem_world *world, const size_t *room, const struct side *sends,
                        const struct side *receives, hem_pattern **pattern_p) {
    hem_explicit_options options = {.struct_size = sizeof options,
                                    .domain_points = room,
                                    .domain_count = DOMAINS,
                                    .sends = sends->lists,
                                    .send_count = sends->count,
                                    .receives = receives->lists,
                                    .receive_count = receives->count,
                                    .timeout_ns = LIMIT};

    return hem_pattern_explicit(world, &options, pattern_p);
}

/* The links are the lists that are not empty, ordered by peer and then as the caller had them. */
static void check_links(const hemi_links *links, const struct side *side, uint64_t seed,
                        uint64_t round, int me, int size, bool sends) {
    size_t next = 0;

    for (int peer = 0; peer < size; peer++) {
        struct pair pair = {0};
        size_t k = 0;

        make_pair(&pair, seed, round, sends ? me : peer, sends ? peer : me, size);
        for (size_t i = 0; i < side->count; i++) {
            const hem_point_list *list = &side->lists[i];

            if (list->peer != peer)
                continue;
            if (list->count > 0) {
                const hemi_link *link = &links->links[next];

                CHECK(next < links->count);
                CHECK_EQ(link->peer, peer);
                CHECK_EQ(link->here, list->domain);
                CHECK_EQ(link->there, sends ? pair.lists[k].to : pair.lists[k].from);
                CHECK_EQ(link->points.total, list->count);
                CHECK(memcmp(link->points.list, list->points, list->count * sizeof(int64_t)) == 0);
                next++;
            }
            k++;
        }
    }
    CHECK_EQ(next, links->count);
}

static void good_lists(hem_world *world, uint64_t seed, struct side *sides) {
    const size_t room[DOMAINS] = {2000, 3000, 4000};
    int me = hem_world_rank(world);
    int size = hem_world_size(world);

    for (uint64_t round = 0; round < 6; round++) {
        hem_pattern *pattern = NULL;
        hem_pattern_facts facts = {.struct_size = sizeof facts};

        harness_step("round", round);
        make_sides(&sides[0], &sides[1], room, seed, round, me, size);
        CHECK_OK(build(world, room, &sides[0], &sides[1], &pattern));
        check_links(&pattern->sends, &sides[0], seed, round, me, size, true);
        check_links(&pattern->recvs, &sides[1], seed, round, me, size, false);
        CHECK_OK(hem_pattern_info(pattern, &facts));
        CHECK_EQ(facts.domains, DOMAINS);
        CHECK_OK(hem_pattern_destroy(pattern));
    }
}

enum wrong {
    NOTHING,
    LENGTH,
    SEND_MORE,
    RECEIVE_MORE,
    RECEIVED_TWICE,
    POINT_RANGE,
    POINT_NEGATIVE,
    DOMAIN_RANGE,
    PEER_RANGE,
    NULL_LISTS,
    NULL_POINTS,
    WRONGS
};

static hem_status wrong_status(enum wrong wrong) {
    switch (wrong) {
    case NOTHING:
        return HEM_OK;
    case LENGTH:
    case SEND_MORE:
    case RECEIVE_MORE:
        return HEM_ERR_MISMATCH;
    case RECEIVED_TWICE:
    case NULL_LISTS:
    case NULL_POINTS:
        return HEM_ERR_ARG;
    default:
        return HEM_ERR_RANGE;
    }
}

/* Each rank sends points 0 and 1 to the next one, which receives them as 2 and 3. */
static hem_status build_wrong(hem_world *world, enum wrong wrong, hem_pattern **pattern_p) {
    int64_t points[] = {0, 1, 2, 3, 4};
    size_t room[] = {5};
    hem_point_list sends[] = {{harness_right(world), 0, points, 2},
                              {harness_right(world), 0, points, 1}};
    hem_point_list receives[] = {{harness_left(world), 0, points + 2, 2},
                                 {harness_left(world), 0, points + 4, 1}};
    hem_explicit_options options = {.struct_size = sizeof options,
                                    .domain_points = room,
                                    .domain_count = 1,
                                    .sends = sends,
                                    .send_count = wrong == SEND_MORE ? 2 : 1,
                                    .receives = receives,
                                    .receive_count = wrong == RECEIVE_MORE ? 2 : 1,
                                    .timeout_ns = LIMIT};

    if (wrong == LENGTH)
        sends[0].count = 1;
    if (wrong == RECEIVED_TWICE)
        points[3] = 2;
    if (wrong == POINT_RANGE)
        points[0] = 5;
    if (wrong == POINT_NEGATIVE)
        points[2] = -1;
    if (wrong == DOMAIN_RANGE)
        receives[0].domain = 1;
    if (wrong == PEER_RANGE)
        sends[0].peer = -1;
    if (wrong == NULL_LISTS)
        options.sends = NULL;
    if (wrong == NULL_POINTS)
        receives[0].points = NULL;
    return hem_pattern_explicit(world, &options, pattern_p);
}

static void wrong_lists(hem_world *world) {
    int size = hem_world_size(world);

    for (enum wrong wrong = NOTHING; wrong < WRONGS; wrong++)
        for (int culprit = 0; culprit<size; culprit += size> 4 ? size / 3 : 1) {
            hem_pattern *pattern = NULL;
            bool mine = hem_world_rank(world) == culprit;

            harness_step("wrong lists", (uint64_t)wrong);
            CHECK_STATUS(build_wrong(world, mine ? wrong : NOTHING, &pattern), wrong_status(wrong));
            if (wrong != NOTHING)
                CHECK_NAMES_RANK(culprit);
            if (wrong == LENGTH || wrong == SEND_MORE)
                CHECK_NAMES_RANK((culprit + 1) % size);
            if (wrong == RECEIVE_MORE)
                CHECK_NAMES_RANK((culprit + size - 1) % size);
            CHECK_EQ(pattern != NULL, wrong == NOTHING);
            CHECK_OK(hem_pattern_destroy(pattern));
        }
}

int rank_main(hem_world *world) {
    struct side *sides = malloc(2 * sizeof *sides);
    hem_pattern *pattern = NULL;

    CHECK(sides != NULL);
    CHECK_STATUS(hem_pattern_explicit(NULL, NULL, &pattern), HEM_ERR_ARG);
    CHECK_STATUS(hem_pattern_explicit(world, NULL, NULL), HEM_ERR_ARG);
    wrong_lists(world);
    good_lists(world, harness_seed(world), sides);
    free(sides);
    harness_close(world, HEM_OK);
    return 0;
}
