/*
 * What ranks pass of a mesh that is bad or does not fit together is the same error on all of them, with
 * a sentence that names the point and the ranks, and the world works on.
 *
 * hem-test: ranks=1,2,3,4,8,17 modes=processes,threads timeout=60
 */
#include "harness.h"

/* A ring of ranks, each with three points of its own and one of the next rank; then something wrong. */
enum wrong {
    NOTHING,
    NOBODY,
    TWO_RANKS,
    TWICE_HERE,
    NEGATIVE,
    POSITION,
    HALO_ID,
    OWNER_RANGE,
    OWNER_WRONG,
    OWNER_SOME,
    NULL_POINTS,
    NULL_HALO,
    NULL_DOMAINS,
    COUNT_OVERFLOW,
    BAD_SIZE,
    BAD_TIMEOUT,
    WRONGS
};

static hem_status wrong_status(enum wrong wrong) {
    switch (wrong) {
    case NOTHING:
        return HEM_OK;
    case NOBODY:
    case TWO_RANKS:
    case TWICE_HERE:
    case OWNER_WRONG:
    case OWNER_SOME:
        return HEM_ERR_MISMATCH;
    case NEGATIVE:
    case POSITION:
    case HALO_ID:
    case OWNER_RANGE:
    case COUNT_OVERFLOW:
        return HEM_ERR_RANGE;
    default:
        return HEM_ERR_ARG;
    }
}

static hem_status build_wrong(hem_world *world, enum wrong wrong, bool culprit,
                              hem_pattern **pattern_p) {
    int me = hem_world_rank(world);
    int next = harness_right(world);
    int64_t points[4] = {3 * me, 3 * me + 1, 3 * me + 2, 3 * next};
    size_t halo[] = {3};
    int64_t halo_ids[] = {3 * next};
    int owners[] = {next};
    hem_mesh_domain domain = {7, points, 4, halo, halo_ids, 1, NULL};
    hem_mesh_options options = {
        .struct_size = sizeof options, .domains = &domain, .domain_count = 1, .timeout_ns = LIMIT};

    if (wrong == OWNER_WRONG || wrong == OWNER_RANGE)
        domain.halo_owners = owners;
    if (!culprit)
        return hem_pattern_mesh(world, &options, pattern_p);
    if (wrong == NOBODY || wrong == OWNER_WRONG)
        points[3] = 4000000000;
    if (wrong == TWO_RANKS)
        points[1] = 3 * next + 2;
    if (wrong == TWICE_HERE)
        points[1] = points[0];
    if (wrong == NEGATIVE)
        points[1] = -5;
    if (wrong == POSITION)
        halo[0] = 4;
    if (wrong == HALO_ID) {
        domain.halo = NULL;
        halo_ids[0] = 4000000000;
    }
    if (wrong == OWNER_RANGE)
        owners[0] = hem_world_size(world);
    if (wrong == OWNER_SOME)
        domain.halo_owners = owners;
    if (wrong == NULL_POINTS)
        domain.points = NULL;
    if (wrong == NULL_HALO)
        domain.halo = NULL, domain.halo_ids = NULL;
    if (wrong == NULL_DOMAINS)
        options.domains = NULL;
    if (wrong == COUNT_OVERFLOW)
        domain.count = SIZE_MAX / 2;
    if (wrong == BAD_SIZE)
        options.struct_size = 3;
    if (wrong == BAD_TIMEOUT)
        options.timeout_ns = -7;
    return hem_pattern_mesh(world, &options, pattern_p);
}

static void check_named(enum wrong wrong, int culprit, int size) {
    char text[64];

    if (wrong == NOBODY || wrong == OWNER_WRONG)
        CHECK_SENTENCE("point 4000000000");
    if (wrong == NOBODY || wrong == OWNER_WRONG || wrong == TWO_RANKS || wrong == TWICE_HERE ||
        wrong == NEGATIVE || wrong == POSITION)
        CHECK_NAMES_RANK(culprit);
    if (wrong == TWO_RANKS) {
        snprintf(text, sizeof text, "point %d ", 3 * ((culprit + 1) % size) + 2);
        CHECK_SENTENCE(text);
        CHECK_NAMES_RANK((culprit + 1) % size);
    }
}

static void wrong_input(hem_world *world) {
    int me = hem_world_rank(world);
    int size = hem_world_size(world);

    for (enum wrong wrong = NOTHING; wrong < WRONGS; wrong++)
        for (int culprit = 0; culprit<size; culprit += size> 4 ? size / 2 : 1) {
            hem_pattern *pattern = NULL;
            /* Alone, all is said by the same rank. */
            bool fits = wrong == OWNER_SOME && size == 1;

            harness_step("wrong input", (uint64_t)wrong);
            CHECK_STATUS(build_wrong(world, wrong, me == culprit, &pattern),
                         fits ? HEM_OK : wrong_status(wrong));
            check_named(wrong, culprit, size);
            CHECK_EQ(pattern != NULL, wrong == NOTHING || fits);
            CHECK_OK(hem_pattern_destroy(pattern));
        }
}

static void refused(hem_world *world) {
    hem_pattern_facts facts = {.struct_size = 0};
    hem_pattern *pattern = NULL;

    CHECK_STATUS(hem_pattern_mesh(NULL, NULL, &pattern), HEM_ERR_ARG);
    CHECK_STATUS(hem_pattern_mesh(world, NULL, NULL), HEM_ERR_ARG);
    CHECK_STATUS(hem_pattern_info(NULL, &facts), HEM_ERR_ARG);
    CHECK_OK(hem_pattern_mesh(world, NULL, &pattern)); /* nobody has anything */
    CHECK_STATUS(hem_pattern_info(pattern, &facts), HEM_ERR_ARG);
    CHECK_STATUS(hem_pattern_info(pattern, NULL), HEM_ERR_ARG);
    CHECK_STATUS(hem_pattern_neighbour(pattern, 0, NULL), HEM_ERR_ARG);
    CHECK_STATUS(hem_pattern_neighbour(NULL, 0, NULL), HEM_ERR_ARG);
    CHECK_OK(hem_pattern_destroy(pattern));
    CHECK_OK(hem_pattern_destroy(NULL));
}

int rank_main(hem_world *world) {
    refused(world);
    wrong_input(world);
    harness_close(world, HEM_OK);
    return 0;
}
