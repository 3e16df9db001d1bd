#include "draw_pattern.h"

#include "say.h"

#include <stdlib.h>
#include <string.h>

/* What all ranks share. Each writes only what is its own. */
typedef struct job {
    const hemt_drawing *drawing;
    char **reports;      /* of each rank, if it is to print */
    char (*errors)[512]; /* of each rank */
} job;

static hem_status make_grid(const job *j, hem_world *world, hem_pattern **pattern_p) {
    int rank = hem_world_rank(world);
    hem_grid_domain domain = {.id = rank};
    hem_grid_options options = j->drawing->grid;
    hem_status status = hem_grid_part(&j->drawing->cut, rank, &domain.box);
    options.domains = &domain;
    options.domain_count = status == HEM_OK;
    return hem_pattern_grid(world, &options, pattern_p);
}

static hem_status make_mesh(hem_world *world, const mesh_share *share, hem_pattern **pattern_p) {
    size_t halo_count = share->count - share->own;
    size_t *halo = calloc(halo_count + 1, sizeof *halo);
    for (size_t i = 0; halo != NULL && i < halo_count; i++)
        halo[i] = share->own + i;
    hem_mesh_domain domain = {.id = hem_world_rank(world),
                              .points = share->points,
                              .count = share->count,
                              .halo = halo,
                              .halo_count = halo_count};
    hem_mesh_options options = {
        .struct_size = sizeof options, .domains = &domain, .domain_count = 1};
    hem_status status = hem_pattern_mesh(world, &options, pattern_p);
    free(halo);
    return status;
}

static hem_status print(const hem_pattern *pattern, char **report_p) {
    size_t size = 0;
    FILE *file = open_memstream(report_p, &size);
    if (file == NULL)
        return HEM_ERR_MEMORY;
    hem_status status = hem_pattern_print(pattern, file);
    return fclose(file) == 0 ? status : HEM_ERR_MEMORY;
}

/* Check and draw. The pattern must be right, or a picture of it would be of no use. */
static hem_status show(const job *j, int rank, const hem_pattern *pattern,
                       const double *const *coordinates) {
    const hemt_drawing *d = j->drawing;
    hem_draw_options options = {
        .struct_size = sizeof options, .coordinates = coordinates, .title = d->title};
    hem_status status = hem_pattern_validate(pattern, HEM_FOREVER);
    if (status == HEM_OK && d->print)
        status = print(pattern, &j->reports[rank]);
    if (status == HEM_OK)
        status = hem_pattern_draw(pattern, d->output, &options);
    return status;
}

static hem_status draw_mesh(const job *j, hem_world *world) {
    const gmsh_mesh *mesh = &j->drawing->mesh;
    int rank = hem_world_rank(world);
    hem_pattern *pattern = NULL;
    mesh_share share = {0};
    if (!mesh_share_make(mesh, j->drawing->part_of, rank, &share))
        return HEM_ERR_MEMORY;
    double *xy = calloc(2 * share.count + 1, sizeof *xy);
    const double *coordinates[1] = {xy};
    hem_status status = xy != NULL ? make_mesh(world, &share, &pattern) : HEM_ERR_MEMORY;
    for (size_t i = 0; xy != NULL && i < share.count; i++)
        memcpy(xy + 2 * i, mesh->points[share.points[i]], 2 * sizeof *xy);
    if (status == HEM_OK)
        status = show(j, rank, pattern, coordinates);
    (void)hem_pattern_destroy(pattern);
    free(xy);
    mesh_share_free(&share);
    return status;
}

static hem_status draw_grid(const job *j, hem_world *world) {
    hem_pattern *pattern = NULL;
    hem_status status = make_grid(j, world, &pattern);
    if (status == HEM_OK)
        status = show(j, hem_world_rank(world), pattern, NULL);
    (void)hem_pattern_destroy(pattern);
    return status;
}

static int run_rank(hem_world *world, void *arg) {
    const job *j = arg;
    int rank = hem_world_rank(world);
    hem_status status = j->drawing->part_of != NULL ? draw_mesh(j, world) : draw_grid(j, world);
    if (status != HEM_OK)
        (void)snprintf(j->errors[rank], sizeof j->errors[rank], "%s", hem_last_error());
    if (status != HEM_OK && j->errors[rank][0] == '\0')
        (void)snprintf(j->errors[rank], sizeof j->errors[rank], "%s", hem_status_name(status));
    (void)hem_world_close(world);
    return status != HEM_OK;
}

static int tell(const job *j, hem_status status) {
    if (status == HEM_OK) {
        for (int r = 0; r < j->drawing->ranks; r++)
            if (j->reports[r] != NULL)
                (void)fputs(j->reports[r], stdout);
        return fflush(stdout) == 0 ? EXIT_SUCCESS : HEMT_EXIT_FAILED;
    }
    const char *why = hem_last_error();
    for (int r = 0; r < j->drawing->ranks; r++)
        if (j->errors[r][0] != '\0') {
            why = j->errors[r];
            break;
        }
    hemt_say("draw", "%s", why);
    return HEMT_EXIT_FAILED;
}

int hemt_draw_pattern(const hemt_drawing *drawing) {
    size_t ranks = (size_t)drawing->ranks;
    job j = {drawing, calloc(ranks, sizeof(char *)), calloc(ranks, sizeof *j.errors)};
    int code = HEMT_EXIT_FAILED;
    if (j.reports != NULL && j.errors != NULL)
        code = tell(&j, hem_world_threads(drawing->ranks, run_rank, &j, NULL));
    else
        hemt_say("draw", "no memory for %d ranks", drawing->ranks);
    for (size_t r = 0; j.reports != NULL && r < ranks; r++)
        free(j.reports[r]);
    free(j.reports);
    free(j.errors);
    return code;
}
