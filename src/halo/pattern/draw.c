/* Drawing a pattern: everybody tells rank 0 of its part, and that one draws. */
#include "base/options.h"
#include "halo/pattern/join.h"
#include "halo/pattern/sketch.h"

#include <errno.h>
#include <locale.h>
#include <string.h>

#define WHO "hem_pattern_draw"

static hem_status check(const hem_pattern *pattern, const char *path,
                        const hem_draw_options *options) {
    bool grid = pattern->kind == HEMI_PATTERN_GRID && pattern->dims == 2;
    if (!grid && pattern->kind != HEMI_PATTERN_MESH)
        return hemi_fail(HEM_ERR_UNSUPPORTED,
                         WHO ": only grids of 2 dimensions and meshes can be drawn");
    if (path == NULL)
        return hemi_fail(HEM_ERR_ARG, WHO ": path is NULL");
    if (grid)
        return HEM_OK;
    if (options->coordinates == NULL && pattern->domain_count > 0)
        return hemi_fail(HEM_ERR_ARG, WHO ": a mesh is drawn with coordinates");
    for (size_t i = 0; i < pattern->domain_count; i++)
        if (options->coordinates[i] == NULL && pattern->domains[i].points > 0)
            return hemi_fail(HEM_ERR_ARG, WHO ": the coordinates of domain %zu are NULL", i);
    return HEM_OK;
}

/* Numbers are written with a point, whatever the language of the caller. */
static hem_status draw(const hemi_sketch *sketch, FILE *file) {
    locale_t plain = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
    if (plain == (locale_t)0)
        return hemi_fail_errno(errno, WHO ": no locale to write numbers in");
    locale_t before = uselocale(plain);
    hem_status status = sketch->pattern->kind == HEMI_PATTERN_GRID ? hemi_draw_grid(sketch, file)
                                                                   : hemi_draw_mesh(sketch, file);
    uselocale(before);
    freelocale(plain);
    return status;
}

static hem_status write_file(const hemi_sketch *sketch, const char *path) {
    FILE *file = fopen(path, "we");
    if (file == NULL)
        return hemi_fail_errno(errno, WHO ": cannot write %s", path);
    hem_status status = draw(sketch, file);
    bool written = fflush(file) == 0 && ferror(file) == 0;
    int error = errno;
    if (fclose(file) != 0 && written) {
        written = false;
        error = errno;
    }
    if (status == HEM_OK && !written)
        status = hemi_fail_errno(error, WHO ": cannot write %s", path);
    return status;
}

static hem_status finish(const hem_pattern *pattern, const hemi_bag *bag, const char *path,
                         const char *title) {
    hemi_sketch sketch = {.title = title};
    if (pattern->rank != 0)
        return HEM_OK;
    hem_status status = hemi_sketch_make(pattern, bag, &sketch);
    if (status == HEM_OK)
        status = write_file(&sketch, path);
    hemi_sketch_free(&sketch);
    return status;
}

hem_status hem_pattern_draw(const hem_pattern *pattern, const char *path,
                            const hem_draw_options *options) {
    hem_draw_options o;
    hemi_router router;
    hemi_bag bag = {0};
    if (pattern == NULL)
        return hemi_fail(HEM_ERR_ARG, WHO ": pattern is NULL");
    hem_status status = hemi_options_read(&o, sizeof o, options, WHO);
    if (status == HEM_OK)
        status = check(pattern, path, &o);
    else
        memset(&o, 0, sizeof o);
    status = hemi_join_begin(&router, pattern, HEMI_CALL_PATTERN_DRAW, status, o.timeout_ns);
    if (status != HEM_OK)
        return status;
    status =
        hemi_sketch_tell(pattern, pattern->kind == HEMI_PATTERN_MESH ? o.coordinates : NULL, &bag);
    if (status != HEM_OK)
        hemi_bag_free(&bag);
    hem_status routed = hemi_route(&router, &bag);
    if (status == HEM_OK)
        status = routed;
    if (status == HEM_OK)
        status = finish(pattern, &bag, path, o.title);
    hemi_bag_free(&bag);
    return hemi_join_end(&router, pattern, status);
}
