/*
 * A mesh that is split over ranks: `hem run -n 4 mesh examples/data/plate.msh`.
 *
 * The file is one of Gmsh, format 2 or 4, ASCII; the reader and the cutting are in tools/mesh. A
 * number lies on every point. In each step it becomes the average of the numbers at the corners of
 * all cells around the point, so that what was only at one end spreads.
 *
 * How this works: every point is owned by one rank. A rank stores the points that it owns, and
 * behind them, as its halo, every other point of the cells around them. It tells the pattern the
 * global number of each point that it stores, and which are halo; who owns those, the pattern finds
 * out. An exchange binds the pattern to the memory of the numbers. Then a step is
 *
 *   1. a run of the exchange, which brings the owners' numbers into the halos,
 *   2. the averages of the own points, which need nobody else.
 *
 * While a run is under way, one could compute the points that have no halo point near them: see
 * hem_exchange_start and hem_exchange_finish.
 *
 * In the end each rank does all steps with the whole mesh by itself. Since it adds up in the order of
 * the cells in the file, as it did before, every bit must be the same.
 */
#include "mesh/share.h"

#include <hem/hem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    STEPS = 100
};

struct job {
    hem_world *world;
    int rank;
    gmsh_mesh mesh;
    mesh_share share; /* the points that this rank stores */
    size_t *places;   /* of each point of the mesh among them; or SIZE_MAX */
    double *values;   /* of those points */
    double *sums;     /* room for one step */
    size_t *counts;   /* the same */
};

static void fail(const struct job *job, const char *what, const char *why) {
    fprintf(stderr, "mesh: rank %d: %s: %s\n", job->rank, what, why);
    exit(1);
}

/* A rank that exits without closing the world is dead to the others: their waits end too. */
static void check(const struct job *job, hem_status status) {
    if (status != HEM_OK)
        fail(job, hem_status_name(status), hem_last_error());
}

static void *allocate(const struct job *job, size_t count, size_t size) {
    void *memory = calloc(count + 1, size);

    if (!memory)
        fail(job, "no memory", "calloc");
    return memory;
}

/* All ranks read the file and cut it alike; each keeps what is its own. */
static void read_mesh(struct job *job, const char *path) {
    char why[256];

    if (!gmsh_read(path, &job->mesh, why, sizeof why))
        fail(job, path, why);
    int *part_of = allocate(job, job->mesh.point_count, sizeof *part_of);

    if (!mesh_bisect(&job->mesh, hem_world_size(job->world), part_of) ||
        !mesh_share_make(&job->mesh, part_of, job->rank, &job->share))
        fail(job, path, "no memory");
    free(part_of);
    job->places = allocate(job, job->mesh.point_count, sizeof *job->places);
    memset(job->places, 0xff, job->mesh.point_count * sizeof *job->places);
    for (size_t i = 0; i < job->share.count; i++)
        job->places[job->share.points[i]] = i;
}

static hem_pattern *make_pattern(const struct job *job) {
    size_t halo_count = job->share.count - job->share.own;
    size_t *halo = allocate(job, halo_count, sizeof *halo);
    hem_pattern *pattern;

    for (size_t i = 0; i < halo_count; i++)
        halo[i] = job->share.own + i;
    hem_mesh_domain domain = {
        .id = job->rank,
        .points = job->share.points,
        .count = job->share.count,
        .halo = halo,
        .halo_count = halo_count,
    };
    hem_mesh_options options = {
        .struct_size = sizeof options,
        .domains = &domain,
        .domain_count = 1,
    };
    check(job, hem_pattern_mesh(job->world, &options, &pattern));
    free(halo);
    return pattern;
}

static hem_exchange *make_exchange(const struct job *job, const hem_pattern *pattern) {
    hem_binding binding = {
        .pattern = pattern,
        .field =
            {
                .struct_size = sizeof binding.field,
                .memory = job->values,
                .bytes = job->share.count * sizeof *job->values,
                .dtype = HEM_F64,
            },
    };
    hem_exchange_options options = {
        .struct_size = sizeof options,
        .bindings = &binding,
        .count = 1,
    };
    hem_exchange *exchange;

    check(job, hem_exchange_create(job->world, &options, &exchange));
    return exchange;
}

/* What a point has in the beginning: it is warm on the left. */
static double first_value(const gmsh_mesh *mesh, size_t point) {
    return mesh->points[point][0] < 0.5 ? 100 : 0;
}

/*
 * One step for the first `own` points. With `places`, those are a rank's; a cell that has none of
 * them may have corners that are not stored here, and does not matter.
 */
static void smooth(struct job *job, double *values, const size_t *places, size_t own) {
    const gmsh_mesh *mesh = &job->mesh;

    memset(job->sums, 0, own * sizeof *job->sums);
    memset(job->counts, 0, own * sizeof *job->counts);
    for (size_t c = 0; c < mesh->cell_count; c++) {
        size_t first = mesh->first[c];
        size_t end = mesh->first[c + 1];
        double sum = 0;
        bool whole = true;

        for (size_t i = first; i < end && whole; i++) {
            size_t at = places ? places[mesh->corners[i]] : mesh->corners[i];

            whole = at != SIZE_MAX;
            sum += whole ? values[at] : 0;
        }
        for (size_t i = first; i < end && whole; i++) {
            size_t at = places ? places[mesh->corners[i]] : mesh->corners[i];

            if (at < own) {
                job->sums[at] += sum;
                job->counts[at] += end - first;
            }
        }
    }
    for (size_t i = 0; i < own; i++)
        if (job->counts[i] > 0)
            values[i] = job->sums[i] / (double)job->counts[i];
}

static void run_steps(struct job *job, hem_exchange *exchange) {
    /* Halos come from their owners in the first run. */
    for (size_t i = 0; i < job->share.own; i++)
        job->values[i] = first_value(&job->mesh, (size_t)job->share.points[i]);
    for (int step = 0; step < STEPS; step++) {
        check(job, hem_exchange_run(exchange, NULL, HEM_FOREVER));
        smooth(job, job->values, job->places, job->share.own);
    }
    check(job, hem_exchange_run(exchange, NULL, HEM_FOREVER));
}

/* Compares all points that are stored here, halos too. */
static void compare(struct job *job) {
    const gmsh_mesh *mesh = &job->mesh;
    double *whole = allocate(job, mesh->point_count, sizeof *whole);

    for (size_t p = 0; p < mesh->point_count; p++)
        whole[p] = first_value(mesh, p);
    for (int step = 0; step < STEPS; step++)
        smooth(job, whole, NULL, mesh->point_count);
    for (size_t i = 0; i < job->share.count; i++) {
        double want = whole[job->share.points[i]];

        if (job->values[i] != want) {
            fprintf(stderr, "mesh: rank %d: point %lld is %.17g, not %.17g\n", job->rank,
                    (long long)job->share.points[i], job->values[i], want);
            exit(1);
        }
    }
    free(whole);
}

int main(int argc, char **argv) {
    static struct job job;

    if (argc != 2) {
        fprintf(stderr, "usage: mesh FILE.msh\n");
        return 2;
    }
    check(&job, hem_world_open(NULL, &job.world));
    job.rank = hem_world_rank(job.world);
    read_mesh(&job, argv[1]);
    job.values = allocate(&job, job.share.count, sizeof *job.values);
    job.sums = allocate(&job, job.mesh.point_count, sizeof *job.sums);
    job.counts = allocate(&job, job.mesh.point_count, sizeof *job.counts);

    hem_pattern *pattern = make_pattern(&job);
    hem_exchange *exchange = make_exchange(&job, pattern);

    check(&job, hem_pattern_destroy(pattern));
    run_steps(&job, exchange);
    compare(&job);
    check(&job, hem_exchange_destroy(exchange));
    if (job.rank == 0)
        printf("mesh %d ranks, %d steps of %zu points: all as they should be\n",
               hem_world_size(job.world), STEPS, job.mesh.point_count);
    check(&job, hem_world_close(job.world));
    mesh_share_free(&job.share);
    gmsh_free(&job.mesh);
    free(job.places);
    free(job.values);
    free(job.sums);
    free(job.counts);
    return 0;
}
