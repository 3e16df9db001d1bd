#include "halo/pattern/pattern.h"

#include <errno.h>
#include <inttypes.h>

static const char *kind_name(uint32_t kind) {
    static const char *const names[] = {
        [HEMI_PATTERN_GRID] = "grid",
        [HEMI_PATTERN_MESH] = "mesh",
        [HEMI_PATTERN_SPHERE] = "cubed sphere",
        [HEMI_PATTERN_EXPLICIT] = "explicit lists",
    };
    return kind >= HEMI_PATTERN_GRID && kind <= HEMI_PATTERN_EXPLICIT ? names[kind] : "?";
}

static void print_head(const hem_pattern *pattern, FILE *file) {
    (void)fprintf(file, "pattern %" PRIu64 ", rank %u: %s", pattern->id, pattern->rank,
                  kind_name(pattern->kind));
    if (pattern->kind == HEMI_PATTERN_SPHERE)
        (void)fprintf(file, " of 6 x %" PRId64 " x %" PRId64 " points, halo %" PRId64,
                      pattern->extent[0], pattern->extent[1], pattern->halo_low[0]);
    for (int d = 0; pattern->kind == HEMI_PATTERN_GRID && d < pattern->dims; d++)
        (void)fprintf(file, "%s%" PRId64 "%s (halo %" PRId64 " below, %" PRId64 " above)",
                      d == 0 ? " of " : " x ", pattern->extent[d],
                      pattern->periodic[d] ? " periodic" : "", pattern->halo_low[d],
                      pattern->halo_high[d]);
    (void)fputc('\n', file);
}

static void print_domain(const hem_pattern *pattern, const hemi_domain *domain, FILE *file) {
    (void)fprintf(file, "  domain %" PRId64 ":", domain->id);
    if (pattern->kind == HEMI_PATTERN_SPHERE)
        (void)fprintf(file, " panel %d,", domain->panel);
    bool boxed = hemi_pattern_has_boxes(pattern);
    for (int d = 0; boxed && d < pattern->dims; d++)
        (void)fprintf(file, "%s%" PRId64 " to %" PRId64, d == 0 ? " " : " x ", domain->box.start[d],
                      domain->box.start[d] + domain->box.count[d] - 1);
    (void)fprintf(file, "%s %" PRIu64 " points stored, %" PRIu64 " of them halo\n",
                  boxed ? "," : "", domain->points, domain->halo_points);
}

static size_t count_links(const hemi_links *links, uint32_t peer) {
    size_t count = 0;
    for (size_t i = 0; i < links->count; i++)
        count += links->links[i].peer == peer;
    return count;
}

static const char *plural(uint64_t count) {
    return count == 1 ? "" : "s";
}

static void print_neighbour(const hem_pattern *pattern, const hem_neighbour *n, FILE *file) {
    size_t sends = count_links(&pattern->sends, (uint32_t)n->rank);
    size_t recvs = count_links(&pattern->recvs, (uint32_t)n->rank);
    (void)fprintf(file,
                  "  rank %d: sends %" PRIu64 " point%s in %zu link%s, receives %" PRIu64
                  " point%s in %zu link%s\n",
                  n->rank, n->send_points, plural(n->send_points), sends, plural(sends),
                  n->recv_points, plural(n->recv_points), recvs, plural(recvs));
}

static void print_rest(const hem_pattern *pattern, FILE *file) {
    uint64_t local = hemi_links_points(&pattern->recvs, pattern->rank, false);
    if (local > 0)
        (void)fprintf(file, "  itself: copies %" PRIu64 " points\n", local);
    if (pattern->holes > 0)
        (void)fprintf(file, "  holes: nobody owns %" PRIu64 " of its halo points\n",
                      pattern->holes);
    (void)fprintf(file,
                  "  set-up: %" PRIu64 " messages, %" PRIu64 " bytes sent, at most %" PRIu64
                  " bytes held, %.3f ms\n",
                  pattern->setup_messages, pattern->setup_bytes, pattern->setup_peak_bytes,
                  (double)pattern->setup_ns * 1e-6);
}

hem_status hem_pattern_print(const hem_pattern *pattern, FILE *file) {
    if (pattern == NULL || file == NULL)
        return hemi_fail(HEM_ERR_ARG, "hem_pattern_print: pattern or file is NULL");
    print_head(pattern, file);
    for (size_t i = 0; i < pattern->domain_count; i++)
        print_domain(pattern, &pattern->domains[i], file);
    for (size_t i = 0; i < pattern->neighbour_count; i++)
        print_neighbour(pattern, &pattern->neighbours[i], file);
    print_rest(pattern, file);
    if (fflush(file) != 0 || ferror(file))
        return hemi_fail_errno(errno, "hem_pattern_print: cannot write");
    return HEM_OK;
}
