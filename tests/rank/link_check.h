/* Looking at the links of a pattern from both sides. */
#ifndef HEM_TESTS_RANK_LINK_CHECK_H
#define HEM_TESTS_RANK_LINK_CHECK_H

#include "halo/pattern/pattern.h"
#include "harness.h"

/** Called for each point of a link, in its order; `at` counts from the domain's first own point. */
typedef void (*link_visit)(void *arg, const hemi_link *link, const int64_t *at);

void link_each_point(const hem_pattern *pattern, const hemi_link *link, link_visit visit,
                     void *arg);

/** What a point of a domain of this rank is called by everybody. Of a halo point: its original. */
typedef int64_t (*link_name)(void *arg, size_t domain, const int64_t *at);

/**
 * Every rank tells the names of the points that it sends, and each receiver compares them with those
 * that it expects, in order. Also that domains and sides agree, that links are ordered by rank, and
 * that totals do. Collective.
 */
void link_check_sides(hem_world *world, const hem_pattern *pattern, link_name name, void *arg);

#endif
