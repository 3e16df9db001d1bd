#include "halo_bad.h"

void halo_refused(hem_world *world, const char *what, hem_status status, unsigned allowed) {
    if (status >= 0 || !(allowed >> -status & 1))
        harness_fail(__FILE__, __LINE__, "%s gave %s: %s", what, hem_status_name(status),
                     status ? hem_last_error() : "");
    if (!hem_last_error()[0])
        harness_fail(__FILE__, __LINE__, "%s gave %s without a sentence", what,
                     hem_status_name(status));
    harness_same(world, (uint64_t)-status);
}

halo_grid halo_ring(int ranks) {
    halo_grid g = {.dims = 1, .extent = {4 * ranks}, .periodic = {true}, .low = {1}, .high = {1}};

    for (int i = 0; i < ranks; i++)
        halo_grid_add(&g, &(hem_box){{4 * i}, {4}}, i);
    return g;
}

void halo_works(hem_world *world) {
    int size = hem_world_size(world);
    harness_rng rng = {1};
    halo_grid g = halo_ring(size);
    halo_case c = halo_grid_case(&g, size);
    hem_pattern *pattern = halo_grid_pattern(world, &g, &c);
    halo_spec spec = halo_spec_plain(1);
    halo_set s = {.world = world};
    hem_exchange *exchange;

    halo_set_add(&s, pattern, &c, &spec, HALO_C, HALO_PRIVATE, &rng);
    exchange = halo_set_exchange(&s);
    for (uint64_t round = 0; round < 3; round++)
        halo_set_run(&s, exchange, NULL, round);
    CHECK_OK(hem_exchange_destroy(exchange));
    hem_pattern_destroy(pattern);
    halo_set_free(&s);
    halo_case_free(&c);
    halo_grid_free(&g);
}
