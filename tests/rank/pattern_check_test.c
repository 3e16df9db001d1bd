/*
 * hem-test: ranks=1,2,3,5,17 modes=processes,threads timeout=60
 *
 * A pattern that is right passes hem_pattern_validate. If a link of one rank is spoilt afterwards,
 * in any way, all ranks get HEM_ERR_MISMATCH, and the sentence says what it is; then it passes again
 * once that is undone. What it prints about itself is there.
 */
#include "halo/pattern/pattern.h"
#include "harness.h"

#define SIDE 12

static hem_pattern *make_grid(hem_world *world) {
    int64_t extent[2] = {SIDE, SIDE + 5};
    hem_grid_cut cut;
    hem_grid_domain domain = {.id = hem_world_rank(world)};
    hem_pattern *pattern;
    CHECK_OK(hem_grid_balance(2, extent, hem_world_size(world), &cut));
    CHECK_OK(hem_grid_part(&cut, hem_world_rank(world), &domain.box));
    hem_grid_options options = {.struct_size = sizeof options,
                                .dims = 2,
                                .extent = {extent[0], extent[1]},
                                .periodic = {true, false},
                                .halo_low = {1, 2},
                                .halo_high = {2, 1},
                                .domains = &domain,
                                .domain_count = 1};
    CHECK_OK(hem_pattern_grid(world, &options, &pattern));
    return pattern;
}

/* A ring of 4 points per rank, and one more of each neighbour, stored in front and at the end. */
static hem_pattern *make_mesh(hem_world *world) {
    int64_t ranks = hem_world_size(world);
    int64_t rank = hem_world_rank(world);
    int64_t points[6];
    size_t halo[2] = {0, 5};
    hem_pattern *pattern;
    for (int64_t i = 0; i < 6; i++)
        points[i] = (4 * rank + i - 1 + 4 * ranks) % (4 * ranks);
    hem_mesh_domain domain = {.id = 100 + rank, .points = points, .count = 6};
    if (ranks > 1) {
        domain.halo = halo;
        domain.halo_count = 2;
    } else {
        domain.points = points + 1;
        domain.count = 4;
    }
    hem_mesh_options options = {
        .struct_size = sizeof options, .domains = &domain, .domain_count = 1};
    CHECK_OK(hem_pattern_mesh(world, &options, &pattern));
    return pattern;
}

static hem_pattern *make_sphere(hem_world *world) {
    hem_sphere_domain domains[6];
    hem_pattern *pattern;
    hem_sphere_options options = {
        .struct_size = sizeof options, .cells = 4, .halo = 2, .domains = domains};
    for (int panel = 0; panel < 6; panel++)
        if (panel % hem_world_size(world) == hem_world_rank(world))
            domains[options.domain_count++] = (hem_sphere_domain){panel, panel, {{0, 0}, {4, 4}}};
    CHECK_OK(hem_pattern_sphere(world, &options, &pattern));
    return pattern;
}

/* All ranks must hear of it, and be fine again without. */
static void check_spoilt(const hem_pattern *pattern, const char *sentence) {
    CHECK_STATUS(hem_pattern_validate(pattern, LIMIT), HEM_ERR_MISMATCH);
    CHECK_SENTENCE(sentence);
}

static void spoil_grid(hem_pattern *pattern, bool mine) {
    hemi_link *recv = &pattern->recvs.links[0];
    hemi_link *send = &pattern->sends.links[0];
    hemi_link kept = mine ? *recv : (hemi_link){0};
    harness_step("a halo that leaves the domain", 0);
    if (mine)
        recv->points.start[0] -= 3;
    check_spoilt(pattern, "not in the halo");
    if (mine) {
        *recv = kept;
        recv->sides ^= 1;
    }
    harness_step("other sides", 0);
    check_spoilt(pattern, "different points");
    if (mine) {
        *recv = kept;
        kept = *send;
        send->points.start[1] = pattern->domains[0].box.count[1];
    }
    harness_step("points that nobody owns", 0);
    check_spoilt(pattern, "not owned here");
    if (mine) {
        *send = kept;
        pattern->holes++;
    }
    harness_step("a halo point too few", 0);
    check_spoilt(pattern, "halo points");
    if (mine)
        pattern->holes--;
    harness_step("all is well", 0);
    CHECK_OK(hem_pattern_validate(pattern, LIMIT));
}

static void spoil_mesh(hem_pattern *pattern, bool mine) {
    hemi_link *recv = &pattern->recvs.links[0];
    hemi_link *send = &pattern->sends.links[0];
    int64_t kept = mine ? recv->points.list[0] : 0;
    harness_step("a point that does not exist is written", 0);
    if (mine)
        recv->points.list[0] = 6;
    check_spoilt(pattern, "not in the halo");
    if (mine) {
        recv->points.list[0] = kept;
        kept = send->points.list[0];
        send->points.list[0] = 0;
    }
    harness_step("a halo point is sent", 0);
    check_spoilt(pattern, "as if it were owned");
    if (mine) {
        send->points.list[0] = kept;
        pattern->sends.count--;
    }
    harness_step("a link is missing", 0);
    check_spoilt(pattern, "link");
    if (mine)
        pattern->sends.count++;
    harness_step("all is well", 0);
    CHECK_OK(hem_pattern_validate(pattern, LIMIT));
}

static void check_print(const hem_pattern *pattern, const char *part) {
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    CHECK(file != NULL);
    CHECK_OK(hem_pattern_print(pattern, file));
    CHECK(fclose(file) == 0);
    if (strstr(text, part) == NULL || strstr(text, "set-up: ") == NULL)
        harness_fail(__FILE__, __LINE__, "\"%s\" is not in:\n%s", part, text);
    free(text);
    CHECK_STATUS(hem_pattern_print(pattern, NULL), HEM_ERR_ARG);
}

static void check_draw(hem_world *world, const hem_pattern *grid, const hem_pattern *mesh,
                       const hem_pattern *sphere) {
    static const double none[12] = {0};
    const double *coordinates[1] = {none};
    hem_draw_options options = {.struct_size = sizeof options};
    CHECK_STATUS(hem_pattern_draw(sphere, "/dev/null", NULL), HEM_ERR_UNSUPPORTED);
    CHECK_STATUS(hem_pattern_draw(mesh, "/dev/null", NULL), HEM_ERR_ARG);
    CHECK_SENTENCE("coordinates");
    /* Only rank 0 writes, but all hear if it cannot. */
    const char *path = hem_world_rank(world) == 0 ? "/nowhere/at/all.svg" : "/dev/null";
    CHECK_STATUS(hem_pattern_draw(grid, path, &options), HEM_ERR_SYSTEM);
    CHECK_SENTENCE("/nowhere/at/all.svg");
    CHECK_STATUS(hem_pattern_draw(grid, "/dev/full", &options), HEM_ERR_SYSTEM);
    CHECK_OK(hem_pattern_draw(grid, "/dev/null", &options));
    options.coordinates = coordinates;
    CHECK_OK(hem_pattern_draw(mesh, "/dev/null", &options));
}

int rank_main(hem_world *world) {
    bool mine = hem_world_rank(world) == hem_world_size(world) / 2;
    hem_pattern *grid = make_grid(world);
    hem_pattern *mesh = make_mesh(world);
    hem_pattern *sphere = make_sphere(world);
    CHECK_OK(hem_pattern_validate(grid, LIMIT));
    CHECK_OK(hem_pattern_validate(mesh, LIMIT));
    CHECK_OK(hem_pattern_validate(sphere, LIMIT));
    spoil_grid(grid, mine);
    if (hem_world_size(world) > 1)
        spoil_mesh(mesh, mine);
    check_print(grid, "grid of 12 periodic (halo 1 below, 2 above) x 17 (halo 2 below, 1 above)");
    check_print(mesh, "points stored, ");
    check_print(sphere, "cubed sphere of 6 x 4 x 4 points, halo 2");
    check_draw(world, grid, mesh, sphere);
    CHECK_STATUS(hem_pattern_validate(NULL, LIMIT), HEM_ERR_ARG);
    CHECK_OK(hem_pattern_destroy(mesh));
    CHECK_OK(hem_pattern_destroy(sphere));
    harness_close(world, HEM_OK);
    CHECK_STATUS(hem_pattern_validate(grid, LIMIT), HEM_ERR_CLOSED);
    CHECK_OK(hem_pattern_destroy(grid));
    return 0;
}
