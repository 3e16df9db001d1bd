/* Making patterns over Hem: hem_pattern_mesh, which searches for owners, or hem_pattern_grid. */
#include "hem_setup.h"

#include "hem_halo.h"
#include "meet.h"
#include "setup.h"

/* Of this thread, which is a rank. */
static _Thread_local hem_world *ranks_of_run;

static void help(void *ctx) {
    (void)ctx;
    bench_hem_need(hem_progress(ranks_of_run), "hem_progress");
}

static void find(struct bench_setup *setup, struct bench_found *found_p) {
    hem_pattern *pattern = bench_hem_pattern(ranks_of_run, &setup->halo);
    hem_pattern_facts facts = {.struct_size = sizeof(facts)};

    bench_hem_need(hem_pattern_info(pattern, &facts), "hem_pattern_info");
    bench_hem_need(hem_pattern_destroy(pattern), "hem_pattern_destroy");
    *found_p = (struct bench_found){.neighbours = facts.neighbours,
                                    .send_points = (size_t)facts.send_points,
                                    .recv_points = (size_t)facts.recv_points,
                                    .bytes = (size_t)facts.setup_bytes,
                                    .messages = (size_t)facts.setup_messages,
                                    .peak = (size_t)facts.setup_peak_bytes};
}

void bench_hem_setup(const struct bench_world *world, const struct bench_args *args,
                     hem_world *ranks) {
    struct bench_setup setup = {.halo = {.world = world, .help = help}, .find = find};

    ranks_of_run = ranks;
    setup.halo.meet = bench_meet_open(world);
    for (size_t i = 0; i < args->sizes.count; i++)
        bench_setup_measure(&setup, args, args->sizes.bytes[i]);
}
