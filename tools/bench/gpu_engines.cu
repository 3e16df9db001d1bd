#include "gpu_engines.h"

/* Rank 0's points are below rank 1's; nothing is below those or above these. */
static void make_pattern(struct gpu_rank *rank, size_t bytes, bool both, hem_pattern **made_p) {
    hem_grid_options grid = {};
    hem_grid_domain domain = {};

    domain.id = rank->rank;
    domain.box.start[0] = rank->rank * (int64_t)bytes;
    domain.box.count[0] = (int64_t)bytes;
    grid.struct_size = sizeof(grid);
    grid.dims = 1;
    grid.extent[0] = 2 * (int64_t)bytes;
    grid.halo_low[0] = (int64_t)bytes;
    grid.halo_high[0] = both ? (int64_t)bytes : 0;
    grid.domains = &domain;
    grid.domain_count = 1;
    NEED_HEM(hem_pattern_grid(rank->world, &grid, made_p));
}

void gpu_engines_open(struct gpu_rank *rank, size_t bytes, bool both, struct gpu_engines *made_p) {
    hem_window_options options = {};
    hem_exchange_options how = {};
    hem_binding binding = {};
    hem_pattern *pattern;

    made_p->bytes = bytes;
    options.struct_size = sizeof(options);
    options.kind = HEM_MEMORY_DEVICE;
    options.bytes = 3 * bytes;
    NEED_HEM(hem_window_create(rank->world, &options, &made_p->window));
    make_pattern(rank, bytes, both, &pattern);
    binding.pattern = pattern;
    binding.field.struct_size = sizeof(binding.field);
    binding.field.memory = hem_window_memory(made_p->window);
    binding.field.dtype = HEM_U8;
    how.struct_size = sizeof(how);
    how.bindings = &binding;
    how.count = 1;
    how.way = HEM_EXCHANGE_ENGINES;
    NEED_HEM(hem_exchange_create(rank->world, &how, &made_p->exchange));
    NEED_HEM(hem_pattern_destroy(pattern));
}

void gpu_engines_close(struct gpu_rank *rank, struct gpu_engines *made) {
    gpu_meet(rank);
    NEED_HEM(hem_exchange_destroy(made->exchange));
    NEED_HEM(hem_window_destroy(made->window));
    made->exchange = NULL;
    made->window = NULL;
}

/* Below the points that a rank owns is room for as many halos, and above. */
unsigned char *gpu_engines_source(const struct gpu_engines *made) {
    return (unsigned char *)hem_window_memory(made->window) + made->bytes;
}

unsigned char *gpu_engines_target(const struct gpu_rank *rank, const struct gpu_engines *made) {
    size_t from = rank->rank == 0 ? 2 * made->bytes : 0;
    return (unsigned char *)hem_window_memory(made->window) + from;
}

void gpu_engines_sendrecv(struct gpu_rank *rank, struct gpu_engines *made) {
    NEED_HEM(hem_exchange_start_on(made->exchange, NULL, rank->hem));
    NEED_HEM(hem_exchange_finish_on(made->exchange, rank->hem));
}
