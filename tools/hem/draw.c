#include "commands.h"
#include "draw_pattern.h"
#include "say.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RANKS_MAX 1024

static const char help_text[] =
    "Usage: hem draw pattern --grid XxY | --mesh FILE [OPTIONS]\n"
    "\n"
    "Draw a pattern as SVG: who owns which points, who has which halos, and who sends where.\n"
    "\n"
    "  --grid XxY           a grid of X times Y points, cut into one box for each rank\n"
    "  --mesh FILE          a mesh of Gmsh, format 2 or 4, ASCII, cut by bisection\n"
    "  -n, --ranks N        how many ranks (default 4)\n"
    "  --halo W | LOW,HIGH  points of halo on both sides, or below and above (default 1)\n"
    "  --periodic x|y|xy    the grid goes around\n"
    "  --faces              halos without corners\n"
    "  --title TEXT         what stands above\n"
    "  --print              also print what each rank knows of the pattern\n"
    "  -o, --output FILE    where to write (default pattern.svg)\n"
    "  -h, --help           this text\n"
    "\n"
    "  hem draw pattern --grid 64x48 --ranks 6 --halo 2 --periodic x -o grid.svg\n"
    "  hem draw pattern --mesh wing.msh --ranks 8 -o wing.svg\n";

/* What the command line says. */
typedef struct wish {
    hemt_drawing drawing;
    bool grid;
    bool of_grid; /* an option was given that only grids have */
    const char *mesh;
} wish;

enum {
    OPTION_GRID = 256,
    OPTION_MESH,
    OPTION_HALO,
    OPTION_PERIODIC,
    OPTION_FACES,
    OPTION_TITLE,
    OPTION_PRINT
};

static const struct option options[] = {{"grid", required_argument, NULL, OPTION_GRID},
                                        {"mesh", required_argument, NULL, OPTION_MESH},
                                        {"ranks", required_argument, NULL, 'n'},
                                        {"halo", required_argument, NULL, OPTION_HALO},
                                        {"periodic", required_argument, NULL, OPTION_PERIODIC},
                                        {"faces", no_argument, NULL, OPTION_FACES},
                                        {"title", required_argument, NULL, OPTION_TITLE},
                                        {"print", no_argument, NULL, OPTION_PRINT},
                                        {"output", required_argument, NULL, 'o'},
                                        {"help", no_argument, NULL, 'h'},
                                        {NULL, 0, NULL, 0}};

/* A number of at least `least`, then `after`. @return what is behind, NULL if it is not there. */
static const char *read_number(const char *text, int64_t least, char after, int64_t *value_p) {
    char *end = NULL;
    if (text[0] < '0' || text[0] > '9')
        return NULL;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (errno != 0 || value < least || *end != after)
        return NULL;
    *value_p = value;
    return after == '\0' ? end : end + 1;
}

static bool read_grid(const char *text, hem_grid_options *grid) {
    const char *rest = read_number(text, 1, 'x', &grid->extent[0]);
    return rest != NULL && read_number(rest, 1, '\0', &grid->extent[1]) != NULL;
}

static bool read_halo(const char *text, hem_grid_options *grid) {
    int64_t low;
    int64_t high;
    const char *rest = read_number(text, 0, ',', &low);
    if (rest == NULL) {
        rest = text;
        if (read_number(text, 0, '\0', &low) == NULL)
            return false;
    }
    if (read_number(rest, 0, '\0', &high) == NULL)
        return false;
    for (int d = 0; d < 2; d++) {
        grid->halo_low[d] = low;
        grid->halo_high[d] = high;
    }
    return true;
}

static bool read_periodic(const char *text, hem_grid_options *grid) {
    grid->periodic[0] = strchr(text, 'x') != NULL;
    grid->periodic[1] = strchr(text, 'y') != NULL;
    return text[0] != '\0' && strspn(text, "xy") == strlen(text);
}

static bool read_ranks(const char *text, int *ranks_p) {
    int64_t ranks;
    if (read_number(text, 1, '\0', &ranks) == NULL || ranks > RANKS_MAX)
        return false;
    *ranks_p = (int)ranks;
    return true;
}

/* One option. @return whether its value can be. */
static bool read_option(int option, const char *value, wish *w) {
    hemt_drawing *d = &w->drawing;
    w->of_grid =
        w->of_grid || option == OPTION_HALO || option == OPTION_PERIODIC || option == OPTION_FACES;
    switch (option) {
    case OPTION_GRID:
        w->grid = true;
        return read_grid(value, &d->grid);
    case OPTION_HALO:
        return read_halo(value, &d->grid);
    case OPTION_PERIODIC:
        return read_periodic(value, &d->grid);
    case OPTION_FACES:
        d->grid.faces_only = true;
        return true;
    case 'n':
        return read_ranks(value, &d->ranks);
    case OPTION_MESH:
        w->mesh = value;
        return true;
    case OPTION_TITLE:
        d->title = value;
        return true;
    case OPTION_PRINT:
        d->print = true;
        return true;
    default:
        d->output = value;
        return value[0] != '\0';
    }
}

static int help(void) {
    fputs(help_text, stdout);
    return fflush(stdout) == 0 ? EXIT_SUCCESS : HEMT_EXIT_FAILED;
}

static int draw_grid(wish *w) {
    hemt_drawing *d = &w->drawing;
    if (hem_grid_balance(2, d->grid.extent, d->ranks, &d->cut) != HEM_OK) {
        hemt_say("draw", "%s", hem_last_error());
        return HEMT_EXIT_FAILED;
    }
    return hemt_draw_pattern(d);
}

static int draw_mesh(wish *w) {
    hemt_drawing *d = &w->drawing;
    char why[256];
    if (!gmsh_read(w->mesh, &d->mesh, why, sizeof why)) {
        hemt_say("draw", "%s: %s", w->mesh, why);
        return HEMT_EXIT_FAILED;
    }
    int code = HEMT_EXIT_FAILED;
    d->part_of = calloc(d->mesh.point_count, sizeof *d->part_of);
    if (d->part_of != NULL && mesh_bisect(&d->mesh, d->ranks, d->part_of))
        code = hemt_draw_pattern(d);
    else
        hemt_say("draw", "no memory for %zu points", d->mesh.point_count);
    free(d->part_of);
    gmsh_free(&d->mesh);
    return code;
}

int hemt_draw(int argc, char **argv) {
    wish w = {.drawing = {.ranks = 4, .output = "pattern.svg"}};
    w.drawing.grid.struct_size = sizeof w.drawing.grid;
    w.drawing.grid.dims = 2;
    (void)read_halo("1", &w.drawing.grid);
    opterr = 0;
    optind = 1;
    /* The word "pattern" may stand anywhere: getopt moves it to the end. */
    for (int option; (option = getopt_long(argc, argv, "n:o:h", options, NULL)) != -1;) {
        if (option == 'h')
            return help();
        if (option == '?')
            return hemt_usage("draw", "%.64s is no option, or lacks its value", argv[optind - 1]);
        if (!read_option(option, optarg, &w))
            return hemt_usage("draw", "%.64s cannot be", optarg);
    }
    if (optind + 1 != argc || strcmp(argv[optind], "pattern") != 0)
        return hemt_usage("draw", "what can be drawn is a pattern: hem draw pattern");
    if (w.grid == (w.mesh != NULL))
        return hemt_usage("draw", "give either --grid or --mesh");
    if (w.mesh != NULL && w.of_grid)
        return hemt_usage("draw", "only grids have --halo, --periodic and --faces");
    return w.grid ? draw_grid(&w) : draw_mesh(&w);
}
